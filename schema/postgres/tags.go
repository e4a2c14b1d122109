package postgres

import (
	"context"
	"time"
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

// RenameTag implements schema.LinkStore.
func (s *Store) RenameTag(ctx context.Context, accountID int64, from, to string, at time.Time) (links int64, err error) {
	tag, err := s.pool.Exec(ctx, renameTag, accountID, from, to, at)
	return tag.RowsAffected(), wrap(err, "rename tag %q of account %d", from, accountID)
}
