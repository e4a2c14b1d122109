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
	t.Run("a query after the hash is ignored", func(t *testing.T) {
		if to := s.click(t, "there?utm_source=mail").Header.Get("Location"); to != "https://example.com/there?a=b#c" {
			t.Errorf("Location is %q", to)
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
	t.Run("capitals do not matter in an alias", func(t *testing.T) {
		testkit.Equal(t, "Location", s.visit(t, http.MethodGet, "/THERE").Header.Get("Location"), s.visit(t, http.MethodGet, "/there").Header.Get("Location"))
	})
	t.Run("pages are in the visitor's language", func(t *testing.T) {
		if a := s.visit(t, http.MethodGet, "/unknown", "Accept-Language", "de-AT,de;q=0.9"); !strings.Contains(a.Raw, "Link nicht gefunden") {
			t.Error(a)
		}
	})
	unknown := []string{"/unknown", "/there/", "/there/more", "/x", "/%00", "/%ff%fe",
		"/%3Cscript%3Ealert(1)%3C%2Fscript%3E", "/api/v1/links", "/" + strings.Repeat("a", 500)}
	for _, path := range unknown {
		t.Run("an unknown path is an HTML page with status 404: "+path[:min(len(path), 20)], func(t *testing.T) {
			wantPage(t, s.visit(t, http.MethodGet, path), http.StatusNotFound)
		})
	}
	t.Run("robots.txt is text for crawlers", func(t *testing.T) {
		a := s.visit(t, http.MethodGet, "/robots.txt")
		if a.Status != http.StatusOK || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/plain") ||
			!strings.Contains(a.Raw, "User-agent:") {
			t.Error(a)
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

// TestRedirectByHost has long caches, as TestRedirect does.
func TestRedirectByHost(t *testing.T) {
	t.Parallel()
	s := startSystem(t, longCaches)
	owner := s.owner()
	id := s.domain(t, s.email, "links.example.org")
	owner.Alias(t, "where", "https://example.com/default")
	owner.Link(t, object{"long_url": "https://example.com/custom", "custom_alias": "where", "domain_id": id})
	owner.Alias(t, "default-only", "https://example.com/default")

	for _, host := range []string{"links.example.org", "links.example.org:8080", "LINKS.Example.Org"} {
		t.Run("a verified custom domain has its own links: "+host, func(t *testing.T) {
			if to := s.click(t, "where", "Host", host).Header.Get("Location"); to != "https://example.com/custom" {
				t.Errorf("Location is %q", to)
			}
			wantPage(t, s.visit(t, http.MethodGet, "/default-only", "Host", host), http.StatusNotFound)
		})
	}
	t.Run("the default domain has its own links", func(t *testing.T) {
		if to := s.click(t, "where").Header.Get("Location"); to != "https://example.com/default" {
			t.Errorf("Location is %q", to)
		}
	})
	for _, host := range []string{"unknown.example.org", "example.org", "other.links.example.org"} {
		t.Run("an unknown host is 404: "+host, func(t *testing.T) {
			wantPage(t, s.visit(t, http.MethodGet, "/where", "Host", host), http.StatusNotFound)
		})
	}
	t.Run("a domain is 404 until it is verified", func(t *testing.T) {
		testkit.Follows(t, followsWithin, func(try int) func() error {
			host := fmt.Sprintf("later-%d.example.org", try)
			id := decode(s.admin(t, "domain", "add", s.email, host))
			later := func() answer { return s.visit(t, http.MethodGet, "/later", "Host", host) }
			wantPage(t, later(), http.StatusNotFound)
			s.admin(t, "domain", "verify", host)
			owner.Link(t, object{"long_url": "https://example.com/later", "custom_alias": "later", "domain_id": id})
			return func() error { return later().IsStatus(http.StatusFound) }
		})
	})
}

func TestRedirectCounts(t *testing.T) {
	t.Parallel()
	s := startSystem(t, longCaches)
	owner := s.owner()

	t.Run("HEAD and prefetches are answered and not counted", func(t *testing.T) {
		owner.Alias(t, "preview", "https://example.com/preview")
		for range 5 {
			for _, a := range []answer{
				s.visit(t, http.MethodHead, "/preview"),
				s.visit(t, http.MethodGet, "/preview", "Sec-Purpose", "prefetch"),
				s.visit(t, http.MethodGet, "/preview", "Sec-Purpose", "prefetch;prerender"),
				s.visit(t, http.MethodGet, "/preview", "Purpose", "prefetch"),
			} {
				if a.Status != http.StatusFound || a.Header.Get("Location") != "https://example.com/preview" {
					t.Errorf("want 302 to the long URL: %v", a)
				}
			}
		}
		// Clicks come last, so that the requests before would have been counted by now.
		for range 20 {
			s.click(t, "preview")
		}
		owner.WaitTotal(t, "preview", 20)
	})
	t.Run("errors are not counted", func(t *testing.T) {
		s.visit(t, http.MethodGet, "/errors")
		owner.Alias(t, "errors", "https://example.com/")
		s.visit(t, http.MethodGet, "/errors", "Host", "unknown.example.org")
		testkit.Succeeds(t, func() error { return s.visit(t, "GET", "/errors").IsStatus(http.StatusFound) })
		owner.WaitTotal(t, "errors", 1)
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
