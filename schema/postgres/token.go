package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"linkstream/schema"
)

// CreateToken implements schema.TokenStore.
func (s *Store) CreateToken(ctx context.Context, token *schema.Token) error {
	id, err := insertToken(ctx, s.pool, token.AccountID, token)
	if err != nil {
		return wrap(err, "create token %q of account %d", token.Name, token.AccountID)
	}
	token.ID = id
	return nil
}

// querier is the pool, where each statement is its own transaction, or a transaction.
type querier interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

func insertToken(ctx context.Context, db querier, accountID int64, token *schema.Token) (id int64, err error) {
	err = db.QueryRow(ctx, `
		INSERT INTO tokens (account_id, name, prefix, digest, created_at, used_at, revoked_at, scopes, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING id`,
		accountID, token.Name, token.Prefix, token.Digest[:], token.CreatedAt, nullIfZero(token.UsedAt),
		nullIfZero(token.RevokedAt), token.Scopes, nullIfZero(token.ExpiresAt)).Scan(&id)
	return id, err
}

const (
	tokenColumns = `t.id, t.account_id, t.name, t.prefix, t.digest, t.created_at, coalesce(t.used_at, ` + zeroTime + `), t.scopes,
		coalesce(t.expires_at, ` + zeroTime + `)`

	tokenByDigest = `
	SELECT ` + tokenColumns + `, a.email, a.password_hash, a.suspended, a.time_zone, a.created_at
	FROM tokens t JOIN accounts a ON a.id = t.account_id
	WHERE t.digest = $1 AND t.revoked_at IS NULL`
	validTokens = `
	SELECT t.id FROM tokens t JOIN accounts a ON a.id = t.account_id
	WHERE t.id = ANY ($1) AND t.revoked_at IS NULL AND NOT a.suspended AND (t.expires_at IS NULL OR t.expires_at > now())`
	tokensOfAccount = `
	SELECT ` + tokenColumns + ` FROM tokens t WHERE t.account_id = $1 AND t.revoked_at IS NULL ORDER BY t.id DESC`
	// Rows are locked in order of their IDs, so that calls with several tokens in common do not deadlock.
	useTokens = `
	WITH used AS (SELECT * FROM unnest($1::bigint[], $2::timestamptz[]) AS u (id, at)),
		locked AS (SELECT id FROM tokens WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE)
	UPDATE tokens t SET used_at = used.at FROM locked JOIN used USING (id)
	WHERE t.id = locked.id AND (t.used_at IS NULL OR t.used_at < used.at)`
)

// scanToken scans tokenColumns, and the columns after them into more.
func scanToken(row pgx.Row, more ...any) (token schema.Token, err error) {
	var digest []byte
	err = row.Scan(append([]any{&token.ID, &token.AccountID, &token.Name, &token.Prefix, &digest, &token.CreatedAt,
		&token.UsedAt, &token.Scopes, &token.ExpiresAt}, more...)...)
	copy(token.Digest[:], digest)
	return token, err
}

// TokenByDigest implements schema.TokenStore.
func (s *Store) TokenByDigest(ctx context.Context, digest [32]byte) (schema.Token, schema.Account, error) {
	var account schema.Account
	token, err := scanToken(s.pool.QueryRow(ctx, tokenByDigest, digest[:]),
		&account.Email, &account.PasswordHash, &account.Suspended, &account.TimeZone, &account.CreatedAt)
	account.ID = token.AccountID
	return token, account, wrap(err, "read token")
}

// RevokeToken implements schema.TokenStore.
func (s *Store) RevokeToken(ctx context.Context, tokenID int64, at time.Time) error {
	err := oneRow(s.pool.Exec(ctx, `UPDATE tokens SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1`, tokenID, at))
	return wrap(err, "revoke token %d", tokenID)
}

// ValidTokens implements schema.TokenStore.
func (s *Store) ValidTokens(ctx context.Context, ids []int64) ([]int64, error) {
	valid, err := s.ids(ctx, validTokens, ids)
	return valid, wrap(err, "read which of %d tokens are valid", len(ids))
}

// ids returns the IDs that a query selects.
func (s *Store) ids(ctx context.Context, query string, args ...any) ([]int64, error) {
	rows, err := s.pool.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// Tokens implements schema.TokenStore.
func (s *Store) Tokens(ctx context.Context, accountID int64) ([]schema.Token, error) {
	rows, err := s.pool.Query(ctx, tokensOfAccount, accountID)
	if err != nil {
		return nil, wrap(err, "read tokens of account %d", accountID)
	}
	tokens, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (schema.Token, error) { return scanToken(row) })
	return tokens, wrap(err, "read tokens of account %d", accountID)
}

// UseTokens implements schema.TokenStore.
func (s *Store) UseTokens(ctx context.Context, usedAt map[int64]time.Time) error {
	ids, times := make([]int64, 0, len(usedAt)), make([]time.Time, 0, len(usedAt))
	for id, at := range usedAt {
		ids, times = append(ids, id), append(times, at)
	}
	_, err := s.pool.Exec(ctx, useTokens, ids, times)
	return wrap(err, "record the use of %d tokens", len(usedAt))
}
