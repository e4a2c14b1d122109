package dashboard_test

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// always are the header fields of every answer.
var always = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src " +
		"'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	"Referrer-Policy":            "same-origin",
	"X-Content-Type-Options":     "nosniff",
	"X-Frame-Options":            "DENY",
	"Cross-Origin-Opener-Policy": "same-origin",
	"Permissions-Policy":         "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}

func wantHeaders(t *testing.T, a answer, cacheControl, hsts string) {
	t.Helper()
	for name, want := range always {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := a.header.Get("Cache-Control"); got != cacheControl {
		t.Errorf("Cache-Control: %q, want %q", got, cacheControl)
	}
	if got := a.header.Get("Strict-Transport-Security"); got != hsts {
		t.Errorf("Strict-Transport-Security: %q, want %q", got, hsts)
	}
}

func TestHeaders(t *testing.T) {
	for _, tls := range []struct {
		name, hsts string
		options    []option
	}{{"without TLS", "", nil}, {"behind TLS", "max-age=31536000", []option{behindTLS}}} {
		s := start(t, tls.options...)
		b := s.browser(t)
		if tls.options != nil {
			b.fields.Set("Origin", "https://links.example.org")
		}
		fields := b.fields
		style := regexp.MustCompile(`/dashboard/static/style\.[0-9a-f]+\.css`).FindString(b.get("/dashboard/sign-in").body)
		large := url.Values{"email": {strings.Repeat("x", 70_000)}}
		for _, c := range []struct {
			name, method, path string
			form               url.Values
			status             int
			cacheControl       string
		}{
			{"a page", "GET", "/dashboard/sign-in", nil, 200, "no-store"},
			{"the head of a page", "HEAD", "/dashboard/sign-in", nil, 200, "no-store"},
			{"a redirect", "GET", "/dashboard", nil, 303, "no-store"},
			{"the redirect of the root", "GET", "/", nil, 303, "no-store"},
			{"no page", "GET", "/dashboard/none", nil, 404, "no-store"},
			{"no asset", "GET", "/dashboard/static/style.css", nil, 404, "no-store"},
			{"another method", "PUT", "/dashboard/sign-in", nil, 405, "no-store"},
			{"a form with a mistake", "POST", "/dashboard/sign-in", url.Values{"email": {"x"}}, 422, "no-store"},
			{"a form without a session", "POST", "/dashboard/tokens", url.Values{"name": {"x"}}, 303, "no-store"},
			{"a sign-in", "POST", "/dashboard/sign-in", url.Values{"email": {email}, "password": {password}}, 303, "no-store"},
			{"a form that is too large", "POST", "/dashboard/sign-in", large, 413, "no-store"},
			{"an asset", "GET", style, nil, 200, "public, max-age=31536000, immutable"},
			{"the head of an asset", "HEAD", style, nil, 200, "public, max-age=31536000, immutable"},
		} {
			t.Run(tls.name+": "+c.name, func(t *testing.T) {
				b := s.browser(t)
				b.fields = fields
				a := b.send(c.method, c.path, c.form)
				if a.status != c.status {
					t.Errorf("status %d, want %d", a.status, c.status)
				}
				wantHeaders(t, a, c.cacheControl, tls.hsts)
				if c.method == "HEAD" && (a.body != "" || a.header.Get("Content-Length") == "0") {
					t.Errorf("body %q, Content-Length %s", a.body, a.header.Get("Content-Length"))
				}
			})
		}
	}
}

func TestCookies(t *testing.T) {
	t.Run("without TLS", func(t *testing.T) {
		b := start(t).browser(t)
		c := b.signIn(email, password).cookie("linkstream")
		if c == nil || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Secure || c.Path != "/" || c.Domain != "" ||
			len(c.Value) != 43 || c.MaxAge != int((90*24*time.Hour).Seconds()) {
			t.Errorf("%+v", c)
		}
	})
	t.Run("behind TLS", func(t *testing.T) {
		s := start(t, behindTLS)
		b := s.browser(t)
		b.fields.Set("Origin", "https://links.example.org") // which the proxy in front is for this host
		c := b.signIn(email, password).cookie("__Host-linkstream")
		if c == nil || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || !c.Secure || c.Path != "/" || c.Domain != "" {
			t.Fatalf("%+v", c)
		}
		b = s.browser(t)
		b.fields.Set("Origin", "https://links.example.org")
		b.fields.Set("Cookie", "linkstream="+c.Value)
		b.get("/dashboard").wantTo(t, "/dashboard/sign-in") // the name without the prefix can be set by other hosts
		b.fields.Set("Cookie", "__Host-linkstream="+c.Value)
		b.get("/dashboard").want(t, http.StatusOK, "Overview")
		b.post("/dashboard/account/sessions/end-others").wantTo(t, "/dashboard/account")
		n := b.seen.cookie("__Host-linkstream-notice")
		if n == nil || !n.HttpOnly || !n.Secure || n.SameSite != http.SameSiteLaxMode {
			t.Errorf("%+v", n)
		}
	})
}

func TestPages(t *testing.T) {
	var sessions atomic.Int64 // look-ups
	s := startFaulty(t, storetest.FaultOf(func(context.Context) error {
		sessions.Add(1)
		return nil
	}, "SessionByDigest"))
	b := s.signedIn(t)
	t.Run("the root leads browsers here, and programs nowhere", func(t *testing.T) {
		b.get("/").wantTo(t, "/dashboard")
		b.get("/dashboard/").wantTo(t, "/dashboard")
		if a := b.send("POST", "/", nil); a.status != http.StatusNotFound || !strings.Contains(a.body, `"not_found"`) {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
	t.Run("the navigation says where one is", func(t *testing.T) {
		for _, path := range []string{
			"/dashboard", "/dashboard/links", "/dashboard/domains", "/dashboard/tokens", "/dashboard/account",
		} {
			page := b.get(path)
			page.want(t, http.StatusOK)
			current := regexp.MustCompile(`<a href="([^"]+)" aria-current="page">`).FindAllStringSubmatch(page.body, -1)
			if len(current) != 1 || current[0][1] != path {
				t.Errorf("%s: %q", path, current)
			}
			if n := strings.Count(page.body, "<h1"); n != 1 {
				t.Errorf("%s has %d headings", path, n)
			}
		}
	})
	t.Run("a page that does not exist says so, with the navigation", func(t *testing.T) {
		a := b.get("/dashboard/none")
		a.want(t, http.StatusNotFound, "Page not found")
		if !strings.Contains(a.body, `aria-label="Main"`) {
			t.Error(a.body)
		}
		s.browser(t).get("/dashboard/none").want(t, http.StatusNotFound, "Page not found")
	})
	t.Run("a path outside is answered without a look at the session", func(t *testing.T) {
		before := sessions.Load()
		b.get("/none").want(t, http.StatusNotFound, "Page not found")
		b.get("/dashboards").want(t, http.StatusNotFound, "Page not found")
		b.get("/").wantTo(t, "/dashboard")
		b.get("/robots.txt").want(t, http.StatusOK)
		testkit.Equal(t, "look-ups", sessions.Load()-before, 0)
		b.get("/dashboard/none").want(t, http.StatusNotFound)
		testkit.Equal(t, "look-ups for a page of the dashboard", sessions.Load()-before, 1)
	})
	t.Run("pages load from this service alone, and run no script in line", func(t *testing.T) {
		for _, path := range []string{"/dashboard", "/dashboard/tokens", "/dashboard/account", "/dashboard/none"} {
			body := b.get(path).body
			for _, match := range regexp.MustCompile(`(?:src|rel="[^"]*"[^>]* href)="([^"]+)"`).FindAllStringSubmatch(body, -1) {
				b.get(match[1]).want(t, http.StatusOK)
			}
			if found := regexp.MustCompile(`(?i)\s(?:on\w+|style)=|<style|<script[^>]*>[^<]`).FindString(body); found != "" {
				t.Errorf("%s has %q", path, found)
			}
		}
	})
	t.Run("the API stays as it was", func(t *testing.T) {
		a := b.get("/api/v1/links")
		if a.status != http.StatusUnauthorized || a.header.Get("Content-Security-Policy") != "" {
			t.Errorf("%d %v", a.status, a.header)
		}
	})
}

// TestScriptIsWhole requires that a page's one script has all its parts. Each part is embedded alone.
func TestScriptIsWhole(t *testing.T) {
	b := start(t).browser(t)
	address := regexp.MustCompile(`/dashboard/static/script\.[0-9a-f]+\.js`)
	script := b.get(address.FindString(b.get("/dashboard/sign-in").body)).body
	parts, err := filepath.Glob("static/script/*.js")
	testkit.Must(t, err)
	size := 0
	for _, part := range parts {
		text, err := os.ReadFile(part)
		testkit.Must(t, err)
		size += len(text)
		if strings.Count(script, string(text)) != 1 {
			t.Errorf("the script does not have %s once", part)
		}
	}
	if size == 0 || size != len(script) {
		t.Errorf("the parts have %d bytes, the script %d", size, len(script))
	}
}
