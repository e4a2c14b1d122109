package resolve_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/edge/resolve"
	"linkstream/schema"
	"linkstream/schema/blocklist"
	"linkstream/schema/testkit"
)

// wantStop requires that a link on the default domain does not redirect for this reason, or does if the reason is
// NotStopped, and that memory alone says the same afterwards.
func (e *env) wantStop(t testing.TB, hash string, now time.Time, want resolve.Stop) {
	t.Helper()
	target, err := e.resolver.Resolve([]byte("sho.rt"), []byte(hash), netip.Addr{}, now)
	checkStop(t, hash, target, err, want)
	e.wantCachedStop(t, hash, now, want)
}

// wantCachedStop is wantStop for memory alone.
func (e *env) wantCachedStop(t testing.TB, hash string, now time.Time, want resolve.Stop) {
	t.Helper()
	r := e.try(netip.Addr{}, "sho.rt", hash, now)
	if r.lookup != nil {
		t.Errorf("%q is looked up", hash)
	}
	checkStop(t, hash, r.target, r.err, want)
}

func checkStop(t testing.TB, hash string, target resolve.Target, err error, want resolve.Stop) {
	t.Helper()
	if err != nil || target.Stop != want || (len(target.Location) == 0) != (want != resolve.NotStopped) {
		t.Errorf("%q: %+v, error %v, want stop %d", hash, target, err, want)
	}
}

func TestStops(t *testing.T) {
	start := time.Now()
	t.Run("a link is taken down and put back", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		e.wantStop(t, "abc", start, resolve.NotStopped)
		for _, down := range []bool{true, false} {
			testkit.Must(t, e.store.SetTakenDown(t.Context(), 0, "abc", down))
			e.resolver.Drop(schema.Change{Hash: "abc"})
			e.wantStop(t, "abc", start, map[bool]resolve.Stop{true: resolve.TakenDown}[down])
		}
		e.change(t, "abc", false)
		e.wantStop(t, "abc", start, resolve.Inactive)
	})
	t.Run("a link on a host that its account has lost is unknown", func(t *testing.T) {
		e := newEnv(t, nil)
		id := e.domain(t, "go.example.org", true)
		e.link(t, id, "abc", "https://example.com/")
		e.want(t, "go.example.org", "abc", start, "https://example.com/", "")
		testkit.Must(t, e.store.ReleaseDomain(t.Context(), id, start))
		e.resolver.Drop(schema.Change{DomainID: id, Hash: "abc"}) // the change of the host follows
		e.want(t, "go.example.org", "abc", start, "", schema.CodeNotFound)
	})
}

func TestSuspension(t *testing.T) {
	start := time.Now()
	suspend := func(t *testing.T, e *env, suspended bool) {
		t.Helper()
		testkit.Must(t, e.store.SetSuspended(t.Context(), e.accountID, suspended))
		e.resolver.Drop(schema.Change{AccountID: e.accountID})
	}
	t.Run("stops all links of the account, and no others", func(t *testing.T) {
		e := newEnv(t, nil)
		account := schema.Account{Email: "other@example.com", CreatedAt: time.Now()}
		testkit.Must(t, e.store.CreateAccount(t.Context(), &account))
		link := schema.Link{AccountID: account.ID, Hash: "other", URL: "https://example.com/", Active: true, CreatedAt: start}
		testkit.Must(t, e.store.CreateLink(t.Context(), &link))
		hashes := make([]string, 100)
		for i := range hashes {
			hashes[i] = fmt.Sprintf("hash-%d", i)
			e.link(t, 0, hashes[i], "https://example.com/")
		}
		e.wantStop(t, "other", start, resolve.NotStopped)
		for _, suspended := range []bool{false, true, false, true} {
			suspend(t, e, suspended)
			for _, hash := range hashes {
				e.wantStop(t, hash, start, map[bool]resolve.Stop{true: resolve.TakenDown}[suspended])
			}
		}
		e.wantStop(t, "other", start, resolve.NotStopped)
		e.wantLookups(t, int64(1+4*len(hashes)))
	})
	t.Run("is seen by the first request after it, also beside a look-up that began before", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		e.store.answered.Store(true) // what the look-up returns is older than the change
		fault, release := held()
		e.store.inject(fault)
		before := e.begin(t, netip.Addr{}, "abc", start)
		testkit.Eventually(t, "the look-up is under way", func() bool { return e.store.running.Load() == 1 })
		suspend(t, e, true)
		e.store.inject(nil)
		e.wantStop(t, "abc", start, resolve.TakenDown)
		release()
		before.wait(t)
		e.wantStop(t, "abc", start, resolve.TakenDown)
	})
	t.Run("is noticed once the store answers again", func(t *testing.T) {
		e := newEnv(t, nil)
		e.link(t, 0, "abc", "https://example.com/")
		e.wantStop(t, "abc", start, resolve.NotStopped)
		e.store.inject(down)
		suspend(t, e, true)
		e.want(t, "sho.rt", "abc", start, "https://example.com/", "")
		e.store.inject(nil)
		e.wantStop(t, "abc", start.Add(time.Second+e.cfg.LookupTimeout), resolve.TakenDown)
	})
}

func TestBlocklist(t *testing.T) {
	start := time.Now()
	path := filepath.Join(t.TempDir(), "hosts")
	list := func(t *testing.T, hosts string) {
		t.Helper()
		testkit.Must(t, os.WriteFile(path, []byte(hosts), 0o600))
	}
	list(t, "other.example")
	links := map[string]string{
		"name": "https://bad.example/x?y#z", "sub": "http://a.b.BAD.example:8080", "plain": "https://bücher.example/ü",
		"escaped": "http://b%C3%BCcher.example", "mapped": "http://[::ffff:198.51.100.7]/",
		"nat64":      "http://[64:ff9b::c633:6407]",
		"compatible": "http://[::198.51.100.7]:80/", "address": "http://198.51.100.7",
	}
	const hosts = "bad.example\n0.0.0.0 bücher.example\n198.51.100.7"
	e := newEnv(t, func(cfg *resolve.Config) {
		var err error
		cfg.CacheTTL = 24 * time.Hour
		cfg.Blocklist, err = blocklist.Open(path, slog.New(slog.DiscardHandler))
		testkit.Must(t, err)
	})
	for hash, url := range links {
		e.link(t, 0, hash, url)
	}
	e.link(t, 0, "fine", "https://example.com/?bad.example")
	e.create(t, schema.Link{Hash: "later", URL: "https://example.com/", ExpiresAt: start.Add(time.Hour),
		ExpiredURL: "https://bad.example/"})
	e.link(t, 0, "off", "https://bad.example/")
	e.setActive(t, "off", false)
	wantAll := func(t *testing.T, want resolve.Stop, wantStop func(testing.TB, string, time.Time, resolve.Stop)) {
		t.Helper()
		for hash := range links {
			wantStop(t, hash, start, want)
		}
		wantStop(t, "fine", start, resolve.NotStopped)
		wantStop(t, "off", start, resolve.Inactive)
		wantStop(t, "later", start, resolve.NotStopped)
		wantStop(t, "later", start.Add(time.Hour), want)
	}
	wantAll(t, resolve.NotStopped, e.wantStop)
	lookups := e.store.lookups.Load()
	e.store.inject(down) // the rest happens in memory
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); e.cfg.Blocklist.Run(ctx, e.resolver.BlocklistChanged) }()
		for _, step := range []struct {
			what, hosts string
			want        resolve.Stop
		}{
			{"a host that gets onto the list stops its links", hosts, resolve.Unsafe},
			{"one that leaves it does not", "other.example\n", resolve.NotStopped},
			{"and may return", hosts + "\n", resolve.Unsafe},
		} {
			list(t, step.hosts)
			time.Sleep(6 * time.Second) // of the bubble's time: longer than the interval of the checks
			synctest.Wait()
			t.Log(step.what)
			wantAll(t, step.want, e.wantCachedStop)
		}
		cancel()
		<-done
	})
	e.wantLookups(t, lookups)
	e.store.inject(nil)
	e.link(t, 0, "new", "https://bad.example/new")
	e.wantStop(t, "new", start, resolve.Unsafe)
}
