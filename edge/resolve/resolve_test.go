package resolve_test

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"linkstream/edge/resolve"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestResolveHost(t *testing.T) {
	e := newEnv(t, nil)
	now := time.Now()
	e.link(t, 0, "same", "https://default.example/")
	e.link(t, e.domain(t, "go.example.com", true), "same", "https://custom.example/")
	e.domain(t, "pending.example.com", false)

	t.Run("the host of the base URL, addresses and localhost are the default domain", func(t *testing.T) {
		for _, host := range []string{
			"sho.rt", "sho.rt.", "sho.rt:8080", "sho.rt.:8080", "localhost", "localhost:8080",
			"127.0.0.1", "127.0.0.1:8080", "[::1]", "[::1]:8080", "[fe80::1%25eth0]:80",
		} {
			e.want(t, host, "same", now, "https://default.example/", "")
		}
	})
	t.Run("a verified domain has its own links", func(t *testing.T) {
		e.want(t, "go.example.com", "same", now, "https://custom.example/", "")
		e.want(t, "go.example.com.:80", "same", now, "https://custom.example/", "")
	})
	t.Run("any other host has no links", func(t *testing.T) {
		for _, host := range []string{
			"pending.example.com", "other.example.com", "x.sho.rt", "1.2.3.4.example", "a_b.example"} {
			e.want(t, host, "same", now, "", schema.CodeNotFound)
		}
	})
	t.Run("what cannot be a host is not looked up", func(t *testing.T) {
		before := e.store.lookups.Load()
		for _, host := range []string{
			"", ".", ":80", "go..example.com", "go.example.com..", "-go.example.com", "go example.com",
			"bücher.example", "\xff.example", strings.Repeat("a.", 150) + "example", strings.Repeat("a", 64) + ".example"} {
			e.want(t, host, "same", now, "", schema.CodeNotFound)
		}
		e.wantLookups(t, before)
	})
	t.Run("without the store, the default domain is known and others are unavailable", func(t *testing.T) {
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
	t.Run("an unannounced change shows after CacheTTL and a visit since", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		e.wantActive(t, "abc", start, true)
		e.setActive(t, "abc", false)
		e.wantActive(t, "abc", start.Add(e.cfg.CacheTTL*3/4-time.Second), true)
		later := start.Add(e.cfg.CacheTTL)
		e.wantCached(t, "sho.rt", "abc", later, "https://example.com/", "")
		testkit.Eventually(t, "the change shows", func() bool {
			target, err := e.resolver.Resolve([]byte("sho.rt"), []byte("abc"), netip.Addr{}, later)
			return err == nil && len(target.Location) == 0
		})
		e.wantLookups(t, 2)
	})
	t.Run("an unknown hash is remembered for a sixtieth of CacheTTL", func(t *testing.T) {
		e := newEnv(t, nil)
		e.want(t, "sho.rt", "abc", start, "", schema.CodeNotFound)
		e.link(t, 0, "abc", "https://example.com/")
		e.want(t, "sho.rt", "abc", start.Add(negativeTTL-1), "", schema.CodeNotFound)
		e.wantLookups(t, 1)
		e.want(t, "sho.rt", "abc", start.Add(negativeTTL), "https://example.com/", "")
	})
	t.Run("links use no more memory than CacheBytes", func(t *testing.T) {
		e := newEnv(t, func(cfg *resolve.Config) { cfg.CacheBytes = 2 << 20 })
		e.store.endless.Store(true)
		before := heapBytes()
		for range 30_000 { // three times as many as fit
			hash := schema.NewHash()
			for range 3 {
				e.want(t, "sho.rt", hash, start, endlessURL, "")
			}
		}
		used := heapBytes() - before
		if limit := e.cfg.CacheBytes + 1<<19; used > limit || used < limit/2 { // half a megabyte for ristretto's buffers
			t.Errorf("%d bytes in use, want at most %d and at least half of that", used, limit)
		}
		e.resolver.Resolve(nil, nil, netip.Addr{}, start) // keep the cache until here
	})
	t.Run("an invalid hash is not looked up", func(t *testing.T) {
		e := newEnv(t, nil)
		for _, hash := range []string{"", ".a", "ä", "ä/b", "/a", "..", strings.Repeat("a", schema.MaxAliasLen+1)} {
			e.want(t, "sho.rt", hash, start, "", schema.CodeNotFound)
		}
		e.wantLookups(t, 0)
	})
}

func TestResolveWhileStoreIsDown(t *testing.T) {
	start := time.Now()
	t.Run("a link that is not cached is unavailable, and found as soon as the store answers", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		e.store.inject(down)
		e.want(t, "sho.rt", "abc", start, "", schema.CodeUnavailable)
		e.store.inject(nil)
		e.want(t, "sho.rt", "abc", start, "https://example.com/", "")
	})
	t.Run("an unknown hash is unavailable afterwards", func(t *testing.T) {
		e := newEnv(t, nil)
		e.want(t, "sho.rt", "abc", start, "", schema.CodeNotFound)
		e.store.inject(down)
		e.want(t, "sho.rt", "abc", start, "", schema.CodeNotFound)
		e.want(t, "sho.rt", "abc", start.Add(negativeTTL), "", schema.CodeUnavailable)
	})
	t.Run("a stale link is served, and looked up again after LookupTimeout and one second", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		e.want(t, "sho.rt", "abc", start, "https://example.com/", "")
		e.store.inject(down)
		stale := start.Add(e.cfg.CacheTTL)
		failures := func(want int) {
			t.Helper()
			testkit.Eventually(t, "the look-up has failed", func() bool {
				return e.metric(t, "linkstream_edge_lookup_failures_total") == want
			})
		}
		for range 3 {
			e.wantCached(t, "sho.rt", "abc", stale.Add(time.Second), "https://example.com/", "")
		}
		failures(1)
		e.wantLookups(t, 2)
		e.wantCached(t, "sho.rt", "abc", stale.Add(2*time.Second+e.cfg.LookupTimeout), "https://example.com/", "")
		failures(2)
		e.wantLookups(t, 3)
		// The other two have begun a look-up.
		testkit.Equal(t, "stale answers", e.metric(t, `linkstream_edge_cache_stale_total{cache="links"}`), 2)
	})
	t.Run("a store that hangs delays no cached link, and a dropped one by LookupTimeout", func(t *testing.T) {
		const links = 50
		e := newEnv(t, func(cfg *resolve.Config) { cfg.LookupTimeout = 300 * time.Millisecond })
		own := e.domain(t, "go.example.com", true)
		for i := range links {
			e.link(t, own, fmt.Sprint("link-", i), "https://example.com/")
			e.want(t, "go.example.com", fmt.Sprint("link-", i), start, "https://example.com/", "")
		}
		e.store.inject(hang)
		lookups, stale := e.store.lookups.Load(), start.Add(e.cfg.CacheTTL)
		for i := range 10 * links {
			e.wantCached(t, "go.example.com", fmt.Sprint("link-", i%links), stale, "https://example.com/", "")
		}
		testkit.Eventually(t, "one look-up per key has failed", func() bool {
			return e.metric(t, "linkstream_edge_lookup_failures_total") == links+1 // and one of the host
		})
		if n := e.store.lookups.Load() - lookups; n > links+1 {
			t.Errorf("%d look-ups for %d links", n, links)
		}
		e.resolver.Drop(schema.Change{DomainID: own, Hash: "link-1"})
		r := e.try(netip.Addr{}, "go.example.com", "link-1", stale)
		testkit.Equal(t, "a dropped link waits", r.lookup != nil, true)
		r.want(t, "https://example.com/", "")
		e.wantCached(t, "go.example.com", "link-1", stale, "https://example.com/", "") // for a while
	})
	t.Run("a look-up ends after LookupTimeout", func(t *testing.T) {
		e := newEnv(t, func(cfg *resolve.Config) { cfg.LookupTimeout = 20 * time.Millisecond })
		e.store.inject(hang)
		e.want(t, "sho.rt", "abc", start, "", schema.CodeUnavailable)
	})
	t.Run("the cause is logged once per second", func(t *testing.T) {
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
	t.Run("concurrent requests for a link share one look-up", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		fault, release := held()
		e.store.inject(fault)
		var requests sync.WaitGroup
		for range 50 {
			requests.Go(func() { e.want(t, "sho.rt", "abc", now, "https://example.com/", "") })
		}
		testkit.Eventually(t, "50 misses", func() bool {
			return e.metric(t, `linkstream_edge_cache_misses_total{cache="links"}`) == 50
		})
		release()
		requests.Wait()
		e.wantLookups(t, 1)
	})
	t.Run("one request refreshes a stale link, and nobody waits for it", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		e.want(t, "sho.rt", "abc", now, "https://example.com/", "")
		fault, release := held()
		e.store.inject(fault)
		stale := now.Add(e.cfg.CacheTTL)
		for range 10 {
			e.wantCached(t, "sho.rt", "abc", stale, "https://example.com/", "")
		}
		testkit.Eventually(t, "one look-up under way", func() bool { return e.store.running.Load() == 1 })
		release()
		testkit.Eventually(t, "the look-up has ended", func() bool { return e.store.running.Load() == 0 })
		e.wantCached(t, "sho.rt", "abc", stale, "https://example.com/", "")
		e.wantLookups(t, 2)
	})
	t.Run("at most 4 queries are under way, and share many look-ups", func(t *testing.T) {
		const requests = 1000
		e := newEnv(t, nil)
		e.store.endless.Store(true)
		fault, release := held()
		e.store.inject(fault)
		var all sync.WaitGroup
		for range requests {
			all.Go(func() { e.want(t, "sho.rt", schema.NewHash(), now, endlessURL, "") })
		}
		testkit.Eventually(t, "all misses", func() bool {
			return e.metric(t, `linkstream_edge_cache_misses_total{cache="links"}`) == requests
		})
		testkit.Eventually(t, "4 queries", func() bool { return e.store.queries.Load() == 4 })
		release()
		all.Wait()
		e.wantLookups(t, requests)
		if n := e.store.queries.Load(); n > requests/10 { // some are sent while others are answered
			t.Errorf("%d queries for %d links", n, requests)
		}
		testkit.Equal(t, "queries counted", int64(e.metric(t, "linkstream_edge_link_queries_total")), e.store.queries.Load())
	})
	t.Run("a link that was dropped twice in a queue is looked up for each", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		fault, release := held()
		e.store.inject(fault)
		var all sync.WaitGroup
		for i := range int64(4) { // fill the queries
			all.Go(func() { e.want(t, "sho.rt", schema.NewHash(), now, "", schema.CodeNotFound) })
			testkit.Eventually(t, "another query", func() bool { return e.store.queries.Load() == i+1 })
		}
		for range 3 {
			misses := e.metric(t, `linkstream_edge_cache_misses_total{cache="links"}`)
			all.Go(func() { e.wantActive(t, "abc", now, true) })
			testkit.Eventually(t, "another miss", func() bool {
				return e.metric(t, `linkstream_edge_cache_misses_total{cache="links"}`) > misses
			})
			e.resolver.Drop(schema.Change{Hash: "abc"})
		}
		release()
		all.Wait()
		e.wantActive(t, "abc", now, true)
	})
	t.Run("a link is unavailable if its look-up cannot begin within LookupTimeout", func(t *testing.T) {
		e := newEnv(t, func(cfg *resolve.Config) { cfg.LookupTimeout = 50 * time.Millisecond })
		e.store.inject(hang)
		var requests sync.WaitGroup
		for range 200 {
			requests.Go(func() { e.want(t, "sho.rt", schema.NewHash(), now, "", schema.CodeUnavailable) })
		}
		requests.Wait()
	})
	t.Run("look-ups for a client that asks for unknown keys keep nobody else waiting", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		suspect := netip.MustParseAddr("192.0.2.1")
		e.resolveFor(suspect, "sho.rt", "none", now)
		var all sync.WaitGroup
		for i := range 300 {
			all.Go(func() { e.resolveFor(suspect, "sho.rt", fmt.Sprint(heldPrefix, i), now) })
		}
		testkit.Eventually(t, "all misses", func() bool {
			return e.metric(t, `linkstream_edge_cache_misses_total{cache="links"}`) == 301
		})
		if location, code := e.resolveFor(netip.MustParseAddr("192.0.2.2"), "sho.rt", "abc", now); code != "" {
			t.Errorf("another client: %q, code %q", location, code)
		}
		e.resolver.Close()
		all.Wait()
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
	t.Run("Close cancels look-ups under way", func(t *testing.T) {
		e := newEnv(t, nil)
		e.store.inject(hang)
		var requests sync.WaitGroup
		requests.Go(func() { e.want(t, "sho.rt", "abc", now, "", schema.CodeUnavailable) })
		testkit.Eventually(t, "one look-up under way", func() bool { return e.store.running.Load() == 1 })
		e.resolver.Close()
		requests.Wait()
		if log := e.log.String(); log != "" {
			t.Errorf("logged %s", log)
		}
	})
}
