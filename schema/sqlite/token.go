package sqlite

import (
	"context"
	"encoding/json"
	"time"

	"linkstream/schema"
)

const (
	tokenColumns = `t.id, t.account_id, t.name, t.prefix, t.digest, t.created_at, t.used_at, t.scopes, t.expires_at`

	tokenByDigest = `
	SELECT ` + tokenColumns + `, a.email, a.password_hash, a.suspended, a.time_zone, a.created_at
	FROM tokens t JOIN accounts a ON a.id = t.account_id
	WHERE t.digest = ? AND t.revoked_at IS NULL`
	validTokens = `
	SELECT t.id FROM tokens t JOIN accounts a ON a.id = t.account_id
	WHERE t.id IN (SELECT value FROM json_each(?)) AND t.revoked_at IS NULL AND NOT a.suspended
		AND (t.expires_at IS NULL OR t.expires_at > unixepoch('subsec') * 1000)`
	tokensOfAccount = `
	SELECT ` + tokenColumns + ` FROM tokens t WHERE t.account_id = ? AND t.revoked_at IS NULL ORDER BY t.id DESC`
	// useTokens takes a JSON object of times by ID.
	useTokens = `
	UPDATE tokens SET used_at = used.value FROM json_each(?) AS used
	WHERE tokens.id = CAST(used.key AS INTEGER) AND (used_at IS NULL OR used_at < used.value)`
)

// scanToken scans tokenColumns, and the columns after them into more.
func scanToken(row interface{ Scan(...any) error }, more ...any) (token schema.Token, err error) {
	var digest []byte
	err = row.Scan(append([]any{&token.ID, &token.AccountID, &token.Name, &token.Prefix, &digest,
		unixMillis{&token.CreatedAt}, unixMillis{&token.UsedAt}, &token.Scopes, unixMillis{&token.ExpiresAt}}, more...)...)
	copy(token.Digest[:], digest)
	return token, err
}

// CreateToken implements schema.TokenStore.
func (s *Store) CreateToken(ctx context.Context, token *schema.Token) error {
	id, err := insertToken(ctx, s.db.write, token.AccountID, token)
	if err != nil {
		return wrap(err, "create token %q of account %d", token.Name, token.AccountID)
	}
	token.ID = id
	return nil
}

func insertToken(ctx context.Context, db execer, accountID int64, token *schema.Token) (id int64, err error) {
	return insertedID(db.ExecContext(ctx, `INSERT INTO tokens
		(account_id, name, prefix, digest, created_at, used_at, revoked_at, scopes, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		accountID, token.Name, token.Prefix, token.Digest[:],
		unixMillis{&token.CreatedAt}, unixMillis{&token.UsedAt}, unixMillis{&token.RevokedAt}, token.Scopes, unixMillis{&token.ExpiresAt}))
}

// TokenByDigest implements schema.TokenStore.
func (s *Store) TokenByDigest(ctx context.Context, digest [32]byte) (schema.Token, schema.Account, error) {
	var account schema.Account
	token, err := scanToken(s.db.queryRow(ctx, tokenByDigest, digest[:]),
		&account.Email, &account.PasswordHash, &account.Suspended, &account.TimeZone, unixMillis{&account.CreatedAt})
	account.ID = token.AccountID
	return token, account, wrap(err, "read token")
}

// RevokeToken implements schema.TokenStore.
func (s *Store) RevokeToken(ctx context.Context, tokenID int64, at time.Time) error {
	err := oneRow(s.db.write.ExecContext(ctx, `UPDATE tokens SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?`,
		unixMillis{&at}, tokenID))
	return wrap(err, "revoke token %d", tokenID)
}

// ValidTokens implements schema.TokenStore.
func (s *Store) ValidTokens(ctx context.Context, ids []int64) ([]int64, error) {
	valid, err := s.ids(ctx, validTokens, ids)
	return valid, wrap(err, "read which of %d tokens are valid", len(ids))
}

// ids returns the IDs that a query of some IDs, which are its first argument as JSON, selects.
func (s *Store) ids(ctx context.Context, query string, of []int64, args ...any) (found []int64, err error) {
	list, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	rows, err := s.db.query(ctx, query, append([]any{string(list)}, args...)...)
	err = forEachRow(rows, err, func() error {
		var id int64
		err := rows.Scan(&id)
		found = append(found, id)
		return err
	})
	return found, err
}

// Tokens implements schema.TokenStore.
func (s *Store) Tokens(ctx context.Context, accountID int64) (tokens []schema.Token, err error) {
	rows, err := s.db.query(ctx, tokensOfAccount, accountID)
	err = forEachRow(rows, err, func() error {
		token, err := scanToken(rows)
		tokens = append(tokens, token)
		return err
	})
	return tokens, wrap(err, "read tokens of account %d", accountID)
}

// UseTokens implements schema.TokenStore.
func (s *Store) UseTokens(ctx context.Context, usedAt map[int64]time.Time) error {
	times := make(map[int64]int64, len(usedAt))
	for id, at := range usedAt {
		times[id] = at.UnixMilli()
	}
	used, err := json.Marshal(times)
	if err == nil {
		_, err = s.db.write.ExecContext(ctx, useTokens, string(used))
	}
	return wrap(err, "record the use of %d tokens", len(usedAt))
}
