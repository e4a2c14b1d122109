//go:build !race

// Under the race detector a sync.Pool drops elements at random: it allocates again, and ristretto loses the requests
// that it collects in one.

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
)

func TestResolveAllocatesNothing(t *testing.T) {
	e := newEnv(t, nil)
	e.link(t, 0, "abc", "https://example.com/")
	e.link(t, e.domain(t, "go.example.com", true), "own", "https://example.com/")
	now := time.Now()
	e.create(t, schema.Link{Hash: "expired", URL: "https://example.com/", ExpiresAt: now.Add(-time.Hour),
		ExpiredURL: "https://late.example/"})
	e.create(t, schema.Link{Hash: "expires", URL: "https://example.com/", ExpiresAt: now.Add(time.Hour),
		ForwardQuery: true})
	for _, c := range []struct{ name, host, hash string }{
		{"that has expired", "sho.rt", "expired"},
		{"that expires and forwards queries", "sho.rt", "expires"},
		{"on the default domain", "sho.rt", "abc"},
		{"on a custom domain", "go.example.com:8080", "own"},
	} {
		t.Run(c.name, func(t *testing.T) {
			host, hash := []byte(c.host), []byte(c.hash)
			if allocs := testing.AllocsPerRun(1000, func() {
				if _, err := e.resolver.Resolve(host, hash, netip.Addr{}, now); err != nil {
					t.Fatal(err)
				}
			}); allocs != 0 {
				t.Errorf("%v allocations per look-up", allocs)
			}
			done := make(doneChan)
			if allocs := testing.AllocsPerRun(1000, func() {
				if _, lookup, err := e.resolver.TryResolve(host, hash, netip.Addr{}, now, nil, done); lookup != nil || err != nil {
					t.Fatal(err)
				}
			}); allocs != 0 {
				t.Errorf("%v allocations per look-up in memory", allocs)
			}
		})
	}
}

func TestPopularLinksStayCached(t *testing.T) {
	start := time.Now()
	const rounds, popular, once = 15, 100, 800 // the cache holds the links of five rounds
	for name, unknown := range map[string]int{"among others": 0, "among unknown ones": 20_000} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, func(cfg *resolve.Config) { cfg.CacheBytes, cfg.CacheTTL = 1<<20, time.Hour }) // no link expires
			for round := range rounds {
				now := start.Add(time.Duration(round) * 4 * time.Second)
				e.store.endless.Store(true)
				for i := range popular {
					for range 3 {
						e.want(t, "sho.rt", fmt.Sprint("popular", i), now, endlessURL, "")
					}
				}
				for range once {
					e.want(t, "sho.rt", schema.NewHash(), now, endlessURL, "")
				}
				e.store.endless.Store(false)
				e.store.inject(func(context.Context) error { return schema.Errorf(schema.CodeNotFound, "no such link") })
				for range unknown {
					e.want(t, "sho.rt", strings.ToLower(schema.NewHash()), now, "", schema.CodeNotFound)
				}
				e.store.inject(nil)
			}
			if again := e.store.lookups.Load() - rounds*int64(once+unknown) - popular; again > popular/5 {
				t.Errorf("%d popular links were looked up %d times again", popular, again)
			}
		})
	}
}
