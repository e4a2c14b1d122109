package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"linkstream/schema/testkit"
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
	second := caller{API: s.api, Token: s.admin(t, "token", "add", s.email)}
	targets := make([]target, killLinks)
	for i := range targets {
		targets[i].hash = owner.Link(t, object{"long_url": fmt.Sprintf("https://example.com/%d", i)})["hash"].(string)
	}
	keyed := func() answer {
		return second.Call(t, http.MethodPost, "/api/v1/shorten", `{"long_url":"https://example.com/keyed"}`, "Idempotency-Key", "keyed")
	}
	first := keyed().Want(t, http.StatusCreated)
	load := startLoad([]string{s.edge}, seed, visitPause, targets...)
	author, repeater := startAuthor(t, owner), startRepeater(t, second)
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
	for _, c := range []caller{owner, second} {
		c.Get(t, "/api/v1/links").Want(t, http.StatusOK) // the tokens are still valid
	}
	targets, created := load.stop(t), author.stop()
	calls := repeater.stop(t)
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
	t.Run("calls with an Idempotency-Key that were repeated until they were answered have created their links once", func(t *testing.T) {
		t.Logf("%d calls, %d repetitions, %d of them answered as before", calls, repeater.repeated, repeater.replayed)
		if repeater.repeated == 0 {
			t.Error("no call was repeated")
		}
		if _, meta := second.Page(t, "?tag=once"); number(t, meta, "total") != int64(calls*repeatedLinks) {
			t.Errorf("%v links of %d calls", meta["total"], calls)
		}
	})
	t.Run("a call with an Idempotency-Key that was answered before the kills is answered alike, and has created one link", func(t *testing.T) {
		var again answer
		testkit.Succeeds(t, func() error { // the repeater may have used up the rate limit
			again = keyed()
			return again.IsStatus(http.StatusCreated)
		})
		if again.Raw != first.Raw || again.Header.Get("Idempotency-Replayed") == "" {
			t.Errorf("%v, before the kills %v", again, first)
		}
		if _, meta := second.Page(t, "?q=example.com/keyed"); number(t, meta, "total") != 1 {
			t.Errorf("%v links", meta["total"])
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

// repeatedLinks is the number of links that a call of a repeater creates.
const repeatedLinks = 2

// repeater creates links by calls with an Idempotency-Key, and repeats each call until it is answered.
type repeater struct {
	cancel             context.CancelFunc
	wg                 sync.WaitGroup
	calls              int
	repeated, replayed int // requests that repeat a call; answers that had been given before
	err                error
}

func startRepeater(t *testing.T, c caller) *repeater {
	ctx, cancel := context.WithCancel(t.Context())
	r := &repeater{cancel: cancel}
	r.wg.Go(func() {
		pace := time.NewTicker(40 * time.Millisecond) // stays below the rate limit
		defer pace.Stop()
		var given time.Time
		for answered := true; !answered || ctx.Err() == nil; {
			<-pace.C
			if answered {
				r.calls++
				given = time.Now().Add(2 * testkit.Patience)
			} else {
				r.repeated++
			}
			if answered, r.err = r.call(t, c); r.err != nil || time.Now().After(given) {
				return
			}
		}
	})
	return r
}

// call sends the current call.
func (r *repeater) call(t *testing.T, c caller) (answered bool, err error) {
	const link = `{"long_url":"https://example.com/%d/%d","tags":["once"]}`
	body := fmt.Sprintf(`{"links":[`+link+`,`+link+`]}`, r.calls, 1, r.calls, 2)
	a, err := c.Try(t, http.MethodPost, "/api/v1/links/bulk", body, "Idempotency-Key", fmt.Sprintf("call-%d", r.calls))
	switch {
	case err != nil: // a program was killed
		return false, nil
	case a.Status == http.StatusOK:
		if a.Header.Get("Idempotency-Replayed") != "" {
			r.replayed++
		}
		return true, nil
	case a.Status == http.StatusConflict || a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable:
		return false, nil
	}
	return false, fmt.Errorf("a call with a key: %v", a)
}

// stop waits until the last call is answered and returns the number of calls.
func (r *repeater) stop(t *testing.T) int {
	t.Helper()
	r.cancel()
	if r.wg.Wait(); r.err != nil {
		t.Error(r.err)
	}
	return r.calls
}
