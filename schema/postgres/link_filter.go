package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"linkstream/schema"
)

// condition is a WHERE clause that grows. Its first arguments are the account and the ordinal, or the time of deletion, after which its links are.
type condition struct {
	terms []string
	args  []any
}

// arg adds an argument and returns its placeholder.
func (c *condition) arg(value any) string {
	c.args = append(c.args, value)
	return fmt.Sprintf("$%d", len(c.args))
}

// newCondition returns the condition that an account's links l on domains d, after an ordinal, match filter. With collation C, lower changes
// ASCII letters only.
func newCondition(accountID, after int64, filter schema.LinkFilter) *condition {
	c := &condition{terms: []string{"l.account_id = $1", "l.ordinal > $2::bigint"}, args: []any{accountID, max(after, 0)}}
	if !filter.DeletedAfter.IsZero() {
		c.terms[1] = "l.ordinal < 0 AND l.url <> '' AND l.updated_at > $2 AND (l.domain_id = 0 OR d.id IS NOT NULL)"
		c.args[1] = filter.DeletedAfter
	}
	for _, word := range filter.Words {
		matches := []string{"false"}
		for _, text := range word.Texts {
			text := "lower(" + c.arg(text) + `::text COLLATE "C")`
			for _, column := range []string{"l.hash", "l.url", "l.title", "l.tags"} {
				matches = append(matches, fmt.Sprintf(`strpos(lower(%s COLLATE "C"), %s) > 0`, column, text))
			}
		}
		if word.Key != nil {
			matches = append(matches, fmt.Sprintf("l.domain_id = %s AND lower(l.hash) = %s", c.arg(word.Key.DomainID),
				c.arg(strings.ToLower(word.Key.Hash))))
		}
		c.terms = append(c.terms, "("+strings.Join(matches, " OR ")+")")
	}
	if filter.Tag != "" {
		c.terms = append(c.terms, "strpos(' ' || l.tags || ' ', "+c.arg(" "+filter.Tag+" ")+") > 0")
	}
	if filter.DomainID != nil {
		c.terms = append(c.terms, "l.domain_id = "+c.arg(*filter.DomainID))
	}
	if filter.Redirects != nil {
		c.terms = append(c.terms, "(l.active AND "+stopOfLink+" = '') = "+c.arg(*filter.Redirects))
	}
	if !filter.ExpiredAt.IsZero() {
		c.terms = append(c.terms, "l.expires_at <= "+c.arg(filter.ExpiredAt))
	}
	if !filter.CreatedFrom.IsZero() {
		c.terms = append(c.terms, "l.created_at >= "+c.arg(filter.CreatedFrom))
	}
	if !filter.CreatedBefore.IsZero() {
		c.terms = append(c.terms, "l.created_at < "+c.arg(filter.CreatedBefore))
	}
	return c
}

// linksAfter returns a query that reads a range of an index, and its arguments.
func linksAfter(accountID int64, filter schema.LinkFilter, ordinal int64, limit int) (query string, args []any) {
	c := newCondition(accountID, ordinal, filter)
	query = selectLink + "WHERE " + strings.Join(c.terms, " AND ") + " ORDER BY l.ordinal LIMIT " + c.arg(limit)
	return query, c.args
}

// found returns the query for a column of the links that match.
func (c *condition) found(column string) string {
	return "SELECT l." + column + " FROM links l LEFT JOIN domains d ON d.id = l.domain_id WHERE " + strings.Join(c.terms, " AND ")
}

// order returns the order of a filter for rows that have a name.
func order(name string, filter schema.LinkFilter) string {
	switch {
	case !filter.DeletedAfter.IsZero():
		return name + ".updated_at DESC, " + name + ".ordinal"
	case filter.OldestFirst:
		return name + ".ordinal"
	}
	return name + ".ordinal DESC"
}

// filteredPage returns a query for a page of the account's links that match filter, and its arguments. One pass over the account's links
// finds the page and the total.
func filteredPage(accountID int64, filter schema.LinkFilter, page int64) (query string, args []any) {
	c := newCondition(accountID, 0, filter)
	query = fmt.Sprintf(`
	WITH found AS MATERIALIZED (%[1]s),
	page AS (SELECT ordinal FROM found ORDER BY %[2]s OFFSET %[3]s LIMIT %[4]s)
	SELECT t.total, %[5]s
	FROM (SELECT count(*) AS total FROM found) t
	LEFT JOIN page p ON true
	LEFT JOIN links l ON l.account_id = $1 AND l.ordinal = p.ordinal
	LEFT JOIN domains d ON d.id = l.domain_id
	ORDER BY %[6]s`, c.found("ordinal, l.updated_at"), order("found", filter), c.arg(offset(page)), c.arg(schema.PageSize), pageColumns,
		order("l", filter))
	return query, c.args
}

// filteredLinks returns a page of the account's links that match filter.
func (s *Store) filteredLinks(
	ctx context.Context, accountID int64, filter schema.LinkFilter, page int64,
) (links []schema.Link, total int64, err error) {
	query, args := filteredPage(accountID, filter, page)
	rows, err := s.pool.Query(ctx, query, args...)
	if err == nil {
		links, err = scanPage(rows, &total)
	}
	err = wrap(err, "find page %d of account %d's links", page, accountID)
	if schema.ErrorCode(err) == schema.CodeNotFound { // no link can have the text
		return nil, 0, nil
	}
	return links, total, err
}

// LinkIDs implements schema.LinkStore.
func (s *Store) LinkIDs(
	ctx context.Context, accountID int64, filter schema.LinkFilter, limit int,
) (ids []int64, err error) {
	c := newCondition(accountID, 0, filter)
	rows, err := s.pool.Query(ctx, c.found("id")+" ORDER BY "+order("l", filter)+" LIMIT "+c.arg(limit), c.args...)
	if err == nil {
		ids, err = pgx.CollectRows(rows, pgx.RowTo[int64])
	}
	err = wrap(err, "find account %d's links", accountID)
	if schema.ErrorCode(err) == schema.CodeNotFound { // no link can have the text
		return nil, nil
	}
	return ids, err
}

// LinksAfter implements schema.LinkStore.
func (s *Store) LinksAfter(
	ctx context.Context, accountID int64, filter schema.LinkFilter, ordinal int64, limit int,
) (links []schema.Link, err error) {
	query, args := linksAfter(accountID, filter, ordinal, limit)
	rows, err := s.pool.Query(ctx, query, args...)
	if err == nil {
		links, err = pgx.CollectRows(rows, scanLink)
	}
	err = wrap(err, "read account %d's links after %d", accountID, ordinal)
	if schema.ErrorCode(err) == schema.CodeNotFound { // no link can have the text
		return nil, nil
	}
	return links, err
}
