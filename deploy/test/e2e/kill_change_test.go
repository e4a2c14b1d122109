package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// killedChanges is how many changes a test makes, each followed by a kill. All caches keep links for a day, so that a
// change that is lost is seen in any case.
const killedChanges = 9

// TestChangesSurviveKills kills the program that has made a change as soon as it has answered.
func TestChangesSurviveKills(t *testing.T) {
	t.Parallel()
	s := startSystem(t, longCaches)
	var slowest time.Duration
	for n := range killedChanges {
		change := s.cached(t, n)
		s.change(t, n)
		victims := slices.Clone(s.programs[:1]) // standalone or api
		if n%3 == 2 && s.program("edge") != nil {
			victims = append(victims, s.program("edge")) // its snapshot has the link as it was
		}
		for _, victim := range victims {
			victim.kill(t)
		}
		for _, victim := range victims {
			victim.start(t)
		}
		ready := time.Now()
		change.awaitSeen(t, s)
		slowest = max(slowest, time.Since(ready))
	}
	t.Logf("%d changes were seen after at most %v", killedChanges, slowest.Round(time.Millisecond))
}

// linkChange is a change of a cached link.
type linkChange struct {
	hash, old string // where the link leads before
}

// cached creates a link that the edge then has in memory.
func (s *system) cached(t *testing.T, n int) linkChange {
	t.Helper()
	c := linkChange{hash: fmt.Sprint("kill", n), old: fmt.Sprint("https://example.com/old/", n)}
	s.owner().Alias(t, c.hash, c.old)
	s.redirects(t, "/"+c.hash, c.old)
	return c
}

// change changes or deletes the link.
func (s *system) change(t *testing.T, n int) {
	t.Helper()
	path := fmt.Sprint("/api/v1/links/kill", n)
	if n%2 == 0 {
		s.owner().Call(t, http.MethodPatch, path, `{"long_url":"https://example.com/new"}`).Want(t, http.StatusOK)
	} else {
		s.owner().Call(t, http.MethodDelete, path, "").Want(t, http.StatusOK)
	}
}

// awaitSeen waits until a visitor gets what the change says. Standalone reads all changes before it is ready.
func (c linkChange) awaitSeen(t *testing.T, s *system) {
	t.Helper()
	seen := func() error {
		a := s.visit(t, http.MethodGet, "/"+c.hash)
		if a.Status == http.StatusServiceUnavailable || a.Header.Get("Location") == c.old {
			return fmt.Errorf("the change is not seen: %v", a)
		}
		return nil
	}
	if s.program("standalone") != nil {
		testkit.Must(t, seen())
		return
	}
	testkit.Succeeds(t, seen)
}
