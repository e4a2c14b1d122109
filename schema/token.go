package schema

import (
	"context"
	"time"
)

// Token lets a program act for an account. The secret is shown once and never stored.
type Token struct {
	ID        int64
	AccountID int64
	Name      string
	Prefix    string   // the secret's first characters, to tell tokens apart in a list
	Digest    [32]byte // SHA-256 of the secret, unique
	CreatedAt time.Time
	UsedAt    time.Time // about when it was last used; zero if never
	RevokedAt time.Time // zero while the token is valid
}

// TokenStore keeps tokens.
type TokenStore interface {
	// CreateToken stores token and sets its ID.
	CreateToken(ctx context.Context, token *Token) error
	// TokenByDigest returns the valid token with that digest, and its account. CodeNotFound if it is unknown or
	// revoked; that the account is suspended is for the caller to judge.
	TokenByDigest(ctx context.Context, digest [32]byte) (Token, Account, error)
	// RevokeToken makes a token invalid for good. Idempotent. CodeNotFound if there is no such token.
	RevokeToken(ctx context.Context, tokenID int64, at time.Time) error
	// Tokens returns the account's valid tokens, the newest first.
	Tokens(ctx context.Context, accountID int64) ([]Token, error)
	// UseTokens notes when tokens were used, by their IDs: UsedAt becomes the latest time noted. Unknown IDs are no error.
	UseTokens(ctx context.Context, usedAt map[int64]time.Time) error
}
