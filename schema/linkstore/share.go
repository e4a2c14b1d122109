package linkstore

import (
	"context"
	"slices"
	"time"

	"linkstream/schema"
)

const (
	insertShare = `
	INSERT INTO shares (account_id, digest, link_id, hash, domain_id, tag, expires_at, password_hash, hide_targets,
		created_at, token_id, time_zone)
	SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12
	WHERE (SELECT count(*) FROM shares WHERE account_id = $1) < $13
	RETURNING id`
	shareColumns = `s.id, s.account_id, s.digest, s.link_id, s.hash, s.domain_id, s.tag, s.expires_at, s.password_hash,
		s.hide_targets, s.created_at, s.token_id, s.time_zone`
	sharesOfAccount = `SELECT ` + shareColumns + ` FROM shares s WHERE account_id = $1 ORDER BY id DESC`
	shareOfAccount  = `SELECT ` + shareColumns + ` FROM shares s WHERE account_id = $1 AND id = $2`
	shareByDigest   = `
	SELECT ` + shareColumns + `, ` + accountColumns + ` FROM shares s JOIN accounts a ON a.id = s.account_id
	WHERE s.digest = $1 AND (s.expires_at IS NULL OR s.expires_at > $2) AND NOT a.suspended
		AND (s.link_id = 0 OR EXISTS (SELECT 1 FROM links WHERE id = s.link_id AND account_id = s.account_id AND ordinal > 0))
		AND (s.link_id <> 0 OR coalesce(s.domain_id, 0) = 0
			OR EXISTS (SELECT 1 FROM domains WHERE id = s.domain_id AND account_id = s.account_id))`
	deleteShare = `DELETE FROM shares WHERE account_id = $1 AND id = $2`
)

func shareFields(s *schema.Share) []any {
	return []any{&s.ID, &s.AccountID, bytes32{&s.Digest}, &s.LinkID, &s.Hash, &s.DomainID, &s.Tag, &s.ExpiresAt,
		&s.PasswordHash, &s.HideTargets, &s.CreatedAt, &s.TokenID, &s.TimeZone}
}

// CreateShare implements schema.ShareStore. It locks the account, so that concurrent calls see each other's shares, and
// the token, so that it is not revoked before the share is there.
func (s *Store) CreateShare(ctx context.Context, share *schema.Share) error {
	err := s.updateInTurn(ctx, share.AccountID, func(tx Conn) error {
		if err := get(ctx, tx, value(new(int64)), lockAccount, share.AccountID); err != nil {
			return err
		}
		ends, err := lockToken(ctx, tx, share.TokenID)
		if err != nil {
			return err
		}
		if !ends.IsZero() && (share.ExpiresAt.IsZero() || ends.Before(share.ExpiresAt)) {
			share.ExpiresAt = ends
		}
		err = write(ctx, tx, value(&share.ID), insertShare, share.AccountID, share.Digest[:], share.LinkID, share.Hash,
			share.DomainID, share.Tag, share.ExpiresAt, share.PasswordHash, share.HideTargets, share.CreatedAt, share.TokenID,
			share.TimeZone, schema.MaxShares)
		if schema.ErrorCode(err) == schema.CodeNotFound {
			err = schema.Errorf(schema.CodeConflict, "it has %d", schema.MaxShares)
		}
		return err
	})
	return wrap(err, "create share of account %d", share.AccountID)
}

// Shares implements schema.ShareStore.
func (s *Store) Shares(ctx context.Context, accountID int64) ([]schema.Share, error) {
	shares, err := list(ctx, s.db, shareFields, sharesOfAccount, accountID)
	return shares, wrap(err, "read shares of account %d", accountID)
}

// Share implements schema.ShareStore.
func (s *Store) Share(ctx context.Context, accountID, id int64) (share schema.Share, err error) {
	err = get(ctx, s.db, shareFields(&share), shareOfAccount, accountID, id)
	return share, wrap(err, "read share %d of account %d", id, accountID)
}

// ShareByDigest implements schema.ShareStore.
func (s *Store) ShareByDigest(
	ctx context.Context, digest [32]byte, now time.Time,
) (share schema.Share, account schema.Account, err error) {
	err = get(ctx, s.db, slices.Concat(shareFields(&share), accountFields(&account)), shareByDigest, digest[:], now)
	return share, account, wrap(err, "read share")
}

// DeleteShare implements schema.ShareStore.
func (s *Store) DeleteShare(ctx context.Context, accountID, id int64) error {
	var b Batch
	b.execOne(deleteShare, accountID, id)
	return wrap(s.sendInTurn(ctx, accountID, &b), "delete share %d of account %d", id, accountID)
}
