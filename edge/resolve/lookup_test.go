package resolve_test

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/edge/resolve"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// ended is a resolve.Waiter.
type ended chan struct{}

func (e ended) Done() { close(e) } // panics if it is called twice

// begin begins a look-up, and requires that it is begun.
func (e *env) begin(t testing.TB, client netip.Addr, host, hash string, now time.Time) (resolve.Lookup, ended) {
	t.Helper()
	done := make(ended)
	lookup, ok := e.resolver.Lookups().Begin([]byte(host), []byte(hash), client, now, done)
	if !ok {
		t.Fatalf("look-up of %q on %q does not begin", hash, host)
	}
	return lookup, done
}

// wantResult waits for a look-up, and requires its location or the code of its error.
func (e *env) wantResult(t testing.TB, lookup resolve.Lookup, done ended, now time.Time, location string, code schema.Code) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(testkit.Patience):
		t.Fatal("the look-up does not end")
	}
	target, err := e.resolver.Lookups().Result(lookup, now)
	if string(target.Location) != location || err != nil && schema.ErrorCode(err) != code || (err == nil) != (code == "") {
		t.Errorf("%q, error %v; want %q, code %q", target.Location, err, location, code)
	}
}

func TestLookups(t *testing.T) {
	now, nobody := time.Now(), netip.Addr{}
	t.Run("end with what Resolve returns, which is cached then", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		e.link(t, e.domain(t, "go.example.com", true), "own", "https://own.example/")
		e.want(t, "go.example.com", "none", now, "", schema.CodeNotFound) // the host is in memory
		for _, c := range []struct{ host, hash, location string }{{"sho.rt", "abc", "https://example.com/"},
			{"go.example.com:80", "own", "https://own.example/"}} {
			lookup, done := e.begin(t, nobody, c.host, c.hash, now)
			e.wantResult(t, lookup, done, now, c.location, "")
			target, err := e.resolver.Cached().Resolve([]byte(c.host), []byte(c.hash), now)
			if err != nil || string(target.Location) != c.location {
				t.Errorf("cached: %q, error %v", target.Location, err)
			}
		}
		lookup, done := e.begin(t, nobody, "sho.rt", "none", now)
		e.wantResult(t, lookup, done, now, "", schema.CodeNotFound)
		e.wantLookups(t, 5)
	})
	t.Run("begin only if the host is in memory", func(t *testing.T) {
		e := newEnv(t, nil)
		e.domain(t, "go.example.com", true)
		for _, host := range []string{"go.example.com", "none.example.com", "no host"} {
			done := make(ended)
			if _, ok := e.resolver.Lookups().Begin([]byte(host), []byte("abc"), nobody, now, done); ok {
				t.Errorf("%s: begun", host)
			}
		}
		e.wantLookups(t, 0)
	})
	t.Run("are shared by all who wait, with and without a goroutine", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		fault, release := held()
		e.store.inject(fault)
		first, firstDone := e.begin(t, nobody, "sho.rt", "abc", now)
		var others sync.WaitGroup
		others.Go(func() { e.want(t, "sho.rt", "abc", now, "https://example.com/", "") })
		second, secondDone := e.begin(t, nobody, "sho.rt", "abc", now)
		testkit.Eventually(t, "3 misses", func() bool { return e.metric(t, `linkstream_edge_cache_misses_total{cache="links"}`) == 3 })
		release()
		others.Wait()
		e.wantResult(t, first, firstDone, now, "https://example.com/", "")
		e.wantResult(t, second, secondDone, now, "https://example.com/", "")
		e.wantLookups(t, 1)
	})
	t.Run("count against the client's quota if there is no such link", func(t *testing.T) {
		e := newEnv(t, nil)
		client := netip.MustParseAddr("192.0.2.1")
		for i := range e.cfg.MaxUnknownRate*10 + 1 { // ten seconds of it
			lookup, done := e.begin(t, client, "sho.rt", schema.NewHash(), now)
			e.wantResult(t, lookup, done, now, "", schema.CodeNotFound)
			if wait := e.resolver.Cached().Wait(client, now); (wait > 0) != (i+1 >= e.cfg.MaxUnknownRate*10) {
				t.Fatalf("after %d look-ups: %v to wait", i+1, wait)
			}
		}
	})
	t.Run("fail with the store, each in its own time", func(t *testing.T) {
		e := newEnv(t, func(cfg *resolve.Config) { cfg.LookupTimeout = 100 * time.Millisecond })
		e.store.inject(down)
		lookup, done := e.begin(t, nobody, "sho.rt", "abc", now)
		e.wantResult(t, lookup, done, now, "", schema.CodeUnavailable)
		released := make(chan struct{})
		e.store.inject(func(context.Context) error { <-released; return nil }) // which does not hear that the time is over
		for range 10 {
			lookup, done := e.begin(t, nobody, "sho.rt", schema.NewHash(), now)
			defer e.wantResult(t, lookup, done, now, "", schema.CodeUnavailable)
			time.Sleep(e.cfg.LookupTimeout / 50) // so that some are in queries, and others wait
		}
		testkit.Eventually(t, "all look-ups have failed", func() bool {
			return e.metric(t, "linkstream_edge_lookup_failures_total") == 11
		})
		close(released)
	})
	t.Run("are repeated if the account has changed meanwhile", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		fault, release := held()
		e.store.inject(fault)
		lookup, done := e.begin(t, nobody, "sho.rt", "abc", now)
		testkit.Eventually(t, "the look-up is under way", func() bool { return e.store.running.Load() == 1 })
		e.resolver.Drop(schema.Change{AccountID: e.accountID})
		release()
		<-done
		if _, err := e.resolver.Lookups().Result(lookup, now); err != resolve.ErrOutdated {
			t.Errorf("error %v", err)
		}
	})
	t.Run("end when the resolver is closed", func(t *testing.T) {
		e := newEnv(t, func(cfg *resolve.Config) { cfg.LookupTimeout = time.Minute })
		e.store.inject(hang)
		lookup, done := e.begin(t, nobody, "sho.rt", "abc", now)
		testkit.Eventually(t, "the look-up is under way", func() bool { return e.store.running.Load() == 1 })
		e.resolver.Close()
		e.wantResult(t, lookup, done, now, "", schema.CodeUnavailable)
		lookup, done = e.begin(t, nobody, "sho.rt", "abc", now)
		e.wantResult(t, lookup, done, now, "", schema.CodeUnavailable)
		testkit.Equal(t, "log", e.log.String(), "")
	})
}

// slowLinks is a store that has a link at every hash, and takes 10 ms to find any number of them.
type slowLinks struct {
	endlessLinks
	queries *atomic.Int64
}

func (s slowLinks) Destinations(ctx context.Context, keys []schema.LinkKey) ([]schema.Destination, error) {
	s.queries.Add(1)
	time.Sleep(10 * time.Millisecond)
	return s.endlessLinks.Destinations(ctx, keys)
}

// newSlow returns a resolver of slowLinks.
func newSlow(t testing.TB) (*resolve.Resolver, slowLinks) {
	t.Helper()
	cfg := resolve.DefaultConfig()
	cfg.URL = schema.MustParseBaseURL("https://sho.rt")
	store := slowLinks{queries: new(atomic.Int64)}
	r, err := resolve.New(cfg, store, store, metrics.NewSet(), slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	return r, store
}

// Those that come during a query share the next one, which begins soon.
func TestLookupsGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, store := newSlow(t)
		defer r.Close()
		e := &env{resolver: r}
		var waiting []ended
		begin := func(lookups int, wantQueries int64) {
			t.Helper()
			for range lookups {
				_, done := e.begin(t, netip.Addr{}, "sho.rt", schema.NewHash(), time.Now())
				waiting = append(waiting, done)
				synctest.Wait()
			}
			testkit.Equal(t, "queries", store.queries.Load(), wantQueries)
		}
		begin(1, 1)
		begin(50, 1)
		time.Sleep(time.Millisecond)
		begin(0, 2)
		begin(1, 3) // the last query began long ago
		begin(20, 3)
		time.Sleep(20 * time.Millisecond)
		begin(0, 4)
		begin(1, 5) // none is under way
		for _, done := range waiting {
			<-done
		}
	})
}
