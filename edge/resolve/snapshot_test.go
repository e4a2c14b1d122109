package resolve_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/edge/resolve"
	"linkstream/schema"
	"linkstream/schema/blocklist"
	"linkstream/schema/enrich"
	"linkstream/schema/testkit"
)

// newSavedEnv returns an env whose resolver has a snapshot.
func newSavedEnv(t testing.TB) *env {
	t.Helper()
	return newEnv(t, func(cfg *resolve.Config) { cfg.Snapshot = filepath.Join(t.TempDir(), "snapshot") })
}

// restart closes the resolver and opens another one.
func (e *env) restart(t testing.TB) {
	t.Helper()
	e.resolver.Close()
	e.open(t)
}

// open opens a resolver with the snapshot.
func (e *env) open(t testing.TB) {
	t.Helper()
	var err error
	e.metrics = metrics.NewSet()
	e.resolver, err = resolve.New(e.cfg, e.store, e.store, e.metrics, e.log.Logger())
	testkit.Must(t, err)
	t.Cleanup(e.resolver.Close)
	e.store.lookups.Store(0)
}

// kill returns an env whose resolver begins with the files as they are after the list has got a key.
func (e *env) kill(t testing.TB, key string) *env {
	t.Helper()
	killed := *e
	folder := t.TempDir()
	killed.cfg.Snapshot = filepath.Join(folder, filepath.Base(e.cfg.Snapshot))
	testkit.Eventually(t, "the list has "+key, func() bool {
		lists, err := filepath.Glob(e.cfg.Snapshot + ".*")
		testkit.Must(t, err)
		if len(lists) == 0 { // Missed has removed the dump
			return false
		}
		content, err := os.ReadFile(lists[0])
		testkit.Must(t, err)
		return bytes.Contains(content, []byte(key))
	})
	testkit.Must(t, os.CopyFS(folder, os.DirFS(filepath.Dir(e.cfg.Snapshot))))
	killed.open(t)
	return &killed
}

var somePosition = schema.ChangePosition{Next: 7, Last: 9}

func TestRestart(t *testing.T) {
	t.Parallel()
	const first, second = "https://example.com/1", "https://example.com/2"
	now := time.Now()
	find := func(t *testing.T, e *env, hash, location string, code schema.Code) {
		t.Helper()
		e.want(t, "sho.rt", hash, now, location, code)
	}
	cached := func(t *testing.T) *env {
		t.Helper()
		t.Parallel()
		e := newSavedEnv(t)
		e.link(t, 0, "abc", first)
		find(t, e, "abc", first, "")
		e.resolver.Reached(somePosition, true)
		return e
	}
	t.Run("while the store fails, links are served, on every host, and no others", func(t *testing.T) {
		e := cached(t)
		domain := e.domain(t, "go.example.com", true)
		testkit.Must(t, e.store.SetSite(t.Context(), domain, schema.Site{Name: "Own", Color: "#ffd400"}, schema.AppLinks{}))
		e.link(t, domain, "own", second)
		e.want(t, "go.example.com", "own", now, second, "")
		e.store.inject(down)
		e.restart(t)
		testkit.Equal(t, "restored", e.resolver.Restored(), 3)
		find(t, e, "abc", first, "")
		e.want(t, "go.example.com", "own", now, second, "")
		target, err := e.resolver.Resolve([]byte("go.example.com"), []byte("own"), netip.Addr{}, now)
		testkit.Must(t, err)
		name, host, color := e.resolver.Brand(&target)
		testkit.Equal(t, "brand", []string{name, host, color}, []string{"Own", "go.example.com", "#ffd400"})
		find(t, e, "new", "", schema.CodeUnavailable)
	})
	t.Run("links are looked up until changes are followed from where they ended", func(t *testing.T) {
		e := cached(t)
		e.setActive(t, "abc", false)
		e.restart(t)
		testkit.Equal(t, "position", e.resolver.Position().Topic, somePosition)
		e.resolver.Reached(somePosition, false)
		e.wantActive(t, "abc", now, false)
		e.wantLookups(t, 1)
	})
	t.Run("until then, no request is answered without a look-up", func(t *testing.T) {
		e := cached(t)
		e.restart(t)
		fault, release := held()
		defer release()
		e.store.inject(fault)
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			e.want(t, "sho.rt", "abc", now, first, "")
		}()
		testkit.Eventually(t, "a look-up", func() bool { return e.store.running.Load() == 1 })
		other := e.begin(t, netip.Addr{}, "abc", now)
		release()
		<-answered
		other.want(t, first, "")
	})
	t.Run("links and hosts are not looked up once changes are followed, until their time has passed", func(t *testing.T) {
		e := cached(t)
		e.link(t, e.domain(t, "go.example.com", true), "own", second)
		e.want(t, "go.example.com", "own", now, second, "")
		e.restart(t)
		e.resolver.Reached(somePosition, true)
		// Their time is at least half of CacheTTL, and the last quarter of CacheTTL is for renewals.
		for _, at := range []time.Time{now, now.Add(e.cfg.CacheTTL/4 - time.Second)} {
			e.want(t, "sho.rt", "abc", at, first, "")
			e.want(t, "go.example.com", "own", at, second, "")
		}
		e.wantLookups(t, 0)
		e.wantCached(t, "sho.rt", "abc", now.Add(e.cfg.CacheTTL+time.Minute), first, "")
		testkit.Eventually(t, "a look-up", func() bool { return e.store.lookups.Load() == 1 })
	})
	t.Run("the start waits for changes, not for ever, and not without links", func(t *testing.T) {
		e := newSavedEnv(t)
		e.resolver.AwaitCurrent(t.Context())
		e.link(t, 0, "abc", first)
		find(t, e, "abc", first, "")
		e.restart(t)
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		e.resolver.AwaitCurrent(short)
		waited := make(chan struct{})
		go func() {
			defer close(waited)
			e.resolver.AwaitCurrent(t.Context())
		}()
		e.resolver.Reached(somePosition, false)
		select {
		case <-waited:
			t.Error("it does not wait while there are more changes")
		case <-time.After(50 * time.Millisecond):
		}
		e.resolver.Reached(somePosition, true)
		<-waited
	})
	t.Run("links that changed since are looked up, and others are not", func(t *testing.T) {
		e := cached(t)
		e.link(t, 0, "other", second)
		find(t, e, "other", second, "")
		e.setActive(t, "abc", false)
		e.restart(t)
		e.resolver.Drop(schema.Change{Hash: "abc"})
		e.resolver.Reached(schema.ChangePosition{Next: 8, Last: 9}, true)
		e.wantActive(t, "abc", now, false)
		find(t, e, "other", second, "")
		e.wantLookups(t, 1)
	})
	t.Run("links of an account that changed since are looked up", func(t *testing.T) {
		e := cached(t)
		testkit.Must(t, e.store.SetSuspended(t.Context(), e.accountID, true))
		e.restart(t)
		e.resolver.Drop(schema.Change{AccountID: e.accountID})
		e.resolver.Reached(schema.ChangePosition{Next: 8, Last: 9}, true)
		e.wantActive(t, "abc", now, false)
		e.resolver.Close()
		e.store.inject(down)
		e.open(t) // and stay so
		e.wantActive(t, "abc", now, false)
	})
	t.Run("all links are looked up if changes may have been missed", func(t *testing.T) {
		e := cached(t)
		e.setActive(t, "abc", false)
		e.restart(t)
		e.resolver.Missed()
		e.resolver.Reached(schema.ChangePosition{Next: 1, Last: 2}, true)
		e.wantActive(t, "abc", now, false)
	})
	t.Run("links that were cached before changes were missed do not come back", func(t *testing.T) {
		e := cached(t)
		e.link(t, e.domain(t, "go.example.com", true), "own", second)
		e.want(t, "go.example.com", "own", now, second, "")
		e.resolver.Missed()
		e.restart(t)
		testkit.Equal(t, "restored", e.resolver.Restored(), 0)
	})
	t.Run("nor after a kill", func(t *testing.T) {
		e := cached(t)
		e.restart(t) // which writes a dump
		e.resolver.Missed()
		testkit.Eventually(t, "the dump is removed", func() bool {
			_, err := os.Stat(e.cfg.Snapshot)
			return os.IsNotExist(err)
		})
	})
	t.Run("links that are gone do not come back", func(t *testing.T) {
		e := cached(t)
		e.link(t, e.domain(t, "lost.example.com", true), "gone", second)
		e.want(t, "lost.example.com", "gone", now, second, "")
		e.link(t, 0, "off", second)
		find(t, e, "off", second, "")
		e.setActive(t, "abc", false)
		e.store.inject(func(context.Context) error { return schema.Errorf(schema.CodeNotFound, "no such host") })
		later := now.Add(e.cfg.CacheTTL)
		testkit.Eventually(t, "the host is lost", func() bool {
			_, code := e.resolve("lost.example.com", "gone", later)
			return code == schema.CodeNotFound
		})
		e.store.inject(nil)
		testkit.Eventually(t, "the link is off", func() bool {
			location, code := e.resolve("sho.rt", "abc", later)
			return location == "" && code == ""
		})
		e.resolver.Drop(schema.Change{Hash: "off"}) // somebody has taken it down, and nobody has asked for it since
		e.restart(t)
		e.store.inject(down)
		e.resolver.Reached(somePosition, true)
		e.want(t, "lost.example.com", "gone", later, "", schema.CodeUnavailable)
		e.wantActive(t, "abc", later, false)
		find(t, e, "off", "", schema.CodeUnavailable)
	})
	t.Run("links that were dropped, and found to be the same, are kept", func(t *testing.T) {
		for _, change := range []schema.Change{{Hash: "abc"}, {AccountID: 1}} {
			e := newSavedEnv(t)
			e.link(t, 0, "abc", first)
			find(t, e, "abc", first, "")
			e.resolver.Drop(change)
			find(t, e, "abc", first, "")
			e.restart(t)
			e.resolver.Reached(somePosition, true)
			find(t, e, "abc", first, "")
			e.wantLookups(t, 0)
		}
	})
	t.Run("a newer answer stays", func(t *testing.T) {
		e := cached(t)
		e.setActive(t, "abc", false)
		e.restart(t)
		e.wantActive(t, "abc", now, false)
		e.resolver.Reached(somePosition, true)
		e.wantActive(t, "abc", now, false)
	})
	t.Run("a link that a look-up has found before a change does not come back", func(t *testing.T) {
		for name, change := range map[string]func(e *env){
			"of the link":        func(e *env) { e.resolver.Drop(schema.Change{Hash: "abc"}) },
			"of its account":     func(e *env) { e.resolver.Drop(schema.Change{AccountID: e.accountID}) },
			"that may be missed": func(e *env) { e.resolver.Missed() },
		} {
			e := newSavedEnv(t)
			e.link(t, 0, "abc", first)
			e.store.answered.Store(true)
			fault, release := held()
			e.store.inject(fault)
			before := e.begin(t, netip.Addr{}, "abc", now)
			testkit.Eventually(t, "a look-up", func() bool { return e.store.running.Load() == 1 })
			change(e)
			release()
			before.wait(t)
			e.store.inject(down)
			e.restart(t)
			e.resolver.Reached(somePosition, true)
			if location, code := e.resolve("sho.rt", "abc", now); code != schema.CodeUnavailable {
				t.Errorf("a change %s: %q, code %q", name, location, code)
			}
		}
	})
	t.Run("links that nobody has visited since a restart outlive another one", func(t *testing.T) {
		e := cached(t)
		e.store.inject(down)
		e.restart(t)
		e.restart(t)
		testkit.Equal(t, "position", e.resolver.Position().Topic, somePosition)
		find(t, e, "abc", first, "")
		e.restart(t)
		find(t, e, "abc", first, "")
	})
	t.Run("a dump that is as new as a change has no link from before", func(t *testing.T) {
		e := cached(t)
		later := resolve.Position{Topic: schema.ChangePosition{Next: 8, Last: 9}, Outbox: schema.OutboxPosition{Next: 10}}
		release := resolve.HoldPosition(e.resolver)
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			e.resolver.Close()
		}()
		testkit.Eventually(t, "the dump is begun", func() bool {
			_, err := os.Stat(e.cfg.Snapshot + ".new")
			return err == nil
		})
		e.resolver.Drop(schema.Change{Hash: "abc"})
		release(later)
		<-closed
		e.open(t)
		testkit.Equal(t, "position", e.resolver.Position(), later)
		testkit.Equal(t, "restored", e.resolver.Restored(), 0)
	})
	t.Run("a restored link to a host that was blocked since is not followed", func(t *testing.T) {
		e := cached(t)
		list := filepath.Join(t.TempDir(), "hosts")
		testkit.Must(t, os.WriteFile(list, []byte("example.com"), 0o600))
		var err error
		e.cfg.Blocklist, err = blocklist.Open(list, e.log.Logger())
		testkit.Must(t, err)
		e.restart(t)
		e.resolver.Reached(somePosition, true)
		e.wantCachedStop(t, "abc", now, resolve.Unsafe)
	})
	t.Run("keys that do not exist are not kept", func(t *testing.T) {
		e := cached(t)
		find(t, e, "later", "", schema.CodeNotFound)
		e.link(t, 0, "later", second)
		e.restart(t)
		e.resolver.Reached(somePosition, true)
		find(t, e, "later", second, "")
	})
}

// TestKill takes links down while they are in the dump, and kills the process, the store and the broker.
func TestKill(t *testing.T) {
	t.Parallel()
	const target = "https://example.com/"
	e := newSavedEnv(t)
	now, own := time.Now(), e.domain(t, "go.example.com", true)
	for _, hash := range []string{"off", "later", "stays"} {
		e.link(t, 0, hash, target)
		e.link(t, own, hash, target)
	}
	other := schema.Account{Email: "other@example.com", CreatedAt: now}
	testkit.Must(t, e.store.CreateAccount(t.Context(), &other))
	e.accountID = other.ID
	e.link(t, 0, "suspended", target)
	everything := func(t *testing.T, e *env, gone ...string) {
		t.Helper()
		for _, host := range []string{"sho.rt", "go.example.com"} {
			for _, hash := range []string{"off", "later", "stays", "suspended"} {
				if host != "sho.rt" && hash == "suspended" {
					continue
				}
				name := host + "/" + hash
				if slices.Contains(gone, name) || slices.Contains(gone, host) {
					e.want(t, host, hash, now, "", schema.CodeUnavailable)
				} else {
					e.want(t, host, hash, now, target, "")
				}
			}
		}
	}
	everything(t, e)
	e.resolver.Reached(somePosition, true)
	e.restart(t) // which writes a dump
	e.store.inject(down)
	gone := []string{}
	for _, c := range []struct {
		change schema.Change
		gone   string
	}{
		{schema.Change{Hash: "off"}, "sho.rt/off"},
		{schema.Change{DomainID: own, Hash: "later"}, "go.example.com/later"},
		{schema.Change{AccountID: other.ID}, "sho.rt/suspended"},
		{schema.Change{Host: "go.example.com"}, "go.example.com"},
	} {
		e.resolver.Drop(c.change)
		gone = append(gone, c.gone)
		killed := e.kill(t, c.change.Key())
		everything(t, killed, gone...)
		killed.restart(t) // and they stay away
		everything(t, killed, gone...)
	}
	testkit.Equal(t, "changes of another release are unknown", resolve.RestoresAfter("tag/1"), false)
}

// TestRestoredMemory restores more links than the cache has room for.
func TestRestoredMemory(t *testing.T) {
	t.Parallel()
	e := newSavedEnv(t)
	e.resolver.Close()
	e.cfg.CacheBytes = 1 << 20
	const links, least, most = 10_000, 3000, 4000 // of about 300 bytes
	resolve.WriteSnapshot(e.cfg.Snapshot, links)
	e.open(t)
	if n := e.resolver.Restored(); n < least || n > most {
		t.Errorf("%d links restored, want %d to %d", n, least, most)
	}
	e.store.inject(down)
	served := func() (n int) {
		for i := range links {
			if _, code := e.resolve("sho.rt", fmt.Sprintf("%07d", i), time.Now()); code == "" {
				n++
			}
		}
		return n
	}
	testkit.Equal(t, "links served", served(), e.resolver.Restored())

	e.resolver.Close()
	e.cfg.CacheBytes = 64 << 20
	const many = 50_000 // more than the cache takes at once
	resolve.WriteSnapshot(e.cfg.Snapshot, many)
	e.open(t)
	testkit.Equal(t, "links restored", e.resolver.Restored(), many)
}

// feed is a store whose changes are announced, some time later.
type feed struct {
	*env
	accounts  []int64 // link i belongs to the account i, modulo their number
	changes   []schema.Change
	delivered int  // to the resolver
	missed    bool // there is no dump since the last call of Missed
}

func (f *feed) position(next int) schema.ChangePosition {
	return schema.ChangePosition{Next: int64(next), Last: 1}
}

// deliver passes on up to n changes.
func (f *feed) deliver(n int) {
	for ; n > 0 && f.delivered < len(f.changes); n-- {
		f.resolver.Drop(f.changes[f.delivered])
		f.delivered++
		f.resolver.Reached(f.position(f.delivered), f.delivered == len(f.changes))
	}
}

const feedLinks = 20

// step changes a link or an account, delivers changes, or visits links.
func (f *feed) step(t *testing.T, random *rand.Rand, now time.Time) {
	t.Helper()
	hash := fmt.Sprint("link", random.IntN(feedLinks))
	switch n := random.IntN(40); {
	case n < 6:
		f.setActive(t, hash, random.IntN(2) == 0)
		f.changes = append(f.changes, schema.Change{Hash: hash})
	case n < 9:
		account := f.accounts[random.IntN(len(f.accounts))]
		testkit.Must(t, f.store.SetSuspended(t.Context(), account, random.IntN(2) == 0))
		f.changes = append(f.changes, schema.Change{AccountID: account})
	case n == 9:
		f.resolver.Missed()
		f.missed = true
		f.delivered = len(f.changes)
		f.resolver.Reached(f.position(f.delivered), true)
	case n < 20:
		f.deliver(random.IntN(4))
	default:
		_, _ = f.resolver.Resolve([]byte("sho.rt"), []byte(hash), netip.Addr{}, now)
	}
}

// TestRestartShowsEveryChange compares what links a process serves that begins after a kill, with any delay of the
// changes, with what the store has.
func TestRestartShowsEveryChange(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			f := &feed{env: newSavedEnv(t)}
			for i := range feedLinks {
				if i < 6 {
					account := schema.Account{Email: fmt.Sprint(i, "@example.com"), CreatedAt: time.Now()}
					testkit.Must(t, f.store.CreateAccount(t.Context(), &account))
					f.accounts = append(f.accounts, account.ID)
				}
				f.accountID = f.accounts[i%len(f.accounts)]
				f.link(t, 0, fmt.Sprint("link", i), fmt.Sprint("https://example.com/", i))
			}
			now, restored := time.Now(), 0
			for phase := range 5 {
				for range 40 {
					f.step(t, random, now)
				}
				now = now.Add(f.cfg.CacheTTL / 3)
				f.restart(t) // which writes a dump
				f.missed = false
				for kill := range 3 {
					for range random.IntN(10) {
						f.step(t, random, now)
					}
					if f.missed {
						break
					}
					mark := schema.Change{Hash: fmt.Sprintf("mark-%d-%d", phase, kill)}
					f.resolver.Drop(mark)
					killed := *f
					killed.env = f.kill(t, mark.Key())
					restored += killed.resolver.Restored()
					killed.replay()
					killed.compare(t, time.Now())
				}
				f.replay()
			}
			if restored < 10 {
				t.Errorf("%d entries restored", restored)
			}
		})
	}
}

// replay passes on the changes that follow the position of the snapshot.
func (f *feed) replay() {
	f.delivered = len(f.changes)
	if p := f.resolver.Position().Topic; p == (schema.ChangePosition{}) {
		f.resolver.Missed()
	} else {
		f.delivered = int(p.Next)
		f.deliver(len(f.changes))
	}
	f.resolver.Reached(f.position(f.delivered), true)
}

// compare requires that every link is answered as the store has it.
func (f *feed) compare(t *testing.T, now time.Time) {
	t.Helper()
	for i := range feedLinks {
		hash := fmt.Sprint("link", i)
		link, err := schema.FindLink(t.Context(), f.store, 0, hash)
		testkit.Must(t, err)
		f.wantActive(t, hash, now, link.Redirects())
	}
}

// anybody is a visitor of the class n.
type anybody struct{ n uint64 }

func (anybody) Agent() enrich.Agent {
	return enrich.Agent{Device: schema.Mobile, Browser: "Safari", OS: "iOS"}
}
func (anybody) Country() string        { return "AT" }
func (anybody) Language() []byte       { return []byte("de-AT") }
func (a anybody) Has(_, _ []byte) bool { return a.n < 50 }
func (anybody) Unix() int64            { return 2_000_000_000 }
func (a anybody) Hash() uint64         { return a.n }

// A link decides about visitors after a restart as it did before.
func TestRestartOfExtendedLinks(t *testing.T) {
	t.Parallel()
	e := newEnv(t, nil)
	e.store.inject(down)
	resolve.Restore(e.resolver, resolve.SavedExtended)
	target, err := e.resolver.Resolve([]byte("sho.rt"), []byte("abc"), netip.Addr{}, time.Now())
	testkit.Must(t, err)
	location, x := target.Extended()
	testkit.Equal(t, "location", string(location), "https://example.com/")
	for n, want := range map[uint64]string{
		0: "https://example.com/a a", 50: "https://example.com/x x", 51: "https://example.com/y y"} {
		location, name := x.Route(anybody{n})
		testkit.Equal(t, "route", string(location)+" "+string(name), want)
	}
	card := resolve.Card{Title: "title", Description: "description", Image: "https://example.com/i"}
	testkit.Equal(t, "card", x.Card(), card)
}

func FuzzRestore(f *testing.F) {
	for _, record := range []resolve.SavedRecord{resolve.SavedLink, resolve.SavedExtended, resolve.SavedHost} {
		f.Add(record.Kind, record.Body)
	}
	for kind := range byte(8) {
		f.Add(kind, []byte("12345678abc"))
	}
	for _, answer := range []string{"", "\x00", "\x01x", "\x04", "\x04http://a", "\x08",
		"\x08\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xffhttp://a", "\x10"} {
		f.Add(resolve.SavedLink.Kind, []byte("\x0b\x00\x00\x00\x00\x00\x00\x00\x00abc\x01\x01"+answer))
	}
	e := newEnv(f, nil)
	e.store.inject(down) // so that what was restored is served
	now := time.Now()
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		before := slices.Clone(body)
		resolve.Restore(e.resolver, resolve.SavedRecord{Kind: kind, Body: body})
		if !slices.Equal(body, before) {
			t.Error("the record was changed")
		}
		target, err := e.resolver.Resolve([]byte("sho.rt"), []byte("abc"), netip.Addr{}, now)
		if err == nil && target.Stop == resolve.Extended {
			_, x := target.Extended()
			for n := range uint64(101) {
				x.Route(anybody{n})
			}
			if x.HasCard() {
				x.Card()
			}
		}
	})
}
