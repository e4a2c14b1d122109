package schema

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Token authorizes a program to act for an account. The secret is shown once and never stored.
type Token struct {
	ID        int64
	AccountID int64
	Name      string
	Prefix    string   // first characters of the secret, to recognize the token in a list
	Digest    [32]byte // SHA-256 of the secret, unique
	CreatedAt time.Time
	UsedAt    time.Time // approximate time of the last use; zero if never used
	RevokedAt time.Time // zero while the token is valid
	Scopes    string    // the token's rights, in the form of JoinScopes; "": all
	ExpiresAt time.Time // from when on the token is refused; zero: never
}

// The scopes of tokens.
const (
	ScopeReadLinks   = "links.read"
	ScopeWriteLinks  = "links.write"
	ScopeReadReports = "reports.read"
	ScopeWebhooks    = "webhooks"
)

// Scopes returns all scopes.
func Scopes() []string {
	return []string{ScopeReadLinks, ScopeWriteLinks, ScopeReadReports, ScopeWebhooks}
}

// JoinScopes returns scopes in the order of Scopes, separated by spaces. unknown is the first that does not exist.
func JoinScopes(some []string) (joined, unknown string) {
	for _, scope := range some {
		if !slices.Contains(Scopes(), scope) {
			return "", scope
		}
	}
	return strings.Join(slices.DeleteFunc(Scopes(), func(scope string) bool { return !slices.Contains(some, scope) }),
		" "), ""
}

// HasScope reports whether scopes of a token permit what has a scope.
func HasScope(scopes, scope string) bool {
	return scopes == "" || slices.Contains(strings.Fields(scopes), scope)
}

// ExpiredAt reports whether the token is refused at a time.
func (t *Token) ExpiredAt(now time.Time) bool {
	return !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt)
}

// TokenStore stores tokens.
type TokenStore interface {
	// CreateToken stores token and sets its ID.
	CreateToken(ctx context.Context, token *Token) error
	// TokenByDigest returns the token with that digest, which may have expired, and its account, which may be suspended.
	// CodeNotFound if the token is unknown or revoked.
	TokenByDigest(ctx context.Context, digest [32]byte) (Token, Account, error)
	// RevokeToken makes a token permanently invalid. It deletes the token's shares and switches its webhooks off, unless
	// keep is true: then they belong to no token any more. Idempotent. CodeNotFound if there is no such token.
	RevokeToken(ctx context.Context, tokenID int64, at time.Time, keep bool) error
	// ValidTokens returns the valid tokens with these IDs, in any order, without tokens that have expired by the store's
	// clock, or whose account is suspended.
	ValidTokens(ctx context.Context, ids []int64) ([]int64, error)
	// Tokens returns the account's tokens that were not revoked, the newest first.
	Tokens(ctx context.Context, accountID int64) ([]Token, error)
	// UseTokens sets UsedAt of tokens, by ID, unless it is later already. Unknown IDs are no error.
	UseTokens(ctx context.Context, usedAt map[int64]time.Time) error
}
