package dashboard_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/api/dashboard"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// lockOut uses up the attempts of clients without the browser's cookie: on the account, and from this machine.
func (s *testService) lockOut(t *testing.T, address string) {
	t.Helper()
	s.attempt(t, dashboard.SignInByEmail, address, 10)
	s.attempt(t, dashboard.SignInByAddress, "127.0.0.1", 30)
	s.browser(t).signIn(address, password).want(t, http.StatusTooManyRequests)
}

func TestKnownBrowser(t *testing.T) {
	t.Run("signs in while strangers try passwords, also after signing out", func(t *testing.T) {
		s := start(t)
		b := s.signedIn(t)
		cookie := b.seen.cookie("linkstream-browser")
		if cookie == nil || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/" ||
			cookie.MaxAge != 180*24*3600 {
			t.Fatalf("cookie %v", cookie)
		}
		b.post("/dashboard/sign-out").want(t, http.StatusSeeOther)
		s.lockOut(t, email)
		b.signIn(strings.ToUpper(email), password).wantTo(t, "/dashboard")
	})
	t.Run("has attempts of its own, the same number as other clients", func(t *testing.T) {
		s := start(t)
		b := s.signedIn(t)
		for range 9 { // the sign-in was the first attempt, without the cookie
			b.signIn(email, "wrong password").want(t, http.StatusUnprocessableEntity)
		}
		b.signIn(email, "wrong password").want(t, http.StatusUnprocessableEntity)
		b.signIn(email, password).want(t, http.StatusTooManyRequests)
		s.browser(t).signIn(email, password).wantTo(t, "/dashboard")
	})
	t.Run("is known for the account that it signed in to", func(t *testing.T) {
		s := start(t)
		s.addAccount(t, "other@example.org")
		b := s.browser(t)
		b.signIn("other@example.org", password).wantTo(t, "/dashboard")
		s.lockOut(t, email)
		b.signIn(email, password).want(t, http.StatusTooManyRequests)
		b.signIn("nobody@example.org", password).want(t, http.StatusTooManyRequests)
	})
	t.Run("is known until the password changes, except where it was changed", func(t *testing.T) {
		s := start(t)
		other, b := s.signedIn(t), s.signedIn(t)
		b.post("/dashboard/account/password", "current", password, "new", password+"2", "again", password+"2").want(t,
			http.StatusSeeOther)
		s.lockOut(t, email)
		other.signIn(email, password+"2").want(t, http.StatusTooManyRequests)
		b.signIn(email, password+"2").wantTo(t, "/dashboard")
	})
	t.Run("is not made by signing in to a suspended account, nor by a wrong password", func(t *testing.T) {
		s := start(t)
		b := s.browser(t)
		b.signIn(email, "wrong password")
		s.suspend(t)
		if b.signIn(email, password); b.seen.cookie("linkstream-browser") != nil {
			t.Error("a cookie is set")
		}
	})
	t.Run("keeps its secret from other hosts with https", func(t *testing.T) {
		s := start(t, behindTLS)
		b := s.browser(t)
		b.fields.Set("Origin", "https://links.example.org")
		b.signIn(email, password)
		if c := b.seen.cookie("__Host-linkstream-browser"); c == nil || !c.Secure {
			t.Errorf("cookie %v", b.seen.header)
		}
	})
}

func TestAttemptsOfASiteAreLimited(t *testing.T) {
	s := start(t, behindProxy, openSignUp)
	b := s.browser(t)
	s.attempt(t, dashboard.SignInBySite, "2001:db8:1::", 119)
	s.attempt(t, dashboard.SignUpBySite, "2001:db8:1::", 39)
	for _, c := range []struct {
		from   string
		status int
	}{
		{"2001:db8:1:1::1", http.StatusUnprocessableEntity}, {"2001:db8:1:2::1", http.StatusTooManyRequests},
		{"2001:db8:2:1::1", http.StatusUnprocessableEntity},
	} {
		b.fields.Set("X-Forwarded-For", c.from)
		b.signIn("some@example.org", "wrong password").want(t, c.status)
	}
	b.fields.Set("X-Forwarded-For", "2001:db8:1:3::1")
	signUp(b, "one@example.org", password).want(t, http.StatusSeeOther)
	b.fields.Set("X-Forwarded-For", "2001:db8:1:4::1")
	signUp(b, "two@example.org", password).want(t, http.StatusTooManyRequests)
}

func TestNewLinksAreLimited(t *testing.T) {
	s := start(t)
	first, second := s.signedIn(t), s.signedIn(t)
	s.attempt(t, dashboard.LinksByAccount, id(s.account.ID), 119)
	first.post("/dashboard/links", "long_url", "https://example.com/1").want(t, http.StatusSeeOther)
	a := second.post("/dashboard/links", "long_url", "https://example.com/2")
	a.want(t, http.StatusTooManyRequests, "Too many new links.")
	if a.header.Get("Retry-After") == "" || !strings.Contains(a.body, `value="https://example.com/2"`) {
		t.Errorf("%v %s", a.header, a.text())
	}
	_, total, err := s.links.Links(t.Context(), s.account.ID, schema.LinkFilter{}, 1)
	testkit.Must(t, err)
	testkit.Equal(t, "links", total, 1)
	other := s.addAccount(t, "other@example.org")
	b := s.browser(t)
	b.signIn(other.Email, password)
	b.post("/dashboard/links", "long_url", "https://example.com/3").want(t, http.StatusSeeOther)
}

// During a flood of visitors, most of them refused, signed-in users are answered.
func TestSessionsPassAFlood(t *testing.T) {
	s := start(t)
	b := s.signedIn(t)
	b.get("/dashboard/account").want(t, http.StatusOK)
	flooding, endFlood := context.WithCancel(t.Context())
	var flood sync.WaitGroup
	var refused atomic.Int64
	for range 500 { // more than are served in the 250 ms that a request may wait
		flood.Go(func() {
			client := &http.Client{Transport: &http.Transport{}} // has a connection of its own
			defer client.CloseIdleConnections()
			for flooding.Err() == nil {
				res, err := client.Get(s.base + "/dashboard/sign-in")
				if err != nil {
					continue
				}
				body, _ := io.ReadAll(res.Body)
				res.Body.Close()
				if res.StatusCode == http.StatusServiceUnavailable {
					if refused.Add(1) == 1 && !strings.Contains(string(body), "The service is busy") {
						t.Errorf("%s", body)
					}
				}
			}
		})
	}
	testkit.Eventually(t, "visitors are refused", func() bool { return refused.Load() > 100 })
	for range 10 {
		b.get("/dashboard/account").want(t, http.StatusOK)
	}
	sessions, err := s.links.Sessions(t.Context(), s.account.ID, time.Now())
	testkit.Must(t, err)
	testkit.Must(t, s.links.EndSession(t.Context(), s.account.ID, sessions[0].ID))
	testkit.Eventually(t, "a session that has ended is refused like none", func() bool {
		return b.get("/dashboard/account").status == http.StatusServiceUnavailable
	})
	endFlood()
	flood.Wait()
}

// Refused sign-ins make no call of the store, however many there are.
func TestRefusedSignInsCostNothing(t *testing.T) {
	s := start(t, openSignUp)
	s.attempt(t, dashboard.SignInByAddress, "127.0.0.1", 30)
	b := s.browser(t)
	b.signIn(email, password).want(t, http.StatusTooManyRequests)
	testkit.Must(t, s.links.Close())
	for range 20 {
		b.send("POST", "/dashboard/sign-in", url.Values{"email": {"x"}, "password": {"y"}}).want(t,
			http.StatusTooManyRequests)
	}
}
