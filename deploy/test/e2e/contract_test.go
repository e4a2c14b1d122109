package e2e_test

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/idna"

	"linkstream/api/rest/resttest"
	"linkstream/schema/testkit"
)

// TestContract tests what the API's document promises. Promises about visitors and their clicks are tested beside it.
func TestContract(t *testing.T) {
	t.Parallel()
	blocklist := filepath.Join(t.TempDir(), "hosts")
	writeFile(t, blocklist, "# a list of hosts\n0.0.0.0 "+resttest.UnsafeHost+" # a comment\n")
	onBothKinds(t, func(t *testing.T, s *system) { resttest.Test(t, s.contract()) }, "LINKSTREAM_API_BLOCKLIST="+blocklist)
}

func TestShortLinksLeadToTheURLsAsGiven(t *testing.T) {
	t.Parallel()
	s := startSystem(t)
	for name, long := range resttest.ValidURLs {
		t.Run(name, func(t *testing.T) {
			hash := s.owner().Link(t, object{"long_url": long})["hash"].(string)
			sameTarget(t, s.click(t, hash).Header.Get("Location"), long)
		})
	}
}

// sameTarget requires that a Location header is a URI by RFC 3986, so ASCII only, and equivalent to the long URL.
func sameTarget(t *testing.T, location, long string) {
	t.Helper()
	for i := range len(location) {
		if location[i] <= ' ' || location[i] >= 0x7f {
			t.Fatalf("Location has byte %#x: %.200q", location[i], location)
		}
	}
	got, err := url.Parse(location)
	if err != nil {
		t.Fatalf("Location: %v", err)
	}
	want, err := url.Parse(long)
	if err != nil {
		t.Fatal(err)
	}
	host, err := idna.Lookup.ToASCII(strings.ToLower(want.Hostname()))
	if err != nil || strings.Contains(want.Host, "[") {
		host = want.Hostname()
	}
	query, err := url.QueryUnescape(got.RawQuery)
	if err != nil {
		t.Fatalf("query of Location: %v", err)
	}
	wantQuery, _ := url.QueryUnescape(want.RawQuery)
	if got.Scheme != want.Scheme || !strings.EqualFold(got.Hostname(), host) || got.Port() != want.Port() ||
		strings.TrimPrefix(got.Path, "/") != strings.TrimPrefix(want.Path, "/") || query != wantQuery ||
		got.Fragment != want.Fragment || got.RawPath != "" && want.RawPath != "" && got.EscapedPath() != want.EscapedPath() {
		t.Errorf("Location %.200q is not equivalent to %.200q", location, long)
	}
}

func TestChangedBlocklistIsReadAgain(t *testing.T) {
	t.Parallel()
	blocklist := filepath.Join(t.TempDir(), "hosts")
	writeFile(t, blocklist, "0.0.0.0 bad.example\n")
	s := startSystem(t, "LINKSTREAM_API_BLOCKLIST="+blocklist)
	owner := s.owner()
	owner.Shorten(t, object{"long_url": "https://bad.example/"}).WantError(t, http.StatusUnprocessableEntity)
	writeFile(t, blocklist, "0.0.0.0 later.example\n")
	testkit.Succeeds(t, func() error {
		return owner.Shorten(t, object{"long_url": "https://later.example/"}).IsStatus(http.StatusUnprocessableEntity)
	})
	owner.Link(t, object{"long_url": "https://bad.example/"})
}

func TestLinksOfASuspendedAccountAreGone(t *testing.T) {
	t.Parallel()
	onBothKinds(t, func(t *testing.T, s *system) {
		other, email := s.another(t, "other")
		other.Alias(t, "known", "https://example.com/")
		s.click(t, "known")
		s.admin(t, "account", "suspend", email)
		testkit.Succeeds(t, func() error { return s.visit(t, http.MethodGet, "/known").IsStatus(http.StatusGone) })
		wantPage(t, s.visit(t, http.MethodGet, "/known"), http.StatusGone)
	})
}

// TestRateLimitEnds runs on one kind of system only, because it waits for up to a minute.
func TestRateLimitEnds(t *testing.T) {
	t.Parallel()
	s := startSystem(t)
	limited, _ := s.contract().Exhaust(t, s.email)
	t.Run("rule 2: a client that waits for Retry-After is served again", func(t *testing.T) {
		// The window may have ended by now. Then there is nothing to wait for, and the rest must hold all the same.
		a := limited.Get(t, "/api/v1/links")
		if wait, err := strconv.Atoi(a.Header.Get("Retry-After")); err == nil {
			<-time.After(time.Duration(wait) * time.Second)
			a = limited.Get(t, "/api/v1/links")
		}
		if left, all := resttest.Remaining(t, a.Want(t, http.StatusOK)); left != all-1 {
			t.Errorf("%d requests are left in the new window after one, want %d", left, all-1)
		}
	})
}
