package dashboard_test

import (
	"net/http"
	"net/url"
	"testing"
)

func TestForgedForms(t *testing.T) {
	s := start(t)
	b := s.signedIn(t)
	own := csrfField.FindStringSubmatch(b.get("/dashboard/account").body)[1]
	other := csrfField.FindStringSubmatch(s.signedIn(t).get("/dashboard/account").body)[1]
	if own == other {
		t.Fatal("two sessions have the same token")
	}
	paths := []string{"/dashboard/tokens", "/dashboard/tokens/revoke", "/dashboard/account/password",
		"/dashboard/account/sessions/end", "/dashboard/account/sessions/end-others", "/dashboard/sign-out",
		"/dashboard/domains", "/dashboard/domains/1/verify", "/dashboard/domains/1/remove"}
	for _, c := range []struct {
		name, csrf, origin, site string
	}{
		{"no token", "", s.base, "same-origin"},
		{"a wrong token", own[:42] + "_x", s.base, "same-origin"},
		{"another session's token", other, s.base, "same-origin"},
		{"another site's page", own, "https://evil.example", "cross-site"},
		{"another site's page, without Origin", own, "", "cross-site"},
		{"another site's page in a browser without Sec-Fetch-Site", own, "https://evil.example", ""},
		{"a neighbour's page", own, "https://other.example.org", "same-site"},
		{"a page without an origin", own, "null", ""},
		{"another port", own, "http://127.0.0.1:1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			forger := *b
			forger.t, forger.fields = t, http.Header{}
			for name, value := range map[string]string{"Origin": c.origin, "Sec-Fetch-Site": c.site} {
				if value != "" {
					forger.fields.Set(name, value)
				}
			}
			for _, path := range paths {
				forger.send("POST", path, url.Values{"csrf": {c.csrf}, "name": {"forged"}, "host": {"forged.example.com"}}).want(t,
					http.StatusForbidden, "This form has expired")
			}
		})
	}
	t.Run("change nothing", func(t *testing.T) {
		tokens, err := s.links.Tokens(t.Context(), s.account.ID)
		if err != nil || len(tokens) > 0 {
			t.Errorf("%+v, %v", tokens, err)
		}
		domains, err := s.links.Domains(t.Context(), s.account.ID)
		if err != nil || len(domains) > 0 {
			t.Errorf("%+v, %v", domains, err)
		}
		b.get("/dashboard").want(t, http.StatusOK)
	})
	t.Run("sign nobody in", func(t *testing.T) {
		for _, from := range []http.Header{
			{"Origin": {"https://evil.example"}}, {"Sec-Fetch-Site": {"cross-site"}}, {"Origin": {"null"}},
		} {
			forger := s.browser(t)
			forger.fields = from
			forger.signIn(email, password).want(t, http.StatusForbidden)
			if len(forger.seen.header.Values("Set-Cookie")) > 0 {
				t.Errorf("%v", forger.seen.header)
			}
		}
	})
	t.Run("are compared with -api.url, for any Host header", func(t *testing.T) {
		s := start(t, behindTLS)
		for _, c := range []struct {
			origin, host string
			status       int
		}{
			{"https://links.example.org", "127.0.0.1", http.StatusSeeOther},
			{"https://links.example.org:443", "evil.example", http.StatusSeeOther},
			{"http://links.example.org", "links.example.org", http.StatusForbidden},
			{"https://links.example.org:8443", "links.example.org:8443", http.StatusForbidden},
			{"https://evil.example", "evil.example", http.StatusForbidden}, // whose name leads here
			{"http://127.0.0.1", "127.0.0.1", http.StatusForbidden},
			{"http://localhost", "localhost", http.StatusForbidden},
		} {
			b := s.browser(t)
			b.fields, b.host = http.Header{"Origin": {c.origin}, "Sec-Fetch-Site": {"same-origin"}}, c.host
			if got := b.signIn(email, password); got.status != c.status {
				t.Errorf("origin %s, host %s: %d, want %d", c.origin, c.host, got.status, c.status)
			}
		}
	})
	t.Run("are compared with the Host header without -api.url, unless it is a name", func(t *testing.T) {
		s := start(t)
		for _, c := range []struct {
			origin, host string
			status       int
		}{
			{"http://localhost:8081", "localhost:8081", http.StatusSeeOther},
			{"http://[::1]:8081", "[::1]:8081", http.StatusSeeOther},
			{"http://192.0.2.1", "192.0.2.1:80", http.StatusSeeOther},
			{"http://192.0.2.1", "192.0.2.2", http.StatusForbidden},
			{"http://evil.example", "evil.example", http.StatusForbidden},
			{"http://evil.example", "localhost", http.StatusForbidden},
		} {
			b := s.browser(t)
			b.fields, b.host = http.Header{"Origin": {c.origin}}, c.host
			if got := b.signIn(email, password); got.status != c.status {
				t.Errorf("origin %s, host %s: %d, want %d", c.origin, c.host, got.status, c.status)
			}
		}
	})
	t.Run("take no effect as other requests, which lead to their page", func(t *testing.T) {
		for path, page := range map[string]string{"/tokens/revoke": "/tokens", "/account/password": "/account",
			"/account/sessions/end": "/account", "/account/sessions/end-others": "/account", "/sign-out": "",
			"/links/0/x-1/active": "/links/0/x-1", "/domains/7/verify": "/domains/7"} {
			b.get("/dashboard"+path).wantTo(t, "/dashboard"+page)
			if a := b.send("PUT", "/dashboard"+path, nil); a.status != http.StatusMethodNotAllowed ||
				a.header.Get("Allow") == "" {
				t.Errorf("PUT %s: %d, Allow %q", path, a.status, a.header.Get("Allow"))
			}
		}
		b.get("/dashboard/tokens/none").want(t, http.StatusNotFound)
		b.get("/dashboard").want(t, http.StatusOK)
	})
	t.Run("never have the same text for the token", func(t *testing.T) {
		first, second := csrfField.FindString(b.get("/dashboard/account").body),
			csrfField.FindString(b.get("/dashboard/account").body)
		if first == "" || first == second {
			t.Errorf("%s, then %s", first, second)
		}
	})
}
