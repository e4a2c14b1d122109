package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"linkstream/schema"
)

var _ schema.TokenStore = (*Links)(nil)

// CreateToken implements schema.TokenStore.
func (l *Links) CreateToken(ctx context.Context, token *schema.Token) error {
	id, err := insertToken(ctx, l.pool, token.AccountID, token)
	if err != nil {
		return coded(err, "create token %q of account %d", token.Name, token.AccountID)
	}
	token.ID = id
	return nil
}

// querier is the pool, where each statement is a transaction of its own, or a transaction.
type querier interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

func insertToken(ctx context.Context, in querier, accountID int64, token *schema.Token) (id int64, err error) {
	err = in.QueryRow(ctx, `
		INSERT INTO tokens (account_id, name, prefix, digest, created_at, revoked_at)
		VALUES ($1, $2, $3, $4, $5, $6) RETURNING id`,
		accountID, token.Name, token.Prefix, token.Digest[:], token.CreatedAt, nullIfZero(token.RevokedAt)).Scan(&id)
	return id, err
}

const tokenByDigest = `
	SELECT t.id, t.account_id, t.name, t.prefix, t.created_at, a.email, a.password_hash, a.suspended, a.created_at
	FROM tokens t JOIN accounts a ON a.id = t.account_id
	WHERE t.digest = $1 AND t.revoked_at IS NULL`

// TokenByDigest implements schema.TokenStore.
func (l *Links) TokenByDigest(ctx context.Context, digest [32]byte) (schema.Token, schema.Account, error) {
	token := schema.Token{Digest: digest}
	var account schema.Account
	err := l.pool.QueryRow(ctx, tokenByDigest, digest[:]).
		Scan(&token.ID, &token.AccountID, &token.Name, &token.Prefix, &token.CreatedAt,
			&account.Email, &account.PasswordHash, &account.Suspended, &account.CreatedAt)
	account.ID = token.AccountID
	return token, account, coded(err, "read token")
}

// RevokeToken implements schema.TokenStore.
func (l *Links) RevokeToken(ctx context.Context, tokenID int64, at time.Time) error {
	err := oneRow(l.pool.Exec(ctx, `UPDATE tokens SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1`, tokenID, at))
	return coded(err, "revoke token %d", tokenID)
}
