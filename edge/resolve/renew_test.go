package resolve_test

import (
	"net/netip"
	"testing"
	"time"

	"linkstream/edge/resolve"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// A link that has visitors is looked up before it expires, and nobody waits for it.
func TestRenewal(t *testing.T) {
	start := time.Now()
	const there = "https://example.com/"
	cached := func(t *testing.T) *env {
		e := newEnv(t, func(cfg *resolve.Config) { cfg.LookupTimeout = 5 * time.Second }) // two fit into the last quarter
		e.link(t, 0, "abc", there)
		e.want(t, "sho.rt", "abc", start, there, "")
		return e
	}
	ending := start.Add(50 * time.Second)
	t.Run("in the last quarter of its time, once", func(t *testing.T) {
		e := cached(t)
		e.wantCached(t, "sho.rt", "abc", start.Add(e.cfg.CacheTTL*3/4-time.Second), there, "")
		e.wantLookups(t, 1)
		e.setActive(t, "abc", false)
		fault, release := held()
		e.store.inject(fault)
		for range 3 {
			e.wantCached(t, "sho.rt", "abc", ending, there, "")
		}
		testkit.Eventually(t, "the look-up is under way", func() bool { return e.store.running.Load() == 1 })
		release()
		testkit.Eventually(t, "the change shows", func() bool {
			r := e.try(netip.Addr{}, "sho.rt", "abc", ending)
			return r.lookup == nil && r.err == nil && len(r.target.Location) == 0
		})
		e.wantCached(t, "sho.rt", "abc", start.Add(e.cfg.CacheTTL+time.Second), "", "")
		e.wantLookups(t, 2)
	})
	t.Run("again, while the store is down, and nobody waits once it has expired", func(t *testing.T) {
		e := cached(t)
		e.store.inject(down)
		for i := range 2 {
			for range 3 {
				e.wantCached(t, "sho.rt", "abc", ending.Add(time.Duration(i)*(e.cfg.LookupTimeout+time.Second)), there, "")
			}
			testkit.Eventually(t, "the look-up has failed", func() bool {
				return e.metric(t, "linkstream_edge_lookup_failures_total") == i+1
			})
		}
		e.wantCached(t, "sho.rt", "abc", start.Add(2*e.cfg.CacheTTL), there, "")
	})
	t.Run("and a Drop during the look-up counts", func(t *testing.T) {
		e := cached(t)
		fault, release := held()
		defer release()
		e.store.answered.Store(true) // with what was there before the Drop
		e.store.inject(fault)
		e.wantCached(t, "sho.rt", "abc", ending, there, "")
		testkit.Eventually(t, "the look-up is under way", func() bool { return e.store.running.Load() == 1 })
		e.setActive(t, "abc", false)
		e.resolver.Drop(schema.Change{Hash: "abc"})
		e.store.inject(nil)
		e.wantActive(t, "abc", ending, false)
		release()
		testkit.Eventually(t, "the look-up has ended", func() bool { return e.store.running.Load() == 0 })
		e.wantActive(t, "abc", ending, false)
	})
}
