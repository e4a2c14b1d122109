package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// Edges of tests that show how changes reach them have caches that would keep a link for a day, and an unknown link
// for 24 minutes.
const (
	followsWithin = 5 * time.Second // for an edge that follows a command
	longCaches    = "LINKSTREAM_EDGE_CACHE_TTL=24h"
)

// answer returns an error if the edge does not answer a path with a status and a text.
func (s *system) answer(t *testing.T, path string, status int, text string, header ...string) error {
	t.Helper()
	a := s.visit(t, http.MethodGet, path, header...)
	if a.Status != status || !strings.Contains(a.Raw, text) {
		return fmt.Errorf("want %d and %q: %v", status, text, a)
	}
	return nil
}

// answers waits until the edge answers a path with a status and a text.
func (s *system) answers(t *testing.T, path string, status int, text string, header ...string) {
	t.Helper()
	testkit.Succeeds(t, func() error { return s.answer(t, path, status, text, header...) })
}

// redirects requires that the edge soon redirects a path to a location.
func (s *system) redirects(t *testing.T, path, location string, header ...string) {
	t.Helper()
	testkit.Succeeds(t, func() error {
		a := s.visit(t, http.MethodGet, path, header...)
		if got := a.Header.Get("Location"); a.Status != http.StatusFound || got != location {
			return fmt.Errorf("location %q, want %q: %v", got, location, a)
		}
		return nil
	})
}

func TestTakedown(t *testing.T) {
	t.Parallel()
	blocklist := filepath.Join(t.TempDir(), "hosts")
	writeFile(t, blocklist, "other.example\n")
	s := startSystem(t, longCaches, "LINKSTREAM_API_BLOCKLIST="+blocklist, "LINKSTREAM_EDGE_BLOCKLIST="+blocklist)
	owner := s.owner()
	const host = "go.example.org"
	id := s.domain(t, s.email, host)
	onHost := []string{"Host", host}
	owner.Alias(t, "down", "https://example.com/")
	owner.Link(t, object{"long_url": "https://example.com/", "custom_alias": "down", "domain_id": id})
	other, email := s.another(t, "other")
	for i := range 5 {
		other.Alias(t, fmt.Sprintf("other-%d", i), "https://example.com/")
		s.click(t, fmt.Sprintf("other-%d", i))
	}
	isActive := func(hash string) any { return owner.Get(t, "/api/v1/stats/"+hash).Body["is_active"] }

	t.Run("link off stops one link within seconds, link on lets it go on", func(t *testing.T) {
		s.click(t, "down")
		s.click(t, "down", onHost...)
		const said = "The operator of this service has blocked it"
		testkit.Follows(t, followsWithin, func(try int) func() error {
			if try > 0 {
				s.admin(t, "link", "on", "down")
				s.answers(t, "/down", http.StatusFound, "")
			}
			s.admin(t, "link", "off", "down")
			return func() error { return s.answer(t, "/down", http.StatusGone, said) }
		})
		s.click(t, "down", onHost...)
		s.admin(t, "link", "off", "down", "--domain", host)
		s.answers(t, "/down", http.StatusGone, "taken down", onHost...)
		if active := isActive("down"); active != false {
			t.Errorf("is_active is %v", active)
		}
		testkit.Follows(t, followsWithin, func(try int) func() error {
			if try > 0 {
				s.admin(t, "link", "off", "down")
				s.answers(t, "/down", http.StatusGone, said)
			}
			s.admin(t, "link", "on", "down")
			return func() error { return s.answer(t, "/down", http.StatusFound, "") }
		})
		if active := isActive("down"); active != true {
			t.Errorf("is_active is %v", active)
		}
	})
	t.Run("account suspend stops all links of the account within seconds, reinstate lets them go on", func(t *testing.T) {
		links := func(status int, text string) error {
			var errs []error
			for i := range 5 {
				errs = append(errs, s.answer(t, fmt.Sprintf("/other-%d", i), status, text))
			}
			return errors.Join(errs...)
		}
		suspended := func() error { return links(http.StatusGone, "taken down") }
		reinstated := func() error { return links(http.StatusFound, "") }
		testkit.Follows(t, followsWithin, func(try int) func() error {
			if try > 0 {
				s.admin(t, "account", "reinstate", email)
				testkit.Succeeds(t, reinstated)
			}
			s.admin(t, "account", "suspend", email)
			return suspended
		})
		testkit.Follows(t, followsWithin, func(try int) func() error {
			if try > 0 {
				s.admin(t, "account", "suspend", email)
				testkit.Succeeds(t, suspended)
			}
			s.admin(t, "account", "reinstate", email)
			return reinstated
		})
		s.admin(t, "account", "suspend", email)
		testkit.Succeeds(t, suspended)
		s.click(t, "down") // another account's
	})
	t.Run("a host that gets onto the blocklist stops its links within seconds", func(t *testing.T) {
		owner.Alias(t, "unsafe", "https://www.bad.example/x")
		s.click(t, "unsafe")
		unsafe := func() error { // each program looks at the file at its own times
			return errors.Join(s.answer(t, "/unsafe", http.StatusGone, "known to be unsafe"),
				owner.Shorten(t, object{"long_url": "https://bad.example/"}).IsStatus(http.StatusUnprocessableEntity))
		}
		safe := func() error { return s.answer(t, "/unsafe", http.StatusFound, "") }
		testkit.Follows(t, 3*followsWithin, func(try int) func() error {
			if try > 0 {
				writeFile(t, blocklist, "other.example\n")
				testkit.Succeeds(t, safe)
			}
			writeFile(t, blocklist, "0.0.0.0 bad.example\n")
			return unsafe
		})
		s.click(t, "down")
		testkit.Follows(t, 3*followsWithin, func(try int) func() error {
			if try > 0 {
				writeFile(t, blocklist, "0.0.0.0 bad.example\n")
				testkit.Succeeds(t, unsafe)
			}
			writeFile(t, blocklist, "other.example # again\n")
			return safe
		})
	})
	t.Run("a domain changes hands by command, and its old links stop within seconds", func(t *testing.T) {
		s.admin(t, "link", "on", "down", "--domain", host)
		s.answers(t, "/down", http.StatusFound, "", onHost...)
		third, thirdEmail := s.another(t, "third")
		newID := decode(s.admin(t, "domain", "transfer", host, thirdEmail))
		s.answers(t, "/down", http.StatusNotFound, "", onHost...)
		third.Link(t, object{"long_url": "https://third.example/", "custom_alias": "down", "domain_id": newID})
		s.answers(t, "/down", http.StatusFound, "", onHost...)
		stats := owner.Get(t, fmt.Sprintf("/api/v1/stats/down?domain_id=%v", id)).Want(t, http.StatusOK).Body
		testkit.Equal(t, "is_active of the old link", stats["is_active"], any(false))
		owner.Shorten(t, object{"long_url": "https://example.com/", "domain_id": id}).WantError(t, 422, "domain_id")
		s.admin(t, "domain", "remove", host)
		s.answers(t, "/down", http.StatusNotFound, "", onHost...)
	})
	t.Run("what is stopped stays so when all programs are killed", func(t *testing.T) {
		s.admin(t, "link", "off", "down")
		for _, p := range s.programs {
			p.kill(t)
		}
		s.start(t)
		s.answers(t, "/down", http.StatusGone, "taken down")
		s.answers(t, "/other-1", http.StatusGone, "taken down")
		s.answers(t, "/down", http.StatusNotFound, "", onHost...)
	})
}
