package sqlite

import (
	"context"
	"database/sql"

	"linkstream/schema"
)

const accountByEmail = `SELECT id, email, password_hash, suspended, time_zone, created_at FROM accounts WHERE email = ?`

// CreateAccount implements schema.AccountStore.
func (s *Store) CreateAccount(ctx context.Context, account *schema.Account) error {
	id, err := insertAccount(ctx, s.db.write, account)
	if err != nil {
		return wrap(err, "create account %q", account.Email)
	}
	account.ID = id
	return nil
}

func insertAccount(ctx context.Context, db execer, account *schema.Account) (id int64, err error) {
	return insertedID(db.ExecContext(ctx, `INSERT INTO accounts (email, password_hash, suspended, time_zone, created_at)
		VALUES (?, ?, ?, ?, ?)`, account.Email, account.PasswordHash, account.Suspended, account.TimeZone, unixMillis{&account.CreatedAt}))
}

// CreateFirstAccount implements schema.AccountStore.
func (s *Store) CreateFirstAccount(ctx context.Context, account *schema.Account, token *schema.Token) error {
	var accountID, tokenID int64
	err := s.db.update(ctx, func(tx *sql.Tx) error {
		var exists bool
		err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM accounts)`).Scan(&exists)
		if err != nil {
			return err
		}
		if exists {
			return schema.Errorf(schema.CodeConflict, "an account exists")
		}
		if accountID, err = insertAccount(ctx, tx, account); err != nil {
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
	err = s.db.queryRow(ctx, accountByEmail, email).
		Scan(&account.ID, &account.Email, &account.PasswordHash, &account.Suspended, &account.TimeZone, unixMillis{&account.CreatedAt})
	return account, wrap(err, "read account %q", email)
}

// SetSuspended implements schema.AccountStore.
func (s *Store) SetSuspended(ctx context.Context, accountID int64, suspended bool) error {
	err := oneRow(s.db.write.ExecContext(ctx, `UPDATE accounts SET suspended = ? WHERE id = ?`, suspended, accountID))
	return wrap(err, "set suspended of account %d", accountID)
}

// SetTimeZone implements schema.AccountStore.
func (s *Store) SetTimeZone(ctx context.Context, accountID int64, zone string) error {
	err := oneRow(s.db.write.ExecContext(ctx, `UPDATE accounts SET time_zone = ? WHERE id = ?`, zone, accountID))
	return wrap(err, "set time zone of account %d", accountID)
}

// SetPassword implements schema.AccountStore.
func (s *Store) SetPassword(ctx context.Context, accountID int64, passwordHash string, keepSessionID int64) error {
	err := s.db.update(ctx, func(tx *sql.Tx) error {
		err := oneRow(tx.ExecContext(ctx, `UPDATE accounts SET password_hash = ? WHERE id = ?`, passwordHash, accountID))
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM sessions WHERE account_id = ? AND id <> ?`, accountID, keepSessionID)
		return err
	})
	return wrap(err, "set password of account %d", accountID)
}
