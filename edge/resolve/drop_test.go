package resolve_test

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/edge/resolve"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// change activates or deactivates a link, and drops it.
func (e *env) change(t *testing.T, hash string, active bool) {
	t.Helper()
	e.setActive(t, hash, active)
	e.resolver.Drop(schema.Change{Hash: hash})
}

func TestDrop(t *testing.T) {
	start := time.Now()
	t.Run("a dropped link is looked up again", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		for range 3 {
			e.want(t, "sho.rt", "abc", start, "https://example.com/", "")
		}
		e.setActive(t, "abc", false)
		e.resolver.Drop(schema.Change{Hash: "abc"})
		e.wantActive(t, "abc", start, false)
		e.wantLookups(t, 2)
	})
	t.Run("a dropped unknown hash is looked up again", func(t *testing.T) {
		e := newEnv(t, nil)
		for range 3 {
			e.want(t, "sho.rt", "abc", start, "", schema.CodeNotFound)
		}
		e.link(t, 0, "abc", "https://example.com/")
		e.resolver.Drop(schema.Change{Hash: "abc"})
		e.want(t, "sho.rt", "abc", start, "https://example.com/", "")
	})
	t.Run("a dropped unknown host is looked up again", func(t *testing.T) {
		e := newEnv(t, nil)
		e.want(t, "go.example.org", "abc", start, "", schema.CodeNotFound)
		e.link(t, e.domain(t, "go.example.org", true), "abc", "https://example.com/")
		e.resolver.Drop(schema.Change{Host: "go.example.org"})
		e.want(t, "go.example.org", "abc", start, "https://example.com/", "")
	})
	t.Run("unknown hashes are looked up again when changes may have been missed", func(t *testing.T) {
		e := newEnv(t, nil)
		e.want(t, "sho.rt", "abc", start, "", schema.CodeNotFound)
		e.link(t, 0, "abc", "https://example.com/")
		e.resolver.Missed()
		e.want(t, "sho.rt", "abc", start, "https://example.com/", "")
	})
	t.Run("the result of a look-up under way is not fresh", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		asking, drop := make(chan struct{}), make(chan struct{})
		e.store.inject(func(context.Context) error {
			close(asking)
			<-drop
			return nil
		})
		resolved := make(chan error)
		go func() {
			_, err := e.resolver.Resolve([]byte("sho.rt"), []byte("abc"), netip.Addr{}, start)
			resolved <- err
		}()
		<-asking
		e.resolver.Drop(schema.Change{Hash: "abc"})
		close(drop)
		testkit.Must(t, <-resolved)
		e.store.inject(nil)
		e.want(t, "sho.rt", "abc", start, "https://example.com/", "")
		e.wantLookups(t, 2)
	})
}

func TestDropWhileStoreIsDown(t *testing.T) {
	start := time.Now()
	cached := func(t *testing.T) *env {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		e.wantActive(t, "abc", start, true)
		e.store.inject(down)
		return e
	}
	t.Run("a dropped link is served, and looked up again after LookupTimeout and one second", func(t *testing.T) {
		e := cached(t)
		e.change(t, "abc", false)
		for range 3 {
			e.wantActive(t, "abc", start, true)
		}
		e.wantLookups(t, 2)
		e.store.inject(nil)
		e.wantActive(t, "abc", start.Add(time.Second+e.cfg.LookupTimeout), false)
		e.wantLookups(t, 3)
	})
	t.Run("a link that is dropped again is looked up again", func(t *testing.T) {
		e := cached(t)
		for range 3 {
			e.resolver.Drop(schema.Change{Hash: "abc"})
			e.wantActive(t, "abc", start, true)
		}
		e.wantLookups(t, 4)
		e.store.inject(nil)
		e.change(t, "abc", false)
		e.wantActive(t, "abc", start, false)
	})
	t.Run("a dropped host is served", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, e.domain(t, "go.example.org", true), "abc", "https://example.com/")
		e.want(t, "go.example.org", "abc", start, "https://example.com/", "")
		e.store.inject(down)
		e.resolver.Drop(schema.Change{Host: "go.example.org"})
		e.want(t, "go.example.org", "abc", start, "https://example.com/", "")
	})
	t.Run("a dropped unknown hash is unavailable", func(t *testing.T) {
		e := cached(t)
		e.store.inject(nil)
		e.want(t, "sho.rt", "new", start, "", schema.CodeNotFound)
		e.store.inject(down)
		e.resolver.Drop(schema.Change{Hash: "new"})
		e.want(t, "sho.rt", "new", start, "", schema.CodeUnavailable)
	})
	t.Run("the result of a look-up during the drop is served", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		e.store.inject(func(context.Context) error {
			e.resolver.Drop(schema.Change{Hash: "abc"})
			return nil
		})
		e.want(t, "sho.rt", "abc", start, "https://example.com/", "")
		e.store.inject(down)
		e.want(t, "sho.rt", "abc", start, "https://example.com/", "")
		e.wantLookups(t, 2)
	})
}

func TestDropConcurrently(t *testing.T) {
	start := time.Now()
	t.Run("all requests for a dropped link wait for one look-up", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		e.wantActive(t, "abc", start, true)
		fault, release := held()
		e.store.inject(fault)
		e.change(t, "abc", false)
		var entered atomic.Int64
		var requests sync.WaitGroup
		for range 20 {
			requests.Go(func() {
				entered.Add(1)
				e.wantActive(t, "abc", start, false)
			})
		}
		testkit.Eventually(t, "20 requests, one look-up", func() bool {
			return entered.Load() == 20 && e.store.running.Load() == 1
		})
		release()
		requests.Wait()
		e.wantLookups(t, 2)
	})
	t.Run("a request after a drop does not share a look-up that began before", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		e.store.answered.Store(true)
		fault, release := held()
		e.store.inject(fault)
		var before sync.WaitGroup
		before.Go(func() { e.wantActive(t, "abc", start, true) })
		testkit.Eventually(t, "one look-up under way", func() bool { return e.store.running.Load() == 1 })
		e.store.answered.Store(false)
		e.store.inject(nil)
		e.change(t, "abc", false)
		e.wantActive(t, "abc", start, false)
		release()
		before.Wait()
		e.wantActive(t, "abc", start, false)
	})
	t.Run("a second drop counts, also if a look-up that began before the first one ends", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		e.store.answered.Store(true) // what a look-up returns is older than the changes that follow
		begin := func(n int64) (l *tried, release func()) {
			fault, release := held()
			e.store.inject(fault)
			l = e.begin(t, netip.Addr{}, "abc", start)
			testkit.Eventually(t, "another look-up under way", func() bool { return e.store.running.Load() == n })
			return l, release
		}
		first, releaseFirst := begin(1)
		e.resolver.Drop(schema.Change{Hash: "abc"})
		second, releaseSecond := begin(2)
		releaseFirst()
		first.want(t, "https://example.com/", "")
		e.store.inject(nil)
		e.change(t, "abc", false)
		releaseSecond()
		second.want(t, "https://example.com/", "")
		e.wantActive(t, "abc", start, false)
	})
	t.Run("a change that comes between the end of a look-up and the cache counts", func(t *testing.T) {
		e := newEnv(t, nil)
		for i := range 100 { // the cache takes entries at a time of its own
			hash := fmt.Sprint("link-", i)
			e.link(t, 0, hash, "https://example.com/")
			found := schema.EdgeLink{LinkID: int64(i + 1), AccountID: e.accountID, URL: "https://example.com/", Active: true}
			resolve.ChangeAfterLookup(e.resolver, hash, found, func() { e.change(t, hash, false) })
			e.wantActive(t, hash, start, false)
		}
	})
	t.Run("a link that is created while a look-up finds nothing is found", func(t *testing.T) {
		e := newEnv(t, nil)
		e.store.answered.Store(true) // what the look-up returns is older than the link
		fault, release := held()
		e.store.inject(fault)
		before := e.begin(t, netip.Addr{}, "abc", start)
		testkit.Eventually(t, "one look-up under way", func() bool { return e.store.running.Load() == 1 })
		e.link(t, 0, "abc", "https://example.com/")
		e.resolver.Drop(schema.Change{Hash: "abc"})
		release()
		before.want(t, "", schema.CodeNotFound)
		e.want(t, "sho.rt", "abc", start, "https://example.com/", "")
	})
	t.Run("the next request sees a change, also beside concurrent requests", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		done := make(chan struct{})
		var others sync.WaitGroup
		for range 4 {
			others.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
						if _, code := e.resolve("sho.rt", "abc", start); code != "" {
							t.Errorf("resolve: code %q", code)
						}
						runtime.Gosched() // or the changes would wait for the scheduler most of the time
					}
				}
			})
		}
		for i := range 200 {
			e.change(t, "abc", i%2 == 1)
			e.wantActive(t, "abc", start, i%2 == 1)
		}
		close(done)
		others.Wait()
	})
	t.Run("the next request finds a new link, also beside concurrent requests", func(t *testing.T) {
		e := newEnv(t, nil)
		for i := range 60 {
			hash := fmt.Sprintf("new-%d", i)
			e.want(t, "sho.rt", hash, start, "", schema.CodeNotFound)
			done := make(chan struct{})
			var others sync.WaitGroup
			for range 4 {
				others.Go(func() {
					for at := start; ; at = at.Add(5 * time.Millisecond) { // so that some requests reach ristretto
						select {
						case <-done:
							return
						default:
							e.resolve("sho.rt", hash, at)
							runtime.Gosched()
						}
					}
				})
			}
			e.link(t, 0, hash, "https://example.com/")
			e.resolver.Drop(schema.Change{Hash: hash})
			for range 5 {
				e.want(t, "sho.rt", hash, start, "https://example.com/", "")
			}
			close(done)
			others.Wait()
		}
	})
}
