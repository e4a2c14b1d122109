package sqlite

import (
	"context"
	"database/sql"
	"time"

	"linkstream/schema"
)

const (
	updateLink = `
	UPDATE links SET url = coalesce(?2, url), title = coalesce(?3, title), tags = coalesce(?4, tags),
		active = coalesce(?5, active), expires_at = iif(?6, ?7, expires_at), expired_url = coalesce(?8, expired_url),
		forward_query = coalesce(?9, forward_query), extension = coalesce(?11, extension),
		password_hash = coalesce(?12, password_hash), updated_at = ?10
	WHERE id = ?1 AND ordinal > 0`
	linkUnchanged = `
	SELECT (url, title, tags, expired_url, forward_query) = (?2, ?3, ?4, ?5, ?6) AND expires_at IS ?7
	FROM links WHERE id = ?1 AND ordinal > 0`
	extensionUnchanged = `SELECT extension = ?2 FROM links WHERE id = ?1 AND ordinal > 0`
	linkPassword       = `SELECT password_hash, extension FROM links WHERE id = ? AND ordinal > 0`
	linkByID           = selectLink + `WHERE l.id = ?`
	deleteLink         = `
	UPDATE links SET ordinal = -ordinal, updated_at = ?3 WHERE id = ?1 AND account_id = ?2 AND ordinal > 0 RETURNING -ordinal`
	countGap = `
	INSERT INTO link_gaps (account_id, block, missing) VALUES (?, ?, ?)
	ON CONFLICT (account_id, block) DO UPDATE SET missing = missing + excluded.missing`
	countDeleted = `UPDATE accounts SET deleted_links = deleted_links + ?2 WHERE id = ?1`
)

// UpdateLink implements schema.LinkStore.
func (s *Store) UpdateLink(ctx context.Context, link *schema.Link, edit schema.LinkEdit, at time.Time) error {
	var updated schema.Link
	err := s.db.update(ctx, func(tx *sql.Tx) error {
		err := updateOne(ctx, tx, link, edit, at)
		if err == nil {
			updated, err = scanLink(tx.QueryRowContext(ctx, linkByID, link.ID))
		}
		return err
	})
	if err != nil {
		return wrap(err, "update link %d", link.ID)
	}
	*link = updated
	return nil
}

func updateOne(ctx context.Context, tx *sql.Tx, link *schema.Link, edit schema.LinkEdit, at time.Time) error {
	expiresAt := edit.ExpiresAt
	if expiresAt == nil {
		expiresAt = new(time.Time)
	}
	if edit.Unchanged {
		if err := unchanged(ctx, tx, linkUnchanged, link.ID, link.URL, link.Title, schema.TagsColumn{List: &link.Tags}, link.ExpiredURL,
			link.ForwardQuery, unixMillis{&link.ExpiresAt}); err != nil {
			return err
		}
	}
	if edit.Extension != nil {
		if err := unchanged(ctx, tx, extensionUnchanged, link.ID, link.Extension.Text()); err != nil {
			return err
		}
	}
	return oneRow(tx.ExecContext(ctx, updateLink, link.ID, edit.URL, edit.Title, schema.TagsColumn{List: edit.Tags}, edit.Active,
		edit.ExpiresAt != nil, unixMillis{expiresAt}, edit.ExpiredURL, edit.ForwardQuery, unixMillis{&at},
		edit.ExtensionText(), edit.PasswordHash))
}

// unchanged returns CodeConflict if a query says that a link is not as it was, and CodeNotFound if the link does not exist.
func unchanged(ctx context.Context, tx *sql.Tx, query string, args ...any) error {
	same := false
	err := tx.QueryRowContext(ctx, query, args...).Scan(&same)
	if err == nil && !same {
		err = schema.Errorf(schema.CodeConflict, "it has changed")
	}
	return err
}

// DeleteLink implements schema.LinkStore.
func (s *Store) DeleteLink(ctx context.Context, link schema.Link, at time.Time) error {
	err := s.db.update(ctx, func(tx *sql.Tx) error { return deleteOne(ctx, tx, link.ID, link.AccountID, at) })
	return wrap(err, "delete link %d of account %d", link.ID, link.AccountID)
}

// LinkPassword implements schema.LinkStore.
func (s *Store) LinkPassword(ctx context.Context, id int64) (hash string, version int64, err error) {
	var extension *schema.Extension
	err = s.db.read.QueryRowContext(ctx, linkPassword, id).Scan(&hash, schema.ExtensionColumn{Of: &extension})
	if extension != nil {
		version = extension.Password
	}
	return hash, version, wrap(err, "read password of link %d", id)
}

func deleteOne(ctx context.Context, tx *sql.Tx, id, accountID int64, at time.Time) error {
	var ordinal int64
	if err := tx.QueryRowContext(ctx, deleteLink, id, accountID, unixMillis{&at}).Scan(&ordinal); err != nil {
		return err
	}
	return countDeletion(ctx, tx, accountID, ordinal, 1)
}

// countDeletion counts a deletion, or with -1 that it is undone.
func countDeletion(ctx context.Context, tx *sql.Tx, accountID, ordinal, n int64) error {
	if _, err := tx.ExecContext(ctx, countGap, accountID, ordinal/schema.OrdinalBlock, n); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, countDeleted, accountID, n)
	return err
}

// SetTakenDown implements schema.LinkStore.
func (s *Store) SetTakenDown(ctx context.Context, domainID int64, hash string, takenDown bool) error {
	err := oneRow(s.db.write.ExecContext(ctx, `UPDATE links SET taken_down = ? WHERE domain_id = ? AND hash = ?`,
		takenDown, domainID, hash))
	return wrap(err, "set taken down of link %q on domain %d", hash, domainID)
}
