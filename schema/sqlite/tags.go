package sqlite

import (
	"context"
	"time"
)

// renameTag reads tags as JSON, which they become by quoting them: they consist of letters, digits, "_" and "-".
const renameTag = `
	UPDATE links SET updated_at = ?4, tags = (
		SELECT coalesce(group_concat(tag, ' '), '') FROM (
			SELECT DISTINCT iif(value = ?2, ?3, value) AS tag FROM json_each('["' || replace(tags, ' ', '","') || '"]')
			WHERE tag <> '' ORDER BY tag))
	WHERE account_id = ?1 AND ordinal > 0 AND instr(' ' || tags || ' ', ' ' || ?2 || ' ') > 0`

// RenameTag implements schema.LinkStore.
func (s *Store) RenameTag(ctx context.Context, accountID int64, from, to string, at time.Time) (links int64, err error) {
	result, err := s.db.write.ExecContext(ctx, renameTag, accountID, from, to, unixMillis{&at})
	if err == nil {
		links, err = result.RowsAffected()
	}
	return links, wrap(err, "rename tag %q of account %d", from, accountID)
}
