package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"linkstream/schema"
)

const (
	updateLink = `
	WITH l AS (
		UPDATE links SET url = coalesce($2, url), title = coalesce($3, title), tags = coalesce($4, tags),
			active = coalesce($5, active), expires_at = CASE WHEN $6 THEN $7 ELSE expires_at END,
			expired_url = coalesce($8, expired_url), forward_query = coalesce($9, forward_query),
			extension = coalesce($18, extension), password_hash = coalesce($20, password_hash), updated_at = $10
		WHERE id = $1 AND ordinal > 0 AND ($18::text IS NULL OR extension = $19) AND (NOT $11 OR (url, title, tags, expired_url, forward_query) = ($12, $13, $14, $15, $16)
			AND expires_at IS NOT DISTINCT FROM $17)
		RETURNING *)
	SELECT ` + linkColumns + ` FROM l LEFT JOIN domains d ON d.id = l.domain_id`
	linkPassword = `SELECT password_hash, extension FROM links WHERE id = $1 AND ordinal > 0`
	linkExists   = `SELECT EXISTS (SELECT FROM links WHERE id = $1 AND ordinal > 0)`
	// deleteLinks locks the account before the links, as statements that create links do.
	deleteLinks = `
	WITH owner AS MATERIALIZED (SELECT id FROM accounts WHERE id = $1 FOR NO KEY UPDATE),
		deleted AS (
			UPDATE links l SET ordinal = -l.ordinal, updated_at = $3
			FROM owner WHERE l.id = ANY ($2::bigint[]) AND l.account_id = owner.id AND l.ordinal > 0 RETURNING l.id, -l.ordinal AS ordinal),
		gap AS (
			INSERT INTO link_gaps (account_id, block, missing) SELECT $1, ordinal / $4, count(*) FROM deleted GROUP BY ordinal / $4
			ON CONFLICT (account_id, block) DO UPDATE SET missing = link_gaps.missing + excluded.missing),
		counted AS (
			UPDATE accounts SET deleted_links = deleted_links + (SELECT count(*) FROM deleted)
			WHERE id = $1 AND EXISTS (SELECT FROM deleted))
	SELECT id FROM deleted`
)

// UpdateLink implements schema.LinkStore.
func (s *Store) UpdateLink(ctx context.Context, link *schema.Link, edit schema.LinkEdit, at time.Time) error {
	updated, err := s.oneLink(ctx, updateLink, updateArgs(link, edit, at)...)
	if (edit.Unchanged || edit.Extension != nil) && errors.Is(err, pgx.ErrNoRows) {
		exists := false
		if err := s.pool.QueryRow(ctx, linkExists, link.ID).Scan(&exists); err != nil {
			return wrap(err, "look for link %d", link.ID)
		}
		if exists {
			return schema.Errorf(schema.CodeConflict, "update link %d: it has changed", link.ID)
		}
	}
	if err != nil {
		return wrap(err, "update link %d", link.ID)
	}
	*link = updated
	return nil
}

// updateArgs returns the arguments of updateLink.
func updateArgs(link *schema.Link, edit schema.LinkEdit, at time.Time) []any {
	var expiresAt *time.Time
	if edit.ExpiresAt != nil {
		expiresAt = nullIfZero(*edit.ExpiresAt)
	}
	return []any{link.ID, edit.URL, edit.Title, schema.TagsColumn{List: edit.Tags}, edit.Active,
		edit.ExpiresAt != nil, expiresAt, edit.ExpiredURL, edit.ForwardQuery, at, edit.Unchanged, link.URL, link.Title,
		schema.TagsColumn{List: &link.Tags}, link.ExpiredURL, link.ForwardQuery, nullIfZero(link.ExpiresAt), edit.ExtensionText(),
		link.Extension.Text(), edit.PasswordHash}
}

// DeleteLink implements schema.LinkStore.
func (s *Store) DeleteLink(ctx context.Context, link schema.Link, at time.Time) error {
	err := s.pool.QueryRow(ctx, deleteLinks, link.AccountID, []int64{link.ID}, at, schema.OrdinalBlock).Scan(new(int64))
	return wrap(err, "delete link %d of account %d", link.ID, link.AccountID)
}

// LinkPassword implements schema.LinkStore.
func (s *Store) LinkPassword(ctx context.Context, id int64) (hash string, version int64, err error) {
	var extension *schema.Extension
	err = s.pool.QueryRow(ctx, linkPassword, id).Scan(&hash, schema.ExtensionColumn{Of: &extension})
	if extension != nil {
		version = extension.Password
	}
	return hash, version, wrap(err, "read password of link %d", id)
}

// SetTakenDown implements schema.LinkStore.
func (s *Store) SetTakenDown(ctx context.Context, domainID int64, hash string, takenDown bool) error {
	err := oneRow(s.pool.Exec(ctx, `UPDATE links SET taken_down = $3 WHERE domain_id = $1 AND hash = $2`,
		domainID, hash, takenDown))
	return wrap(err, "set taken down of link %q on domain %d", hash, domainID)
}
