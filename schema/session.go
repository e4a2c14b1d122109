package schema

import (
	"context"
	"time"
)

// MaxSessionAgentLen is how much of a browser's User-Agent header a session keeps, in bytes.
const MaxSessionAgentLen = 200

// Session is a browser that is signed in to an account. Its secret stands in a cookie and is never stored.
type Session struct {
	ID        int64
	AccountID int64
	Digest    [32]byte // SHA-256 of the secret, unique
	UserAgent string   // of the browser that signed in, valid UTF-8, for the account's owner to tell sessions apart
	CreatedAt time.Time
	SeenAt    time.Time // about when the session was last used
	ExpiresAt time.Time
}

// SessionStore keeps sessions.
type SessionStore interface {
	// CreateSession stores session and sets its ID. It forgets the account's sessions that have expired by CreatedAt.
	// CodeNotFound unless the account's password hash still is passwordHash: whoever signed in with a password that is
	// replaced meanwhile is not in.
	CreateSession(ctx context.Context, session *Session, passwordHash string) error
	// SessionByDigest returns the session with that digest, and its account. CodeNotFound if it is unknown, ended, or
	// has expired by now; that the account is suspended is for the caller to judge.
	SessionByDigest(ctx context.Context, digest [32]byte, now time.Time) (Session, Account, error)
	// Sessions returns the account's sessions that have not expired by now, the one that was seen last first.
	Sessions(ctx context.Context, accountID int64, now time.Time) ([]Session, error)
	// ExtendSession sets when a session was seen and when it expires. CodeNotFound if it has ended.
	ExtendSession(ctx context.Context, sessionID int64, seenAt, expiresAt time.Time) error
	// EndSession ends a session of the account. Idempotent: also if the account has no such session.
	EndSession(ctx context.Context, accountID, sessionID int64) error
}
