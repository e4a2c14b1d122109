package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"linkstream/api/dashboard"
	"linkstream/schema"
)

func signUp(b *browser, address, password string) answer {
	b.t.Helper()
	return b.send("POST", "/dashboard/sign-up", url.Values{"email": {address}, "password": {password}})
}

func TestSignUpIsClosed(t *testing.T) {
	s := start(t)
	b := s.browser(t)
	b.get("/dashboard/sign-up").want(t, http.StatusNotFound)
	signUp(b, "new@example.org", "a long password").want(t, http.StatusNotFound)
	if strings.Contains(b.get("/dashboard/sign-in").body, "sign-up") {
		t.Error("the sign-in leads to it")
	}
	if _, err := s.links.AccountByEmail(t.Context(), "new@example.org"); schema.ErrorCode(err) != schema.CodeNotFound {
		t.Error(err)
	}
}

func TestSignUp(t *testing.T) {
	s := start(t, openSignUp)
	t.Run("makes an account and signs in to it", func(t *testing.T) {
		b := s.browser(t)
		if !strings.Contains(b.get("/dashboard/sign-in").body, `href="/dashboard/sign-up"`) {
			t.Error(b.seen.body)
		}
		b.get("/dashboard/sign-up").want(t, http.StatusOK, "Create an account")
		signUp(b, "New@Example.org", "a long password").wantTo(t, "/dashboard")
		b.follow().want(t, http.StatusOK, "Your account is ready", "Three steps to your first click")
		s.browser(t).signIn("new@example.org", "a long password").wantTo(t, "/dashboard")
		b.get("/dashboard/account").want(t, http.StatusOK, "new@example.org")
		b.get("/dashboard/sign-up").wantTo(t, "/dashboard")
	})
	t.Run("takes no account over", func(t *testing.T) {
		a := signUp(s.browser(t), strings.ToUpper(email), "another password")
		a.want(t, http.StatusUnprocessableEntity, "This email address has an account. Sign in instead.")
		if len(a.header.Values("Set-Cookie")) > 0 {
			t.Errorf("%v", a.header)
		}
		s.browser(t).signIn(email, "another password").want(t, http.StatusUnprocessableEntity)
		s.browser(t).signIn(email, password).wantTo(t, "/dashboard")
	})
	t.Run("names each problem at its field, for screen readers, too", func(t *testing.T) {
		a := signUp(s.browser(t), "nobody", "short")
		a.want(t, http.StatusUnprocessableEntity, "Please enter an email address", "A password needs at least 8 characters")
		for _, part := range []string{
			`aria-describedby="email-problem" aria-invalid="true"`, `id="email-problem"`, `value="nobody"`,
			`aria-describedby="password-problem password-hint" aria-invalid="true"`, `<title>Error: `,
		} {
			if !strings.Contains(a.body, part) {
				t.Errorf("no %s in %s", part, a.body)
			}
		}
		if strings.Contains(a.body, "short") {
			t.Error("the password comes back")
		}
	})
	t.Run("is limited", func(t *testing.T) {
		s := start(t, openSignUp)
		b := s.browser(t)
		s.attempt(t, dashboard.SignUpByAddress, "127.0.0.1", 9)
		signUp(b, "tenth@example.org", "a long password").wantTo(t, "/dashboard")
		signUp(b, "last@example.org", "a long password").want(t, http.StatusTooManyRequests, "Too many attempts")
	})
}
