package auth_test

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/api/auth"
	"linkstream/schema"
	"linkstream/schema/sqlite"
)

// visit is a store with an account, and its sessions.
type visit struct {
	store    *sqlite.Store
	sessions *auth.Sessions
	account  schema.Account
}

// inBubble runs a test where time moves only while all of it waits.
func inBubble(t *testing.T, name string, test func(t *testing.T, v visit)) {
	t.Run(name, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "links.db")
		synctest.Test(t, func(t *testing.T) {
			v := visit{store: open(t, path), account: schema.Account{Email: "me@example.org", CreatedAt: time.Now()}}
			v.sessions = auth.NewSessions(v.store)
			if err := v.store.CreateAccount(t.Context(), &v.account); err != nil {
				t.Fatal(err)
			}
			test(t, v)
		})
	})
}

func (v visit) begin(t *testing.T, agent string) (secret string, session schema.Session) {
	t.Helper()
	secret, session, err := v.sessions.Begin(t.Context(), v.account, agent)
	if err != nil {
		t.Fatal(err)
	}
	return secret, session
}

func (v visit) resume(t *testing.T, secret string) (schema.Session, schema.Account) {
	t.Helper()
	session, account, err := v.sessions.Resume(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	return session, account
}

func (v visit) wantEnded(t *testing.T, secret string) {
	t.Helper()
	_, _, err := v.sessions.Resume(t.Context(), secret)
	wantCode(t, err, schema.CodeUnauthorized)
}

func TestSessions(t *testing.T) {
	inBubble(t, "resume with the secret alone, which is not kept", func(t *testing.T, v visit) {
		secret, begun := v.begin(t, "Firefox")
		if other, _ := v.begin(t, "Firefox"); other == secret || len(secret) != 43 {
			t.Errorf("secrets %q and %q", secret, other)
		}
		session, account := v.resume(t, secret)
		if session.ID != begun.ID || account.ID != v.account.ID || session.Digest != auth.Digest(secret) {
			t.Errorf("%+v of %+v", session, account)
		}
		for _, wrong := range []string{"", "x", secret[1:], secret + "x", strings.ToUpper(secret), strings.Repeat("A", 43)} {
			v.wantEnded(t, wrong)
		}
	})
	inBubble(t, "end two weeks after they were last used", func(t *testing.T, v visit) {
		secret, _ := v.begin(t, "")
		time.Sleep(auth.MaxSessionIdle - time.Second)
		v.resume(t, secret)
		time.Sleep(auth.MaxSessionIdle - time.Second)
		v.resume(t, secret)
		time.Sleep(auth.MaxSessionIdle)
		v.wantEnded(t, secret)
	})
	inBubble(t, "end after ninety days however often they are used", func(t *testing.T, v visit) {
		secret, begun := v.begin(t, "")
		for time.Since(begun.CreatedAt) < auth.MaxSessionAge-24*time.Hour {
			v.resume(t, secret)
			time.Sleep(24 * time.Hour)
		}
		v.resume(t, secret)
		time.Sleep(24 * time.Hour)
		v.wantEnded(t, secret)
	})
	inBubble(t, "are noted as used once an hour at most", func(t *testing.T, v visit) {
		secret, begun := v.begin(t, "")
		time.Sleep(time.Hour - time.Second)
		session, _ := v.resume(t, secret)
		if !session.SeenAt.Equal(begun.SeenAt) || !session.ExpiresAt.Equal(begun.ExpiresAt) {
			t.Errorf("%+v, want it as it began: %+v", session, begun)
		}
		time.Sleep(time.Second)
		v.resume(t, secret)
		session, _ = v.resume(t, secret) // as it is stored
		if now := time.Now(); !session.SeenAt.Equal(now) || !session.ExpiresAt.Equal(now.Add(auth.MaxSessionIdle)) {
			t.Errorf("%+v, want it seen at %v", session, now)
		}
	})
	inBubble(t, "end when they are revoked", func(t *testing.T, v visit) {
		secret, session := v.begin(t, "")
		if err := v.store.EndSession(t.Context(), v.account.ID, session.ID); err != nil {
			t.Fatal(err)
		}
		v.wantEnded(t, secret)
	})
	inBubble(t, "say that the account is suspended, and are not prolonged then", func(t *testing.T, v visit) {
		secret, begun := v.begin(t, "")
		if err := v.store.SetSuspended(t.Context(), v.account.ID, true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		if session, account := v.resume(t, secret); !account.Suspended || !session.SeenAt.Equal(begun.SeenAt) {
			t.Errorf("%+v of %+v", session, account)
		}
	})
	inBubble(t, "are no more than a hundred: a new one ends the one not used for longest", func(t *testing.T, v visit) {
		oldest, _ := v.begin(t, "")
		time.Sleep(time.Second)
		second, _ := v.begin(t, "")
		for range auth.MaxSessions - 2 {
			v.begin(t, "")
		}
		v.resume(t, oldest)
		v.begin(t, "")
		v.wantEnded(t, oldest)
		v.resume(t, second)
		sessions, err := v.store.Sessions(t.Context(), v.account.ID, time.Now())
		if err != nil || len(sessions) != auth.MaxSessions {
			t.Errorf("%d sessions, %v", len(sessions), err)
		}
	})
	inBubble(t, "keep a bounded and valid part of the browser's name", func(t *testing.T, v visit) {
		for agent, want := range map[string]string{
			"Firefox": "Firefox", "a\xff\x00b": "ab", strings.Repeat("x", 1000): strings.Repeat("x", schema.MaxSessionAgentLen),
			strings.Repeat("x", schema.MaxSessionAgentLen-1) + "é": strings.Repeat("x", schema.MaxSessionAgentLen-1),
		} {
			secret, _ := v.begin(t, agent)
			if session, _ := v.resume(t, secret); session.UserAgent != want {
				t.Errorf("%q is kept as %q", agent, session.UserAgent)
			}
		}
	})
}
