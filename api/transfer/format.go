package transfer

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"linkstream/api/links"
	"linkstream/schema"
)

// Format is the layout of a file.
type Format string

// The formats, see the package's documentation.
const (
	Linkstream Format = "linkstream"
	Shlink     Format = "shlink"
	Kutt       Format = "kutt"
	YOURLS     Format = "yourls"
	Bitly      Format = "bitly"
	Dub        Format = "dub"
	Rebrandly  Format = "rebrandly"
	ShortIO    Format = "shortio"
	Sink       Format = "sink"
	Chhoto     Format = "chhoto-url"
	// Clicks is the layout of a file that has no links, but the clicks of each day on links of the account.
	Clicks Format = "clicks"
)

// Formats returns all formats.
func Formats() (all []Format) {
	for _, l := range layouts {
		all = append(all, l.format)
	}
	slices.Sort(all)
	return all
}

// ParseFormat returns the format with that name, or "" for "". CodeInvalid if there is none.
func ParseFormat(name string) (Format, error) {
	if name == "" || slices.Contains(Formats(), Format(name)) {
		return Format(name), nil
	}
	return "", schema.ClientErrorf(schema.CodeInvalid, "The format %q is not known. Formats are %s.", name, formatNames())
}

func formatNames() string {
	var names []string
	for _, format := range Formats() {
		names = append(names, string(format))
	}
	return strings.Join(names, ", ")
}

// The fields of a row that links.Request does not have.
const (
	fieldHost      = "domain"
	fieldShortURL  = "short_url"
	fieldCustomURL = "custom_short_url" // takes the place of short_url
	// fieldCustomURLs has several custom_short_url, each of which becomes a link.
	fieldCustomURLs = "custom_short_urls"
	fieldCreatedAt  = "created_at"
	fieldClicks     = "clicks"
	fieldDate       = "date" // of the clicks
	// fieldDisabledAt is since when the link is off, empty if it is not.
	fieldDisabledAt = "disabled_at"
	fieldCardTitle  = "card_title" // the title of a link that has no other
	fieldBanned     = "banned"
	fieldPassword   = links.FieldPassword
	// fieldHasPassword says that the link has a password, which no export knows.
	fieldHasPassword = "has_password"
)

// layout says how the columns of a format are called, after plainName.
type layout struct {
	format Format
	needs  [][]string        // sets of columns; a file has all columns of one set
	fields map[string]string // by column; "": it is known, and not read
	json   bool              // the file may be JSON
}

// layouts are tried in this order, the more particular ones first.
var layouts = []layout{
	{Dub, [][]string{{"key", "url"}, {"link", "url"}, {"shortlink", "destinationurl"}}, map[string]string{
		"key": links.FieldCustomAlias, "url": links.FieldLongURL, "destinationurl": links.FieldLongURL,
		"domain": fieldHost, "shortlink": fieldShortURL, "link": fieldShortURL, "title": links.FieldTitle,
		"tags": links.FieldTags, "createdat": fieldCreatedAt, "expiresat": links.FieldExpiresAt,
		"expiredurl": links.FieldExpiredURL, "clicks": fieldClicks, "password": fieldPassword, "disabledat": fieldDisabledAt,
	}, false},
	{Rebrandly, [][]string{{"slashtag", "destination"}}, map[string]string{
		"slashtag": links.FieldCustomAlias, "destination": links.FieldLongURL, "shorturl": fieldShortURL,
		"title": links.FieldTitle, "tags": links.FieldTags, "domain": fieldHost, "domain.fullname": fieldHost,
		"createdat": fieldCreatedAt, "clicks": fieldClicks, "forwardparameters": links.FieldForwardQuery,
	}, true},
	{ShortIO, [][]string{{"path", "originalurl"}}, map[string]string{
		"path": links.FieldCustomAlias, "originalurl": links.FieldLongURL, "shorturl": fieldShortURL,
		"title": links.FieldTitle, "tags": links.FieldTags, "domain": fieldHost, "createdat": fieldCreatedAt,
		"expiresat": links.FieldExpiresAt, "ttl": links.FieldExpiresAt, "expiredurl": links.FieldExpiredURL,
		"clicks": fieldClicks, "password": fieldPassword, "redirecttype": "",
	}, false},
	{Sink, [][]string{{"slug", "url"}}, map[string]string{
		"slug": links.FieldCustomAlias, "url": links.FieldLongURL, "comment": links.FieldTitle, "title": fieldCardTitle,
		"tags": links.FieldTags, "createdat": fieldCreatedAt, "expiration": links.FieldExpiresAt, "password": fieldPassword,
		"redirectwithquery": links.FieldForwardQuery,
	}, true},
	{Chhoto, [][]string{{"short", "long"}, {"shortlink", "longlink"},
		{"shorturl", "longurl", "hits"}}, map[string]string{
		"short": links.FieldCustomAlias, "shortlink": links.FieldCustomAlias, "shorturl": links.FieldCustomAlias,
		"long": links.FieldLongURL, "longlink": links.FieldLongURL, "longurl": links.FieldLongURL, "hits": fieldClicks,
		"expiry": links.FieldExpiresAt, "expirytime": links.FieldExpiresAt, "notes": links.FieldTitle,
	}, true},
	{Kutt, [][]string{{"address", "target"}}, map[string]string{
		"address": links.FieldCustomAlias, "target": links.FieldLongURL, "domain": fieldHost,
		"description": links.FieldTitle,
		"link":        fieldShortURL,
		"createdat":   fieldCreatedAt, "expirein": links.FieldExpiresAt, "banned": fieldBanned, "password": fieldPassword,
		"visitcount": fieldClicks,
	}, false},
	{YOURLS, [][]string{{"keyword", "url"}, {"source", "target"}}, map[string]string{
		"keyword": links.FieldCustomAlias, "url": links.FieldLongURL, "title": links.FieldTitle,
		"timestamp": fieldCreatedAt,
		"clicks":    fieldClicks, "source": links.FieldCustomAlias, "target": links.FieldLongURL, "hits": fieldClicks,
	}, false},
	{Shlink, [][]string{{"shortcode", "longurl"}}, map[string]string{
		"shortcode": links.FieldCustomAlias, "longurl": links.FieldLongURL, "domain": fieldHost,
		"shorturl": fieldShortURL,
		"title":    links.FieldTitle, "tags": links.FieldTags, "createdat": fieldCreatedAt, "visits": fieldClicks,
		"validuntil": links.FieldExpiresAt, "maxvisits": links.FieldMaxClicks,
	}, false},
	{Bitly, [][]string{{"link", "destinationurl"}, {"link", "longurl"}, {"bitlink", "destinationurl"},
		{"bitlink", "longurl"},
		{"custombitlink", "longurl"}, {"custombitlinks", "longurl"}}, map[string]string{
		"link": fieldShortURL, "bitlink": fieldShortURL, "customlink": fieldCustomURL, "custombitlink": fieldCustomURL,
		"custombitlinks": fieldCustomURLs,
		"destinationurl": links.FieldLongURL, "longurl": links.FieldLongURL, "title": links.FieldTitle,
		"tags":        links.FieldTags,
		"keywordlink": fieldCustomURL, "datecreated": fieldCreatedAt, "createdat": fieldCreatedAt, "created": fieldCreatedAt,
		"engagements": fieldClicks, "clicks": fieldClicks, "totalclicks": fieldClicks,
	}, false},
	{Linkstream, [][]string{{"longurl"}, {"url"}, {"originalurl"}}, map[string]string{
		"longurl": links.FieldLongURL, "url": links.FieldLongURL, "originalurl": links.FieldLongURL,
		"alias": links.FieldCustomAlias, "customalias": links.FieldCustomAlias, "hash": links.FieldCustomAlias,
		"shortcode": links.FieldCustomAlias, "keyword": links.FieldCustomAlias,
		"domain": fieldHost, "shorturl": fieldShortURL, "bitlink": fieldShortURL,
		"shortlink": fieldShortURL, "title": links.FieldTitle, "tags": links.FieldTags,
		"isactive": links.FieldIsActive, "createdat": fieldCreatedAt, "expiresat": links.FieldExpiresAt,
		"expiredurl": links.FieldExpiredURL, "forwardquery": links.FieldForwardQuery, "clicks": fieldClicks,
		"rules": links.FieldRules, "variants": links.FieldVariants, "card": links.FieldCard,
		"maxclicks": links.FieldMaxClicks, "formerhashes": fieldFormer,
		"password": links.FieldPassword, "haspassword": fieldHasPassword,
		"pathmode": links.FieldPathMode, "externalid": links.FieldExternalID,
	}, true},
	{Clicks, [][]string{{"alias", "date", "clicks"}, {"hash", "date", "clicks"}, {"shorturl", "date", "clicks"}},
		map[string]string{
			"alias": links.FieldCustomAlias, "hash": links.FieldCustomAlias, "shorturl": fieldShortURL, "domain": fieldHost,
			"date": fieldDate, "clicks": fieldClicks,
		}, false},
}

// plainName returns the name of a column as layouts have it.
func plainName(name string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if r == ' ' || r == '_' || r == '-' {
			return -1
		}
		return r
	}, strings.TrimSpace(name)))
}

// recognize returns the layout of a file with these columns. wanted is its format, or "".
func recognize(names []string, wanted Format) (layout, bool) {
	plain := make([]string, len(names))
	for i, name := range names {
		plain[i] = plainName(name)
	}
	for _, l := range layouts {
		if wanted != "" && l.format != wanted {
			continue
		}
		for _, needed := range l.needs {
			if !slices.ContainsFunc(needed, func(name string) bool { return !slices.Contains(plain, name) }) {
				return l, true
			}
		}
	}
	return layout{}, false
}

// printable returns the name of a column for a message: in UTF-8, without control characters.
func printable(name string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) {
			return '?'
		}
		return r
	}, name))
}
