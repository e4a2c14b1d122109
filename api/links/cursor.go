package links

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"slices"
	"time"

	"linkstream/schema"
)

// Fields of requests for lists.
const (
	FieldLimit        = "limit"
	FieldUpdatedSince = "updated_since"
)

// MaxPage is the most links of a page of ListAfter.
const MaxPage = 1000

// CursorRequest describes a page of an account's links that follows a cursor.
type CursorRequest struct {
	ListRequest        // without Page
	Limit       int    // 1 to MaxPage
	After       string // the cursor that came with the page before; "": the start
	// UpdatedSince, if not nil, asks for changes instead: links that were made, changed or deleted at a time or later.
	UpdatedSince *time.Time
}

// CursorPage is a page of links.
type CursorPage struct {
	Links   []schema.Link
	Next    string // the cursor of the next page; "": there is none
	Changes bool   // the links are changes, deleted ones among them, and Next is never ""
}

// numberedAtOnce is how many changes get their numbers in one transaction.
const numberedAtOnce = 1000

// ListAfter returns a page of links. Following cursors, each link that exists throughout comes exactly once, in the
// order of the creation of links. Changes come in the order in which they became visible, and a link again after each
// later change; their last cursor stays valid for later calls. CodeInvalid names every invalid field.
func (s *Shortener) ListAfter(ctx context.Context, req CursorRequest) (page CursorPage, err error) {
	v := newValidation(req.Malformed)
	if v.invalid[FieldLimit] == nil && (req.Limit < 1 || req.Limit > MaxPage) {
		v.reject(FieldLimit, "The limit must be an integer from 1 to 1000.")
	}
	at := cursor{list: req.listDigest()}
	if req.After != "" {
		var ok bool
		if at, ok = parseCursor(req.After); !ok || at.list != req.listDigest() {
			v.reject(FieldAfter, badCursor)
		}
	}
	if req.UpdatedSince != nil && v.invalid[FieldAfter] == nil {
		since := storable(*req.UpdatedSince)
		if at.changes && !at.change.Since.Equal(since) || !at.changes && req.After != "" {
			v.reject(FieldAfter, badCursor)
		}
		at.changes, at.change.Since = true, since
	}
	switch page.Changes = at.changes; {
	case page.Changes && req.Sort != "":
		v.reject("sort", "Changes come in their own order: leave sort out.")
	case page.Changes && req.Deleted:
		v.reject("deleted", "Deleted links are among the changes: leave deleted out.")
	case !slices.Contains([]string{"", SortNewest, SortOldest}, req.Sort):
		v.reject("sort", "With a cursor, the list is sorted by -created_at or created_at.")
	}
	req.Malformed = v.invalid
	filter, err := s.Filter(ctx, req.ListRequest)
	switch {
	case err != nil:
	case page.Changes:
		page.Links, err = s.changes(ctx, req, filter, &at)
		page.Next = at.String()
	default:
		page.Links, err = s.links.LinksAfter(ctx, req.AccountID, filter, at.link, req.Limit+1)
		if len(page.Links) > req.Limit {
			page.Links = page.Links[:req.Limit]
			at.link = schema.PositionOf(page.Links[req.Limit-1])
			page.Next = at.String()
		}
	}
	return page, err
}

// storable returns the nearest time that stores keep.
func storable(at time.Time) time.Time {
	switch at = at.UTC().Truncate(time.Millisecond); {
	case at.Before(time.Time{}):
		return time.Time{}
	case at.After(maxExpiry):
		return maxExpiry
	}
	return at
}

// changes numbers what has changed, returns the links after a cursor and moves it behind them.
func (s *Shortener) changes(
	ctx context.Context, req CursorRequest, filter schema.LinkFilter, at *cursor,
) (links []schema.Link, err error) {
	for n := int64(numberedAtOnce); n >= numberedAtOnce && err == nil; {
		n, err = s.links.NumberChanges(ctx, req.AccountID, numberedAtOnce)
	}
	if err != nil {
		return nil, err
	}
	links, at.change, err = s.links.ChangedLinks(ctx, req.AccountID, filter, at.change, req.Limit)
	if schema.ErrorCode(err) == schema.CodeNotFound {
		err = InvalidFields(map[string][]string{FieldAfter: {"The cursor is from after the backup that the service was " +
			"restored from: begin again with an earlier updated_since."}})
	}
	return links, err
}

const badCursor = "This is no cursor of this list: pass on meta.next, with the same filters and order, or begin " +
	"again with an empty one."

// cursor is a position in a list.
type cursor struct {
	list    [8]byte // the account, filter and order
	changes bool
	link    schema.LinkPosition
	change  schema.LinkChangePosition
}

// listDigest returns a digest of the account, filter and order of a list.
func (req ListRequest) listDigest() (digest [8]byte) {
	if req.Sort == "" || req.Deleted {
		req.Sort = SortNewest
	}
	text, _ := json.Marshal([]any{req.AccountID, req.Query, req.Tag, req.DomainID, req.IsActive, req.Sort, req.Deleted})
	sum := sha256.Sum256(text)
	return [8]byte(sum[:])
}

// The first bytes of cursors.
const (
	cursorOfLinks   = 'l'
	cursorOfTrash   = 't'
	cursorOfChanges = 'c'
)

// numbers returns the kind of a cursor and its numbers.
func (c *cursor) numbers() (kind byte, numbers []int64) {
	p := c.change
	switch {
	case c.changes:
		return cursorOfChanges, []int64{p.Since.UnixMilli(), p.Ordinal, p.Number, p.FirstOrdinal, p.FirstNumber}
	case !c.link.DeletedAt.IsZero():
		return cursorOfTrash, []int64{c.link.DeletedAt.UnixMicro(), -c.link.Ordinal}
	}
	return cursorOfLinks, []int64{c.link.Ordinal}
}

// String returns the text of a cursor.
func (c *cursor) String() string {
	kind, numbers := c.numbers()
	text := append([]byte{kind}, c.list[:]...)
	for _, n := range numbers {
		text = binary.AppendVarint(text, n)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// parseCursor returns the cursor with a text. ok is false if String does not return such a text.
func parseCursor(text string) (c cursor, ok bool) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(data) < 1+len(c.list) {
		return cursor{}, false
	}
	copy(c.list[:], data[1:])
	var numbers [5]int64
	rest := data[1+len(c.list):]
	for i := 0; i < len(numbers) && len(rest) > 0; i++ {
		n, size := binary.Varint(rest)
		if size <= 0 || i > 0 && n < 0 {
			return cursor{}, false
		}
		numbers[i], rest = n, rest[size:]
	}
	switch data[0] {
	case cursorOfLinks:
		c.link.Ordinal = numbers[0]
	case cursorOfTrash:
		c.link = schema.LinkPosition{DeletedAt: time.UnixMicro(numbers[0]).UTC(), Ordinal: -numbers[1]}
	case cursorOfChanges:
		c.changes = true
		c.change = schema.LinkChangePosition{Since: time.UnixMilli(numbers[0]).UTC(), Ordinal: numbers[1],
			Number: numbers[2], Begun: true, FirstOrdinal: numbers[3], FirstNumber: numbers[4]}
	}
	for _, at := range []time.Time{c.link.DeletedAt, c.change.Since} {
		if !storable(at).Equal(at.Truncate(time.Millisecond)) {
			return cursor{}, false
		}
	}
	return c, c.String() == text
}
