package linkstore

import (
	"context"
	"time"

	"linkstream/schema"
)

const (
	renameTag = `
	UPDATE links SET updated_at = $4, version = version + 1, tags = (
		SELECT coalesce(string_agg(tag, ' ' ORDER BY tag{binary}), '')
		FROM (SELECT DISTINCT CASE word.value WHEN $2 THEN $3 ELSE word.value END AS tag FROM {words: links.tags}) AS renamed
		WHERE tag <> '')
	WHERE account_id = $1 AND ordinal > 0 AND {find}(' ' || tags || ' ', ' ' || $2 || ' ') > 0`
	// Many links have the same tags, which are taken apart once. The condition is that of the index.
	tagCounts = `
	SELECT word.value, CAST(sum(n) AS bigint)
	FROM (SELECT tags, count(*) AS n FROM links WHERE account_id = $1 AND tags <> ''
		AND ordinal > 0 GROUP BY tags) AS alike,
		{words: tags}
	WHERE word.value{binary} > $2
	GROUP BY word.value ORDER BY word.value{binary} LIMIT $3`
	taggedLinks = `
	SELECT id, ordinal, tags FROM links
	WHERE account_id = $1 AND ordinal > {greatest}(CAST($2 AS bigint), 0) AND tags <> '' ORDER BY ordinal LIMIT $3`
)

// TagCounts implements schema.LinkStore.
func (s *Store) TagCounts(ctx context.Context, accountID int64, after string, limit int) ([]schema.TagCount, error) {
	fields := func(t *schema.TagCount) []any { return []any{&t.Tag, &t.Links} }
	tags, err := list(ctx, s.db, fields, tagCounts, accountID, after, limit)
	return tags, wrap(err, "count links by tag of account %d", accountID)
}

// TaggedLinks implements schema.LinkStore.
func (s *Store) TaggedLinks(ctx context.Context, accountID, ordinal int64, limit int) ([]schema.TaggedLink, error) {
	fields := func(l *schema.TaggedLink) []any { return []any{&l.ID, &l.Ordinal, schema.TagsColumn{List: &l.Tags}} }
	links, err := list(ctx, s.db, fields, taggedLinks, accountID, ordinal, limit)
	return links, wrap(err, "read account %d's tagged links after %d", accountID, ordinal)
}

// RenameTag implements schema.LinkStore. It locks the account before its links, as statements that create links do: of
// two calls, the second waits, and neither has a link that the other waits for.
func (s *Store) RenameTag(
	ctx context.Context, accountID int64, from, to string, at time.Time,
) (links int64, err error) {
	var b Batch
	b.rows(func(Rows) error { return nil }, lockAccount, accountID)
	b.count(&links, renameTag, accountID, from, to, at)
	return links, wrap(s.sendInTurn(ctx, accountID, &b), "rename tag %q of account %d", from, accountID)
}
