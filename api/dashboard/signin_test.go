package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"linkstream/api/access"
	"linkstream/schema"
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
		b.follow().want(t, http.StatusOK, "API settings")
		b.get("/dashboard/sign-in").wantTo(t, "/dashboard")
	})
	t.Run("leads nowhere else", func(t *testing.T) {
		b := s.signedIn(t)
		for _, next := range []string{"https://evil.example", "//evil.example", "/dashboard//evil\\x", "/dashboardx", "/",
			"/dashboard\r\nX: y", "/dashboard/ä", "javascript:alert(1)", "/dashboard/" + strings.Repeat("x", 2000)} {
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
		if _, _, err := s.links.SessionByDigest(t.Context(), access.Digest(first), time.Now()); schema.ErrorCode(err) != schema.CodeNotFound {
			t.Errorf("the earlier session goes on: %v", err)
		}
	})
	t.Run("is left by signing out", func(t *testing.T) {
		b := s.signedIn(t)
		secret := b.seen.cookie("linkstream").Value
		b.post("/dashboard/sign-out").wantTo(t, "/dashboard/sign-in?notice=signed-out")
		if c := b.seen.cookie("linkstream"); c == nil || c.Value != "" || c.Expires.After(time.Now()) {
			t.Errorf("cookie %v", c)
		}
		b.follow().want(t, http.StatusOK, "You are signed out.")
		if _, _, err := s.links.SessionByDigest(t.Context(), access.Digest(secret), time.Now()); schema.ErrorCode(err) != schema.CodeNotFound {
			t.Errorf("the session goes on: %v", err)
		}
		b.get("/dashboard").wantTo(t, "/dashboard/sign-in")
	})
}
