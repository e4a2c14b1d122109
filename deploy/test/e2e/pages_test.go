package e2e_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// pages is an HTTP client with a session of the dashboard.
type pages struct {
	base    string
	cookies string
	csrf    string
}

// signIn signs in to the first account.
func (s *system) signIn(t *testing.T) pages { t.Helper(); return s.signInAs(t, s.email, s.password) }

// signInAs signs in to an account.
func (s *system) signInAs(t *testing.T, email, password string) pages {
	t.Helper()
	p := pages{base: s.api}
	a := p.send(t, "/dashboard/sign-in", url.Values{"email": {email}, "password": {password}})
	cookies := (&http.Response{Header: a.Header}).Cookies()
	if a.Status != http.StatusSeeOther || len(cookies) == 0 {
		t.Fatal(a)
	}
	for _, cookie := range cookies {
		p.cookies += fmt.Sprintf("%s=%s; ", cookie.Name, cookie.Value)
	}
	token := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(p.get(t, "/dashboard/domains").Raw)
	if token == nil {
		t.Fatal("the page has no form")
	}
	p.csrf = token[1]
	return p
}

func (p pages) get(t *testing.T, path string) answer {
	t.Helper()
	return call(t, http.MethodGet, p.base+path, "", "Cookie", p.cookies)
}

// post sends a form of names and values in turn.
func (p pages) post(t *testing.T, path string, fields ...string) answer {
	t.Helper()
	form := url.Values{"csrf": {p.csrf}}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return p.send(t, path, form)
}

func (p pages) send(t *testing.T, path string, form url.Values) answer {
	t.Helper()
	return call(t, http.MethodPost, p.base+path, form.Encode(), "Content-Type", "application/x-www-form-urlencoded",
		"Cookie", p.cookies, "Origin", p.base)
}

// wantText requires a page with all texts.
func wantText(t *testing.T, a answer, status int, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if a.Status != status || !strings.Contains(html.UnescapeString(a.Raw), text) {
			t.Errorf("want %d and %q: %v", status, text, a)
		}
	}
}

// wantPage requires a small HTML page that does not repeat text of the URL.
func wantPage(t *testing.T, a answer, status int) {
	t.Helper()
	if a.Status != status || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") ||
		!strings.Contains(strings.ToLower(a.Raw), "<html") || len(a.Raw) > 16<<10 || strings.Contains(a.Raw, "alert(1)") {
		t.Errorf("want a small page with status %d: %v", status, a)
	}
	if to := a.Header.Get("Location"); to != "" {
		t.Errorf("an error page leads to %q", to)
	}
}
