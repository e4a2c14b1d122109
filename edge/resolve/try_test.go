package resolve_test

import (
	"context"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/edge/resolve"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// doneChan is a resolve.Waiter that is closed at the end.
type doneChan chan struct{}

func (c doneChan) Done() { close(c) } // panics if it is called twice

// tried is a request by TryResolve.
type tried struct {
	env        *env
	client     netip.Addr
	host, hash string
	now        time.Time
	lookup     *resolve.Lookup // nil: the request is answered
	done       doneChan        // of lookup
	target     resolve.Target
	err        error
}

func (e *env) try(client netip.Addr, host, hash string, now time.Time) *tried {
	r := &tried{env: e, client: client, host: host, hash: hash, now: now}
	r.goOn()
	return r
}

func (r *tried) goOn() {
	r.done = make(doneChan)
	r.target, r.lookup, r.err = r.env.resolver.TryResolve(
		[]byte(r.host), []byte(r.hash), r.client, r.now, r.lookup, r.done)
}

// wait waits until the request is answered.
func (r *tried) wait(t testing.TB) {
	t.Helper()
	for r.lookup != nil {
		select {
		case <-r.done:
			r.goOn()
		case <-time.After(testkit.Patience):
			t.Fatal("the look-up does not end")
		}
	}
}

// want waits for the answer, and requires its location or the code of its error.
func (r *tried) want(t testing.TB, location string, code schema.Code) {
	t.Helper()
	r.wait(t)
	if string(r.target.Location) != location || r.err != nil && schema.ErrorCode(r.err) != code ||
		(r.err == nil) != (code == "") {
		t.Errorf("%q on %q: %q, error %v; want %q, code %q", r.hash, r.host, r.target.Location, r.err, location, code)
	}
}

// begin is try for a link on the default domain that has to be looked up.
func (e *env) begin(t testing.TB, client netip.Addr, hash string, now time.Time) *tried {
	t.Helper()
	r := e.try(client, "sho.rt", hash, now)
	if r.lookup == nil {
		t.Fatalf("%q is not looked up: %+v, error %v", hash, r.target, r.err)
	}
	return r
}

// wantCached requires an answer from memory.
func (e *env) wantCached(t testing.TB, host, hash string, now time.Time, location string, code schema.Code) {
	t.Helper()
	r := e.try(netip.Addr{}, host, hash, now)
	if r.lookup != nil {
		t.Errorf("%q on %q is looked up", hash, host)
	}
	r.want(t, location, code)
}

func TestTryResolve(t *testing.T) {
	now, nobody := time.Now(), netip.Addr{}
	const there, own = "https://example.com/", "https://own.example/"
	newEnv := func(t *testing.T, change func(*resolve.Config)) *env {
		e := newEnv(t, change)
		e.link(t, 0, "abc", there)
		e.link(t, e.domain(t, "go.example.com", true), "own", own)
		return e
	}
	t.Run("looks up a host and a link once, and answers from memory then", func(t *testing.T) {
		e := newEnv(t, nil)
		for _, c := range []struct {
			host, hash, location string
			code                 schema.Code
		}{{"sho.rt", "abc", there, ""}, {"go.example.com:80", "own", own, ""}, {"sho.rt", "none", "", schema.CodeNotFound},
			{"none.example.com", "abc", "", schema.CodeNotFound}} {
			r := e.try(netip.Addr{}, c.host, c.hash, now)
			testkit.Equal(t, "waits", r.lookup != nil, true)
			r.want(t, c.location, c.code)
			e.wantCached(t, c.host, c.hash, now, c.location, c.code)
		}
		e.wantLookups(t, 5)
		e.wantCached(t, "sho.rt", "no hash", now, "", schema.CodeNotFound)
		e.wantCached(t, "no host", "abc", now, "", schema.CodeNotFound)
		e.wantLookups(t, 5)
	})
	t.Run("fails with the store, each look-up in its own time", func(t *testing.T) {
		e := newEnv(t, func(cfg *resolve.Config) { cfg.LookupTimeout = 100 * time.Millisecond })
		e.store.inject(down)
		e.begin(t, nobody, "abc", now).want(t, "", schema.CodeUnavailable)
		released := make(chan struct{})
		e.store.inject(func(context.Context) error { <-released; return nil }) // ignores the end of its context
		for range 10 {
			r := e.begin(t, nobody, schema.NewHash(), now)
			defer r.want(t, "", schema.CodeUnavailable)
			time.Sleep(e.cfg.LookupTimeout / 50) // so that some are in queries, and others wait
		}
		testkit.Eventually(t, "all look-ups have failed", func() bool {
			return e.metric(t, "linkstream_edge_lookup_failures_total") == 11
		})
		close(released)
	})
	t.Run("counts each answer once", func(t *testing.T) {
		e := newEnv(t, nil)
		for range 3 {
			e.try(nobody, "go.example.com", "own", now).want(t, own, "")
		}
		for _, cache := range []string{"hosts", "links"} {
			testkit.Equal(t, "hits of "+cache, e.metric(t, `linkstream_edge_cache_hits_total{cache="`+cache+`"}`), 2)
			testkit.Equal(t, "misses of "+cache, e.metric(t, `linkstream_edge_cache_misses_total{cache="`+cache+`"}`), 1)
		}
		e.begin(t, nobody, "unknown", now).want(t, "", schema.CodeNotFound)
		e.wantCached(t, "sho.rt", "unknown", now, "", schema.CodeNotFound)
		e.wantCached(t, "go.example.com", "own", now.Add(e.cfg.CacheTTL), own, "") // expired
		testkit.Equal(t, "hits", e.metric(t, `linkstream_edge_cache_hits_total{cache="links"}`), 4)
		testkit.Equal(t, "misses", e.metric(t, `linkstream_edge_cache_misses_total{cache="links"}`), 2)
	})
}

// slowLinks is a store that has a link at every hash, and takes 10 ms to find any number of them.
type slowLinks struct {
	schema.LinkStore
	schema.DomainStore
	queries *atomic.Int64
}

func (s slowLinks) EdgeLinks(_ context.Context, keys []schema.LinkKey) ([]schema.EdgeLink, error) {
	s.queries.Add(1)
	time.Sleep(10 * time.Millisecond)
	found := make([]schema.EdgeLink, len(keys))
	for i := range found {
		found[i] = schema.EdgeLink{LinkID: 1, AccountID: 2, URL: endlessURL, Active: true}
	}
	return found, nil
}

// newResolver returns a resolver of slowLinks.
func newResolver(t *testing.T, store slowLinks) *resolve.Resolver {
	t.Helper()
	cfg := resolve.DefaultConfig()
	cfg.URL = schema.MustParseBaseURL("http://sho.rt")
	r, err := resolve.New(cfg, store, store, metrics.NewSet(), slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	t.Cleanup(r.Close)
	return r
}

// Look-ups that begin during a query share the next one, which begins soon.
func TestLookupsGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := slowLinks{queries: new(atomic.Int64)}
		e := &env{resolver: newResolver(t, store)}
		var waiting []*tried
		begin := func(lookups int, wantQueries int64) {
			t.Helper()
			for range lookups {
				waiting = append(waiting, e.begin(t, netip.Addr{}, schema.NewHash(), time.Now()))
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
		for _, r := range waiting {
			<-r.done
		}
	})
}

// A hash whose letter case does not matter stands for an alias, in every way that a request can take.
func TestCapitalsOfAliases(t *testing.T) {
	now := time.Now()
	e := newEnv(t, nil)
	own := e.domain(t, "go.example.com", true)
	e.link(t, 0, "sale", "https://sale.example/")
	e.link(t, 0, "Both", "https://capitals.example/")
	e.link(t, 0, "both", "https://lower.example/")
	e.link(t, 0, "abcdefg", "https://automatic.example/")
	e.link(t, own, "own-sale", "https://own.example/")
	for round := range 2 { // from the store, then from memory
		for _, c := range []struct{ host, hash, location string }{
			{"sho.rt", "SALE", "https://sale.example/"}, {"sho.rt", "Sale", "https://sale.example/"},
			{"sho.rt", "Both", "https://capitals.example/"}, {"sho.rt", "BOTH", "https://lower.example/"},
			{"sho.rt", "ABCDEFG", ""}, {"sho.rt", "OWN-SALE", ""}, {"sho.rt", "None", ""},
			{"go.example.com", "Own-Sale", "https://own.example/"}, {"go.example.com", "Sale", ""},
		} {
			r := e.try(netip.Addr{}, c.host, c.hash, now)
			if round == 1 && r.lookup != nil {
				t.Errorf("%s on %s is looked up again", c.hash, c.host)
			}
			r.wait(t)
			testkit.Equal(t, c.hash, string(r.target.Location), c.location)
			testkit.Equal(t, c.hash+" is not found", r.err != nil, c.location == "")
			code := schema.Code("")
			if c.location == "" {
				code = schema.CodeNotFound
			}
			e.want(t, c.host, c.hash, now, c.location, code)
		}
	}
	lookups := e.store.lookups.Load()
	e.link(t, 0, "none", "https://new.example/")
	e.resolver.Drop(schema.Change{Hash: "none"})
	e.want(t, "sho.rt", "None", now, "https://new.example/", "")
	e.wantLookups(t, lookups+2) // a change of none may also change what None stands for
	testkit.Must(t, e.store.SetTakenDown(t.Context(), 0, "sale", true))
	e.resolver.Drop(schema.Change{Hash: "sale"})
	e.wantActive(t, "SALE", now, false)
}
