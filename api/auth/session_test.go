package auth_test

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/api/auth"
	"linkstream/schema"
	"linkstream/schema/linkstore"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/testkit"
)

// fixture is a store with an account and its sessions.
type fixture struct {
	store    *linkstore.Store
	sessions *auth.Sessions
	account  schema.Account
}

// inBubble runs a test in a synctest bubble, where time is exact.
func inBubble(t *testing.T, name string, test func(t *testing.T, f fixture)) {
	t.Run(name, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "links.db")
		synctest.Test(t, func(t *testing.T) {
			f := fixture{store: sqlitetest.At(t, path), account: schema.Account{Email: "me@example.org", CreatedAt: time.Now()}}
			f.sessions = auth.NewSessions(f.store)
			testkit.Must(t, f.store.CreateAccount(t.Context(), &f.account))
			test(t, f)
		})
	})
}

func (f fixture) begin(t *testing.T, agent string) (secret string, session schema.Session) {
	t.Helper()
	secret, session, err := f.sessions.Begin(t.Context(), f.account, agent)
	testkit.Must(t, err)
	return secret, session
}

func (f fixture) resume(t *testing.T, secret string) (schema.Session, schema.Account) {
	t.Helper()
	session, account, err := f.sessions.Resume(t.Context(), secret)
	testkit.Must(t, err)
	return session, account
}

func (f fixture) wantEnded(t *testing.T, secret string) {
	t.Helper()
	_, _, err := f.sessions.Resume(t.Context(), secret)
	testkit.WantCode(t, err, schema.CodeUnauthorized)
}

func TestSessions(t *testing.T) {
	inBubble(t, "resume with their secret only, of which the store keeps a digest", func(t *testing.T, f fixture) {
		secret, begun := f.begin(t, "Firefox")
		if other, _ := f.begin(t, "Firefox"); other == secret || len(secret) != 43 {
			t.Errorf("secrets %q and %q", secret, other)
		}
		session, account := f.resume(t, secret)
		if session.ID != begun.ID || account.ID != f.account.ID || session.Digest != auth.Digest(secret) {
			t.Errorf("%+v of %+v", session, account)
		}
		for _, wrong := range []string{"", "x", secret[1:], secret + "x", strings.ToUpper(secret), strings.Repeat("A", 43)} {
			f.wantEnded(t, wrong)
		}
	})
	inBubble(t, "do not begin after the password has changed", func(t *testing.T, f fixture) {
		testkit.Must(t, f.store.SetPassword(t.Context(), f.account.ID, "new hash", 0))
		_, _, err := f.sessions.Begin(t.Context(), f.account, "")
		testkit.WantCode(t, err, schema.CodeUnauthorized)
	})
	inBubble(t, "end two weeks after the last use", func(t *testing.T, f fixture) {
		secret, _ := f.begin(t, "")
		time.Sleep(auth.MaxSessionIdle - time.Second)
		f.resume(t, secret)
		time.Sleep(auth.MaxSessionIdle - time.Second)
		f.resume(t, secret)
		time.Sleep(auth.MaxSessionIdle)
		f.wantEnded(t, secret)
	})
	inBubble(t, "end ninety days after the sign-in", func(t *testing.T, f fixture) {
		secret, begun := f.begin(t, "")
		for time.Since(begun.CreatedAt) < auth.MaxSessionAge-24*time.Hour {
			f.resume(t, secret)
			time.Sleep(24 * time.Hour)
		}
		f.resume(t, secret)
		time.Sleep(24 * time.Hour)
		f.wantEnded(t, secret)
	})
	inBubble(t, "are extended once per hour at most", func(t *testing.T, f fixture) {
		secret, begun := f.begin(t, "")
		time.Sleep(time.Hour - time.Second)
		session, _ := f.resume(t, secret)
		if !session.SeenAt.Equal(begun.SeenAt) || !session.ExpiresAt.Equal(begun.ExpiresAt) {
			t.Errorf("%+v, want it unchanged: %+v", session, begun)
		}
		time.Sleep(time.Second)
		f.resume(t, secret)
		session, _ = f.resume(t, secret) // as stored
		if now := time.Now(); !session.SeenAt.Equal(now) || !session.ExpiresAt.Equal(now.Add(auth.MaxSessionIdle)) {
			t.Errorf("%+v, want SeenAt %v", session, now)
		}
	})
	inBubble(t, "end when they are ended in the store", func(t *testing.T, f fixture) {
		secret, session := f.begin(t, "")
		testkit.Must(t, f.store.EndSession(t.Context(), f.account.ID, session.ID))
		f.wantEnded(t, secret)
	})
	inBubble(t, "report a suspended account and are not extended", func(t *testing.T, f fixture) {
		secret, begun := f.begin(t, "")
		testkit.Must(t, f.store.SetSuspended(t.Context(), f.account.ID, true))
		time.Sleep(2 * time.Hour)
		if session, account := f.resume(t, secret); !account.Suspended || !session.SeenAt.Equal(begun.SeenAt) {
			t.Errorf("%+v of %+v", session, account)
		}
	})
	inBubble(t, "number at most a hundred: a new one ends the least recently used", func(t *testing.T, f fixture) {
		oldest, _ := f.begin(t, "")
		time.Sleep(time.Second)
		second, _ := f.begin(t, "")
		for range auth.MaxSessions - 2 {
			f.begin(t, "")
		}
		f.resume(t, oldest)
		f.begin(t, "")
		f.wantEnded(t, oldest)
		f.resume(t, second)
		sessions, err := f.store.Sessions(t.Context(), f.account.ID, time.Now())
		if err != nil || len(sessions) != auth.MaxSessions {
			t.Errorf("%d sessions, %v", len(sessions), err)
		}
	})
	inBubble(t, "keep a bounded part of the User-Agent, as valid UTF-8", func(t *testing.T, f fixture) {
		for agent, want := range map[string]string{
			"Firefox": "Firefox", "a\xff\x00b": "ab", strings.Repeat("x", 1000): strings.Repeat("x", schema.MaxSessionAgentLen),
			strings.Repeat("x", schema.MaxSessionAgentLen-1) + "é": strings.Repeat("x", schema.MaxSessionAgentLen-1),
		} {
			secret, _ := f.begin(t, agent)
			if session, _ := f.resume(t, secret); session.UserAgent != want {
				t.Errorf("%q is stored as %q", agent, session.UserAgent)
			}
		}
	})
}
