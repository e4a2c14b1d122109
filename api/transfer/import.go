package transfer

import (
	"context"
	"errors"
	"hash/maphash"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"linkstream/api/links"
	"linkstream/schema"
)

// Sizes of an import.
const (
	chunkRows  = schema.MaxLinkBatch // rows that are looked up and created together
	chunkBytes = 4 << 20             // of the file, approximately, after which a chunk ends
	maxTries   = 8                   // look-ups of a row
	maxAliases = 1 << 20             // aliases that a preview remembers
)

// session is an import on its way.
type session struct {
	*Importer
	ctx     context.Context
	account int64
	options Options
	dry     bool

	reader  *reader
	ready   []*item          // of the last record, for the next chunk
	domains map[string]int64 // verified ones by host; the default domain is 0
	column  map[string]string
	report  Report

	sums map[int64]int64 // clicks by link, of links that several rows may name

	seed maphash.Seed      // of a preview
	seen map[uint64]uint64 // hashes of the long URLs by hashes of the addresses
}

func (im *Importer) run(ctx context.Context, accountID int64, file io.Reader, opts Options, dry bool) (Report, error) {
	r, err := openReader(file, opts)
	if err != nil {
		return Report{Columns: r.columns}, err
	}
	s := &session{Importer: im, ctx: ctx, account: accountID, options: opts, dry: dry, reader: r,
		column: map[string]string{}, sums: map[int64]int64{},
		report: Report{Format: r.layout.format, Separator: r.separator, Columns: r.columns},
		seed:   maphash.MakeSeed(), seen: map[uint64]uint64{}}
	for _, column := range r.columns {
		s.column[column.Field] = column.Name
	}
	if s.domains, err = im.domainsByHost(ctx, accountID); err != nil {
		return s.report, err
	}
	s.report.Source = s.source()
	if err = s.checkSource(); err != nil {
		return s.report, err
	}
	if r.layout.format == Clicks {
		err = s.storeDays()
	} else {
		err = s.storeAll()
	}
	if err == nil && s.report.Rows == 0 {
		err = schema.ClientErrorf(schema.CodeInvalid, "The file has a line with the names of its columns, and no rows.")
	}
	return s.report, err
}

// domainsByHost returns the IDs of the account's verified domains, and 0 for the default domain.
func (im *Importer) domainsByHost(ctx context.Context, accountID int64) (map[string]int64, error) {
	domains, err := im.domains.Domains(ctx, accountID)
	byHost := map[string]int64{string(im.shortener.Base().Host()): 0}
	for _, domain := range domains {
		if !domain.VerifiedAt.IsZero() {
			byHost[domain.Host] = domain.ID
		}
	}
	return byHost, err
}

// chunk is rows that are stored together.
type chunk struct {
	items  []*item
	offset int64 // in the file, behind the rows
	err    error // that ended the reading; nil if more may follow
}

// storeAll stores the rows chunk by chunk. It reads the next one meanwhile, because a store makes it wait. When it
// returns, the file is not read any more.
func (s *session) storeAll() error {
	chunks, stop := make(chan chunk), make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			c := s.read(stop)
			select {
			case <-stop:
				return
			case chunks <- c:
			}
			if c.err != nil {
				return
			}
		}
	})
	defer reading.Wait()
	defer close(stop)
	for {
		select {
		case <-s.ctx.Done():
			return s.ctx.Err()
		case c := <-chunks:
			if err := s.storeChunk(c); err != nil {
				return err
			}
			if errors.Is(c.err, io.EOF) {
				return nil
			}
			if c.err != nil {
				return c.err
			}
		}
	}
}

// storeChunk stores rows and counts them.
func (s *session) storeChunk(c chunk) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	for _, it := range c.items {
		if it.outcome == "" {
			s.choose(it)
		}
	}
	if len(c.items) > 0 {
		if err := s.store(c.items); err != nil {
			return err
		}
		if !s.dry {
			if err := s.keepNames(c.items); err != nil {
				return err
			}
		}
		if err := s.importClicks(c.items); err != nil {
			return err
		}
	}
	for _, it := range c.items {
		s.count(it)
	}
	s.report.Bytes = c.offset
	if s.options.Progress != nil && len(c.items) > 0 {
		s.options.Progress(s.report.Progress)
	}
	return nil
}

// read reads the rows of a chunk, or fewer after stop.
func (s *session) read(stop <-chan struct{}) (c chunk) {
	now, from := time.Now(), s.reader.offset()
	for len(c.items) < chunkRows && (len(s.ready) > 0 || s.reader.offset()-from < chunkBytes) {
		if len(s.ready) > 0 {
			it := s.ready[0]
			it.request.AccountID = s.account
			c.items, s.ready = append(c.items, it), s.ready[1:]
			continue
		}
		select {
		case <-stop:
			return c
		default:
		}
		rec, err := s.reader.next()
		var bad *RowError
		if errors.As(err, &bad) {
			c.items = append(c.items, &item{line: bad.Line, outcome: Failed, errors: []RowError{*bad}})
			continue
		}
		if c.err = err; err != nil {
			break
		}
		s.ready = s.reader.items(rec, now)
	}
	c.offset = s.reader.offset()
	return c
}

// choose decides on which domain the link of a row is, and counts the row for its host.
func (s *session) choose(it *item) {
	if s.place(it) {
		s.countHost(it)
	}
}

// place decides on which domain the link of a row is. It returns false if the row names no valid one.
func (s *session) place(it *item) bool {
	id, own := s.domains[it.host]
	if host, _, inPath := strings.Cut(strings.ToLower(it.alias), "/"); inPath {
		if _, own := s.domains[host]; own {
			it.malformed(links.FieldCustomAlias, "The alias begins with the host of short links.")
		}
	}
	switch {
	case it.request.Malformed[links.FieldDomainID] != nil:
		return false
	case own && id != 0:
		it.request.DomainID = &id
	case !own:
		it.request.DomainID = s.options.DomainID
	}
	return true
}

// countHost counts a row for its host.
func (s *session) countHost(it *item) {
	i := slices.IndexFunc(s.report.Hosts, func(h HostUse) bool { return h.Host == it.host })
	if i < 0 {
		if len(s.report.Hosts) == maxHosts {
			return
		}
		i = len(s.report.Hosts)
		s.report.Hosts = append(s.report.Hosts, HostUse{Host: it.host, Domain: s.hostOf(it)})
	}
	s.report.Hosts[i].Rows++
}

// hostOf returns the host on which the link of a row is.
func (s *session) hostOf(it *item) string {
	id := domainID(it.request)
	for host, of := range s.domains {
		if of == id {
			return host
		}
	}
	return ""
}

func domainID(req links.Request) int64 {
	if req.DomainID == nil {
		return 0
	}
	return *req.DomainID
}

// count adds a row that is done to the report.
func (s *session) count(it *item) {
	s.report.Rows++
	switch it.outcome {
	case Created:
		s.report.Created++
	case Present:
		s.report.Present++
	default:
		s.report.Failed++
	}
	for _, problem := range it.errors {
		if len(s.report.Errors) < MaxErrors {
			s.report.Errors = append(s.report.Errors, problem)
		}
		if s.options.OnError != nil {
			s.options.OnError(problem)
		}
	}
	if it.request.AccountID == 0 { // the row could not be read
		return
	}
	for _, text := range it.notes {
		i := slices.IndexFunc(s.report.Notes, func(n Note) bool { return n.Text == text })
		if i < 0 {
			i = len(s.report.Notes)
			s.report.Notes = append(s.report.Notes, Note{Text: text})
		}
		s.report.Notes[i].Rows++
	}
	if len(s.report.First) < MaxFirst {
		s.report.First = append(s.report.First, s.row(it))
	}
}

func (s *session) row(it *item) Row {
	req := it.request
	row := Row{Line: it.line, Outcome: it.outcome, Alias: it.alias, LongURL: req.LongURL, Title: req.Title, Tags: req.Tags,
		CreatedAt: req.CreatedAt, ForwardQuery: req.ForwardQuery, Active: !req.Inactive}
	if req.ExpiresAt != nil {
		row.ExpiresAt = *req.ExpiresAt
	}
	if req.ExpiredURL != nil {
		row.ExpiredURL = *req.ExpiredURL
	}
	if hash := it.hash(); schema.ValidHash(hash) {
		row.ShortURL = s.shortener.ShortURL(schema.Link{DomainID: domainID(req), Host: s.hostOf(it), Hash: hash})
	}
	return row
}

// fail notes the error of CreateAll for a row.
func (s *session) fail(it *item, err error) {
	it.outcome = Failed
	var e *schema.Error
	if !errors.As(err, &e) || len(e.Fields) == 0 { // the host is on the blocklist
		it.errors = append(it.errors, RowError{it.line, s.column[links.FieldLongURL], e.Message})
		return
	}
	for _, field := range slices.Sorted(maps.Keys(e.Fields)) {
		for _, problem := range e.Fields[field] {
			it.errors = append(it.errors, RowError{it.line, s.columnOf(field), problem})
		}
	}
}

// columnOf returns the name of the column from which a field was read.
func (s *session) columnOf(field string) string {
	if field == links.FieldDomainID {
		field = fieldHost
	}
	name := s.column[field]
	if name == "" && (field == links.FieldCustomAlias || field == fieldHost) {
		name = s.column[fieldShortURL]
	}
	return name
}
