package apiservice_test

import (
	"maps"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/api/apiservice"
	"linkstream/api/auth"
	"linkstream/api/ratelimit"
	"linkstream/schema"
	"linkstream/schema/linkstore"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/testkit"
)

// TestProcessesShareTheRateLimit runs three services, each on its own opened database, and sends them more requests
// with one token than the limit leaves. Another process has taken most of it, so that they fit into a minute on a busy
// machine.
func TestProcessesShareTheRateLimit(t *testing.T) {
	path, clicks := filepath.Join(t.TempDir(), "links.db"), sqlitetest.NewClickStore(t)
	var links *linkstore.Store
	var bases []string
	for range 3 {
		db, err := sqlitetest.Open(t.Context(), path)
		testkit.Must(t, err)
		t.Cleanup(func() { testkit.Must(t, db.Close()) })
		s, err := apiservice.New(config(), db, clicks, nil, discard)
		testkit.Must(t, err)
		stop := run(s)
		t.Cleanup(func() { testkit.Must(t, stop()) })
		links, bases = db, append(bases, "http://"+s.Addr())
	}
	account := schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
	testkit.Must(t, links.CreateAccount(t.Context(), &account))

	const refused = 400
	for range 2 { // a new window spoils the count; a second one cannot begin within a minute
		secret, token := auth.NewToken(account.ID, "test")
		testkit.Must(t, links.CreateToken(t.Context(), &token))
		window := time.Now().Truncate(time.Minute)
		left := ratelimit.RequestLimit
		for left > 600 {
			var err error
			_, left, err = links.LeaseRequests(t.Context(), token.ID, window, ratelimit.RequestLimit)
			testkit.Must(t, err)
		}
		want := map[int]int{http.StatusNotFound: left, http.StatusTooManyRequests: refused}
		got := statuses(t, bases, secret, int64(left+refused))
		if !time.Now().Truncate(time.Minute).Equal(window) {
			continue
		}
		if !maps.Equal(got, want) {
			t.Errorf("answers by status %v, want %v", got, want)
		}
		return
	}
	t.Error("two windows began: the requests take too long")
}

// statuses sends concurrent requests to the services in turn, as a load balancer does, and counts the answers by
// status.
func statuses(t *testing.T, bases []string, token string, requests int64) map[int]int {
	t.Helper()
	var sent atomic.Int64
	var mu sync.Mutex
	answers := map[int]int{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := sent.Add(1); n <= requests; n = sent.Add(1) {
				status, _, err := tryGet(t.Context(), bases[n%int64(len(bases))]+"/api/v1/none", token)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				answers[status]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return answers
}
