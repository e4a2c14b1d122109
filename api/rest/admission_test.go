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
	"time"

	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// endpoints are requests that need a token, with the status of the answer to a valid token.
var endpoints = []struct {
	method, path, body string
	status             int
}{
	{http.MethodPost, "/api/v1/shorten", `{"long_url":"https://example.com/"}`, http.StatusCreated},
	{http.MethodPost, "/api/v1/shorten", `{`, http.StatusBadRequest},
	{http.MethodPost, "/api/v1/shorten", `{}`, http.StatusUnprocessableEntity},
	{http.MethodPost, "/api/v1/shorten", `{"long_url":"http://bad.example"}`, http.StatusUnprocessableEntity},
	{http.MethodPost, "/api/v1/shorten", strings.Repeat(" ", 64<<10+1), http.StatusRequestEntityTooLarge},
	{http.MethodGet, "/api/v1/stats/known", "", http.StatusOK},
	{http.MethodGet, "/api/v1/stats/none", "", http.StatusNotFound},
	{http.MethodGet, "/api/v1/links", "", http.StatusOK},
	{http.MethodGet, "/api/v1/links?page=0", "", http.StatusUnprocessableEntity},
	{http.MethodPut, "/api/v1/links", "", http.StatusMethodNotAllowed},
	{http.MethodPost, "/api/v1/openapi.json", "", http.StatusMethodNotAllowed},
	{http.MethodGet, "/api/v1/links/", "", http.StatusNotFound},
	{http.MethodGet, "/api/v1/none", "", http.StatusNotFound},
	{http.MethodGet, "/api/v1/", "", http.StatusNotFound},
	{http.MethodGet, "/api/v1", "", http.StatusNotFound},
}

func TestAuthentication(t *testing.T) {
	s := start(t)
	owner := s.caller(t, "a@example.org")
	owner.link(t, map[string]any{"long_url": "https://example.com/", "custom_alias": "known"})

	for _, e := range endpoints {
		t.Run("5 rule 4, 7: a missing or invalid token gives 401 with message only: "+e.method+" "+e.path, func(t *testing.T) {
			for _, authorization := range []string{"", "Bearer", "Bearer ls_" + strings.Repeat("x", 43), owner.token,
				"Basic " + owner.token, "Bearer " + owner.token + "x"} {
				a := caller{testService: s}.request(t, e.method, e.path, e.body, "Authorization", authorization)
				a.wantKeys(t, http.StatusUnauthorized, "message")
				if got := a.header.Get("WWW-Authenticate"); got != "Bearer" || a.header.Get("X-RateLimit-Limit") != "" {
					t.Errorf("%q: header %v", authorization, a.header)
				}
			}
		})
		t.Run("5 rule 1: a valid token is admitted: "+e.method+" "+e.path, func(t *testing.T) {
			owner.request(t, e.method, e.path, e.body).want(t, e.status)
		})
	}
	t.Run("5 rule 4: a revoked token gives 401", func(t *testing.T) {
		revoked := owner
		id := revoked.addToken(t)
		testkit.Must(t, s.links.RevokeToken(t.Context(), id, time.Now()))
		revoked.get(t, "/api/v1/links").wantKeys(t, http.StatusUnauthorized, "message")
	})
	t.Run("7: a suspended account gives 403 with the rate limit headers", func(t *testing.T) {
		other := s.caller(t, "b@example.org")
		testkit.Must(t, s.links.SetSuspended(t.Context(), other.account.ID, true))
		for _, e := range endpoints {
			a := other.request(t, e.method, e.path, e.body)
			a.wantKeys(t, http.StatusForbidden, "error", "message")
			if a.body["error"] != "forbidden" {
				t.Error(a.raw)
			}
			remaining(t, a)
		}
	})
}

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

func TestRateLimit(t *testing.T) {
	s := start(t)
	owner := s.caller(t, "a@example.org")
	owner.link(t, map[string]any{"long_url": "https://example.com/", "custom_alias": "known"})

	for _, e := range endpoints {
		t.Run("8: every answer has the rate limit headers: "+e.method+" "+e.path, func(t *testing.T) {
			before := remaining(t, owner.get(t, "/api/v1/links"))
			a := owner.request(t, e.method, e.path, e.body)
			a.want(t, e.status)
			// 1999: a new window has begun.
			if left := remaining(t, a); left != before-1 && left != 1999 || a.header.Get("Retry-After") != "" {
				t.Errorf("after %d: %v", before, a.header)
			}
		})
	}
	t.Run("8 rule 1: over 2000 requests per window give 429 with message only, 0 remaining and Retry-After", func(t *testing.T) {
		left := remaining(t, owner.get(t, "/api/v1/none"))
		a := owner.get(t, "/api/v1/none")
		for requests := 0; a.status != http.StatusTooManyRequests; requests++ {
			now := remaining(t, a)
			if now != left-1 && now != 1999 || requests > 4000 { // one new window may begin
				t.Fatalf("request %d: %d remaining after %d", requests, now, left)
			}
			left = now
			a = owner.get(t, "/api/v1/none")
		}
		if left != 0 {
			t.Errorf("429 with %d remaining", left)
		}
		for _, e := range endpoints {
			if left == 0 && a.status == http.StatusTooManyRequests {
				a.wantKeys(t, http.StatusTooManyRequests, "message")
				wait, err := strconv.Atoi(a.header.Get("Retry-After"))
				if err != nil || wait < 1 || wait > 60 || remaining(t, a) != 0 {
					t.Errorf("header %v", a.header)
				}
			}
			a = owner.request(t, e.method, e.path, e.body)
		}
	})
	t.Run("5 rule 5: the limit is per token", func(t *testing.T) {
		second := owner
		second.addToken(t)
		if left := remaining(t, second.get(t, "/api/v1/links")); left != 1999 {
			t.Errorf("%d remaining", left)
		}
	})
}

func TestRateLimitWithoutStore(t *testing.T) {
	s := startFaulty(t, storetest.FaultOf(func(context.Context) error { return errors.New("secret cause") }, "LeaseRequests"))
	owner := s.caller(t, "a@example.org")
	for _, e := range endpoints {
		t.Run("a store that fails gives 503 with the rate limit headers: "+e.method+" "+e.path, func(t *testing.T) {
			a := owner.request(t, e.method, e.path, e.body)
			a.wantKeys(t, http.StatusServiceUnavailable, "message")
			if left := remaining(t, a); left != 0 || a.header.Get("Retry-After") != "5" || strings.Contains(a.raw, "secret") {
				t.Errorf("%v %s", a.header, a.raw)
			}
		})
	}
}

// While the store takes its time to say whether new tokens are valid, it is asked about a few at a time, and the others wait without
// taking the place of anyone who needs no answer of the store.
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
