package schema

import (
	"context"
	"time"
)

// MaxSessionAgentLen is the maximum length in bytes of the User-Agent header that a session keeps.
const MaxSessionAgentLen = 200

// Session is a browser that is signed in to an account. The browser keeps the secret in a cookie; it is never stored.
type Session struct {
	ID        int64
	AccountID int64
	Digest    [32]byte // SHA-256 of the secret, unique
	UserAgent string   // of the browser that signed in; valid UTF-8. The account's owner recognizes sessions by it
	CreatedAt time.Time
	SeenAt    time.Time // approximate time of the last use
	ExpiresAt time.Time
}

// SessionStore stores sessions.
type SessionStore interface {
	// CreateSession stores session and sets its ID. It deletes the account's sessions that have expired by CreatedAt.
	// CodeNotFound if passwordHash is not the account's: a sign-in fails if the password is replaced before it ends.
	CreateSession(ctx context.Context, session *Session, passwordHash string) error
	// SessionByDigest returns the session with that digest and its account, which may be suspended. CodeNotFound if the
	// session is unknown, has ended, or has expired by now.
	SessionByDigest(ctx context.Context, digest [32]byte, now time.Time) (Session, Account, error)
	// ValidSessions returns the sessions with these IDs, in any order, without sessions that have ended or expired by now,
	// or whose account is suspended.
	ValidSessions(ctx context.Context, ids []int64, now time.Time) ([]int64, error)
	// Sessions returns the account's sessions that have not expired by now, the most recently seen first.
	Sessions(ctx context.Context, accountID int64, now time.Time) ([]Session, error)
	// ExtendSession sets SeenAt and ExpiresAt of a session. CodeNotFound if it has ended.
	ExtendSession(ctx context.Context, sessionID int64, seenAt, expiresAt time.Time) error
	// EndSession ends a session of the account. Idempotent: it is no error if the account has no such session.
	EndSession(ctx context.Context, accountID, sessionID int64) error
}
