package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"
)

const (
	kills     = 6
	killLinks = 5
)

// TestKill kills one program after the other, several times, under load. In the end each link has as many clicks as
// redirects were answered. Visits that a kill interrupted may be counted, too, because the service may have answered.
func TestKill(t *testing.T) {
	t.Parallel()
	s := startSystem(t)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed) // shown when the test fails
	owner := s.owner()
	targets := make([]target, killLinks)
	for i := range targets {
		targets[i].hash = owner.Link(t, object{"long_url": fmt.Sprintf("https://example.com/%d", i)})["hash"].(string)
	}
	load, author := startLoad([]string{s.edge}, seed, visitPause, targets...), startAuthor(t, owner)
	for i := range kills {
		victim := s.programs[i%len(s.programs)]
		victim.awaitReady(t)
		<-time.After(time.Duration(100+random.IntN(400)) * time.Millisecond)
		victim.kill(t)
		for random.IntN(2) == 0 { // also kill it before it is ready
			victim.launch(t)
			<-time.After(time.Duration(random.IntN(200)) * time.Millisecond)
			victim.kill(t)
		}
		victim.launch(t)
	}
	s.awaitReady(t)
	targets, created := load.stop(t), author.stop()
	for _, link := range targets {
		if link.refused > 0 {
			t.Errorf("%d visits of %q were answered with 503 although the store was up", link.refused, link.hash)
		}
	}

	checkTotals(t, owner, targets)
	s.wantVerified(t)
	t.Run("links whose creation was answered exist", func(t *testing.T) {
		t.Logf("%d links were created under load", len(created))
		if len(created) == 0 {
			t.Error("no link was created")
		}
		for _, hash := range created {
			owner.Get(t, "/api/v1/stats/"+hash).Want(t, http.StatusOK)
			s.click(t, hash)
		}
	})
	t.Run("a clean restart does not change the totals", func(t *testing.T) {
		s.stop(t)
		s.start(t)
		checkTotals(t, owner, targets)
	})
}

// author creates links and records those whose creation was answered.
type author struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
	hashes []string
}

func startAuthor(t *testing.T, c caller) *author {
	ctx, cancel := context.WithCancel(t.Context())
	a := &author{cancel: cancel}
	a.wg.Go(func() {
		pace := time.NewTicker(200 * time.Millisecond) // stays below the rate limit
		defer pace.Stop()
		for ctx.Err() == nil {
			<-pace.C
			made, err := c.Try(t, http.MethodPost, "/api/v1/shorten", `{"long_url":"https://example.com/"}`)
			if err == nil && made.Status == http.StatusCreated {
				a.hashes = append(a.hashes, made.Body["hash"].(string))
			}
		}
	})
	return a
}

// stop returns the hashes of the links.
func (a *author) stop() []string {
	a.cancel()
	a.wg.Wait()
	return a.hashes
}
