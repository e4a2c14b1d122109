package resolve_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"linkstream/edge/resolve"
	"linkstream/schema"
)

func TestResolveHost(t *testing.T) {
	e := newEnv(t, nil)
	now := time.Now()
	e.link(t, 0, "same", "https://default.example/")
	e.link(t, e.domain(t, "go.example.com", true), "same", "https://custom.example/")
	e.domain(t, "pending.example.com", false)

	t.Run("the service's own host, an address and localhost are the default domain", func(t *testing.T) {
		for _, host := range []string{
			"sho.rt", "sho.rt.", "sho.rt:8080", "sho.rt.:8080", "localhost", "localhost:8080",
			"127.0.0.1", "127.0.0.1:8080", "[::1]", "[::1]:8080", "[fe80::1%25eth0]:80",
		} {
			e.want(t, host, "same", now, "https://default.example/", "")
		}
	})
	t.Run("a verified host has its own links", func(t *testing.T) {
		e.want(t, "go.example.com", "same", now, "https://custom.example/", "")
		e.want(t, "go.example.com.:80", "same", now, "https://custom.example/", "")
	})
	t.Run("any other host has none", func(t *testing.T) {
		for _, host := range []string{"pending.example.com", "other.example.com", "x.sho.rt", "1.2.3.4.example", "a_b.example"} {
			e.want(t, host, "same", now, "", schema.CodeNotFound)
		}
	})
	t.Run("what cannot be a host is not looked up", func(t *testing.T) {
		before := e.store.lookups.Load()
		for _, host := range []string{"", ".", ":80", "go..example.com", "go.example.com..", "-go.example.com", "go example.com",
			"bücher.example", "\xff.example", strings.Repeat("a.", 150) + "example", strings.Repeat("a", 64) + ".example"} {
			e.want(t, host, "same", now, "", schema.CodeNotFound)
		}
		e.wantLookups(t, before)
	})
	t.Run("while the store is down, the default domain does not depend on it and others are not known", func(t *testing.T) {
		e.store.inject(down)
		e.want(t, "sho.rt", "same", now, "https://default.example/", "")
		e.want(t, "new.example.com", "same", now, "", schema.CodeUnavailable)
	})
}

func TestResolveHostOfBaseURL(t *testing.T) {
	for url, host := range map[string]string{
		"http://127.0.0.1:8080":          "127.0.0.1:8080",
		"https://Bücher.example./":       "xn--bcher-kva.example",
		"https://LINKS.example.com:8443": "links.example.com",
	} {
		e := newEnv(t, func(cfg *resolve.Config) { cfg.URL = schema.MustParseBaseURL(url) })
		e.link(t, 0, "abc", "https://example.com/")
		e.want(t, host, "abc", time.Now(), "https://example.com/", "")
	}
}

func TestResolveCache(t *testing.T) {
	start := time.Now()
	t.Run("a link is looked up once", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		for range 3 {
			e.want(t, "sho.rt", "abc", start, "https://example.com/", "")
		}
		e.wantLookups(t, 1)
	})
	t.Run("a host is looked up once", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, e.domain(t, "go.example.com", true), "abc", "https://example.com/")
		for range 3 {
			e.want(t, "go.example.com", "abc", start, "https://example.com/", "")
		}
		e.wantLookups(t, 2)
	})
	t.Run("hashes are told apart by case", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "AbC", "https://example.com/1")
		e.link(t, 0, "abc", "https://example.com/2")
		e.want(t, "sho.rt", "AbC", start, "https://example.com/1", "")
		e.want(t, "sho.rt", "abc", start, "https://example.com/2", "")
		e.want(t, "sho.rt", "ABC", start, "", schema.CodeNotFound)
	})
	t.Run("a change shows when the time of the entry is over", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		e.wantActive(t, "abc", start, true)
		e.setActive(t, "abc", false)
		e.wantActive(t, "abc", start.Add(e.cfg.CacheTTL-1), true)
		e.wantActive(t, "abc", start.Add(e.cfg.CacheTTL), false)
		e.wantLookups(t, 2)
	})
	t.Run("an unknown hash is remembered briefly", func(t *testing.T) {
		e := newEnv(t, nil)
		e.want(t, "sho.rt", "abc", start, "", schema.CodeNotFound)
		e.link(t, 0, "abc", "https://example.com/")
		e.want(t, "sho.rt", "abc", start.Add(e.cfg.NegativeTTL-1), "", schema.CodeNotFound)
		e.wantLookups(t, 1)
		e.want(t, "sho.rt", "abc", start.Add(e.cfg.NegativeTTL), "https://example.com/", "")
	})
	t.Run("a flood of unknown hashes stays within the cache's bytes", func(t *testing.T) {
		e := newEnv(t, func(cfg *resolve.Config) { cfg.CacheBytes = 4 << 20 })
		e.store.inject(func(context.Context) error { return schema.Errorf(schema.CodeNotFound, "no such link") })
		before := heapBytes()
		for range 50_000 { // three times what has room
			hash := schema.NewHash()
			for range 3 {
				e.want(t, "sho.rt", hash, start, "", schema.CodeNotFound)
			}
		}
		if used := heapBytes() - before; used > e.cfg.CacheBytes {
			t.Errorf("%d bytes are used, more than %d", used, e.cfg.CacheBytes)
		}
	})
	t.Run("what cannot be a hash is not looked up", func(t *testing.T) {
		e := newEnv(t, nil)
		for _, hash := range []string{"", "a.b", "a/b", "ä", strings.Repeat("a", schema.MaxAliasLen+1)} {
			e.want(t, "sho.rt", hash, start, "", schema.CodeNotFound)
		}
		e.wantLookups(t, 0)
	})
}

func TestResolveWhileStoreIsDown(t *testing.T) {
	start := time.Now()
	t.Run("a link that was never looked up is unavailable, and tried again at once", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		e.store.inject(down)
		e.want(t, "sho.rt", "abc", start, "", schema.CodeUnavailable)
		e.store.inject(nil)
		e.want(t, "sho.rt", "abc", start, "https://example.com/", "")
	})
	t.Run("an unknown hash is unavailable once its time is over", func(t *testing.T) {
		e := newEnv(t, nil)
		e.want(t, "sho.rt", "abc", start, "", schema.CodeNotFound)
		e.store.inject(down)
		e.want(t, "sho.rt", "abc", start, "", schema.CodeNotFound)
		e.want(t, "sho.rt", "abc", start.Add(e.cfg.NegativeTTL), "", schema.CodeUnavailable)
	})
	t.Run("an expired link is served, and the store left alone for a second", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		e.want(t, "sho.rt", "abc", start, "https://example.com/", "")
		e.store.inject(down)
		expired := start.Add(e.cfg.CacheTTL)
		for range 3 {
			e.want(t, "sho.rt", "abc", expired.Add(time.Second), "https://example.com/", "")
		}
		e.wantLookups(t, 2)
		e.want(t, "sho.rt", "abc", expired.Add(2*time.Second+e.cfg.LookupTimeout), "https://example.com/", "")
		e.wantLookups(t, 3)
		if n := e.metric(t, `linkstream_edge_cache_stale_total{cache="links"}`); n != 4 {
			t.Errorf("%d stale answers, want 4", n)
		}
	})
	t.Run("a look-up that hangs is given up", func(t *testing.T) {
		e := newEnv(t, func(cfg *resolve.Config) { cfg.LookupTimeout = 20 * time.Millisecond })
		e.store.inject(hang)
		e.want(t, "sho.rt", "abc", start, "", schema.CodeUnavailable)
	})
	t.Run("the cause is logged once a second", func(t *testing.T) {
		e := newEnv(t, nil)
		e.store.inject(down)
		for range 100 {
			e.want(t, "sho.rt", "abc", start, "", schema.CodeUnavailable)
		}
		lines := strings.Count(e.log.String(), "connection refused")
		if elapsed := int(time.Since(start) / time.Second); lines < 1 || lines > 1+elapsed {
			t.Errorf("%d lines in %d s", lines, elapsed)
		}
		if n := e.metric(t, "linkstream_edge_lookup_failures_total"); n != 100 {
			t.Errorf("%d failures, want 100", n)
		}
	})
}

func TestResolveConcurrently(t *testing.T) {
	now := time.Now()
	t.Run("those who miss at the same time share one look-up", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		fault, release := held()
		e.store.inject(fault)
		var requests sync.WaitGroup
		for range 50 {
			requests.Go(func() { e.want(t, "sho.rt", "abc", now, "https://example.com/", "") })
		}
		eventually(t, "50 misses", func() bool { return e.metric(t, `linkstream_edge_cache_misses_total{cache="links"}`) == 50 })
		release()
		requests.Wait()
		e.wantLookups(t, 1)
	})
	t.Run("an expired link is renewed by one request, and the others do not wait for it", func(t *testing.T) {
		e := newEnv(t, func(cfg *resolve.Config) { cfg.LookupTimeout = time.Minute })
		e.link(t, 0, "abc", "https://example.com/")
		e.want(t, "sho.rt", "abc", now, "https://example.com/", "")
		fault, release := held()
		e.store.inject(fault)
		expired := now.Add(e.cfg.CacheTTL)
		var renewing sync.WaitGroup
		renewing.Go(func() { e.want(t, "sho.rt", "abc", expired, "https://example.com/", "") })
		eventually(t, "one look-up under way", func() bool { return e.store.running.Load() == 1 })
		for range 10 {
			e.want(t, "sho.rt", "abc", expired, "https://example.com/", "")
		}
		e.wantLookups(t, 2)
		release()
		renewing.Wait()
		e.want(t, "sho.rt", "abc", expired, "https://example.com/", "")
		e.wantLookups(t, 2)
	})
	t.Run("a flood of unknown hashes waits its turn at the store", func(t *testing.T) {
		e := newEnv(t, func(cfg *resolve.Config) { cfg.LookupTimeout = time.Minute })
		fault, release := held()
		e.store.inject(fault)
		var requests sync.WaitGroup
		for range 200 {
			requests.Go(func() { e.want(t, "sho.rt", schema.NewHash(), now, "", schema.CodeNotFound) })
		}
		eventually(t, "200 misses", func() bool { return e.metric(t, `linkstream_edge_cache_misses_total{cache="links"}`) == 200 })
		eventually(t, "64 look-ups", func() bool { return e.store.running.Load() == 64 })
		e.wantLookups(t, 64)
		release()
		requests.Wait()
		e.wantLookups(t, 200)
	})
	t.Run("those whose turn does not come are told that the link is unavailable", func(t *testing.T) {
		e := newEnv(t, func(cfg *resolve.Config) { cfg.LookupTimeout = 50 * time.Millisecond })
		e.store.inject(hang)
		var requests sync.WaitGroup
		for range 200 {
			requests.Go(func() { e.want(t, "sho.rt", schema.NewHash(), now, "", schema.CodeUnavailable) })
		}
		requests.Wait()
	})
	t.Run("every look-up fails after Close, also of a cached link", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		for range 3 {
			e.want(t, "sho.rt", "abc", now, "https://example.com/", "")
		}
		e.want(t, "sho.rt", "unknown", now, "", schema.CodeNotFound)
		e.resolver.Close()
		e.want(t, "sho.rt", "abc", now, "", schema.CodeUnavailable)
		e.want(t, "sho.rt", "unknown", now, "", schema.CodeUnavailable)
		e.wantLookups(t, 2)
	})
	t.Run("closing ends the look-ups under way", func(t *testing.T) {
		e := newEnv(t, func(cfg *resolve.Config) { cfg.LookupTimeout = time.Minute })
		e.store.inject(hang)
		var requests sync.WaitGroup
		requests.Go(func() { e.want(t, "sho.rt", "abc", now, "", schema.CodeUnavailable) })
		eventually(t, "one look-up under way", func() bool { return e.store.running.Load() == 1 })
		e.resolver.Close()
		requests.Wait()
		if log := e.log.String(); log != "" {
			t.Errorf("logged %s", log)
		}
	})
}
