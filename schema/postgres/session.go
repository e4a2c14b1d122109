package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"linkstream/schema"
)

const (
	sessionColumns  = `s.id, s.account_id, s.digest, s.user_agent, s.created_at, s.seen_at, s.expires_at`
	sessionByDigest = `
	SELECT ` + sessionColumns + `, a.email, a.password_hash, a.suspended, a.time_zone, a.created_at
	FROM sessions s JOIN accounts a ON a.id = s.account_id
	WHERE s.digest = $1 AND s.expires_at > $2`
	validSessions = `
	SELECT s.id FROM sessions s JOIN accounts a ON a.id = s.account_id
	WHERE s.id = ANY ($1) AND s.expires_at > $2 AND NOT a.suspended`
	sessionsOfAccount = `
	SELECT ` + sessionColumns + ` FROM sessions s
	WHERE s.account_id = $1 AND s.expires_at > $2 ORDER BY s.seen_at DESC, s.id DESC`
)

// scanSession scans sessionColumns, and the columns after them into more.
func scanSession(row pgx.Row, more ...any) (session schema.Session, err error) {
	var digest []byte
	err = row.Scan(append([]any{&session.ID, &session.AccountID, &digest, &session.UserAgent, &session.CreatedAt,
		&session.SeenAt, &session.ExpiresAt}, more...)...)
	copy(session.Digest[:], digest)
	return session, err
}

// CreateSession implements schema.SessionStore.
func (s *Store) CreateSession(ctx context.Context, session *schema.Session, passwordHash string) error {
	// FOR SHARE orders this statement and SetPassword: either SetPassword waits and then ends the session, or this statement
	// waits and then finds another hash.
	err := s.pool.QueryRow(ctx, `
		WITH expired AS (DELETE FROM sessions WHERE account_id = $1 AND expires_at <= $4),
		account AS (SELECT id FROM accounts WHERE id = $1 AND password_hash = $7 FOR SHARE)
		INSERT INTO sessions (account_id, digest, user_agent, created_at, seen_at, expires_at)
		SELECT id, $2, $3, $4, $5, $6 FROM account RETURNING id`,
		session.AccountID, session.Digest[:], session.UserAgent, session.CreatedAt, session.SeenAt, session.ExpiresAt,
		passwordHash).Scan(&session.ID)
	return wrap(err, "create session of account %d", session.AccountID)
}

// SessionByDigest implements schema.SessionStore.
func (s *Store) SessionByDigest(
	ctx context.Context, digest [32]byte, now time.Time,
) (schema.Session, schema.Account, error) {
	var account schema.Account
	session, err := scanSession(s.pool.QueryRow(ctx, sessionByDigest, digest[:], now),
		&account.Email, &account.PasswordHash, &account.Suspended, &account.TimeZone, &account.CreatedAt)
	account.ID = session.AccountID
	return session, account, wrap(err, "read session")
}

// ValidSessions implements schema.SessionStore.
func (s *Store) ValidSessions(ctx context.Context, ids []int64, now time.Time) ([]int64, error) {
	valid, err := s.ids(ctx, validSessions, ids, now)
	return valid, wrap(err, "read which of %d sessions are valid", len(ids))
}

// Sessions implements schema.SessionStore.
func (s *Store) Sessions(ctx context.Context, accountID int64, now time.Time) ([]schema.Session, error) {
	rows, err := s.pool.Query(ctx, sessionsOfAccount, accountID, now)
	if err != nil {
		return nil, wrap(err, "read sessions of account %d", accountID)
	}
	sessions, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (schema.Session, error) {
		return scanSession(row)
	})
	return sessions, wrap(err, "read sessions of account %d", accountID)
}

// ExtendSession implements schema.SessionStore.
func (s *Store) ExtendSession(ctx context.Context, sessionID int64, seenAt, expiresAt time.Time) error {
	err := oneRow(s.pool.Exec(ctx, `UPDATE sessions SET seen_at = $2, expires_at = $3 WHERE id = $1`,
		sessionID, seenAt, expiresAt))
	return wrap(err, "extend session %d", sessionID)
}

// EndSession implements schema.SessionStore.
func (s *Store) EndSession(ctx context.Context, accountID, sessionID int64) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM sessions WHERE id = $1 AND account_id = $2`, sessionID, accountID)
	return wrap(err, "end session %d of account %d", sessionID, accountID)
}
