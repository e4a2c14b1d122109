package sqlite

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"linkstream/schema"
)

// condition is a WHERE clause that grows.
type condition struct {
	terms []string
	args  []any
}

func (c *condition) add(term string, args ...any) {
	c.terms, c.args = append(c.terms, term), append(c.args, args...)
}

// likeEscaper makes LIKE take each character of a text for itself.
var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// newCondition returns the condition that an account's links l on domains d, after an ordinal, match filter. LIKE ignores the case of ASCII letters, as lower
// does, and takes half as long.
func newCondition(accountID, after int64, filter schema.LinkFilter) *condition {
	c := &condition{}
	if filter.DeletedAfter.IsZero() {
		c.add("l.account_id = ? AND l.ordinal > ?", accountID, max(after, 0))
	} else {
		c.add("l.account_id = ? AND l.ordinal < 0 AND l.url <> '' AND l.updated_at > ? AND (l.domain_id = 0 OR d.id IS NOT NULL)",
			accountID, unixMillis{&filter.DeletedAfter})
	}
	for _, word := range filter.Words {
		either := &condition{terms: []string{"0"}}
		for _, text := range word.Texts {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				continue // no link has it, and to LIKE it would be another text
			}
			for _, column := range []string{"l.hash", "l.url", "l.title", "l.tags"} {
				either.add(column+` LIKE ? ESCAPE '\'`, "%"+likeEscaper.Replace(text)+"%")
			}
		}
		if word.Key != nil {
			either.add("l.domain_id = ? AND lower(l.hash) = lower(?)", word.Key.DomainID, word.Key.Hash)
		}
		c.add("("+strings.Join(either.terms, " OR ")+")", either.args...)
	}
	if filter.Tag != "" {
		c.add("instr(' ' || l.tags || ' ', ?) > 0", " "+filter.Tag+" ")
	}
	if filter.DomainID != nil {
		c.add("l.domain_id = ?", *filter.DomainID)
	}
	if filter.Redirects != nil {
		c.add("(l.active AND "+stopOfLink+" = '') = ?", *filter.Redirects)
	}
	if !filter.ExpiredAt.IsZero() {
		c.add("l.expires_at <= ?", unixMillis{&filter.ExpiredAt})
	}
	if !filter.CreatedFrom.IsZero() {
		c.add("l.created_at >= ?", unixMillis{&filter.CreatedFrom})
	}
	if !filter.CreatedBefore.IsZero() {
		c.add("l.created_at < ?", unixMillis{&filter.CreatedBefore})
	}
	return c
}

// where returns the clause, and the order of the filter.
func (c *condition) where(filter schema.LinkFilter) (clause, order string) {
	order = " ORDER BY l.ordinal DESC"
	switch {
	case !filter.DeletedAfter.IsZero():
		order = " ORDER BY l.updated_at DESC, l.ordinal"
	case filter.OldestFirst:
		order = " ORDER BY l.ordinal"
	}
	return "WHERE " + strings.Join(c.terms, " AND "), order
}

const fromLinks = " FROM links l LEFT JOIN domains d ON d.id = l.domain_id "

// filteredPage returns a page of the links that match filter.
func (s *Store) filteredPage(
	ctx context.Context, accountID int64, filter schema.LinkFilter, page int64,
) (links []schema.Link, total int64, err error) {
	c := newCondition(accountID, 0, filter)
	where, order := c.where(filter)
	const lastPage = 1 << 50 // the offsets of later pages, which are empty too, would overflow
	skip := min(page-1, lastPage) * schema.PageSize
	err = s.db.view(ctx, func(tx *snapshot) error {
		var err error
		links, err = scanLinks(tx.QueryContext(ctx, selectLink+where+order+" LIMIT ? OFFSET ?",
			append(slices.Clip(c.args), schema.PageSize, skip)...))
		if n := int64(len(links)); err != nil || n < schema.PageSize && (n > 0 || skip == 0) {
			total = skip + n // the page is the last one
			return err
		}
		return tx.QueryRowContext(ctx, "SELECT count(*)"+fromLinks+where, c.args...).Scan(&total)
	})
	return links, total, err
}

// LinkIDs implements schema.LinkStore.
func (s *Store) LinkIDs(
	ctx context.Context, accountID int64, filter schema.LinkFilter, limit int,
) (ids []int64, err error) {
	c := newCondition(accountID, 0, filter)
	where, order := c.where(filter)
	rows, err := s.db.read.QueryContext(ctx, "SELECT l.id"+fromLinks+where+order+" LIMIT ?", append(c.args, limit)...)
	err = forEachRow(rows, err, func() error {
		var id int64
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	})
	return ids, wrap(err, "find account %d's links", accountID)
}

// LinksAfter implements schema.LinkStore.
func (s *Store) LinksAfter(
	ctx context.Context, accountID int64, filter schema.LinkFilter, ordinal int64, limit int,
) ([]schema.Link, error) {
	filter.OldestFirst = true
	c := newCondition(accountID, ordinal, filter)
	where, order := c.where(filter)
	links, err := scanLinks(s.db.read.QueryContext(ctx, selectLink+where+order+" LIMIT ?", append(c.args, limit)...))
	return links, wrap(err, "read account %d's links after %d", accountID, ordinal)
}
