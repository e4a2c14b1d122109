package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// TestRedirect has long caches, which show that edges follow changes.
func TestRedirect(t *testing.T) {
	t.Parallel()
	s := startSystem(t, longCaches)
	owner := s.owner()
	owner.Alias(t, "there", "https://example.com/there?a=b#c")

	t.Run("a short link is 302 to the long URL, not to be cached", func(t *testing.T) {
		a := s.visit(t, http.MethodGet, "/there")
		if a.Status != http.StatusFound || a.Header.Get("Location") != "https://example.com/there?a=b#c" ||
			a.Header.Get("Cache-Control") != "private, no-store" {
			t.Errorf("%v\n%v", a, a.Header)
		}
	})
	t.Run("the API's short_url works", func(t *testing.T) {
		short := owner.Get(t, "/api/v1/stats/there").Body["short_url"].(string)
		if a := call(t, http.MethodGet, short, ""); a.Status != http.StatusFound {
			t.Error(a)
		}
	})
	t.Run("a new link works at once, even if its hash was unknown before", func(t *testing.T) {
		testkit.Follows(t, time.Second, func(try int) func() error {
			hash := fmt.Sprint("sooner-", try)
			wantPage(t, s.visit(t, http.MethodGet, "/"+hash), http.StatusNotFound)
			owner.Alias(t, hash, "https://example.com/sooner")
			return func() error { return s.visit(t, http.MethodGet, "/"+hash).IsStatus(http.StatusFound) }
		})
	})
	t.Run("an unknown path is an HTML page in the visitor's language", func(t *testing.T) {
		a := s.visit(t, http.MethodGet, "/%3Cscript%3Ealert(1)%3C%2Fscript%3E", "Accept-Language", "de-AT,de;q=0.9")
		wantPage(t, a, http.StatusNotFound)
		if !strings.Contains(a.Raw, "Link nicht gefunden") {
			t.Error(a)
		}
	})
	t.Run("HEAD, prefetches and errors are answered and not counted", func(t *testing.T) {
		owner.Alias(t, "preview", "https://example.com/preview")
		for range 5 {
			testkit.Must(t, s.visit(t, http.MethodHead, "/preview").IsStatus(http.StatusFound))
			testkit.Must(t, s.visit(t, http.MethodGet, "/preview", "Sec-Purpose", "prefetch").IsStatus(http.StatusFound))
			wantPage(t, s.visit(t, http.MethodPost, "/preview"), http.StatusMethodNotAllowed)
		}
		for range 20 { // at the end, so that the requests before would have been counted by now
			s.click(t, "preview")
		}
		owner.WaitTotal(t, "preview", 20)
	})
	t.Run("a click is in the statistics and in the list within two seconds", func(t *testing.T) {
		owner.Alias(t, "fresh", "https://example.com/fresh")
		clicks := int64(0)
		for range 5 {
			testkit.Follows(t, 2*time.Second, func(int) func() error {
				s.click(t, "fresh")
				clicks++
				return func() error {
					owner.WaitTotal(t, "fresh", clicks)
					items, _ := owner.Page(t, "")
					return testkit.Mismatch("clicks in the list", number(t, items[0], "clicks"), clicks)
				}
			})
		}
	})
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
