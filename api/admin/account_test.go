package admin_test

import (
	"testing"
	"time"

	"linkstream/api/auth"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestAccountAdd(t *testing.T) {
	c := newCLI(t)
	password := c.prints(t, "account add Me@Example.ORG")

	t.Run("prints the password of the new account", func(t *testing.T) {
		account, err := c.AccountByEmail(t.Context(), "me@example.org")
		testkit.Must(t, err)
		if ok, err := auth.VerifyPassword(account.PasswordHash, password); !ok || err != nil {
			t.Errorf("password %q: %t, %v", password, ok, err)
		}
		if account.Suspended || account.CreatedAt.IsZero() {
			t.Errorf("%+v", account)
		}
	})
	t.Run("refuses an email that is taken", func(t *testing.T) {
		c.fails(t, "account add ME@example.org", schema.CodeConflict, `account "me@example.org" exists already`)
	})
	t.Run("refuses an invalid email", func(t *testing.T) {
		c.fails(t, "account add me", schema.CodeInvalid, "email")
	})
}

func TestAccountPassword(t *testing.T) {
	c := newCLI(t)
	old := c.prints(t, "account add me@example.org")
	account, err := c.AccountByEmail(t.Context(), "me@example.org")
	testkit.Must(t, err)
	now := time.Now()
	session := schema.Session{AccountID: account.ID, CreatedAt: now, SeenAt: now, ExpiresAt: now.Add(time.Hour)}
	testkit.Must(t, c.CreateSession(t.Context(), &session, account.PasswordHash))
	t.Run("replaces the password and ends the sessions", func(t *testing.T) {
		password := c.prints(t, "account password Me@example.org")
		account, err := c.AccountByEmail(t.Context(), "me@example.org")
		testkit.Must(t, err)
		for tried, want := range map[string]bool{password: true, old: false} {
			if ok, err := auth.VerifyPassword(account.PasswordHash, tried); ok != want || err != nil {
				t.Errorf("password %q: %t, %v", tried, ok, err)
			}
		}
		if sessions, err := c.Sessions(t.Context(), account.ID, time.Now()); err != nil || len(sessions) > 0 {
			t.Errorf("%+v, %v", sessions, err)
		}
	})
	t.Run("refuses an unknown account", func(t *testing.T) {
		c.fails(t, "account password us@example.org", schema.CodeNotFound, `no account "us@example.org"`)
	})
}

func TestAccountSuspend(t *testing.T) {
	c := newCLI(t)
	c.prints(t, "account add me@example.org")
	c.prints(t, "account add you@example.org")

	t.Run("suspends one account, and is idempotent", func(t *testing.T) {
		for range 2 {
			c.printsNothing(t, "account suspend Me@example.org")
			c.wantSuspended(t, "me@example.org", true)
			c.wantSuspended(t, "you@example.org", false)
		}
	})
	t.Run("is undone by reinstate, which is idempotent", func(t *testing.T) {
		for range 2 {
			c.printsNothing(t, "account reinstate me@example.org")
			c.wantSuspended(t, "me@example.org", false)
		}
	})
	t.Run("refuses an unknown account", func(t *testing.T) {
		c.fails(t, "account suspend us@example.org", schema.CodeNotFound, `no account "us@example.org"`)
		c.fails(t, "account reinstate us@example.org", schema.CodeNotFound, `no account "us@example.org"`)
	})
}

func (c cli) wantSuspended(t *testing.T, email string, want bool) {
	t.Helper()
	account, err := c.AccountByEmail(t.Context(), email)
	if err != nil || account.Suspended != want {
		t.Errorf("%+v, %v, want suspended %t", account, err, want)
	}
}
