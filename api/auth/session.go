package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"linkstream/schema"
)

// Limits of sessions.
const (
	MaxSessionIdle = 14 * 24 * time.Hour // since the last use
	MaxSessionAge  = 90 * 24 * time.Hour // since the sign-in
	MaxSessions    = 100                 // per account; a new session ends the least recently used one
	// extendInterval is the least time between two writes about the use of a session.
	extendInterval = time.Hour
)

const sessionBytes = 32 // random bytes of a session's secret

// Sessions begins and resumes sessions. Its methods may be called concurrently.
type Sessions struct{ store schema.SessionStore }

// NewSessions returns the sessions in a store.
func NewSessions(store schema.SessionStore) *Sessions { return &Sessions{store} }

// Begin stores a session of the account and returns it with its secret, which only the browser keeps. CodeUnauthorized
// if the account's password has changed since account was read.
func (s *Sessions) Begin(ctx context.Context, account schema.Account, userAgent string) (string,
	schema.Session, error) {
	now := time.Now().UTC()
	others, err := s.store.Sessions(ctx, account.ID, now)
	if err != nil {
		return "", schema.Session{}, fmt.Errorf("begin session: %w", err)
	}
	for len(others) >= MaxSessions {
		last := len(others) - 1
		if err := s.store.EndSession(ctx, account.ID, others[last].ID); err != nil {
			return "", schema.Session{}, fmt.Errorf("begin session: %w", err)
		}
		others = others[:last]
	}
	var random [sessionBytes]byte
	rand.Read(random[:]) // never fails, see crypto/rand
	secret := base64.RawURLEncoding.EncodeToString(random[:])
	session := schema.Session{
		AccountID: account.ID, Digest: Digest(secret), UserAgent: truncateAgent(userAgent),
		CreatedAt: now, SeenAt: now, ExpiresAt: now.Add(MaxSessionIdle),
	}
	err = s.store.CreateSession(ctx, &session, account.PasswordHash)
	if schema.ErrorCode(err) == schema.CodeNotFound {
		return "", schema.Session{}, errNoSession
	}
	if err != nil {
		return "", schema.Session{}, fmt.Errorf("begin session: %w", err)
	}
	return secret, session, nil
}

// errNoSession is the same for every cause, so that attackers cannot distinguish the causes.
var errNoSession = schema.ClientErrorf(schema.CodeUnauthorized, "The session was ended.")

// SessionCredential returns the digest by which Resume looks up a session; zero if the text cannot be a session's
// secret.
func SessionCredential(secret string) (digest [sha256.Size]byte) {
	if validSecret(secret) {
		digest = Digest(secret)
	}
	return digest
}

func validSecret(secret string) bool {
	return len(secret) == base64.RawURLEncoding.EncodedLen(sessionBytes)
}

// Resume returns the session with that secret, and its account, which may be suspended. It extends the session, with
// one write per hour at most. CodeUnauthorized if there is no such session or it has ended.
func (s *Sessions) Resume(ctx context.Context, secret string) (schema.Session, schema.Account, error) {
	if !validSecret(secret) {
		return schema.Session{}, schema.Account{}, errNoSession
	}
	now := time.Now().UTC()
	session, account, err := s.store.SessionByDigest(ctx, Digest(secret), now)
	if err == nil && !account.Suspended && now.Sub(session.SeenAt) >= extendInterval {
		session.SeenAt, session.ExpiresAt = now, now.Add(MaxSessionIdle)
		if end := session.CreatedAt.Add(MaxSessionAge); session.ExpiresAt.After(end) {
			session.ExpiresAt = end
		}
		err = s.store.ExtendSession(ctx, session.ID, session.SeenAt, session.ExpiresAt)
	}
	if schema.ErrorCode(err) == schema.CodeNotFound {
		return schema.Session{}, schema.Account{}, errNoSession
	}
	if err != nil {
		return schema.Session{}, schema.Account{}, fmt.Errorf("resume session: %w", err)
	}
	return session, account, nil
}

// truncateAgent returns a User-Agent header as valid UTF-8 of bounded length, for storage.
func truncateAgent(userAgent string) string {
	if len(userAgent) > schema.MaxSessionAgentLen {
		userAgent = userAgent[:schema.MaxSessionAgentLen]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(userAgent, ""), "\x00", "")
}
