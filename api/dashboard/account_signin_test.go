package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"linkstream/api/auth"
	"linkstream/api/dashboard"
	"linkstream/api/ratelimit"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestSignIn(t *testing.T) {
	s := start(t)
	t.Run("leads to the page that was asked for", func(t *testing.T) {
		b := s.browser(t)
		b.get("/dashboard/tokens?a=b&c=%2F").wantTo(t, "/dashboard/sign-in?next=%2Fdashboard%2Ftokens%3Fa%3Db%26c%3D%252F")
		page := b.follow()
		page.want(t, http.StatusOK, "Sign in")
		if !strings.Contains(page.body, `name="next" value="/dashboard/tokens?a=b&amp;c=%2F"`) {
			t.Error(page.body)
		}
		b.send("POST", "/dashboard/sign-in", url.Values{"email": {" MARIA@example.org "}, "password": {password},
			"next": {"/dashboard/tokens?a=b&c=%2F"}}).wantTo(t, "/dashboard/tokens?a=b&c=%2F")
		b.follow().want(t, http.StatusOK, "API tokens")
		b.get("/dashboard/sign-in").wantTo(t, "/dashboard")
	})
	t.Run("goes from field to field by the keyboard", func(t *testing.T) {
		page, last := s.browser(t).get("/dashboard/sign-in").body, 0
		for _, part := range []string{`id="email"`, `id="password"`, `data-show="password"`, `>Sign in</button>`} {
			at := strings.Index(page, part)
			if at <= last {
				t.Errorf("%s is at %d, after %d", part, at, last)
			}
			last = at
		}
	})
	t.Run("leads nowhere else", func(t *testing.T) {
		b := s.signedIn(t)
		for _, next := range []string{"https://evil.example", "//evil.example", "/dashboard//evil\\x", "/dashboardx", "/",
			"/dashboard\r\nX: y", "/dashboard/ä", "javascript:alert(1)", "/dashboard/" + strings.Repeat("x", 5000)} {
			b.get("/dashboard/sign-in?next="+url.QueryEscape(next)).wantTo(t, "/dashboard")
		}
	})
	t.Run("starts a session of its own each time", func(t *testing.T) {
		b := s.signedIn(t)
		first := b.seen.cookie("linkstream").Value
		b.signIn(email, password)
		second := b.seen.cookie("linkstream").Value
		if first == second {
			t.Fatal("the same secret")
		}
		s.wantEnded(t, first)
	})
	t.Run("is left by signing out", func(t *testing.T) {
		b := s.signedIn(t)
		secret := b.seen.cookie("linkstream").Value
		b.post("/dashboard/sign-out").wantTo(t, "/dashboard/sign-in?notice=signed-out")
		if c := b.seen.cookie("linkstream"); c == nil || c.Value != "" || c.Expires.After(time.Now()) {
			t.Errorf("cookie %v", c)
		}
		b.follow().want(t, http.StatusOK, "You are signed out.")
		s.wantEnded(t, secret)
		b.get("/dashboard").wantTo(t, "/dashboard/sign-in")
	})
}

// wantEnded fails if the session with that secret goes on.
func (s *testService) wantEnded(t *testing.T, secret string) {
	t.Helper()
	_, _, err := s.links.SessionByDigest(t.Context(), auth.Digest(secret), time.Now())
	if schema.ErrorCode(err) != schema.CodeNotFound {
		t.Errorf("the session goes on: %v", err)
	}
}

func TestSignInTellsNobodyWhoHasAnAccount(t *testing.T) {
	s := start(t, behindProxy)
	answerTo := func(address string) string {
		b := s.browser(t)
		a := b.signIn(address, "wrong password")
		a.want(t, http.StatusUnprocessableEntity, "The email address or password is wrong.")
		a.header.Del("Date")
		a.header.Del("X-Request-Id")
		return strings.ReplaceAll(fmt.Sprint(a.status, a.header, a.body), address, "ADDRESS")
	}
	known := answerTo(email)
	if unknown := answerTo("vicky@example.org"); known != unknown {
		t.Errorf("with an account:\n%s\nwithout:\n%s", known, unknown)
	}
	s.suspend(t)
	if suspended := answerTo(email); known != suspended {
		t.Errorf("suspended:\n%s", suspended)
	}
	turn, realHash := 0, auth.HashPassword(password)
	// try returns a sign-in to an account of its own, from a client of its own, so that none is limited.
	try := func(name string) func() {
		return func() {
			turn++
			account := schema.Account{Email: fmt.Sprintf("known-%d@example.org", turn), PasswordHash: realHash,
				CreatedAt: time.Now().UTC()}
			testkit.Must(t, s.links.CreateAccount(t.Context(), &account))
			b := s.browser(t)
			b.fields.Set("X-Forwarded-For", fmt.Sprint("192.0.2.", turn%256))
			b.signIn(fmt.Sprintf("%s-%d@example.org", name, turn), "wrong password").want(t, http.StatusUnprocessableEntity)
		}
	}
	testkit.SameTime(t, try("known"), try("unknown"))
}

func TestSignInIsLimited(t *testing.T) {
	t.Parallel()
	wrong := func(t *testing.T, b *browser, address string, want int) {
		t.Helper()
		a := b.signIn(address, "wrong password")
		a.want(t, want)
		retry, _ := strconv.Atoi(a.header.Get("Retry-After"))
		if limited := want == http.StatusTooManyRequests; limited != (retry > 0) || retry > 3600 {
			t.Errorf("%d with Retry-After %q", a.status, a.header.Get("Retry-After"))
		}
	}
	t.Run("for an account, whether or not it exists, wherever it is tried from", func(t *testing.T) {
		for _, address := range []string{email, "vicky@example.org"} {
			s := start(t, behindProxy)
			b := s.browser(t)
			s.attempt(t, dashboard.SignInByEmail, address, 9)
			b.fields.Set("X-Forwarded-For", "192.0.2.1")
			wrong(t, b, address, http.StatusUnprocessableEntity)
			b.fields.Set("X-Forwarded-For", "192.0.2.2")
			wrong(t, b, strings.ToUpper(address), http.StatusTooManyRequests)
			b.signIn(address, password).want(t, http.StatusTooManyRequests, "Too many attempts.")
			wrong(t, b, "other@example.org", http.StatusUnprocessableEntity)
		}
	})
	t.Run("for an address, whichever accounts are tried", func(t *testing.T) {
		s := start(t, behindProxy)
		b := s.browser(t)
		s.attempt(t, dashboard.SignInByAddress, "2001:db8::", 29)
		b.fields.Set("X-Forwarded-For", "2001:db8::1:2")
		wrong(t, b, "some@example.org", http.StatusUnprocessableEntity)
		b.fields.Set("X-Forwarded-For", "2001:db8::3:4") // of the same customer
		wrong(t, b, "another@example.org", http.StatusTooManyRequests)
		b.fields.Set("X-Forwarded-For", "2001:db8:0:1::1")
		b.signIn(email, password).wantTo(t, "/dashboard")
	})
	t.Run("by the peer's address where no proxy is trusted", func(t *testing.T) {
		s := start(t)
		b := s.browser(t)
		s.attempt(t, dashboard.SignInByAddress, "127.0.0.1", 29)
		b.fields.Set("X-Forwarded-For", "192.0.2.1")
		wrong(t, b, "some@example.org", http.StatusUnprocessableEntity)
		b.fields.Set("X-Forwarded-For", "192.0.2.2")
		wrong(t, b, "another@example.org", http.StatusTooManyRequests)
	})
}

// attempt counts attempts as if they had been made.
func (s *testService) attempt(t *testing.T, limit ratelimit.AttemptLimit, subject string, n int) {
	t.Helper()
	_, err := ratelimit.NewAttemptLimiter(s.links, s.now).Allow(t.Context(),
		slices.Repeat([]ratelimit.Attempt{limit.By(subject)}, n)...)
	testkit.Must(t, err)
}

func (s *testService) suspend(t *testing.T) {
	t.Helper()
	testkit.Must(t, s.links.SetSuspended(t.Context(), s.account.ID, true))
}

func TestSuspendedAccount(t *testing.T) {
	s := start(t)
	b, leaving := s.signedIn(t), s.signedIn(t)
	form := csrfField.FindStringSubmatch(b.get("/dashboard/account").body)[1]
	s.suspend(t)
	t.Run("has pages that say so", func(t *testing.T) {
		for _, path := range []string{"/dashboard", "/dashboard/account", "/dashboard/tokens"} {
			b.get(path).want(t, http.StatusForbidden, "Your account is suspended")
		}
		b.send("POST", "/dashboard/tokens", url.Values{"csrf": {form}, "name": {"x"}}).want(t, http.StatusForbidden,
			"Your account is suspended")
	})
	t.Run("cannot be signed in to", func(t *testing.T) {
		b := s.browser(t)
		b.signIn(email, password).want(t, http.StatusForbidden, "Your account is suspended")
		if b.seen.cookie("linkstream") != nil {
			t.Error("a session has begun")
		}
	})
	t.Run("can be signed out of", func(t *testing.T) {
		page := leaving.get("/dashboard")
		page.want(t, http.StatusForbidden, "Sign out")
		form := csrfField.FindStringSubmatch(page.body)[1]
		leaving.send("POST", "/dashboard/sign-out", url.Values{"csrf": {form}}).want(t, http.StatusSeeOther)
		leaving.get("/dashboard").want(t, http.StatusSeeOther)
	})
	t.Run("goes on when it is reinstated", func(t *testing.T) {
		testkit.Must(t, s.links.SetSuspended(t.Context(), s.account.ID, false))
		b.get("/dashboard").want(t, http.StatusOK)
	})
}
