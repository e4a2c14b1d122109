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
	Suspended    bool   // its tokens and sessions are refused, and its links are answered with 410
	Profile
	CreatedAt time.Time
}

// Profile is what the owner of an account says about it. Each field is "" if nobody has said.
type Profile struct {
	TimeZone string // in which its days begin, an IANA name
}

// AccountStore stores accounts.
type AccountStore interface {
	// CreateAccount stores account and sets its ID. CodeConflict if the email is taken.
	CreateAccount(ctx context.Context, account *Account) error
	// CreateFirstAccount stores account and its first token in one transaction, and sets their IDs. CodeConflict, and
	// nothing is stored, if any account exists.
	CreateFirstAccount(ctx context.Context, account *Account, token *Token) error
	// AccountByEmail returns the account with that email. CodeNotFound without such an account.
	AccountByEmail(ctx context.Context, email string) (Account, error)
	// SetSuspended suspends or reinstates an account. Idempotent. CodeNotFound if there is no such account.
	SetSuspended(ctx context.Context, accountID int64, suspended bool) error
	// SetProfile replaces an account's profile. CodeNotFound if there is no such account.
	SetProfile(ctx context.Context, accountID int64, profile Profile) error
	// SetPassword replaces an account's password hash and ends its sessions, except for the one with keepSessionID, in
	// one transaction. With keepSessionID 0 it ends all of them. CodeNotFound if there is no such account.
	SetPassword(ctx context.Context, accountID int64, passwordHash string, keepSessionID int64) error
}
