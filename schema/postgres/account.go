package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"linkstream/schema"
)

// CreateAccount implements schema.AccountStore.
func (s *Store) CreateAccount(ctx context.Context, account *schema.Account) error {
	err := s.pool.QueryRow(ctx, `
		INSERT INTO accounts (email, password_hash, suspended, time_zone, created_at) VALUES ($1, $2, $3, $4, $5) RETURNING id`,
		account.Email, account.PasswordHash, account.Suspended, account.TimeZone, account.CreatedAt).Scan(&account.ID)
	return wrap(err, "create account %q", account.Email)
}

// CreateFirstAccount implements schema.AccountStore. The lock on the table serializes processes that start together.
func (s *Store) CreateFirstAccount(ctx context.Context, account *schema.Account, token *schema.Token) error {
	var accountID, tokenID int64
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `LOCK TABLE accounts IN SHARE ROW EXCLUSIVE MODE`); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, `
			INSERT INTO accounts (email, password_hash, suspended, time_zone, created_at)
			SELECT $1, $2, $3, $4, $5 WHERE NOT EXISTS (SELECT 1 FROM accounts) RETURNING id`,
			account.Email, account.PasswordHash, account.Suspended, account.TimeZone, account.CreatedAt).Scan(&accountID)
		if errors.Is(err, pgx.ErrNoRows) {
			return schema.Errorf(schema.CodeConflict, "an account exists")
		}
		if err != nil {
			return err
		}
		tokenID, err = insertToken(ctx, tx, accountID, token)
		return err
	})
	if err != nil {
		return wrap(err, "create first account %q", account.Email)
	}
	account.ID, token.ID, token.AccountID = accountID, tokenID, accountID
	return nil
}

// AccountByEmail implements schema.AccountStore.
func (s *Store) AccountByEmail(ctx context.Context, email string) (account schema.Account, err error) {
	err = s.pool.QueryRow(ctx, `
		SELECT id, email, password_hash, suspended, time_zone, created_at FROM accounts WHERE email = $1`, email).
		Scan(&account.ID, &account.Email, &account.PasswordHash, &account.Suspended, &account.TimeZone, &account.CreatedAt)
	return account, wrap(err, "read account %q", email)
}

// SetSuspended implements schema.AccountStore.
func (s *Store) SetSuspended(ctx context.Context, accountID int64, suspended bool) error {
	err := oneRow(s.pool.Exec(ctx, `UPDATE accounts SET suspended = $2 WHERE id = $1`, accountID, suspended))
	return wrap(err, "set suspended of account %d", accountID)
}

// SetTimeZone implements schema.AccountStore.
func (s *Store) SetTimeZone(ctx context.Context, accountID int64, zone string) error {
	err := oneRow(s.pool.Exec(ctx, `UPDATE accounts SET time_zone = $2 WHERE id = $1`, accountID, zone))
	return wrap(err, "set time zone of account %d", accountID)
}

// SetPassword implements schema.AccountStore.
func (s *Store) SetPassword(ctx context.Context, accountID int64, passwordHash string, keepSessionID int64) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		err := oneRow(tx.Exec(ctx, `UPDATE accounts SET password_hash = $2 WHERE id = $1`, accountID, passwordHash))
		if err != nil {
			return err
		}
		// A separate statement, because the first may have waited for a session, which its snapshot does not contain.
		_, err = tx.Exec(ctx, `DELETE FROM sessions WHERE account_id = $1 AND id <> $2`, accountID, keepSessionID)
		return err
	})
	return wrap(err, "set password of account %d", accountID)
}
