package resolve_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"linkstream/edge/resolve"
	"linkstream/schema"
	"linkstream/schema/storetest"
)

// wantCached requires what memory alone says: a location, a code, or nothing, if notCached is true.
func (e *env) wantCached(t testing.TB, host, hash string, now time.Time, location string, code schema.Code, notCached bool) {
	t.Helper()
	target, err := e.resolver.Cached().Resolve([]byte(host), []byte(hash), now)
	if isNot := errors.Is(err, resolve.ErrNotCached) || errors.Is(err, resolve.ErrOutdated); isNot || notCached {
		if isNot != notCached {
			t.Errorf("%q on %q: %+v, error %v; want not cached: %t", hash, host, target, err, notCached)
		}
		return
	}
	var got schema.Code
	if err != nil {
		got = schema.ErrorCode(err)
	}
	if string(target.Location) != location || got != code {
		t.Errorf("%q on %q: %q, code %q; want %q, code %q", hash, host, target.Location, got, location, code)
	}
}

func TestCachedResolve(t *testing.T) {
	start := time.Now()
	const there, own = "https://example.com/", "https://own.example/"
	newEnv := func(t *testing.T) *env {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", there)
		e.link(t, e.domain(t, "go.example.com", true), "own", own)
		return e
	}
	t.Run("finds what Resolve has found, and looks nothing up", func(t *testing.T) {
		e := newEnv(t)
		for _, c := range []struct{ host, hash, location string }{{"sho.rt", "abc", there}, {"go.example.com", "own", own}} {
			e.wantCached(t, c.host, c.hash, start, "", "", true)
			e.want(t, c.host, c.hash, start, c.location, "")
			e.wantCached(t, c.host, c.hash, start, c.location, "", false)
		}
		e.wantLookups(t, 3)
	})
	t.Run("knows what is not there as long as Resolve does", func(t *testing.T) {
		e := newEnv(t)
		for _, c := range []struct{ host, hash string }{{"sho.rt", "none"}, {"none.example.com", "abc"}} {
			e.wantCached(t, c.host, c.hash, start, "", "", true)
			e.want(t, c.host, c.hash, start, "", schema.CodeNotFound)
			e.wantCached(t, c.host, c.hash, start, "", schema.CodeNotFound, false)
			e.wantCached(t, c.host, c.hash, start.Add(e.cfg.NegativeTTL), "", "", true)
		}
		e.wantCached(t, "sho.rt", "no hash", start, "", schema.CodeNotFound, false)
		e.wantCached(t, "no host", "abc", start, "", schema.CodeNotFound, false)
	})
	t.Run("leaves a stale link to the request that looks it up", func(t *testing.T) {
		e := newEnv(t)
		e.want(t, "sho.rt", "abc", start, there, "")
		old := start.Add(e.cfg.CacheTTL)
		e.wantCached(t, "sho.rt", "abc", old, "", "", true)
		asked, release := make(chan struct{}), make(chan struct{})
		e.store.inject(func(context.Context) error { close(asked); <-release; return nil })
		done := make(chan struct{})
		go func() { e.want(t, "sho.rt", "abc", old, there, ""); close(done) }()
		<-asked
		e.wantCached(t, "sho.rt", "abc", old, there, "", false) // meanwhile
		close(release)
		<-done
	})
	t.Run("serves a stale link after a look-up has failed", func(t *testing.T) {
		e := newEnv(t)
		e.want(t, "sho.rt", "abc", start, there, "")
		e.store.inject(down)
		old := start.Add(e.cfg.CacheTTL)
		e.want(t, "sho.rt", "abc", old, there, "")
		e.wantCached(t, "sho.rt", "abc", old, there, "", false)
		e.wantCached(t, "sho.rt", "abc", old.Add(time.Minute), "", "", true)
	})
	t.Run("leaves a dropped link to Resolve", func(t *testing.T) {
		e := newEnv(t)
		e.want(t, "sho.rt", "abc", start, there, "")
		e.resolver.Drop(schema.Change{Hash: "abc"})
		e.wantCached(t, "sho.rt", "abc", start, "", "", true)
	})
	t.Run("tells a link that is outdated from one that is not cached", func(t *testing.T) {
		e := newEnv(t)
		e.want(t, "go.example.com", "own", start, own, "")
		for now, want := range map[time.Time]error{start: resolve.ErrNotCached, start.Add(e.cfg.CacheTTL): resolve.ErrOutdated} {
			for _, host := range []string{"go.example.com", "other.example.com"} {
				if host == "other.example.com" {
					want = resolve.ErrNotCached
				}
				if _, err := e.resolver.Cached().Resolve([]byte(host), []byte("other"), now); err != want {
					t.Errorf("%s: error %v, want %v", host, err, want)
				}
			}
		}
	})
	t.Run("does not wait for a store that hangs", func(t *testing.T) {
		e := newEnv(t)
		asked := make(chan struct{})
		e.store.inject(func(ctx context.Context) error { close(asked); <-ctx.Done(); return ctx.Err() })
		done := make(chan struct{})
		go func() { e.resolve("sho.rt", "abc", start); close(done) }()
		<-asked
		e.wantCached(t, "sho.rt", "abc", start, "", "", true)
		e.resolver.Close()
		<-done
	})
	t.Run("is counted once, by whoever answers", func(t *testing.T) {
		e := newEnv(t)
		count := func(what, cache string) int {
			return int(e.metric(t, "linkstream_edge_cache_"+what+`_total{cache="`+cache+`"}`))
		}
		e.wantCached(t, "go.example.com", "own", start, "", "", true)
		e.want(t, "go.example.com", "own", start, own, "")
		e.wantCached(t, "go.example.com", "other", start, "", "", true) // the host is cached, the link is not
		e.wantCached(t, "go.example.com", "own", start, own, "", false)
		for _, cache := range []string{"hosts", "links"} {
			if h, m := count("hits", cache), count("misses", cache); h != 1 || m != 1 {
				t.Errorf("%d hits, %d misses of %s, want one each", h, m, cache)
			}
		}
	})
	t.Run("says what Resolve says in the same moment", func(t *testing.T) {
		e := newEnv(t)
		storetest.SetActive(t, e.store.sqliteLinks, 0, "abc", false)
		for _, host := range []string{"sho.rt", "SHO.rt", "sho.rt.:80", "127.0.0.1", "[::1]", "go.example.com", "x..y", ""} {
			for _, hash := range []string{"abc", "own", "none", "", "a/b"} {
				location, code := e.resolve(host, hash, start)
				e.wantCached(t, host, hash, start, location, code, false)
			}
		}
	})
}
