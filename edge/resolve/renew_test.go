package resolve_test

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/edge/resolve"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// renewals returns how many renewals have begun.
func (e *env) renewals(t testing.TB) int64 {
	t.Helper()
	return int64(e.metric(t, `linkstream_edge_cache_renewals_total{cache="links"}`))
}

func TestRenewal(t *testing.T) {
	start := time.Now()
	const there = "https://example.com/"
	t.Run("a link that has visitors is looked up before it expires, and nobody waits for it", func(t *testing.T) {
		for name, visit := range map[string]func(e *env, now time.Time, active bool){
			"Resolve": func(e *env, now time.Time, active bool) { e.wantActive(t, "abc", now, active) },
			"Cached": func(e *env, now time.Time, active bool) {
				target, err := e.resolver.Cached().Resolve([]byte("sho.rt"), []byte("abc"), now)
				if err != nil || (len(target.Location) > 0) != active {
					t.Errorf("%s: %+v, error %v, want active %t", now.Sub(start), target, err, active)
				}
			},
		} {
			e := newEnv(t, nil)
			e.link(t, 0, "abc", there)
			e.wantActive(t, "abc", start, true)
			visit(e, start.Add(e.cfg.CacheTTL/2-1), true)
			testkit.Equal(t, name+": renewals in the first half", e.renewals(t), 0)
			e.setActive(t, "abc", false)
			fault, release := held()
			e.store.inject(fault)
			aging := start.Add(e.cfg.CacheTTL * 7 / 8)
			for range 3 {
				visit(e, aging, true)
			}
			testkit.Eventually(t, "the look-up is under way", func() bool { return e.store.running.Load() == 1 })
			visit(e, aging.Add(5*time.Second), true)
			testkit.Equal(t, name+": renewals", e.renewals(t), 1)
			release()
			testkit.Eventually(t, "the look-up has ended", func() bool {
				target, err := e.resolver.Cached().Resolve([]byte("sho.rt"), []byte("abc"), start.Add(e.cfg.CacheTTL))
				return err == nil && len(target.Location) == 0
			})
			e.store.inject(down)
			visit(e, aging.Add(e.cfg.CacheTTL*3/8), false)
			e.wantLookups(t, 2)
		}
	})
	t.Run("a link that is gone is not found any more", func(t *testing.T) {
		e := newEnv(t, func(cfg *resolve.Config) { cfg.CacheTTL = 365 * 24 * time.Hour })
		e.store.endless.Store(true)
		e.want(t, "sho.rt", "abc", start, endlessURL, "")
		e.store.endless.Store(false)
		now := start.Add(e.cfg.CacheTTL * 7 / 8)
		e.want(t, "sho.rt", "abc", now, endlessURL, "")
		testkit.Eventually(t, "the link is not found", func() bool {
			now = now.Add(4 * time.Second) // ristretto sees a request every 4 s
			_, code := e.resolve("sho.rt", "abc", now)
			return code == schema.CodeNotFound
		})
		testkit.Equal(t, "the link has yet to expire", now.Before(start.Add(e.cfg.CacheTTL)), true)
	})
	t.Run("while the store is down the link is fresh until it expires, and its renewal is tried again", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", there)
		e.want(t, "sho.rt", "abc", start, there, "")
		e.store.inject(down)
		aging := start.Add(e.cfg.CacheTTL * 7 / 8)
		for i := range int64(2) {
			now := aging.Add(time.Duration(i) * 4 * time.Second) // ristretto sees a request every 4 s
			for range 3 {
				e.wantCached(t, "sho.rt", "abc", now, there, "", false)
			}
			testkit.Eventually(t, "the renewal has failed", func() bool {
				return e.metric(t, "linkstream_edge_lookup_failures_total") == int(i+1)
			})
		}
		e.wantCached(t, "sho.rt", "abc", start.Add(e.cfg.CacheTTL), "", "", true)
	})
	t.Run("a Drop during a renewal counts", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", there)
		e.want(t, "sho.rt", "abc", start, there, "")
		fault, release := held()
		defer release()
		e.store.answered.Store(true) // with what was there before the Drop
		e.store.inject(fault)
		aging := start.Add(e.cfg.CacheTTL * 7 / 8)
		e.want(t, "sho.rt", "abc", aging, there, "")
		testkit.Eventually(t, "the look-up is under way", func() bool { return e.store.running.Load() == 1 })
		e.setActive(t, "abc", false)
		e.resolver.Drop(schema.Change{Hash: "abc"})
		e.store.inject(nil)
		e.wantActive(t, "abc", aging, false)
		release()
		testkit.Eventually(t, "the renewal has ended", func() bool { return e.store.running.Load() == 0 })
		e.wantActive(t, "abc", aging, false)
	})
}

// Links that were looked up at the same time are renewed one after the other, up to seven eighths of their time.
func TestRenewalsAreSpread(t *testing.T) {
	e := newEnv(t, nil)
	e.store.endless.Store(true)
	start := time.Now()
	const links = 1000
	var before int64
	for eighth := range time.Duration(8) {
		now := start.Add(e.cfg.CacheTTL * eighth / 8)
		for i := range links {
			e.want(t, "sho.rt", fmt.Sprint("link", i), now, endlessURL, "")
		}
		testkit.Eventually(t, "all renewals have ended", func() bool { return e.store.lookups.Load() == links+e.renewals(t) })
		renewed := e.renewals(t) - before
		before += renewed
		switch {
		case eighth <= 4 && renewed > 0:
			t.Errorf("%d renewals up to %d eighths of the time", renewed, eighth)
		case eighth > 4 && (renewed < links/5 || renewed > links/2):
			t.Errorf("%d of %d renewals up to %d eighths of the time", renewed, links, eighth)
		}
	}
	testkit.Equal(t, "renewals", before, int64(links))
}

// Renewals wait for each other, and nobody for them.
func TestRenewalsShareQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, store := newSlow(t)
		defer r.Close()
		e := &env{resolver: r}
		resolve := func(links int) {
			for i := range links {
				if _, err := r.Resolve([]byte("sho.rt"), fmt.Append(nil, "link", i), netip.Addr{}, time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
		}
		resolve(60)
		time.Sleep(time.Minute * 7 / 8)
		before := store.queries.Load()
		resolve(59)
		time.Sleep(49 * time.Millisecond)
		resolve(60)
		testkit.Equal(t, "queries while renewals wait", store.queries.Load()-before, 0)
		_, done := e.begin(t, netip.Addr{}, "sho.rt", schema.NewHash(), time.Now())
		time.Sleep(10 * time.Millisecond) // of the store
		<-done
		synctest.Wait()
		testkit.Equal(t, "queries, one of them for all renewals", store.queries.Load()-before, 2)
		time.Sleep(time.Minute / 8)
		resolve(60)
		testkit.Equal(t, "queries after the first ones have expired", store.queries.Load()-before, 2)
	})
}

// A query for many renewals would take a CPU for long.
func TestRenewalsAreDivided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, store := newSlow(t)
		defer r.Close()
		resolve := func(links int) {
			for i := range links {
				if _, err := r.Resolve([]byte("sho.rt"), fmt.Append(nil, "link", i), netip.Addr{}, time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
		}
		resolve(200)
		time.Sleep(time.Minute * 7 / 8)
		before := store.queries.Load()
		resolve(1) // for which the others are waited for
		resolve(200)
		time.Sleep(45 * time.Millisecond)
		for want := range int64(5) {
			synctest.Wait()
			testkit.Equal(t, "queries", store.queries.Load()-before, want)
			time.Sleep(10 * time.Millisecond) // of a query
		}
	})
}

func TestRefresh(t *testing.T) {
	start, nobody := time.Now(), netip.Addr{}
	const there = "https://example.com/"
	newEnv := func(t *testing.T) *env {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", there)
		e.want(t, "sho.rt", "abc", start, there, "")
		return e
	}
	stale := start.Add(time.Minute)
	refresh := func(t *testing.T, e *env, hash string) (func(location string, code schema.Code), bool) {
		t.Helper()
		done := make(ended)
		lookup, ok := e.resolver.Lookups().Refresh([]byte("sho.rt"), []byte(hash), nobody, stale, done)
		return func(location string, code schema.Code) {
			t.Helper()
			e.wantResult(t, lookup, done, stale, location, code)
		}, ok
	}
	t.Run("begins only if the link is outdated and no other request refreshes it", func(t *testing.T) {
		e := newEnv(t)
		if _, ok := refresh(t, e, "other"); ok {
			t.Error("a link that is not cached")
		}
		fault, release := held()
		e.store.inject(fault)
		want, ok := refresh(t, e, "abc")
		testkit.Equal(t, "begun", ok, true)
		if _, ok := refresh(t, e, "abc"); ok {
			t.Error("begun twice")
		}
		e.wantCached(t, "sho.rt", "abc", stale, there, "", false)
		release()
		want(there, "")
		e.wantLookups(t, 2)
		e.wantCached(t, "sho.rt", "abc", stale.Add(time.Second), there, "", false)
		if _, ok := refresh(t, e, "abc"); ok {
			t.Error("a link that is fresh")
		}
	})
	t.Run("of a dropped link is shared by all, and sees what has changed", func(t *testing.T) {
		e := newEnv(t)
		e.setActive(t, "abc", false)
		e.resolver.Drop(schema.Change{Hash: "abc"})
		fault, release := held()
		e.store.inject(fault)
		first, ok := refresh(t, e, "abc")
		second, okToo := refresh(t, e, "abc")
		testkit.Equal(t, "begun", ok && okToo, true)
		release()
		first("", "")
		second("", "")
		e.wantLookups(t, 2)
	})
	t.Run("ends with what was cached if the store is down", func(t *testing.T) {
		for name, drop := range map[string]bool{"stale": false, "dropped": true} {
			e := newEnv(t)
			if drop {
				e.resolver.Drop(schema.Change{Hash: "abc"})
			}
			e.store.inject(down)
			want, ok := refresh(t, e, "abc")
			testkit.Equal(t, name+": begun", ok, true)
			want(there, "")
			e.wantCached(t, "sho.rt", "abc", stale, there, "", false)
			e.wantCached(t, "sho.rt", "abc", stale.Add(e.cfg.LookupTimeout+2*time.Second), "", "", true)
			e.wantLookups(t, 2)
			testkit.Equal(t, name+": stale answers", e.metric(t, `linkstream_edge_cache_stale_total{cache="links"}`), 2)
		}
	})
	t.Run("ends with not found if the link is gone", func(t *testing.T) {
		e := newEnv(t)
		e.store.inject(func(context.Context) error { return schema.Errorf(schema.CodeNotFound, "no such link") })
		want, ok := refresh(t, e, "abc")
		testkit.Equal(t, "begun", ok, true)
		want("", schema.CodeNotFound)
		e.wantCached(t, "sho.rt", "abc", stale, "", schema.CodeNotFound, false)
	})
}
