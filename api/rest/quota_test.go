package rest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// remaining returns X-RateLimit-Remaining and checks X-RateLimit-Limit.
func remaining(t *testing.T, a answer) int {
	t.Helper()
	if got := a.header.Get("X-RateLimit-Limit"); got != "2000" {
		t.Errorf("X-RateLimit-Limit: %q", got)
	}
	left, err := strconv.Atoi(a.header.Get("X-RateLimit-Remaining"))
	if err != nil || left < 0 || left > 1999 {
		t.Errorf("X-RateLimit-Remaining: %v", a.header)
	}
	return left
}

func TestRateLimitWithoutStore(t *testing.T) {
	s := startFaulty(t, storetest.FaultOf(func(context.Context) error { return errors.New("secret cause") },
		"LeaseRequests"))
	owner := s.caller(t, "a@example.org")
	for _, path := range []string{"/api/v1/links", "/api/v1/stats/none", "/api/v1/none"} {
		t.Run("a store that fails gives 503 with the rate limit headers: "+path, func(t *testing.T) {
			a := owner.get(t, path)
			a.wantKeys(t, http.StatusServiceUnavailable, "message")
			if left := remaining(t, a); left != 0 || a.header.Get("Retry-After") != "5" || strings.Contains(a.raw, "secret") {
				t.Errorf("%v %s", a.header, a.raw)
			}
		})
	}
}

// While the store takes its time with new tokens, it looks up a few at a time. The others wait, and do not take the
// place of requests that need no answer of the store.
func TestNewTokensWaitForASlowStore(t *testing.T) {
	const tokens = 20
	var asks atomic.Int64
	answers := make(chan struct{})
	s := startFaulty(t, storetest.FaultOf(func(ctx context.Context) error {
		asks.Add(1)
		select {
		case <-answers:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}, "TokenByDigest"))
	var all sync.WaitGroup
	for i := range tokens {
		c := s.caller(t, fmt.Sprintf("%d@example.org", i))
		all.Go(func() {
			a, err := c.try(t.Context(), http.MethodGet, "/api/v1/links", "")
			if err != nil || a.status != http.StatusOK {
				t.Errorf("token %d: %v, error %v", i, a, err)
			}
		})
	}
	testkit.Eventually(t, "the store is asked about two", func() bool { return asks.Load() >= 2 })
	caller{testService: s}.get(t, "/api/v1/links").want(t, http.StatusUnauthorized)
	close(answers)
	all.Wait()
	testkit.Equal(t, "questions", asks.Load(), tokens)
}
