package sqlite

import (
	"context"
	"database/sql"
	"time"

	"linkstream/schema"
)

const (
	sessionColumns  = `s.id, s.account_id, s.digest, s.user_agent, s.created_at, s.seen_at, s.expires_at`
	sessionByDigest = `
	SELECT ` + sessionColumns + `, a.email, a.password_hash, a.suspended, a.time_zone, a.created_at
	FROM sessions s JOIN accounts a ON a.id = s.account_id
	WHERE s.digest = ? AND s.expires_at > ?`
	validSessions = `
	SELECT s.id FROM sessions s JOIN accounts a ON a.id = s.account_id
	WHERE s.id IN (SELECT value FROM json_each(?)) AND s.expires_at > ? AND NOT a.suspended`
	sessionsOfAccount = `
	SELECT ` + sessionColumns + ` FROM sessions s
	WHERE s.account_id = ? AND s.expires_at > ? ORDER BY s.seen_at DESC, s.id DESC`
)

// scanSession scans sessionColumns, and the columns after them into more.
func scanSession(row interface{ Scan(...any) error }, more ...any) (session schema.Session, err error) {
	var digest []byte
	err = row.Scan(append([]any{&session.ID, &session.AccountID, &digest, &session.UserAgent,
		unixMillis{&session.CreatedAt}, unixMillis{&session.SeenAt}, unixMillis{&session.ExpiresAt}}, more...)...)
	copy(session.Digest[:], digest)
	return session, err
}

// CreateSession implements schema.SessionStore.
func (s *Store) CreateSession(ctx context.Context, session *schema.Session, passwordHash string) error {
	var id int64
	err := s.db.update(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM sessions WHERE account_id = ? AND expires_at <= ?`,
			session.AccountID, unixMillis{&session.CreatedAt})
		if err != nil {
			return err
		}
		var owner int64
		err = tx.QueryRowContext(ctx, `SELECT id FROM accounts WHERE id = ? AND password_hash = ?`,
			session.AccountID, passwordHash).Scan(&owner)
		if err != nil {
			return err
		}
		id, err = insertedID(tx.ExecContext(ctx, `
			INSERT INTO sessions (account_id, digest, user_agent, created_at, seen_at, expires_at)
			VALUES (?, ?, ?, ?, ?, ?)`,
			owner, session.Digest[:], session.UserAgent, unixMillis{&session.CreatedAt}, unixMillis{&session.SeenAt},
			unixMillis{&session.ExpiresAt}))
		return err
	})
	if err != nil {
		return wrap(err, "create session of account %d", session.AccountID)
	}
	session.ID = id
	return nil
}

// SessionByDigest implements schema.SessionStore.
func (s *Store) SessionByDigest(
	ctx context.Context, digest [32]byte, now time.Time,
) (schema.Session, schema.Account, error) {
	var account schema.Account
	session, err := scanSession(s.db.queryRow(ctx, sessionByDigest, digest[:], unixMillis{&now}),
		&account.Email, &account.PasswordHash, &account.Suspended, &account.TimeZone, unixMillis{&account.CreatedAt})
	account.ID = session.AccountID
	return session, account, wrap(err, "read session")
}

// ValidSessions implements schema.SessionStore.
func (s *Store) ValidSessions(ctx context.Context, ids []int64, now time.Time) ([]int64, error) {
	valid, err := s.ids(ctx, validSessions, ids, unixMillis{&now})
	return valid, wrap(err, "read which of %d sessions are valid", len(ids))
}

// Sessions implements schema.SessionStore.
func (s *Store) Sessions(ctx context.Context, accountID int64, now time.Time) (sessions []schema.Session, err error) {
	rows, err := s.db.query(ctx, sessionsOfAccount, accountID, unixMillis{&now})
	err = forEachRow(rows, err, func() error {
		session, err := scanSession(rows)
		sessions = append(sessions, session)
		return err
	})
	return sessions, wrap(err, "read sessions of account %d", accountID)
}

// ExtendSession implements schema.SessionStore.
func (s *Store) ExtendSession(ctx context.Context, sessionID int64, seenAt, expiresAt time.Time) error {
	err := oneRow(s.db.write.ExecContext(ctx, `UPDATE sessions SET seen_at = ?, expires_at = ? WHERE id = ?`,
		unixMillis{&seenAt}, unixMillis{&expiresAt}, sessionID))
	return wrap(err, "extend session %d", sessionID)
}

// EndSession implements schema.SessionStore.
func (s *Store) EndSession(ctx context.Context, accountID, sessionID int64) error {
	_, err := s.db.write.ExecContext(ctx, `DELETE FROM sessions WHERE id = ? AND account_id = ?`, sessionID, accountID)
	return wrap(err, "end session %d of account %d", sessionID, accountID)
}
