package storetest

import (
	"crypto/sha256"
	"slices"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var sessionBehaviours = []behaviour[schema.Database]{
	{"CreateSession keeps every field and sets an ID", createsSessions},
	{"CreateSession rejects a taken digest", refusesTakenSessionDigest},
	{"CreateSession rejects an outdated password hash", refusesOldPassword},
	{"CreateSession deletes the account's expired sessions", forgetsExpiredSessions},
	{"SessionByDigest does not find an unknown digest", missesSession},
	{"SessionByDigest does not find an expired session", missesExpiredSession},
	{"SessionByDigest finds the session of a suspended account", findsSessionOfSuspended},
	{"ValidSessions returns those that are open and not of a suspended account", tellsValidSessions},
	{"Sessions returns those that have not expired, last seen first", listsSessions},
	{"ExtendSession sets SeenAt and ExpiresAt", extendsSession},
	{"ExtendSession does not find an ended session", extendsEnded},
	{"EndSession ends one session of the account, and is idempotent", endsSession},
	{"SetPassword replaces the hash and ends all sessions except one", setsPassword},
	{"SetPassword ends all sessions if it keeps none", setsPasswordKeepingNone},
	{"SetPassword does not find an unknown account", setsPasswordOfUnknown},
	{"SetPassword ends sessions that are created concurrently", setsPasswordsConcurrently},
}

func addSession(t *testing.T, store schema.SessionStore, owner schema.Account, secret string) schema.Session {
	t.Helper()
	session := newSession(owner.ID, secret)
	testkit.Must(t, store.CreateSession(t.Context(), &session, owner.PasswordHash))
	return session
}

// newSession returns a session that expires an hour after epoch.
func newSession(accountID int64, secret string) schema.Session {
	return schema.Session{
		AccountID: accountID, Digest: sha256.Sum256([]byte(secret)), UserAgent: "Browser of " + secret + " (ü)",
		CreatedAt: epoch, SeenAt: epoch.Add(time.Minute), ExpiresAt: epoch.Add(time.Hour),
	}
}

func hasSession(t *testing.T, store schema.SessionStore, want schema.Session) {
	t.Helper()
	got, account, err := store.SessionByDigest(t.Context(), want.Digest, epoch)
	testkit.Must(t, err)
	testkit.Equal(t, "session", got, want)
	testkit.Equal(t, "ID of the account", account.ID, want.AccountID)
}

func hasNoSession(t *testing.T, store schema.SessionStore, ended schema.Session) {
	t.Helper()
	_, _, err := store.SessionByDigest(t.Context(), ended.Digest, epoch)
	testkit.WantCode(t, err, schema.CodeNotFound)
}

func createsSessions(t *testing.T, store schema.Database) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	bare := newSession(a.ID, "bare")
	bare.Digest, bare.UserAgent = [32]byte{}, ""
	testkit.Must(t, store.CreateSession(t.Context(), &bare, a.PasswordHash))
	owners := map[schema.Session]schema.Account{
		addSession(t, store, a, "one"): a, addSession(t, store, a, "two"): a,
		addSession(t, store, b, "three"): b, bare: a,
	}
	ids := map[int64]bool{0: true}
	for want, owner := range owners {
		got, account, err := store.SessionByDigest(t.Context(), want.Digest, epoch)
		testkit.Must(t, err)
		testkit.Equal(t, "session", got, want)
		testkit.Equal(t, "account", account, owner)
		ids[want.ID] = true
	}
	testkit.Equal(t, "distinct IDs", len(ids)-1, len(owners))
}

func refusesTakenSessionDigest(t *testing.T, store schema.Database) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	want := addSession(t, store, a, "secret")
	other := newSession(b.ID, "secret")
	testkit.WantCode(t, store.CreateSession(t.Context(), &other, b.PasswordHash), schema.CodeConflict)
	hasSession(t, store, want)
}

func refusesOldPassword(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	testkit.Must(t, store.SetPassword(t.Context(), owner.ID, "$argon2id$new", 0))
	session := newSession(owner.ID, "secret")
	for _, hash := range []string{owner.PasswordHash, other.PasswordHash, ""} {
		testkit.WantCode(t, store.CreateSession(t.Context(), &session, hash), schema.CodeNotFound)
		hasNoSession(t, store, session)
	}
	testkit.Must(t, store.CreateSession(t.Context(), &session, "$argon2id$new"))
	hasSession(t, store, session)
}

func forgetsExpiredSessions(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	expired, others := addSession(t, store, owner, "expired"), addSession(t, store, other, "other")
	valid := newSession(owner.ID, "valid")
	valid.ExpiresAt = epoch.Add(time.Hour + time.Second)
	testkit.Must(t, store.CreateSession(t.Context(), &valid, owner.PasswordHash))

	later := newSession(owner.ID, "later")
	later.CreatedAt, later.ExpiresAt = expired.ExpiresAt, expired.ExpiresAt.Add(time.Hour)
	testkit.Must(t, store.CreateSession(t.Context(), &later, owner.PasswordHash))
	// Expired sessions are never found. An error of ExtendSession shows that the session was deleted.
	extend := func(session schema.Session) error {
		return store.ExtendSession(t.Context(), session.ID, session.SeenAt, session.ExpiresAt)
	}
	testkit.WantCode(t, extend(expired), schema.CodeNotFound)
	for _, kept := range []schema.Session{valid, later, others} {
		testkit.Must(t, extend(kept))
		hasSession(t, store, kept)
	}
}

func missesSession(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	session := addSession(t, store, owner, "secret")
	session.Digest[31]++
	hasNoSession(t, store, session)
}

func missesExpiredSession(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	session := addSession(t, store, owner, "secret")
	_, _, err := store.SessionByDigest(t.Context(), session.Digest, session.ExpiresAt.Add(-time.Second))
	testkit.Must(t, err)
	for _, now := range []time.Time{session.ExpiresAt, session.ExpiresAt.UTC().Add(time.Second)} {
		_, _, err := store.SessionByDigest(t.Context(), session.Digest, now)
		testkit.WantCode(t, err, schema.CodeNotFound)
	}
}

func findsSessionOfSuspended(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	session := addSession(t, store, owner, "secret")
	testkit.Must(t, store.SetSuspended(t.Context(), owner.ID, true))
	_, account, err := store.SessionByDigest(t.Context(), session.Digest, epoch)
	testkit.Must(t, err)
	testkit.Equal(t, "suspended", account.Suspended, true)
}

// wantSessions requires that the account's sessions are want, in this order.
func wantSessions(t *testing.T, store schema.SessionStore, accountID int64, now time.Time, want ...schema.Session) {
	t.Helper()
	got, err := store.Sessions(t.Context(), accountID, now)
	testkit.Must(t, err)
	testkit.Equal(t, "sessions", got, want, nilOrEmpty)
}

func listsSessions(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	add := func(secret string, seen, expires time.Duration) schema.Session {
		session := newSession(owner.ID, secret)
		session.SeenAt, session.ExpiresAt = epoch.Add(seen), epoch.Add(expires)
		testkit.Must(t, store.CreateSession(t.Context(), &session, owner.PasswordHash))
		return session
	}
	second, third := add("second", 2*time.Minute, time.Hour), add("third", time.Minute, 3*time.Hour)
	first := add("first", 3*time.Minute, 2*time.Hour)
	others := addSession(t, store, other, "other")
	wantSessions(t, store, owner.ID, epoch, first, second, third)
	wantSessions(t, store, owner.ID, second.ExpiresAt, first, third)
	wantSessions(t, store, owner.ID, third.ExpiresAt)
	wantSessions(t, store, other.ID, epoch, others)
	wantSessions(t, store, other.ID+1000, epoch)
}

func extendsSession(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	session, other := addSession(t, store, owner, "secret"), addSession(t, store, owner, "other")
	for i := range 3 {
		session.SeenAt = epoch.Add(time.Duration(i) * time.Hour)
		session.ExpiresAt = session.SeenAt.Add(time.Hour)
		testkit.Must(t, store.ExtendSession(t.Context(), session.ID, session.SeenAt, session.ExpiresAt))
		hasSession(t, store, session)
	}
	hasSession(t, store, other)
}

func extendsEnded(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	session := addSession(t, store, owner, "secret")
	testkit.Must(t, store.EndSession(t.Context(), owner.ID, session.ID))
	for _, id := range []int64{session.ID, session.ID + 1000} {
		testkit.WantCode(t, store.ExtendSession(t.Context(), id, epoch, epoch.Add(time.Hour)), schema.CodeNotFound)
	}
	hasNoSession(t, store, session)
}

func endsSession(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	session, second := addSession(t, store, owner, "secret"), addSession(t, store, owner, "second")
	testkit.Must(t, store.EndSession(t.Context(), other.ID, session.ID)) // a session of another account
	hasSession(t, store, session)
	for range 3 {
		testkit.Must(t, store.EndSession(t.Context(), owner.ID, session.ID))
		hasNoSession(t, store, session)
	}
	hasSession(t, store, second)
}

func setsPassword(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	ended, kept := addSession(t, store, owner, "ended"), addSession(t, store, owner, "kept")
	others := addSession(t, store, other, "other")
	owner.PasswordHash = "$argon2id$new"
	testkit.Must(t, store.SetPassword(t.Context(), owner.ID, owner.PasswordHash, kept.ID))
	for _, want := range []schema.Account{owner, other} {
		got, err := store.AccountByEmail(t.Context(), want.Email)
		testkit.Must(t, err)
		testkit.Equal(t, "account", got, want)
	}
	hasNoSession(t, store, ended)
	hasSession(t, store, kept)
	hasSession(t, store, others)
}

func setsPasswordKeepingNone(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	others := addSession(t, store, other, "other")
	for _, keep := range []int64{0, others.ID} { // a session of another account keeps none
		addSession(t, store, owner, "one")
		addSession(t, store, owner, "two")
		owner.PasswordHash = "$argon2id$new"
		testkit.Must(t, store.SetPassword(t.Context(), owner.ID, owner.PasswordHash, keep))
		wantSessions(t, store, owner.ID, epoch)
	}
	hasSession(t, store, others)
}

func setsPasswordOfUnknown(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	session := addSession(t, store, owner, "secret")
	testkit.WantCode(t, store.SetPassword(t.Context(), owner.ID+1000, "$argon2id$new", 0), schema.CodeNotFound)
	hasSession(t, store, session)
}

// setsPasswordsConcurrently creates sessions with the old password while it is replaced. In the end only the kept
// session may exist.
func setsPasswordsConcurrently(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	kept := addSession(t, store, owner, "kept")
	sessions := make([]schema.Session, 30)
	const setting, extending = 10, 20 // the other calls create sessions
	for i, err := range concurrently(len(sessions), func(i int) error {
		switch i {
		case setting:
			return store.SetPassword(t.Context(), owner.ID, "$argon2id$new", kept.ID)
		case extending:
			return store.ExtendSession(t.Context(), kept.ID, kept.SeenAt, kept.ExpiresAt)
		}
		sessions[i] = newSession(owner.ID, string(rune('A'+i)))
		return store.CreateSession(t.Context(), &sessions[i], owner.PasswordHash)
	}) {
		if i == setting || i == extending || schema.ErrorCode(err) != schema.CodeNotFound { // CreateSession may come too late
			testkit.Must(t, err)
		}
	}
	hasSession(t, store, kept)
	for i, s := range sessions {
		if i != setting && i != extending {
			hasNoSession(t, store, s)
		}
	}
	testkit.Must(t, store.CreateSession(t.Context(), &sessions[0], "$argon2id$new"))
}

func tellsValidSessions(t *testing.T, store schema.Database) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	first, second, ended := addSession(t, store, a, "1"), addSession(t, store, b, "2"), addSession(t, store, a, "3")
	testkit.Must(t, store.EndSession(t.Context(), a.ID, ended.ID))
	want := func(now time.Time, want ...int64) {
		t.Helper()
		got, err := store.ValidSessions(t.Context(), []int64{ended.ID, second.ID, first.ID}, now)
		testkit.Must(t, err)
		slices.Sort(got)
		testkit.Equal(t, "valid sessions", got, want, nilOrEmpty)
	}
	want(epoch, first.ID, second.ID)
	want(first.ExpiresAt)
	testkit.Must(t, store.SetSuspended(t.Context(), a.ID, true))
	want(epoch, second.ID)
}
