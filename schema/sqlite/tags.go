package sqlite

import (
	"context"
	"time"

	"linkstream/schema"
)

// renameTag reads tags as JSON, which they become by quoting them: they consist of letters, digits, "_" and "-".
const renameTag = `
	UPDATE links SET updated_at = ?4, tags = (
		SELECT coalesce(group_concat(tag, ' '), '') FROM (
			SELECT DISTINCT iif(value = ?2, ?3, value) AS tag FROM json_each('["' || replace(tags, ' ', '","') || '"]')
			WHERE tag <> '' ORDER BY tag))
	WHERE account_id = ?1 AND ordinal > 0 AND instr(' ' || tags || ' ', ' ' || ?2 || ' ') > 0`

const (
	// Many links have the same tags, which are taken apart once, as by renameTag. The condition is that of the index.
	tagCounts = `
	WITH alike AS (SELECT tags, count(*) AS n FROM links INDEXED BY links_by_tags WHERE account_id = ?1 AND tags <> '' AND ordinal > 0 GROUP BY tags)
	SELECT value, sum(n) FROM alike, json_each('["' || replace(tags, ' ', '","') || '"]') WHERE value > ?2
	GROUP BY value ORDER BY value LIMIT ?3`
	taggedLinks = `
	SELECT id, ordinal, tags FROM links WHERE account_id = ? AND ordinal > max(?, 0) AND tags <> '' ORDER BY ordinal LIMIT ?`
)

// TagCounts implements schema.LinkStore.
func (s *Store) TagCounts(ctx context.Context, accountID int64, after string, limit int) (tags []schema.TagCount, err error) {
	rows, err := s.db.query(ctx, tagCounts, accountID, after, limit)
	err = forEachRow(rows, err, func() error {
		var tag schema.TagCount
		err := rows.Scan(&tag.Tag, &tag.Links)
		tags = append(tags, tag)
		return err
	})
	return tags, wrap(err, "count links by tag of account %d", accountID)
}

// TaggedLinks implements schema.LinkStore.
func (s *Store) TaggedLinks(ctx context.Context, accountID, ordinal int64, limit int) (links []schema.TaggedLink, err error) {
	rows, err := s.db.query(ctx, taggedLinks, accountID, ordinal, limit)
	err = forEachRow(rows, err, func() error {
		var link schema.TaggedLink
		err := rows.Scan(&link.ID, &link.Ordinal, schema.TagsColumn{List: &link.Tags})
		links = append(links, link)
		return err
	})
	return links, wrap(err, "read account %d's tagged links after %d", accountID, ordinal)
}

// RenameTag implements schema.LinkStore.
func (s *Store) RenameTag(ctx context.Context, accountID int64, from, to string, at time.Time) (links int64, err error) {
	result, err := s.db.write.ExecContext(ctx, renameTag, accountID, from, to, unixMillis{&at})
	if err == nil {
		links, err = result.RowsAffected()
	}
	return links, wrap(err, "rename tag %q of account %d", from, accountID)
}
