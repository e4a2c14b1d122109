package resttest

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
)

const requestsPerWindow = 2000

func testLimitHeaders(t *testing.T, s System) {
	owner, known := s.account(t), label()
	owner.Alias(t, known, "https://example.com/")
	for _, e := range endpoints(known) {
		t.Run("every answer has them: "+e.String(), func(t *testing.T) {
			before := remaining(t, owner.Get(t, "/api/v1/links"))
			a := owner.Call(t, e.method, e.path, e.body).Want(t, e.status)
			if after := remaining(t, a); after != before-1 && after != requestsPerWindow-1 { // a new window may begin
				t.Errorf("X-RateLimit-Remaining went from %d to %d", before, after)
			}
			if a.Header.Get("Retry-After") != "" {
				t.Errorf("Retry-After is sent with a status other than 429: %v", a.Header)
			}
		})
	}
	t.Run("they count the requests of the token, not of the account", func(t *testing.T) {
		second := s.caller(s.Admin(t, "token", "add", owner.email))
		if got := remaining(t, second.Get(t, "/api/v1/links")); got != requestsPerWindow-1 {
			t.Errorf("%d requests of a new token's window are left after one", got)
		}
	})
}

// remaining requires the headers of section 8 and returns how many requests are left in the window.
func remaining(t *testing.T, a Answer) int {
	t.Helper()
	if got := a.Header.Get("X-RateLimit-Limit"); got != strconv.Itoa(requestsPerWindow) {
		t.Errorf("X-RateLimit-Limit is %q, want %d: %v", got, requestsPerWindow, a)
	}
	n, err := strconv.Atoi(a.Header.Get("X-RateLimit-Remaining"))
	if err != nil || n < 0 || n >= requestsPerWindow {
		t.Errorf("X-RateLimit-Remaining is %q: %v", a.Header.Get("X-RateLimit-Remaining"), a)
	}
	return n
}

// Remaining requires the headers of section 8 and returns how many requests are left of all in the window.
func Remaining(t *testing.T, a Answer) (left, all int) {
	t.Helper()
	return remaining(t, a), requestsPerWindow
}

func testLimit(t *testing.T, s System) {
	owner := s.account(t)
	limited, denied := s.Exhaust(t, owner.email)
	t.Run("rule 1: 429 has a message, X-RateLimit-Remaining 0 and Retry-After in seconds", func(t *testing.T) {
		denied.WantError(t, http.StatusTooManyRequests)
		if got := remaining(t, denied); got != 0 {
			t.Errorf("X-RateLimit-Remaining is %d, want 0", got)
		}
		if wait, err := strconv.Atoi(denied.Header.Get("Retry-After")); err != nil || wait < 1 || wait > 60 {
			t.Errorf("Retry-After is %q, want 1 to 60", denied.Header.Get("Retry-After"))
		}
	})
	t.Run("every request is denied", func(t *testing.T) {
		for _, e := range endpoints("none") {
			a := limited.Call(t, e.method, e.path, e.body)
			if left := remaining(t, a); left > requestsPerWindow/2 {
				t.Log("a new window began")
				return
			}
			a.WantError(t, http.StatusTooManyRequests)
		}
	})
	t.Run("the limit is per token: another token of the account is served", func(t *testing.T) {
		owner.Get(t, "/api/v1/links").Want(t, http.StatusOK)
	})
}

// Exhaust sends concurrent requests with a new token of an account until the limit is reached, and requires that
// exactly as many are served as the limit allows. It returns the caller and an answer with status 429.
func (s System) Exhaust(t *testing.T, email string) (limited Caller, denied Answer) {
	t.Helper()
	// If a window ends before the limit is reached, values of Remaining repeat, and another token is tried.
	for range 3 {
		limited = s.caller(s.Admin(t, "token", "add", email))
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
func (c Caller) exhaust(t *testing.T) (left []int, denied Answer) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				a, err := c.Try(t, http.MethodGet, "/api/v1/stats/unknown", "")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if a.Status == http.StatusTooManyRequests {
					denied = a
				} else {
					left = append(left, remaining(t, a))
				}
				done := a.Status == http.StatusTooManyRequests || len(left) > 3*requestsPerWindow
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
