package linkstore

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"linkstream/schema"
)

// condition is a WHERE clause that grows.
type condition struct {
	terms []string
	args  []any
}

// arg adds an argument and returns its placeholder.
func (c *condition) arg(value any) string {
	c.args = append(c.args, value)
	return fmt.Sprintf("$%d", len(c.args))
}

// add adds a term, in which %s stands for an argument.
func (c *condition) add(term string, value any) {
	c.terms = append(c.terms, fmt.Sprintf(term, c.arg(value)))
}

// newCondition returns the condition that an account's links l on domains d match filter and follow a position. $1 is
// the account.
func newCondition(accountID int64, filter schema.LinkFilter, after schema.LinkPosition) *condition {
	c := &condition{}
	c.add("l.account_id = %s", accountID)
	switch {
	case !filter.DeletedAfter.IsZero():
		c.add("l.ordinal < 0 AND l.url <> '' AND "+hasDomain+" AND l.updated_at > %s", filter.DeletedAfter)
		if !after.DeletedAt.IsZero() {
			at := c.arg(after.DeletedAt)
			c.add("l.updated_at <= "+at+" AND (l.updated_at < "+at+" OR l.ordinal > %s)", after.Ordinal)
		}
	case filter.OldestFirst:
		c.add("l.ordinal > CAST(%s AS bigint)", max(after.Ordinal, 0))
	default:
		c.terms = append(c.terms, "l.ordinal > 0")
		if after.Ordinal > 0 {
			c.add("l.ordinal < CAST(%s AS bigint)", after.Ordinal)
		}
	}
	c.addFilter(filter)
	return c
}

// hasDomain is the condition that the domain of a deleted link was not deleted, too.
const hasDomain = "(l.domain_id = 0 OR d.id IS NOT NULL)"

// addFilter adds the condition that links match filter, whether or not they are deleted.
func (c *condition) addFilter(filter schema.LinkFilter) {
	if !filter.ChangedAt.IsZero() {
		c.add("l.updated_at = %s", filter.ChangedAt)
	}
	for _, word := range filter.Words {
		c.addWord(word)
	}
	switch {
	case !storable(filter.Tag):
		c.terms = append(c.terms, "false")
	case filter.Tag != "":
		c.add("{find}(' ' || l.tags || ' ', %s) > 0", " "+filter.Tag+" ")
	}
	if filter.DomainID != nil {
		c.add("l.domain_id = %s", *filter.DomainID)
	}
	if filter.Redirects != nil {
		c.add("(l.active AND "+stopOfLink+" = '') = %s", *filter.Redirects)
	}
	if !filter.ExpiredAt.IsZero() {
		c.add("l.expires_at <= %s", filter.ExpiredAt)
	}
	if !filter.CreatedFrom.IsZero() {
		c.add("l.created_at >= %s", filter.CreatedFrom)
	}
	if !filter.CreatedBefore.IsZero() {
		c.add("l.created_at < %s", filter.CreatedBefore)
	}
}

// likeEscaper makes LIKE take each character of a text for itself.
var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// maxPattern bounds the bytes of a pattern, which SQLite limits to 50,000. A word of 2048 characters may have more:
// some characters fold to eighteen.
const maxPattern = 48_000

// addWord adds the condition that links match a word. A text that is not ASCII can only be in a fold, and the index
// links_folded has the links with one.
func (c *condition) addWord(word schema.LinkWord) {
	matches, ascii := []string{"false"}, false
	for i, text := range []string{schema.Fold(word.Text), schema.FoldURL(word.Text)} {
		pattern := "%" + likeEscaper.Replace(text) + "%"
		if text == "" || !storable(word.Text) || i > 0 && text == schema.Fold(word.Text) || len(pattern) > maxPattern {
			continue
		}
		like := " LIKE " + c.arg(pattern) + ` ESCAPE '\'`
		if utf8.RuneCountInString(text) == len(text) {
			ascii = true
			matches = append(matches, "{folded: l.url}"+like, "l.title <> '' AND {folded: l.title}"+like,
				"l.tags <> '' AND l.tags"+like, "{folded: l.hash}"+like,
				"l.former_hashes <> '' AND {folded: l.former_hashes}"+like)
		}
		matches = append(matches, "l.folded_url IS NOT NULL AND l.folded_url"+like,
			"l.folded_title IS NOT NULL AND l.folded_title"+like)
	}
	if word.Key != nil && storable(word.Key.Hash) {
		ascii = true
		matches = append(matches, fmt.Sprintf("l.domain_id = %s AND (lower(l.hash) = %s OR "+
			"l.former_hashes <> '' AND {find}(' ' || lower(l.former_hashes) || ' ', %s) > 0)", c.arg(word.Key.DomainID),
			c.arg(schema.Fold(word.Key.Hash)), c.arg(" "+schema.Fold(word.Key.Hash)+" ")))
	}
	if !ascii && len(matches) > 1 {
		c.terms = append(c.terms, hasFold)
	}
	c.terms = append(c.terms, "("+strings.Join(matches, " OR ")+")")
}

// hasFold is the condition of the index links_folded.
const hasFold = "(l.folded_url IS NOT NULL OR l.folded_title IS NOT NULL)"

// storable reports whether a link can have the text.
func storable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

// found returns the query for columns of the links that match.
func (c *condition) found(columns string) string {
	return "SELECT " + columns + " FROM links l" + withDomain + "WHERE " + strings.Join(c.terms, " AND ")
}

// query returns a statement with the arguments of the condition.
func (c *condition) query(text string) Statement {
	return Statement{Text: text, Args: c.args, Variable: true}
}

// order returns the order of a filter for rows that have a name.
func order(name string, filter schema.LinkFilter) string {
	switch {
	case !filter.ChangedAt.IsZero():
		return " ORDER BY " + name + ".id"
	case !filter.DeletedAfter.IsZero():
		return " ORDER BY " + name + ".updated_at DESC, " + name + ".ordinal"
	case filter.OldestFirst:
		return " ORDER BY " + name + ".ordinal"
	}
	return " ORDER BY " + name + ".ordinal DESC"
}

// filteredPage returns the page of the account's links that match filter that follows offset links. On Postgres, one
// pass over the account's links finds the page and the total. SQLite reads links in the order of the page until it is
// full, and counts all only if the page does not tell their number.
func (s *Store) filteredPage(
	ctx context.Context, accountID int64, filter schema.LinkFilter, offset int64,
) (links []schema.Link, total int64, err error) {
	c := newCondition(accountID, filter, schema.LinkPosition{})
	found, size, skipped := c.found("l.ordinal, l.updated_at"), c.arg(filter.Size()), c.arg(offset)
	rows, err := s.db.Query(ctx, c.query(`
	WITH found AS {materialized} (`+found+`),
	page AS MATERIALIZED (SELECT ordinal FROM found`+order("found", filter)+` LIMIT `+size+` OFFSET `+skipped+`)
	SELECT CASE WHEN t.links < `+size+` AND (t.links > 0 OR `+skipped+` = 0) THEN `+skipped+` + t.links
		ELSE (SELECT count(*) FROM found) END, `+pageColumns+`
	FROM (SELECT count(*) AS links FROM page) AS t
	LEFT JOIN page ON true
	LEFT JOIN links l ON l.account_id = $1 AND l.ordinal = page.ordinal`+withDomain+order("l", filter)))
	if err == nil {
		links, err = scanPage(rows, &total)
	}
	return links, total, err
}

// LinkIDs implements schema.LinkStore.
func (s *Store) LinkIDs(
	ctx context.Context, accountID int64, filter schema.LinkFilter, limit int,
) (ids []int64, err error) {
	c := newCondition(accountID, filter, schema.LinkPosition{})
	rows, err := s.db.Query(ctx, c.query(c.found("l.id")+order("l", filter)+" LIMIT "+c.arg(limit)))
	if err == nil {
		ids, err = collect(rows, value[int64])
	}
	return ids, wrap(err, "find account %d's links", accountID)
}
