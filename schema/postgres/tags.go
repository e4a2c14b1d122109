package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"linkstream/schema"
)

// renameTag locks the account before its links, as statements that create links do: of two that rename tags, the second waits, and
// neither has a link that the other waits for.
const renameTag = `
	WITH owner AS MATERIALIZED (SELECT id FROM accounts WHERE id = $1 FOR NO KEY UPDATE)
	UPDATE links SET updated_at = $4, tags = (
		SELECT coalesce(string_agg(tag, ' ' ORDER BY tag COLLATE "C"), '')
		FROM (SELECT DISTINCT CASE name WHEN $2 THEN $3 ELSE name END AS tag FROM unnest(string_to_array(links.tags, ' ')) name) renamed
		WHERE tag <> '')
	FROM owner
	WHERE account_id = owner.id AND ordinal > 0 AND strpos(' ' || tags || ' ', ' ' || $2 || ' ') > 0`

const (
	// Many links have the same tags, which are taken apart once. The condition is that of the index.
	tagCounts = `
	SELECT tag, sum(n)::bigint
	FROM (SELECT tags, count(*) AS n FROM links WHERE account_id = $1 AND tags <> '' AND ordinal > 0 GROUP BY tags) alike,
		unnest(string_to_array(tags, ' ')) tag
	WHERE tag COLLATE "C" > $2
	GROUP BY tag ORDER BY tag COLLATE "C" LIMIT $3`
	taggedLinks = `
	SELECT id, ordinal, tags FROM links WHERE account_id = $1 AND ordinal > greatest($2::bigint, 0) AND tags <> '' ORDER BY ordinal LIMIT $3`
)

// TagCounts implements schema.LinkStore.
func (s *Store) TagCounts(ctx context.Context, accountID int64, after string, limit int) (tags []schema.TagCount, err error) {
	rows, err := s.pool.Query(ctx, tagCounts, accountID, after, limit)
	if err == nil {
		tags, err = pgx.CollectRows(rows, pgx.RowToStructByPos[schema.TagCount])
	}
	return tags, wrap(err, "count links by tag of account %d", accountID)
}

// TaggedLinks implements schema.LinkStore.
func (s *Store) TaggedLinks(ctx context.Context, accountID, ordinal int64, limit int) (links []schema.TaggedLink, err error) {
	rows, err := s.pool.Query(ctx, taggedLinks, accountID, ordinal, limit)
	if err == nil {
		links, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (link schema.TaggedLink, err error) {
			err = row.Scan(&link.ID, &link.Ordinal, schema.TagsColumn{List: &link.Tags})
			return link, err
		})
	}
	return links, wrap(err, "read account %d's tagged links after %d", accountID, ordinal)
}

// RenameTag implements schema.LinkStore.
func (s *Store) RenameTag(ctx context.Context, accountID int64, from, to string, at time.Time) (links int64, err error) {
	tag, err := s.pool.Exec(ctx, renameTag, accountID, from, to, at)
	return tag.RowsAffected(), wrap(err, "rename tag %q of account %d", from, accountID)
}
