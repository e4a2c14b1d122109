package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

const requestsPerWindow = 2000

func TestSection8RateLimitHeaders(t *testing.T) {
	t.Parallel()
	onBothKinds(t, testSection8RateLimitHeaders)
}

func testSection8RateLimitHeaders(t *testing.T, s *system) {
	owner := s.owner()
	owner.alias(t, "known", "https://example.com/")
	other, email := s.another(t, "other")

	for _, c := range []struct {
		status             int
		method, path, body string
	}{
		{201, "POST", "/api/v1/shorten", `{"long_url":"https://example.com/"}`},
		{200, "GET", "/api/v1/stats/known", ""},
		{200, "GET", "/api/v1/links", ""},
		{404, "GET", "/api/v1/stats/unknown", ""},
		{422, "POST", "/api/v1/shorten", `{}`},
		{422, "GET", "/api/v1/links?page=0", ""},
	} {
		t.Run(fmt.Sprintf("are sent with a %d of %s %s", c.status, c.method, c.path), func(t *testing.T) {
			before := remaining(t, owner.call(t, c.method, c.path, c.body).want(t, c.status))
			a := owner.call(t, c.method, c.path, c.body)
			if after := remaining(t, a); after == requestsPerWindow-1 && before != requestsPerWindow {
				t.Log("a new window began")
			} else if after != before-1 {
				t.Errorf("X-RateLimit-Remaining went from %d to %d", before, after)
			}
			if a.header.Get("Retry-After") != "" {
				t.Errorf("Retry-After is sent with a status other than 429: %v", a.header)
			}
		})
	}
	t.Run("count the requests of the token, not of the account", func(t *testing.T) {
		second := caller{s.api, s.admin(t, "token", "add", email)}
		other.page(t, "")
		if got := remaining(t, second.get(t, "/api/v1/links")); got != requestsPerWindow-1 {
			t.Errorf("%d requests of a new token's window are left after one", got)
		}
	})
}

// remaining requires the headers of section 8 and returns how many requests are left in the window.
func remaining(t *testing.T, a answer) int {
	t.Helper()
	if got := a.header.Get("X-RateLimit-Limit"); got != strconv.Itoa(requestsPerWindow) {
		t.Errorf("X-RateLimit-Limit is %q, want %d: %v", got, requestsPerWindow, a)
	}
	n, err := strconv.Atoi(a.header.Get("X-RateLimit-Remaining"))
	if err != nil || n < 0 || n >= requestsPerWindow {
		t.Errorf("X-RateLimit-Remaining is %q: %v", a.header.Get("X-RateLimit-Remaining"), a)
	}
	return n
}

func TestSection8RateLimit(t *testing.T) { t.Parallel(); onBothKinds(t, testSection8RateLimit) }

func testSection8RateLimit(t *testing.T, s *system) {
	_, denied := s.exhaust(t)
	t.Run("rule 1: 429 has a message, X-RateLimit-Remaining 0 and Retry-After in seconds", func(t *testing.T) {
		denied.wantError(t, http.StatusTooManyRequests)
		if got := remaining(t, denied); got != 0 {
			t.Errorf("X-RateLimit-Remaining is %d, want 0", got)
		}
		if wait, err := strconv.Atoi(denied.header.Get("Retry-After")); err != nil || wait < 1 || wait > 60 {
			t.Errorf("Retry-After is %q, want 1 to 60", denied.header.Get("Retry-After"))
		}
	})
	t.Run("the limit is per token: another token of the account is served", func(t *testing.T) {
		s.owner().get(t, "/api/v1/links").want(t, http.StatusOK)
	})
}

// TestSection8RateLimitEnds runs on one kind of system only, because it waits for up to a minute.
func TestSection8RateLimitEnds(t *testing.T) {
	t.Parallel()
	s := startSystem(t)
	limited, _ := s.exhaust(t)
	t.Run("rule 2: a client that waits for Retry-After is served again", func(t *testing.T) {
		// The window may have ended by now. Then there is nothing to wait for, and the rest must hold all the same.
		a := limited.get(t, "/api/v1/links")
		if wait, err := strconv.Atoi(a.header.Get("Retry-After")); err == nil {
			<-time.After(time.Duration(wait) * time.Second)
			a = limited.get(t, "/api/v1/links")
		}
		if left := remaining(t, a.want(t, http.StatusOK)); left != requestsPerWindow-1 {
			t.Errorf("%d requests are left in the new window after one, want %d", left, requestsPerWindow-1)
		}
	})
}

// exhaust sends concurrent requests with a new token of the first account until the limit is reached, and requires that
// exactly as many are served as the limit allows. It returns the caller and an answer with status 429.
func (s *system) exhaust(t *testing.T) (limited caller, denied answer) {
	t.Helper()
	// If a window ends before the limit is reached, values of Remaining repeat, and another token is tried.
	for range 3 {
		limited = caller{s.api, s.admin(t, "token", "add", s.email)}
		var left []int
		left, denied = limited.exhaust(t)
		if slices.Sort(left); len(slices.Compact(slices.Clone(left))) < len(left) {
			t.Logf("a new window began: %d requests were served in both", len(left))
			continue
		}
		if len(left) != requestsPerWindow {
			t.Fatalf("%d requests were served in a window, want %d", len(left), requestsPerWindow)
		}
		return limited, denied
	}
	t.Fatal("three windows in a row ended before the limit was reached")
	return limited, denied
}

// exhaust sends concurrent requests until one is denied. It returns the values of Remaining of the others.
func (c caller) exhaust(t *testing.T) (left []int, denied answer) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				a, err := c.try(t, http.MethodGet, "/api/v1/stats/unknown", "")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if a.status == http.StatusTooManyRequests {
					denied = a
				} else {
					left = append(left, remaining(t, a))
				}
				done := a.status == http.StatusTooManyRequests || len(left) > 3*requestsPerWindow
				mu.Unlock()
				if done {
					return
				}
			}
		})
	}
	wg.Wait()
	return left, denied
}
