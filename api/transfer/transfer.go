// Package transfer moves links between accounts and CSV files. It reads its own exports and those of other shorteners.
//
// # Formats
//
// A file is in UTF-8 or UTF-16. Its lines end with "\n", "\r\n" or "\r", and there is at least one row. The first line
// names the columns. Upper case, spaces, underscores and hyphens in names do not matter, nor does the order. A
// separator is a comma, a semicolon or a tab. Files of dub, Rebrandly, Sink, chhoto-url and linkstream may be JSON: a
// list of objects, or an object with one.
//
// Columns that are not listed are ignored, unless their names look like an alias, an end or a target: see Options.Map
// and Options.Ignore.
//
//	format      needs                  also reads
//	linkstream  long_url (or url,      alias (or custom_alias, hash, short_code, keyword), domain, title, tags,
//	            original_url)          is_active, created_at, expires_at, expired_url, forward_query, rules, variants,
//	                                   card (as JSON), max_clicks, password, external_id, short_url (or
//	                                   bitlink), clicks
//	shlink      shortCode, longUrl     domain, shortUrl, title, tags, createdAt, visits
//	kutt        address, target        domain, description, created_at, expire_in, banned, password, visit_count
//	yourls      keyword, url           title, timestamp, clicks
//	            source, target         hits
//	bitly       link (or bitlink),     custom link (or custom_bitlink, keyword_link), title, tags, date created
//	            destination URL (or    (or created_at, created), engagements (or clicks, total clicks), custom_bitlinks
//	            long_url)
//	dub         key, url (or link,     domain, shortLink, title, tags, createdAt, expiresAt, expiredUrl, clicks,
//	            url; short link,       password, disabledAt
//	            destination URL)
//	rebrandly   slashtag, destination  shortUrl, domain, title, tags, createdAt, clicks, forwardParameters
//	shortio     path, original URL     short URL, domain, title, tags, created at, expires at (or TTL), expired URL,
//	                                   clicks, password
//	sink        slug, url              comment (or title), tags, createdAt, expiration, password, redirectWithQuery
//	chhoto-url  short, long (or short- hits, expiry (or expiry_time), notes
//	            link, longlink; short_url, long_url, hits)
//	clicks      alias (or hash,        domain
//	            short_url), date, clicks
//
// Sources, looked up in November 2026:
//   - Shlink: shlink-web-component, src/short-urls/helpers/ExportShortUrlsBtn.tsx, writes createdAt, domain, shortCode,
//     shortUrl, longUrl, title, tags (separated by |) and visits. shlink-importer, src/Sources/Csv/CsvImporter.php,
//     reads Long URL, Short code, Domain, Title and Tags, in any case and with spaces.
//   - Kutt exports no CSV. The columns are its table's (server/models/link.model.js: address, description,
//     banned, password, expire_in, target, visit_count, created_at) and of GET /api/v2/links, which has the domain by
//     its name.
//   - YOURLS: the columns of its table yourls_url (keyword, url, title, timestamp, ip, clicks), and those of the plugin
//     YOURLS-Import-Export (fileio/csv.php: source, which is /keyword/, target, hits).
//   - Bitly publishes no list of columns, and no sample of its own was at hand: all names come from third parties.
//     URLR's guide "Migration from Bitly" (URLR/urlr-docs) names Link, Custom Link and Destination URL of the export of
//     Bitly's Links page. Title, Tags, Date created and Engagements are as users have described them. The importer of
//     DhananjayThomble/URL-Shortener-App (web/src/lib/import/sources/bitly.ts) reads Bitlink, Long URL, Title, Tags,
//     Created and Total Clicks. Exports by tools have the names of Bitly's API: link, long_url, title, tags,
//     created_at, and keyword_link in version 3 (tpherndon/bitly_api_examples).
//   - dub: apps/web/app/api/links/export/route.ts and lib/api/links/format-links-for-export.ts write the columns of the
//     dashboard's export, by their names or labels; lib/zod/schemas/links.ts has the names of the API.
//   - Rebrandly: developers.rebrandly.com/docs/link-entity. The CSV of its dashboard is not described.
//   - Short.io publishes no list of columns: they are as users describe them.
//   - Sink: shared/schemas/link.ts, and migrate/Export.vue, which writes JSON. CSV comes from other tools.
//   - chhoto-url: the answers of its API and its table (backend/src/database/queries.rs).
//
// # From a row to a link
//
// A link keeps its alias as it is, upper case included, because short links that are out in the world have to go on
// working. Otherwise the rules of links.Create apply: see schema.AliasProblem.
//
//   - Alias and domain are read from their columns. Without that column, the domain is read from the short URL, and the
//     alias also if its cell is empty. The short URL may lack its scheme and host; its query and a slash at its end do
//     not matter. If it has no alias, or an alias that cannot be taken, the row is an error: the link would get another
//     address. A custom link of Bitly takes the place of the bit.ly address. Of custom_bitlinks, up to 20 per row, each
//     becomes a link.
//   - A domain that the account has verified is used. Links of other hosts come to Options.DomainID: by default the
//     default domain. Report.Hosts says which.
//   - An external ID is kept. A row whose ID another link of the account has is an error.
//   - The time of creation is kept. The place in lists, which are in the order in which links were added, is not.
//   - A time of expiry may be in the past: such a link has an answer for its visitors, too.
//   - Clicks become imported clicks of the link: see schema.History. Their source is the format, and their day is the
//     day on which the link was created. A file of clicks by day replaces them if it is imported with the same source.
//   - Titles are cut to 200 characters. Tags of other shorteners are made valid: "Summer sale" becomes "summer-sale".
//   - A link that has a password is an error, because it would be open to everyone here. Only own files have passwords.
//   - A link of Kutt that is banned, or of dub that is disabled, is switched off.
//
// # Running an import again
//
// An import that was interrupted, by kill -9 too, is completed by running it again. A row whose alias leads to the same
// long URL already, as a link of the account, is present and not an error. A row without an alias gets a hash that
// follows from account, domain and long URL, so that the next run finds the link. Several such rows for one long URL
// are therefore one link.
package transfer

import (
	"context"
	"io"
	"time"

	"linkstream/api/links"
	"linkstream/schema"
)

// Importer creates links from files. Its methods may be called concurrently.
type Importer struct {
	shortener *links.Shortener
	links     linkReader
	domains   domainReader
	clicks    Histories
}

// Histories is the part of a click store that imports of clicks need.
type Histories interface {
	SetHistories(ctx context.Context, histories ...schema.History) error
	ClickCounts(ctx context.Context, accountID int64, linkIDs []int64) (map[int64]int64, error)
}

// linkReader is the part of schema.LinkStore that imports need beside a Shortener.
type linkReader interface {
	LinksByHash(ctx context.Context, keys []schema.LinkKey) ([]schema.Link, error)
}

// domainReader is the part of schema.DomainStore that imports need.
type domainReader interface {
	Domains(ctx context.Context, accountID int64) ([]schema.Domain, error)
}

// NewImporter returns an Importer. store and domains are the stores of the Shortener.
func NewImporter(
	shortener *links.Shortener, store linkReader, domains domainReader, clicks Histories,
) *Importer {
	return &Importer{shortener, store, domains, clicks}
}

// Options of an import. Zero values work.
type Options struct {
	Format   Format // "": recognized by the names of the columns
	DomainID *int64 // of links whose host is not a verified domain of the account; nil: the default domain
	Source   string // of the clicks, see schema.History; "": the format, or "import" for files of no service
	// Map has the columns of fields by MapFields, and Ignore columns that are not read. Columns have the names of the
	// file.
	Map      map[string]string
	Ignore   []string
	Progress func(Progress) // if not nil, called about every thousand rows; the import waits for it
	OnError  func(RowError) // if not nil, called for every error, in order of lines within about a thousand rows
}

// Limits of a Report.
const (
	MaxFirst  = 20  // rows
	MaxErrors = 100 // errors
	maxHosts  = 50
)

// Progress counts the rows that are done. A row is Created, Present or Failed.
type Progress struct {
	Rows    int64
	Created int64 // in a preview: would be created
	Present int64 // already there
	Failed  int64
	Clicks  int64 // that other services have counted on links that were created or are present
	Bytes   int64 // of the file, up to the last row that is done; buffering makes it inexact
}

// Report says what became of a file or, in a preview, what would become of it.
type Report struct {
	Format    Format
	Source    string   // of the clicks
	Separator rune     // 0: the file is JSON
	Columns   []Column // in the order of the file
	Progress
	First  []Row      // the first MaxFirst rows that can be read
	Errors []RowError // the first MaxErrors; Options.OnError gets all
	Hosts  []HostUse  // where links of the hosts in the file go, in the order of the file; the first 50
	Notes  []Note     // what is not taken over as it is
}

// Imports reports whether an import changes anything.
func (r Report) Imports() bool { return r.Created > 0 || r.Clicks > 0 }

// Column is a column of a file.
type Column struct {
	Name  string // as in the file, but at most 64 bytes and without control characters
	Field string // what it is read as, such as "long_url"; "": ignored
}

// Meaning returns the field as MapFields and people call it, "" for a column that is not read.
func (c Column) Meaning() string {
	switch c.Field {
	case links.FieldCustomAlias:
		return links.FieldAlias
	case fieldCustomURL, fieldCustomURLs:
		return fieldShortURL
	case fieldPassword, fieldHasPassword:
		return "whether it has a password"
	case fieldCardTitle:
		return links.FieldTitle
	case fieldBanned, fieldDisabledAt:
		return "whether it is off"
	}
	return c.Field
}

// HostUse says to which domain the links of a host go.
type HostUse struct {
	Host   string // "": rows without one
	Domain string // the host of the links from now on: of a domain of the account, or of the default domain
	Rows   int64
}

// Moved reports whether the links change their host.
func (h HostUse) Moved() bool { return h.Host != "" && h.Host != h.Domain }

// Note is a sentence about rows that are changed on their way.
type Note struct {
	Text string
	Rows int64
}

// RowError is something wrong with a row. A row may have several.
type RowError struct {
	Line   int    // where the row begins in the file, from 1
	Column string // the name of a Column; "": the whole row
	Reason string // a sentence for the owner of the file
}

// Outcome is what becomes of a row.
type Outcome string

// The outcomes.
const (
	Created Outcome = "created" // in a preview: would be
	Present Outcome = "present" // the account has the link already
	Failed  Outcome = "failed"  // see the errors of the line
)

// Row is a row as it becomes a link.
type Row struct {
	Line         int
	Outcome      Outcome
	ShortURL     string // "" if the alias is not valid
	Alias        string // "" if the row has none
	LongURL      string
	Title        string
	Tags         []string
	CreatedAt    time.Time // zero: the time of the import
	ExpiresAt    time.Time // zero: never
	ExpiredURL   string
	ForwardQuery bool
	Active       bool
}

// Import creates the links of a file for an account. Everything that is wrong with a row is in the report, and the
// import goes on. CodeInvalid, with a message for the owner of the file, if the file cannot be read any further: its
// columns are not recognized, or a row is longer than 64 KiB. Other errors come from the reader or a store. The
// report then counts what was done before the error, and running the import again completes it.
func (im *Importer) Import(ctx context.Context, accountID int64, file io.Reader, opts Options) (Report, error) {
	return im.run(ctx, accountID, file, opts, false)
}

// Preview is Import, but creates nothing. It reads the whole file. It notices an alias that occurs twice only within
// the first million rows.
func (im *Importer) Preview(ctx context.Context, accountID int64, file io.Reader, opts Options) (Report, error) {
	return im.run(ctx, accountID, file, opts, true)
}
