package postgres

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"
	"time"
)

// tags passes tags to and from a column of text, where spaces separate them. A nil pointer is NULL.
type tags struct{ list *[]string }

func (t tags) Value() (driver.Value, error) {
	if t.list == nil {
		return nil, nil
	}
	return strings.Join(*t.list, " "), nil
}

func (t tags) Scan(column any) error {
	text, ok := column.(string)
	if !ok {
		return fmt.Errorf("scan %T as tags", column)
	}
	if *t.list = nil; text != "" {
		*t.list = strings.Split(text, " ")
	}
	return nil
}

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
