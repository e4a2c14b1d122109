package schema

import (
	"context"
	"time"
)

// Account owns links, tokens and domains.
type Account struct {
	ID           int64
	Email        string // lower case, unique
	PasswordHash string // argon2id in PHC string format; never a password
	Suspended    bool   // its tokens answer 403, its links go on
	CreatedAt    time.Time
}

// Token lets a program act for an account. The secret is shown once and never stored.
type Token struct {
	ID        int64
	AccountID int64
	Name      string
	Prefix    string   // the secret's first characters, to tell tokens apart in a list
	Digest    [32]byte // SHA-256 of the secret, unique
	CreatedAt time.Time
	RevokedAt time.Time // zero while the token is valid
}

// Domain is an account's claim on a hostname. A verified hostname belongs to one account; claims that are not
// verified may coexist.
type Domain struct {
	ID         int64 // from 1; 0 stands for the service's default domain wherever a domain is named
	AccountID  int64
	Host       string // lower case, ASCII form, no port
	Challenge  string // what the TXT record must say
	CreatedAt  time.Time
	VerifiedAt time.Time // zero until verified
}

// AccountStore keeps accounts.
type AccountStore interface {
	// CreateAccount stores account and sets its ID. CodeConflict if the email is taken.
	CreateAccount(ctx context.Context, account *Account) error
	// CreateFirstAccount stores account with its first token, both or neither, if there is no account at all, and
	// sets their IDs. CodeConflict, with nothing stored, if there is one.
	CreateFirstAccount(ctx context.Context, account *Account, token *Token) error
	// AccountByEmail returns the account. CodeNotFound if there is none.
	AccountByEmail(ctx context.Context, email string) (Account, error)
	// SetSuspended suspends or reinstates an account. Idempotent. CodeNotFound if there is no such account.
	SetSuspended(ctx context.Context, accountID int64, suspended bool) error
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
}

// DomainStore keeps domains.
type DomainStore interface {
	// CreateDomain stores an account's claim and sets its ID. CodeConflict if the account claims the host already, or
	// if domain is to be stored as verified and another account holds the verified host.
	CreateDomain(ctx context.Context, domain *Domain) error
	// Domain returns the domain with that ID, verified or not. CodeNotFound if there is none.
	Domain(ctx context.Context, domainID int64) (Domain, error)
	// DomainsByHost returns every claim on host, the oldest first; none is no error.
	DomainsByHost(ctx context.Context, host string) ([]Domain, error)
	// VerifiedDomain returns the one verified domain of host. CodeNotFound if there is none.
	VerifiedDomain(ctx context.Context, host string) (Domain, error)
	// VerifyDomain marks a claim as verified. Idempotent: a verified one keeps its first time. CodeNotFound if there
	// is no such domain, CodeConflict if another account holds the verified host.
	VerifyDomain(ctx context.Context, domainID int64, at time.Time) error
}

// Database keeps everything but clicks.
type Database interface {
	LinkStore
	AccountStore
	TokenStore
	DomainStore
	RateStore
}
