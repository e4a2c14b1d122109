//go:build engines && nightly

package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

const (
	warmRounds = 50
	warmLinks  = 5 // of each round; the first one changes
)

// TestWarmRestartRounds kills an edge a second after a link of its last dump has changed, and starts it again without
// Postgres and Kafka, in many rounds. TestWarmRestart has a dump of an edge that stops.
func TestWarmRestartRounds(t *testing.T) {
	t.Parallel()
	s := newServices(t, sharedEngines(t), longCaches)
	s.start(t)
	for n := range warmRounds {
		for i := range warmLinks {
			s.owner().Alias(t, warmHash(n, i), warmTarget(n, i))
		}
	}
	s.stop(t) // the outbox is empty: no edge drops a link that it caches from here on because the link is new
	s.start(t)
	var mu sync.Mutex
	var first []time.Duration // until the first redirect, from the start of the process
	t.Run("rounds", func(t *testing.T) {
		for n := range warmRounds {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				edge := s.add(t, "edge", "http://"+testkit.FreeAddress(t))
				t.Parallel()
				took := s.warmRound(t, edge, n)
				mu.Lock()
				defer mu.Unlock()
				first = append(first, took)
			})
		}
	})
	slices.Sort(first)
	if len(first) == warmRounds {
		t.Logf("first redirect after %v to %v, median %v", first[0], first[warmRounds-1], first[warmRounds/2])
	}
}

func warmHash(round, link int) string { return fmt.Sprintf("warm%d-%d", round, link) }

func warmTarget(round, link int) string { return fmt.Sprintf("https://example.com/%d/%d", round, link) }

// warmRound returns the time from the start of the killed edge to its first redirect.
func (s *system) warmRound(t *testing.T, edge *program, round int) time.Duration {
	visit := func(link int) (answer, error) {
		return caller{API: edge.base}.Try(t, http.MethodGet, "/"+warmHash(round, link), "", "Host", address(s.edge))
	}
	redirects := func(link int) error {
		a, err := visit(link)
		if got := a.Header.Get("Location"); err == nil && (a.Status != http.StatusFound || got != warmTarget(round, link)) {
			err = fmt.Errorf("link %d leads to %q: %v", link, got, a)
		}
		return err
	}
	edge.start(t)
	edge.awaitMetric(t, "linkstream_edge_changes_current", func(current float64) bool { return current == 1 })
	for i := range warmLinks {
		testkit.Must(t, redirects(i))
	}
	time.Sleep(time.Minute) // the promise: links that are cached for so long are in a dump

	changed := warmHash(round, 0)
	switch round % 3 {
	case 0:
		s.admin(t, "link", "off", changed)
	case 1:
		s.owner().Call(t, http.MethodDelete, "/api/v1/links/"+changed, "").Want(t, http.StatusOK)
	default:
		s.owner().Call(t, http.MethodPatch, "/api/v1/links/"+changed, `{"long_url":"https://example.com/new"}`).Want(t,
			http.StatusOK)
	}
	time.Sleep(time.Second) // the promise
	edge.kill(t)
	edge.loseEngines(t)
	began := time.Now()
	edge.launch(t)
	var took time.Duration
	testkit.Succeeds(t, func() error {
		if a, err := visit(0); err == nil && a.Status == http.StatusFound {
			t.Fatalf("the link that has changed redirects: %v", a)
		}
		if err := redirects(1); err != nil {
			return err
		}
		took = time.Since(began)
		return nil
	})
	for i := 1; i < warmLinks; i++ {
		testkit.Must(t, redirects(i))
	}
	a, err := visit(0)
	testkit.Must(t, err)
	testkit.Must(t, a.IsStatus(http.StatusServiceUnavailable))
	return took
}
