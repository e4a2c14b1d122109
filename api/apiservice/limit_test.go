package apiservice_test

import (
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/api/apiservice"
	"linkstream/api/auth"
	"linkstream/schema"
	"linkstream/schema/postgres"
	"linkstream/schema/sqlite"
)

// database is what a process opens.
type database interface {
	schema.Database
	io.Closer
}

func TestNodesShareTheRateLimit(t *testing.T) {
	t.Run("on SQLite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "links.db")
		sharesRateLimit(t, func() (database, error) { return sqlite.Open(t.Context(), path) })
	})
	t.Run("on Postgres", func(t *testing.T) {
		dsn := engines.Postgres(t)
		sharesRateLimit(t, func() (database, error) { return postgres.Open(t.Context(), dsn) })
	})
}

// sharesRateLimit runs three nodes, each on the database as it opens it, and sends them 3000 requests with one token.
func sharesRateLimit(t *testing.T, open func() (database, error)) {
	clicks, err := sqlite.OpenClicks(t.Context(), filepath.Join(t.TempDir(), "clicks.db"))
	must(t, err)
	t.Cleanup(func() { must(t, clicks.Close()) })
	var links database
	var bases []string
	for range 3 {
		db, err := open()
		must(t, err)
		t.Cleanup(func() { must(t, db.Close()) })
		n, err := apiservice.New(config(), db, clicks, nil, discard)
		must(t, err)
		stop := run(t, n)
		t.Cleanup(func() { must(t, stop()) })
		links, bases = db, append(bases, "http://"+n.Addr())
	}
	account := schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
	must(t, links.CreateAccount(t.Context(), &account))

	want := map[int]int{http.StatusOK: 2000, http.StatusTooManyRequests: 1000}
	for range 2 { // a minute that turns under way spoils the count; it cannot do so twice within a minute
		secret, token := auth.NewToken(account.ID, "test")
		must(t, links.CreateToken(t.Context(), &token))
		window := time.Now().Truncate(time.Minute)
		got := statuses(t, bases, secret, 3000)
		if !time.Now().Truncate(time.Minute).Equal(window) {
			continue
		}
		if !maps.Equal(got, want) {
			t.Errorf("answers by status: %v, want %v", got, want)
		}
		return
	}
	t.Error("the minute turned twice: 3000 requests take too long")
}

// statuses sends requests to the nodes in turn, as a load balancer does, several at a time, and returns how many answers
// there were of each status.
func statuses(t *testing.T, bases []string, token string, requests int64) map[int]int {
	t.Helper()
	var sent atomic.Int64
	var mu sync.Mutex
	answers := map[int]int{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := sent.Add(1); n <= requests; n = sent.Add(1) {
				status, _, err := tryGet(t.Context(), bases[n%int64(len(bases))]+"/api/v1/links", token)
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
