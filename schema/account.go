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
	// SetPassword replaces an account's password hash and ends all its sessions but the one with keepSessionID, both or
	// neither; 0 keeps none. CodeNotFound if there is no such account.
	SetPassword(ctx context.Context, accountID int64, passwordHash string, keepSessionID int64) error
}
