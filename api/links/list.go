package links

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"linkstream/schema"
)

// The orders of a list.
const (
	SortNewest = "-created_at"
	SortOldest = "created_at"
	SortClicks = "-clicks" // the most first, then the newest
	SortFewest = "clicks"  // the fewest first, then the newest
)

// Limits of lists, which are read at once.
const (
	MaxSorted = 100_000 // links in a list by clicks
	maxQuery  = 300     // characters of a search with any number of words
	maxWords  = 8       // of a longer search
)

// ListRequest describes a list of an account's links. Zero values select all links, the newest first.
type ListRequest struct {
	AccountID int64
	// words; a link must match all of them, by a part of a name, its URL, title or a tag, as schema.LinkWord says, or by a
	// short URL of it
	Query     string
	Tag       string
	DomainID  *int64 // 0: the default domain
	IsActive  *bool
	ExpiredAt time.Time // as in schema.LinkFilter, like the next line
	From, To  time.Time // times of creation: CreatedFrom, CreatedBefore
	Sort      string
	Deleted   bool  // the links in the trash instead of the others, the last deleted first; Sort is ignored
	Page      int64 // from 1
	Rows      int64 // links per page; 0: schema.PageSize

	// Malformed has the problems of fields that could not be parsed, as in a Request.
	Malformed map[string][]string
}

// clickCounter is the part of schema.ClickStore that lists need.
type clickCounter interface {
	ClickCounts(ctx context.Context, linkIDs []int64) (map[int64]int64, error)
}

// List returns a page of links and the number of all links that match. CodeInvalid names
// every invalid field, also sort if more than MaxSorted links would have to be sorted by clicks. Without a filter each
// page costs the same; otherwise the cost is proportional to the number of the account's links.
func (s *Shortener) List(ctx context.Context, clicks clickCounter, req ListRequest) ([]schema.Link, int64, error) {
	filter, err := s.Filter(ctx, req)
	switch {
	case err != nil:
		return nil, 0, err
	case !req.Deleted && (req.Sort == SortClicks || req.Sort == SortFewest):
		return s.listByClicks(ctx, clicks, req, filter)
	}
	return s.links.Links(ctx, req.AccountID, filter, req.Page)
}

// listByClicks sorts the IDs of all links that match, and reads only the links of the page.
func (s *Shortener) listByClicks(
	ctx context.Context, clicks clickCounter, req ListRequest, filter schema.LinkFilter,
) ([]schema.Link, int64, error) {
	ids, err := s.links.LinkIDs(ctx, req.AccountID, filter, MaxSorted+1)
	if err != nil {
		return nil, 0, err
	}
	if len(ids) > MaxSorted {
		return nil, 0, InvalidFields(map[string][]string{
			"sort": {
				"More than 100,000 links cannot be sorted by clicks: narrow the list with q, tag, domain_id or is_active."}})
	}
	counts, err := clicks.ClickCounts(ctx, ids)
	if err != nil {
		return nil, 0, err
	}
	slices.SortStableFunc(ids, func(a, b int64) int {
		if req.Sort == SortFewest {
			a, b = b, a
		}
		return cmp.Compare(counts[b], counts[a])
	})
	total := int64(len(ids))
	if req.Page-1 > total/filter.Size() {
		return nil, total, nil
	}
	first := min((req.Page-1)*filter.Size(), total)
	page := ids[first:min(first+filter.Size(), total)]
	if len(page) == 0 {
		return nil, total, nil
	}
	links, err := s.links.LinksByID(ctx, req.AccountID, page)
	slices.SortFunc(links, func(a, b schema.Link) int {
		return cmp.Compare(slices.Index(page, a.ID), slices.Index(page, b.ID))
	})
	return links, total, err
}

// Filter returns the filter of a request. CodeInvalid names every invalid field.
func (s *Shortener) Filter(ctx context.Context, req ListRequest) (schema.LinkFilter, error) {
	v := newValidation(req.Malformed)
	filter := schema.LinkFilter{Tag: req.Tag, DomainID: req.DomainID, Redirects: req.IsActive,
		OldestFirst: req.Sort == SortOldest, Rows: req.Rows,
		ExpiredAt: req.ExpiredAt, CreatedFrom: req.From, CreatedBefore: req.To}
	if req.Deleted {
		filter.DeletedAfter = time.Now().Add(-schema.TrashTTL)
	}
	if req.Tag != "" {
		v.tag("tag", req.Tag)
	}
	if !slices.Contains([]string{"", SortNewest, SortOldest, SortClicks, SortFewest}, req.Sort) {
		v.reject("sort", "The list is sorted by -created_at, created_at, -clicks or clicks.")
	}
	words := strings.Fields(req.Query)
	if n := utf8.RuneCountInString(req.Query); n > schema.MaxURLLen || n > maxQuery && len(words) > maxWords {
		v.reject("q", "A search has at most 300 characters, or 8 words of at most 2048 characters together.")
	}
	onDomain := req.DomainID != nil && *req.DomainID != 0 && v.invalid[FieldDomainID] == nil
	var domains []schema.Domain
	if onDomain || len(words) > 0 {
		var err error
		if domains, err = s.domains.Domains(ctx, req.AccountID); err != nil {
			return filter, err
		}
	}
	if onDomain && !slices.ContainsFunc(domains, func(d schema.Domain) bool { return d.ID == *req.DomainID }) {
		v.reject(FieldDomainID, "You have no domain with this id. The default domain has 0.")
	}
	if err := v.outcome(); err != nil {
		return filter, err
	}
	seen := map[string]bool{"": true}
	for _, word := range words {
		if folded := schema.Fold(word); !seen[folded] {
			seen[folded] = true
			filter.Words = append(filter.Words, schema.LinkWord{Text: word, Key: s.keyOf(word, domains)})
		}
	}
	// Few links have a long word, and the store reads no further word of the others.
	slices.SortStableFunc(filter.Words, func(a, b schema.LinkWord) int { return len(b.Text) - len(a.Text) })
	return filter, nil
}

// keyOf returns the key of the link whose short URL a word is, with or without scheme and port; nil if it is no short
// URL.
func (s *Shortener) keyOf(word string, domains []schema.Domain) *schema.LinkKey {
	_, host, rest := schema.CutHost(word)
	_, hash, _ := strings.Cut(rest, "/")
	if i := strings.IndexAny(hash, "?#"); i >= 0 {
		hash = hash[:i]
	}
	hash = schema.Fold(strings.TrimSuffix(strings.TrimRight(hash, "/"), "+"))
	name, err := schema.ParseHost(host)
	if err != nil || !schema.ValidHash(hash) {
		return nil
	}
	if name == s.base.Host() {
		return &schema.LinkKey{Hash: hash}
	}
	for _, domain := range domains {
		if domain.Host == string(name) {
			return &schema.LinkKey{DomainID: domain.ID, Hash: hash}
		}
	}
	return nil
}
