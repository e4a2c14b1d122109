package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"linkstream/schema"
)

const (
	shareColumns = `s.id, s.account_id, s.digest, s.link_id, s.hash, s.domain_id, s.tag, coalesce(s.expires_at, ` + zeroTime + `),
		s.password_hash, s.hide_targets, s.created_at`
	createShare = `
	INSERT INTO shares (account_id, digest, link_id, hash, domain_id, tag, expires_at, password_hash, hide_targets, created_at)
	SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10 WHERE (SELECT count(*) FROM shares WHERE account_id = $1) < $11
	RETURNING id`
	sharesOfAccount = `SELECT ` + shareColumns + ` FROM shares s WHERE account_id = $1 ORDER BY id DESC`
	shareOfAccount  = `SELECT ` + shareColumns + ` FROM shares s WHERE account_id = $1 AND id = $2`
	shareByDigest   = `
	SELECT ` + shareColumns + `, a.email, a.password_hash, a.suspended, a.time_zone, a.created_at
	FROM shares s JOIN accounts a ON a.id = s.account_id
	WHERE s.digest = $1 AND (s.expires_at IS NULL OR s.expires_at > $2) AND NOT a.suspended
		AND (s.link_id = 0 OR EXISTS (SELECT FROM links WHERE id = s.link_id AND account_id = s.account_id AND ordinal > 0))
		AND (s.link_id <> 0 OR coalesce(s.domain_id, 0) = 0 OR EXISTS (SELECT FROM domains WHERE id = s.domain_id AND account_id = s.account_id))`
	deleteShare = `DELETE FROM shares WHERE account_id = $1 AND id = $2`
)

// scanShare scans shareColumns, and the columns after them into more.
func scanShare(row pgx.Row, more ...any) (share schema.Share, err error) {
	var digest []byte
	err = row.Scan(append([]any{&share.ID, &share.AccountID, &digest, &share.LinkID, &share.Hash, &share.DomainID, &share.Tag,
		&share.ExpiresAt, &share.PasswordHash, &share.HideTargets, &share.CreatedAt}, more...)...)
	copy(share.Digest[:], digest)
	share.ExpiresAt, share.CreatedAt = share.ExpiresAt.UTC(), share.CreatedAt.UTC()
	return share, err
}

// CreateShare implements schema.ShareStore. It locks the account, so that concurrent calls see each other's shares.
func (s *Store) CreateShare(ctx context.Context, share *schema.Share) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := oneRow(tx.Exec(ctx, lockAccount, share.AccountID)); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, createShare, share.AccountID, share.Digest[:], share.LinkID, share.Hash, share.DomainID, share.Tag,
			nullIfZero(share.ExpiresAt), share.PasswordHash, share.HideTargets, share.CreatedAt, schema.MaxShares).Scan(&share.ID)
		if errors.Is(err, pgx.ErrNoRows) {
			err = schema.Errorf(schema.CodeConflict, "it has %d", schema.MaxShares)
		}
		return err
	})
	return wrap(err, "create share of account %d", share.AccountID)
}

// Shares implements schema.ShareStore.
func (s *Store) Shares(ctx context.Context, accountID int64) ([]schema.Share, error) {
	rows, _ := s.pool.Query(ctx, sharesOfAccount, accountID) // CollectRows returns the error
	shares, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (schema.Share, error) { return scanShare(row) })
	return shares, wrap(err, "read shares of account %d", accountID)
}

// Share implements schema.ShareStore.
func (s *Store) Share(ctx context.Context, accountID, id int64) (schema.Share, error) {
	share, err := scanShare(s.pool.QueryRow(ctx, shareOfAccount, accountID, id))
	return share, wrap(err, "read share %d of account %d", id, accountID)
}

// ShareByDigest implements schema.ShareStore.
func (s *Store) ShareByDigest(ctx context.Context, digest [32]byte, now time.Time) (schema.Share, schema.Account, error) {
	var account schema.Account
	share, err := scanShare(s.pool.QueryRow(ctx, shareByDigest, digest[:], now),
		&account.Email, &account.PasswordHash, &account.Suspended, &account.TimeZone, &account.CreatedAt)
	account.ID = share.AccountID
	return share, account, wrap(err, "read share")
}

// DeleteShare implements schema.ShareStore.
func (s *Store) DeleteShare(ctx context.Context, accountID, id int64) error {
	err := oneRow(s.pool.Exec(ctx, deleteShare, accountID, id))
	return wrap(err, "delete share %d of account %d", id, accountID)
}
