package linkstore

import (
	"context"
	"slices"
	"time"

	"linkstream/schema"
)

const (
	deleteExpired = `DELETE FROM sessions WHERE account_id = $1 AND expires_at <= $2`
	// insertSession locks the account: either SetPassword waits and then ends the session, or this statement waits and
	// then finds another password hash.
	insertSession = `
	INSERT INTO sessions (account_id, digest, user_agent, created_at, seen_at, expires_at)
	SELECT id, $2, $3, $4, $5, $6 FROM accounts WHERE id = $1 AND password_hash = $7{for share} RETURNING id`
	sessionColumns  = `s.id, s.account_id, s.digest, s.user_agent, s.created_at, s.seen_at, s.expires_at`
	sessionByDigest = `
	SELECT ` + sessionColumns + `, ` + accountColumns + ` FROM sessions s JOIN accounts a ON a.id = s.account_id
	WHERE s.digest = $1 AND s.expires_at > $2`
	validSessions = `
	SELECT s.id FROM sessions s JOIN accounts a ON a.id = s.account_id
	WHERE s.id {in: $1} AND s.expires_at > $2 AND NOT a.suspended`
	sessionsOfAccount = `
	SELECT ` + sessionColumns + ` FROM sessions s
	WHERE s.account_id = $1 AND s.expires_at > $2 ORDER BY s.seen_at DESC, s.id DESC`
	extendSession = `UPDATE sessions SET seen_at = $2, expires_at = $3 WHERE id = $1`
	endSession    = `DELETE FROM sessions WHERE id = $1 AND account_id = $2`
)

func sessionFields(s *schema.Session) []any {
	return []any{&s.ID, &s.AccountID, bytes32{&s.Digest}, &s.UserAgent, &s.CreatedAt, &s.SeenAt, &s.ExpiresAt}
}

// CreateSession implements schema.SessionStore.
func (s *Store) CreateSession(ctx context.Context, session *schema.Session, passwordHash string) error {
	var b Batch
	b.exec(deleteExpired, session.AccountID, session.CreatedAt)
	b.get(value(&session.ID), insertSession, session.AccountID, session.Digest[:], session.UserAgent, session.CreatedAt,
		session.SeenAt, session.ExpiresAt, passwordHash)
	return wrap(s.sendInTurn(ctx, session.AccountID, &b), "create session of account %d", session.AccountID)
}

// SessionByDigest implements schema.SessionStore.
func (s *Store) SessionByDigest(
	ctx context.Context, digest [32]byte, now time.Time,
) (session schema.Session, account schema.Account, err error) {
	fields := slices.Concat(sessionFields(&session), accountFields(&account))
	err = get(ctx, s.db, fields, sessionByDigest, digest[:], now)
	return session, account, wrap(err, "read session")
}

// ValidSessions implements schema.SessionStore.
func (s *Store) ValidSessions(ctx context.Context, ids []int64, now time.Time) ([]int64, error) {
	valid, err := list(ctx, s.db, value[int64], validSessions, ids, now)
	return valid, wrap(err, "read which of %d sessions are valid", len(ids))
}

// Sessions implements schema.SessionStore.
func (s *Store) Sessions(ctx context.Context, accountID int64, now time.Time) ([]schema.Session, error) {
	sessions, err := list(ctx, s.db, sessionFields, sessionsOfAccount, accountID, now)
	return sessions, wrap(err, "read sessions of account %d", accountID)
}

// ExtendSession implements schema.SessionStore.
func (s *Store) ExtendSession(ctx context.Context, sessionID int64, seenAt, expiresAt time.Time) error {
	return wrap(execOne(ctx, s.db, extendSession, sessionID, seenAt, expiresAt), "extend session %d", sessionID)
}

// EndSession implements schema.SessionStore.
func (s *Store) EndSession(ctx context.Context, accountID, sessionID int64) error {
	_, err := exec(ctx, s.db, endSession, sessionID, accountID)
	return wrap(err, "end session %d of account %d", sessionID, accountID)
}
