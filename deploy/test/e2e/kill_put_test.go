package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"linkstream/api/rest/resttest"
	"linkstream/schema/testkit"
)

// TestOneLinkSurvivesKills kills the API while 64 clients make one link by PUT and another by reuse, each of which
// repeats its request until it is answered.
func TestOneLinkSurvivesKills(t *testing.T) {
	t.Parallel()
	s := startSystem(t)
	owner := s.owner()
	const rounds, clients = 4, 64
	for round := range rounds {
		hashes := make([]any, clients)
		var calls sync.WaitGroup
		for i := range clients {
			calls.Go(func() { hashes[i] = makeOnce(t, owner, round, i%2 == 0) })
		}
		for range 2 {
			time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond) // at any moment of the calls
			s.programs[0].kill(t)
			s.programs[0].start(t)
		}
		calls.Wait()
		for i, hash := range hashes {
			testkit.Equal(t, fmt.Sprintf("hash of client %d in round %d", i, round), hash, hashes[i%2])
		}
	}
	_, meta := owner.Page(t, "?q=killed-")
	testkit.Equal(t, "links", resttest.Number(t, meta, "total"), int64(2*rounds))
}

// makeOnce makes a link and returns its hash.
func makeOnce(t *testing.T, owner resttest.Caller, round int, put bool) (hash any) {
	method, path := http.MethodPost, "/api/v1/shorten"
	body := fmt.Sprintf(`{"long_url":"https://example.com/killed-%v-%d","reuse":true}`, put, round)
	if put {
		method, path = http.MethodPut, fmt.Sprintf("/api/v1/links/ext:killed%%2F%d", round)
	}
	for deadline := time.Now().Add(testkit.Patience); ; time.Sleep(20 * time.Millisecond) { // as clients wait
		a, err := owner.Try(t, method, path, body)
		switch {
		case err == nil && put && a.Status/100 == 2:
			return a.Body["link"].(resttest.Object)["hash"]
		case err == nil && a.Status/100 == 2:
			return a.Body["hash"]
		case err == nil && a.Status < http.StatusInternalServerError, time.Now().After(deadline):
			t.Errorf("%s %s: %v, %v", method, path, a, err)
			return nil
		}
	}
}
