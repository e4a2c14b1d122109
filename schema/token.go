package schema

import (
	"context"
	"time"
)

// Token authorizes a program to act for an account. The secret is shown once and never stored.
type Token struct {
	ID        int64
	AccountID int64
	Name      string
	Prefix    string   // first characters of the secret, which tell tokens apart in a list
	Digest    [32]byte // SHA-256 of the secret, unique
	CreatedAt time.Time
	UsedAt    time.Time // approximate time of the last use; zero if never used
	RevokedAt time.Time // zero while the token is valid
}

// TokenStore stores tokens.
type TokenStore interface {
	// CreateToken stores token and sets its ID.
	CreateToken(ctx context.Context, token *Token) error
	// TokenByDigest returns the valid token with that digest and its account, which may be suspended. CodeNotFound if
	// the token is unknown or revoked.
	TokenByDigest(ctx context.Context, digest [32]byte) (Token, Account, error)
	// RevokeToken makes a token permanently invalid. Idempotent. CodeNotFound if there is no such token.
	RevokeToken(ctx context.Context, tokenID int64, at time.Time) error
	// ValidTokens returns those of the tokens with these IDs that are valid and whose account is not suspended, in any order.
	ValidTokens(ctx context.Context, ids []int64) ([]int64, error)
	// Tokens returns the account's valid tokens, the newest first.
	Tokens(ctx context.Context, accountID int64) ([]Token, error)
	// UseTokens sets UsedAt of tokens, by ID, unless it is later already. Unknown IDs are no error.
	UseTokens(ctx context.Context, usedAt map[int64]time.Time) error
}
