package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"linkstream/schema"
)

const (
	shareColumns = `s.id, s.account_id, s.digest, s.link_id, s.hash, s.domain_id, s.tag, s.expires_at, s.password_hash, s.hide_targets,
		s.created_at`
	createShare = `
	INSERT INTO shares (account_id, digest, link_id, hash, domain_id, tag, expires_at, password_hash, hide_targets, created_at)
	SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10 WHERE (SELECT count(*) FROM shares WHERE account_id = ?1) < ?11`
	sharesOfAccount = `SELECT ` + shareColumns + ` FROM shares s WHERE account_id = ? ORDER BY id DESC`
	shareOfAccount  = `SELECT ` + shareColumns + ` FROM shares s WHERE account_id = ? AND id = ?`
	shareByDigest   = `
	SELECT ` + shareColumns + `, a.email, a.password_hash, a.suspended, a.time_zone, a.created_at
	FROM shares s JOIN accounts a ON a.id = s.account_id
	WHERE s.digest = ? AND (s.expires_at IS NULL OR s.expires_at > ?) AND NOT a.suspended
		AND (s.link_id = 0 OR EXISTS (SELECT 1 FROM links WHERE id = s.link_id AND account_id = s.account_id AND ordinal > 0))
		AND (s.link_id <> 0 OR coalesce(s.domain_id, 0) = 0 OR EXISTS (SELECT 1 FROM domains WHERE id = s.domain_id AND account_id = s.account_id))`
	deleteShare = `DELETE FROM shares WHERE account_id = ? AND id = ?`
)

// scanShare scans shareColumns, and the columns after them into more.
func scanShare(row interface{ Scan(...any) error }, more ...any) (share schema.Share, err error) {
	var digest []byte
	err = row.Scan(append([]any{&share.ID, &share.AccountID, &digest, &share.LinkID, &share.Hash, &share.DomainID, &share.Tag,
		unixMillis{&share.ExpiresAt}, &share.PasswordHash, &share.HideTargets, unixMillis{&share.CreatedAt}}, more...)...)
	copy(share.Digest[:], digest)
	return share, err
}

// CreateShare implements schema.ShareStore.
func (s *Store) CreateShare(ctx context.Context, share *schema.Share) error {
	result, err := s.db.write.ExecContext(ctx, createShare, share.AccountID, share.Digest[:], share.LinkID, share.Hash, share.DomainID,
		share.Tag, unixMillis{&share.ExpiresAt}, share.PasswordHash, share.HideTargets, unixMillis{&share.CreatedAt}, schema.MaxShares)
	if err = oneRow(result, err); errors.Is(err, sql.ErrNoRows) {
		err = schema.Errorf(schema.CodeConflict, "it has %d", schema.MaxShares)
	}
	if err == nil {
		share.ID, err = result.LastInsertId()
	}
	return wrap(err, "create share of account %d", share.AccountID)
}

// Shares implements schema.ShareStore.
func (s *Store) Shares(ctx context.Context, accountID int64) (shares []schema.Share, err error) {
	rows, err := s.db.query(ctx, sharesOfAccount, accountID)
	err = forEachRow(rows, err, func() error {
		share, err := scanShare(rows)
		shares = append(shares, share)
		return err
	})
	return shares, wrap(err, "read shares of account %d", accountID)
}

// Share implements schema.ShareStore.
func (s *Store) Share(ctx context.Context, accountID, id int64) (schema.Share, error) {
	share, err := scanShare(s.db.queryRow(ctx, shareOfAccount, accountID, id))
	return share, wrap(err, "read share %d of account %d", id, accountID)
}

// ShareByDigest implements schema.ShareStore.
func (s *Store) ShareByDigest(ctx context.Context, digest [32]byte, now time.Time) (schema.Share, schema.Account, error) {
	var account schema.Account
	share, err := scanShare(s.db.queryRow(ctx, shareByDigest, digest[:], unixMillis{&now}),
		&account.Email, &account.PasswordHash, &account.Suspended, &account.TimeZone, unixMillis{&account.CreatedAt})
	account.ID = share.AccountID
	return share, account, wrap(err, "read share")
}

// DeleteShare implements schema.ShareStore.
func (s *Store) DeleteShare(ctx context.Context, accountID, id int64) error {
	err := oneRow(s.db.write.ExecContext(ctx, deleteShare, accountID, id))
	return wrap(err, "delete share %d of account %d", id, accountID)
}
