package resolve_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"linkstream/edge/resolve"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// ask has keys looked up for a client. It returns how often the answers had a code.
func (e *env) ask(client string, keys int, now time.Time, key func(i int) (host, hash string)) map[schema.Code]int {
	codes := map[schema.Code]int{}
	for i := range keys {
		host, hash := key(i)
		_, code := e.resolveFor(netip.MustParseAddr(client), host, hash, now)
		codes[code]++
	}
	return codes
}

func randomHash(int) (host, hash string) { return "sho.rt", strings.ToLower(schema.NewHash()) }

// randomHost ignores case: hosts are in lower case.
func randomHost(int) (host, hash string) {
	return strings.ToLower(strings.ToLower(schema.NewHash())) + ".example.com", "abc"
}

// Whoever asks for keys that do not exist costs the store little, and others nothing.
func TestUnknownKeysAreBounded(t *testing.T) {
	start := time.Now()
	const rate, burst, flood = 20, 200, 20_000
	for name, key := range map[string]func(int) (string, string){"hashes": randomHash, "hosts": randomHost} {
		t.Run("random "+name+" of one client", func(t *testing.T) {
			e := newEnv(t, nil)
			codes := e.ask("192.0.2.1", flood, start, key)
			if codes[schema.CodeNotFound] != burst || codes[tooMany] != flood-burst {
				t.Errorf("answered %v", codes)
			}
			e.wantLookups(t, burst)
			later := start.Add(time.Second)
			if codes := e.ask("192.0.2.1", flood, later, key); codes[schema.CodeNotFound] != rate {
				t.Errorf("a second later: answered %v", codes)
			}
			e.wantLookups(t, burst+rate)
			if codes := e.ask("192.0.2.2", burst, later, key); codes[schema.CodeNotFound] != burst {
				t.Errorf("another client: answered %v", codes)
			}
			if codes := e.ask("192.0.2.1", flood, start.Add(time.Minute), key); codes[schema.CodeNotFound] != burst {
				t.Errorf("a minute later: answered %v", codes)
			}
			if n := e.log.Count("-edge.max-unknown-rate"); n < 1 || n > 3 {
				t.Errorf("said %d times:\n%s", n, e.log)
			}
		})
	}
	t.Run("a client is an IPv4 address or an IPv6 /48", func(t *testing.T) {
		for _, c := range []struct {
			first, second string
			one           bool
		}{
			{"192.0.2.1", "192.0.2.2", false},
			{"192.0.2.1", "::ffff:192.0.2.1", true},
			{"2001:db8:1:2::3", "2001:db8:1:ffff:4::", true},
			{"2001:db8:1:2::3", "2001:db8:2:2::3", false},
		} {
			e := newEnv(t, nil)
			e.ask(c.first, burst, start, randomHash)
			if codes := e.ask(c.second, 1, start, randomHash); (codes[tooMany] == 1) != c.one {
				t.Errorf("%s after %s: answered %v", c.second, c.first, codes)
			}
		}
	})
	t.Run("a client that is not known is not bounded", func(t *testing.T) {
		e := newEnv(t, nil)
		for range 2 * burst {
			e.want(t, "sho.rt", strings.ToLower(schema.NewHash()), start, "", schema.CodeNotFound)
		}
	})
	t.Run("links that exist do not count", func(t *testing.T) {
		e := newEnv(t, nil)
		e.store.endless.Store(true)
		if codes := e.ask("192.0.2.1", 5*burst, start, randomHash); codes[""] != 5*burst {
			t.Errorf("answered %v", codes)
		}
	})
	t.Run("an unknown hash that is asked for again does not count", func(t *testing.T) {
		e := newEnv(t, nil)
		codes := e.ask("192.0.2.1", 5*burst, start, func(int) (string, string) { return "sho.rt", "gone" })
		if codes[tooMany] > 0 {
			t.Errorf("answered %v", codes)
		}
	})
	t.Run("look-ups that fail do not count", func(t *testing.T) {
		e := newEnv(t, nil)
		e.store.inject(down)
		e.ask("192.0.2.1", 2*burst, start, randomHash)
		e.store.inject(nil)
		if codes := e.ask("192.0.2.1", burst, start, randomHash); codes[schema.CodeNotFound] != burst {
			t.Errorf("answered %v", codes)
		}
	})
	t.Run("a client that is refused gets every link that is cached", func(t *testing.T) {
		e := newEnv(t, nil)
		client := netip.MustParseAddr("192.0.2.1")
		e.link(t, 0, "abc", "https://example.com/")
		e.link(t, e.domain(t, "go.example.com", true), "own", "https://own.example/")
		e.link(t, 0, "other", "https://other.example/")
		e.want(t, "sho.rt", "abc", start, "https://example.com/", "")
		e.want(t, "go.example.com", "own", start, "https://own.example/", "")
		for _, now := range []time.Time{start, start.Add(e.cfg.CacheTTL)} { // fresh, and to be looked up again
			e.ask("192.0.2.1", burst, now, randomHash)
			for _, c := range []struct{ host, hash, location string }{
				{"sho.rt", "abc", "https://example.com/"}, {"go.example.com", "own", "https://own.example/"},
			} {
				if location, code := e.resolveFor(client, c.host, c.hash, now); location != c.location {
					t.Errorf("%s: %q, code %q", c.hash, location, code)
				}
			}
			if _, code := e.resolveFor(client, "sho.rt", "other", now); code != tooMany {
				t.Errorf("a link that is not cached: code %q", code)
			}
		}
		if wait := e.resolver.Wait(client, start.Add(e.cfg.CacheTTL)); wait <= 0 || wait > time.Second {
			t.Errorf("has to wait %v", wait)
		}
	})
	t.Run("look-ups under way together are forgiven soon", func(t *testing.T) {
		e := newEnv(t, nil)
		fault, release := held()
		e.store.inject(fault)
		const requests = 1000
		done := make(chan struct{})
		for range requests {
			go func() { e.ask("192.0.2.1", 1, start, randomHash); done <- struct{}{} }()
		}
		testkit.Eventually(t, "all wait", func() bool {
			return e.metric(t, `linkstream_edge_cache_misses_total{cache="links"}`) == requests
		})
		release()
		for range requests {
			<-done
		}
		if wait := e.resolver.Wait(netip.MustParseAddr("192.0.2.1"), start); wait > 11*time.Second {
			t.Errorf("has to wait %v", wait)
		}
	})
}

// Keys that do not exist take nothing from links.
func TestUnknownKeysEvictNothing(t *testing.T) {
	start := time.Now()
	const links, unknown = 500, 20_000
	// None of so many look-ups may fail because the machine is busy.
	e := newEnv(t, func(cfg *resolve.Config) { cfg.CacheBytes = 1 << 20 })
	domain := e.domain(t, "go.example.com", true)
	for i := range links {
		e.link(t, domain, fmt.Sprint("link-", i), endlessURL)
		e.want(t, "go.example.com", fmt.Sprint("link-", i), start, endlessURL, "")
	}
	e.store.inject(func(context.Context) error { return schema.Errorf(schema.CodeNotFound, "no such link") })
	before := heapBytes()
	for i := range unknown {
		host, hash := randomHash(i)
		e.want(t, host, hash, start, "", schema.CodeNotFound)
		host, hash = randomHost(i)
		e.want(t, host, hash, start, "", schema.CodeNotFound)
	}
	if used := heapBytes() - before; used > 100<<10 {
		t.Errorf("unknown keys take %d bytes", used)
	}
	e.store.inject(down)
	later := start.Add(5 * time.Second)
	for i := range links {
		e.want(t, "go.example.com", fmt.Sprint("link-", i), later, endlessURL, "")
	}
}

// A link that does not exist any more is not stale but gone, and found when it exists again.
func TestLinkThatExistedBefore(t *testing.T) {
	now := time.Now()
	e := newEnv(t, nil)
	e.link(t, 0, "abc", "https://example.com/")
	for round := range int64(3) {
		e.want(t, "sho.rt", "abc", now, "https://example.com/", "")
		e.store.inject(func(context.Context) error { return schema.Errorf(schema.CodeNotFound, "no such link") })
		now = now.Add(e.cfg.CacheTTL)
		e.wantCached(t, "sho.rt", "abc", now, "https://example.com/", "")
		testkit.Eventually(t, "it is gone", func() bool {
			_, code := e.resolve("sho.rt", "abc", now)
			return code == schema.CodeNotFound
		})
		for range 3 {
			e.wantCached(t, "sho.rt", "abc", now, "", schema.CodeNotFound)
		}
		e.wantLookups(t, 4*round+2)
		e.store.inject(down)
		now = now.Add(negativeTTL)
		e.want(t, "sho.rt", "abc", now, "", schema.CodeUnavailable)
		e.store.inject(func(context.Context) error { return schema.Errorf(schema.CodeNotFound, "no such link") })
		e.want(t, "sho.rt", "abc", now, "", schema.CodeNotFound)
		e.store.inject(nil)
		e.resolver.Drop(schema.Change{Hash: "abc"})
	}
}
