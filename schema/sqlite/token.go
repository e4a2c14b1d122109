package sqlite

import (
	"context"
	"time"

	"linkstream/schema"
)

var _ schema.TokenStore = (*Links)(nil)

const tokenByDigest = `
	SELECT t.id, t.account_id, t.name, t.prefix, t.created_at, a.email, a.password_hash, a.suspended, a.created_at
	FROM tokens t JOIN accounts a ON a.id = t.account_id
	WHERE t.digest = ? AND t.revoked_at IS NULL`

// CreateToken implements schema.TokenStore.
func (l *Links) CreateToken(ctx context.Context, token *schema.Token) error {
	id, err := insertToken(ctx, l.db.write, token.AccountID, token)
	if err != nil {
		return coded(err, "create token %q of account %d", token.Name, token.AccountID)
	}
	token.ID = id
	return nil
}

func insertToken(ctx context.Context, in execer, accountID int64, token *schema.Token) (id int64, err error) {
	return insertedID(in.ExecContext(ctx, `INSERT INTO tokens (account_id, name, prefix, digest, created_at, revoked_at)
		VALUES (?, ?, ?, ?, ?, ?)`, accountID, token.Name, token.Prefix, token.Digest[:],
		millis{&token.CreatedAt}, millis{&token.RevokedAt}))
}

// TokenByDigest implements schema.TokenStore.
func (l *Links) TokenByDigest(ctx context.Context, digest [32]byte) (schema.Token, schema.Account, error) {
	token := schema.Token{Digest: digest}
	var account schema.Account
	err := l.tokenByDigest.QueryRowContext(ctx, digest[:]).Scan(
		&token.ID, &token.AccountID, &token.Name, &token.Prefix, millis{&token.CreatedAt},
		&account.Email, &account.PasswordHash, &account.Suspended, millis{&account.CreatedAt})
	account.ID = token.AccountID
	return token, account, coded(err, "read token")
}

// RevokeToken implements schema.TokenStore.
func (l *Links) RevokeToken(ctx context.Context, tokenID int64, at time.Time) error {
	err := oneRow(l.db.write.ExecContext(ctx, `UPDATE tokens SET revoked_at = coalesce(revoked_at, ?) WHERE id = ?`,
		millis{&at}, tokenID))
	return coded(err, "revoke token %d", tokenID)
}
