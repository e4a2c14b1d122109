package linkstore

import (
	"context"

	"linkstream/schema"
)

const (
	insertAccount = `
	INSERT INTO accounts (email, password_hash, suspended, time_zone, created_at) VALUES ($1, $2, $3, $4, $5) RETURNING id`
	// lockAccounts serializes processes that start together.
	lockAccounts   = `{lock accounts}`
	anyAccount     = `SELECT EXISTS (SELECT 1 FROM accounts)`
	accountColumns = `a.id, a.email, a.password_hash, a.suspended, a.time_zone, a.created_at`
	accountByEmail = `SELECT ` + accountColumns + ` FROM accounts a WHERE a.email = $1`
	setSuspended   = `UPDATE accounts SET suspended = $2 WHERE id = $1`
	setProfile     = `UPDATE accounts SET time_zone = $2 WHERE id = $1`
	setPassword    = `UPDATE accounts SET password_hash = $2 WHERE id = $1`
	endOthers      = `DELETE FROM sessions WHERE account_id = $1 AND id <> $2`
	// lockAccount lets one transaction at a time add something to the account. Locks are taken in the order accounts,
	// tokens, links, webhooks.
	lockAccount = `SELECT id FROM accounts WHERE id = $1{for update}`
)

func accountFields(a *schema.Account) []any {
	return []any{&a.ID, &a.Email, &a.PasswordHash, &a.Suspended, &a.TimeZone, &a.CreatedAt}
}

// CreateAccount implements schema.AccountStore.
func (s *Store) CreateAccount(ctx context.Context, account *schema.Account) error {
	id, err := createAccount(ctx, s.db, account)
	if err != nil {
		return wrap(err, "create account %q", account.Email)
	}
	account.ID = id
	return nil
}

func createAccount(ctx context.Context, c Conn, a *schema.Account) (id int64, err error) {
	err = write(ctx, c, value(&id), insertAccount, a.Email, a.PasswordHash, a.Suspended, a.TimeZone, a.CreatedAt)
	return id, err
}

// CreateFirstAccount implements schema.AccountStore. It looks for accounts before it locks their table, too: an
// existing account is not changed while the table is locked.
func (s *Store) CreateFirstAccount(ctx context.Context, account *schema.Account, token *schema.Token) error {
	if err := noAccount(ctx, s.db); err != nil {
		return wrap(err, "create first account %q", account.Email)
	}
	var accountID, tokenID int64
	err := s.db.Update(ctx, func(tx Conn) error {
		_, err := exec(ctx, tx, lockAccounts)
		if err == nil {
			err = noAccount(ctx, tx)
		}
		if err != nil {
			return err
		}
		if accountID, err = createAccount(ctx, tx, account); err != nil {
			return err
		}
		tokenID, err = createToken(ctx, tx, accountID, token)
		return err
	})
	if err != nil {
		return wrap(err, "create first account %q", account.Email)
	}
	account.ID, token.ID, token.AccountID = accountID, tokenID, accountID
	return nil
}

// noAccount returns CodeConflict if there is an account.
func noAccount(ctx context.Context, c Conn) error {
	var exists bool
	err := get(ctx, c, value(&exists), anyAccount)
	if err == nil && exists {
		err = schema.Errorf(schema.CodeConflict, "an account exists")
	}
	return err
}

// AccountByEmail implements schema.AccountStore.
func (s *Store) AccountByEmail(ctx context.Context, email string) (account schema.Account, err error) {
	err = get(ctx, s.db, accountFields(&account), accountByEmail, email)
	return account, wrap(err, "read account %q", email)
}

// SetSuspended implements schema.AccountStore.
func (s *Store) SetSuspended(ctx context.Context, accountID int64, suspended bool) error {
	var b Batch
	b.execOne(setSuspended, accountID, suspended)
	return wrap(s.sendInTurn(ctx, accountID, &b), "set suspended of account %d", accountID)
}

// SetProfile implements schema.AccountStore.
func (s *Store) SetProfile(ctx context.Context, accountID int64, p schema.Profile) error {
	var b Batch
	b.execOne(setProfile, accountID, p.TimeZone)
	return wrap(s.sendInTurn(ctx, accountID, &b), "set profile of account %d", accountID)
}

// SetPassword implements schema.AccountStore.
func (s *Store) SetPassword(ctx context.Context, accountID int64, passwordHash string, keepSessionID int64) error {
	var b Batch
	b.execOne(setPassword, accountID, passwordHash)
	// A separate statement, because the first may have waited for a session, which its snapshot does not contain.
	b.exec(endOthers, accountID, keepSessionID)
	return wrap(s.sendInTurn(ctx, accountID, &b), "set password of account %d", accountID)
}
