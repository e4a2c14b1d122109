package resolve_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
		e.link(t, e.domain(t, "go.example.com", true), "own", second)
		e.want(t, "go.example.com", "own", now, second, "")
		e.store.inject(down)
		e.restart(t)
		testkit.Equal(t, "restored", e.resolver.Restored(), 3)
		find(t, e, "abc", first, "")
		e.want(t, "go.example.com", "own", now, second, "")
		find(t, e, "new", "", schema.CodeUnavailable)
	})
	t.Run("links are looked up until changes are followed from where they ended", func(t *testing.T) {
		e := cached(t)
		e.setActive(t, "abc", false)
		e.restart(t)
		testkit.Equal(t, "position", e.resolver.Position(), somePosition)
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
		e.want(t, "sho.rt", "abc", now.Add(e.cfg.CacheTTL+time.Minute), first, "")
		e.wantLookups(t, 1)
	})
	t.Run("the start waits for changes, not for ever, and not without links", func(t *testing.T) {
		e := newSavedEnv(t)
		e.resolver.AwaitProof(t.Context(), time.Hour)
		e.link(t, 0, "abc", first)
		find(t, e, "abc", first, "")
		e.restart(t)
		e.resolver.AwaitProof(t.Context(), time.Millisecond)
		waited := make(chan struct{})
		go func() {
			defer close(waited)
			e.resolver.AwaitProof(t.Context(), time.Hour)
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
	t.Run("links that changed meanwhile are looked up, and others are not", func(t *testing.T) {
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
	t.Run("links of an account that changed meanwhile are looked up", func(t *testing.T) {
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
	t.Run("what was cached before changes were missed does not come back", func(t *testing.T) {
		e := cached(t)
		e.link(t, e.domain(t, "go.example.com", true), "own", second)
		e.want(t, "go.example.com", "own", now, second, "")
		e.resolver.Missed()
		e.restart(t)
		testkit.Equal(t, "restored", e.resolver.Restored(), 0)
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
		e.want(t, "lost.example.com", "gone", later, "", schema.CodeNotFound)
		e.store.inject(nil)
		e.wantActive(t, "abc", later, false)
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
	t.Run("what a look-up has found before a change does not come back", func(t *testing.T) {
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
	t.Run("a link that is found to be gone does not come back", func(t *testing.T) {
		e := cached(t)
		e.restart(t)
		e.store.inject(func(context.Context) error { return schema.Errorf(schema.CodeNotFound, "no such link") })
		find(t, e, "abc", "", schema.CodeNotFound)
		e.store.inject(down)
		e.want(t, "sho.rt", "abc", now.Add(e.cfg.CacheTTL), "", schema.CodeUnavailable)
	})
	t.Run("a new file has what was restored", func(t *testing.T) {
		e := cached(t)
		e.restart(t)
		for i := range 1 << 14 { // 80 bytes each, together more than a file may grow
			e.resolver.Drop(schema.Change{Hash: fmt.Sprintf("%064d", i)})
		}
		testkit.Eventually(t, "a new file", func() bool { return e.metric(t, "linkstream_edge_snapshot_rewrites_total") > 0 })
		e.store.inject(down)
		e.restart(t)
		find(t, e, "abc", first, "")
	})
	t.Run("a new file has no link that was dropped", func(t *testing.T) {
		e := cached(t)
		for i := range 1 << 14 {
			e.resolver.Drop(schema.Change{Hash: fmt.Sprintf("%064d", i)})
			if i == 0 {
				e.resolver.Drop(schema.Change{Hash: "abc"})
			}
		}
		testkit.Eventually(t, "a new file", func() bool { return e.metric(t, "linkstream_edge_snapshot_rewrites_total") > 0 })
		e.store.inject(down)
		e.restart(t)
		testkit.Equal(t, "position", e.resolver.Position(), somePosition)
		e.resolver.Reached(somePosition, true)
		find(t, e, "abc", "", schema.CodeUnavailable)
	})
	t.Run("a new file that is as new as a change has no link from before", func(t *testing.T) {
		e := cached(t)
		later := schema.ChangePosition{Next: 8, Last: 9}
		for range 20 { // when the link is dropped, keep has begun in most of them
			find(t, e, "abc", first, "")
			position, kept := resolve.KeptAround(e.resolver, func() schema.ChangePosition {
				e.resolver.Drop(schema.Change{Hash: "abc"})
				return later
			})
			if position == later && kept {
				t.Fatal("it has the link")
			}
		}
	})
	t.Run("links of an account that changed, and that nobody has asked for since, do not come back", func(t *testing.T) {
		e := cached(t)
		e.resolver.Drop(schema.Change{AccountID: e.accountID})
		e.restart(t)
		e.store.inject(down)
		e.resolver.Reached(somePosition, true)
		find(t, e, "abc", "", schema.CodeUnavailable)
	})
	t.Run("a restored link to a host that was blocked meanwhile is not followed", func(t *testing.T) {
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
	t.Run("a link that stays the same is written once", func(t *testing.T) {
		e := cached(t)
		for i := range 20 {
			e.want(t, "sho.rt", "abc", now.Add(time.Duration(i)*2*e.cfg.CacheTTL), first, "")
		}
		e.restart(t)
		e.want(t, "sho.rt", "abc", now, first, "")
		e.resolver.Close()
		e.wantLookups(t, 1)
		content, err := os.ReadFile(e.cfg.Snapshot)
		testkit.Must(t, err)
		testkit.Equal(t, "records", strings.Count(string(content), first), 1)
	})
}

// TestRestoredMemory restores more links than the cache has room for.
func TestRestoredMemory(t *testing.T) {
	t.Parallel()
	e := newSavedEnv(t)
	e.resolver.Close()
	e.cfg.CacheBytes = 1 << 20
	const links, least, most = 10_000, 3000, 4000 // of about 300 bytes
	testkit.Must(t, resolve.WriteSnapshot(e.cfg.Snapshot, links))
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
	testkit.Must(t, resolve.WriteSnapshot(e.cfg.Snapshot, many))
	e.open(t)
	testkit.Equal(t, "links restored", e.resolver.Restored(), many)
}

// feed is a store whose changes are announced, some time later.
type feed struct {
	*env
	accounts  []int64 // whose links are those of the same index, modulo their number
	changes   []schema.Change
	delivered int // to the resolver
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
		f.delivered = len(f.changes)
		f.resolver.Reached(f.position(f.delivered), true)
	case n < 20:
		f.deliver(random.IntN(4))
	default:
		_, _ = f.resolver.Resolve([]byte("sho.rt"), []byte(hash), netip.Addr{}, now)
	}
}

// TestRestartShowsEveryChange compares what links a process serves that begins after a kill, at any point of the file and with
// any delay of the changes, with what the store has. The file is cut at every block and at some bytes in between.
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
				f.awaitWritten(t, fmt.Sprint("end-of-phase-", phase))
			}
			content, err := os.ReadFile(f.cfg.Snapshot)
			testkit.Must(t, err)
			f.resolver.Close()
			f.cfg.Snapshot += ".cut"
			cuts := []int{len(content)}
			for range 12 {
				cuts = append(cuts, random.IntN(len(content)))
			}
			for _, cut := range cuts {
				testkit.Must(t, os.WriteFile(f.cfg.Snapshot, content[:cut], 0o600))
				f.open(t)
				restored += f.resolver.Restored()
				f.replay()
				f.compare(t, time.Now())
				f.resolver.Close()
			}
			if restored < len(cuts) {
				t.Errorf("%d entries restored in %d starts", restored, len(cuts))
			}
		})
	}
}

// replay passes on the changes that follow the position of the snapshot.
func (f *feed) replay() {
	f.delivered = len(f.changes)
	if p := f.resolver.Position(); p == (schema.ChangePosition{}) {
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

// awaitWritten waits until all that happened before is in the file.
func (e *env) awaitWritten(t *testing.T, mark string) {
	t.Helper()
	e.resolver.Drop(schema.Change{Hash: mark})
	testkit.Eventually(t, "the snapshot is written", func() bool {
		content, err := os.ReadFile(e.cfg.Snapshot)
		testkit.Must(t, err)
		return strings.Contains(string(content), mark)
	})
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
	record := resolve.SavedExtended
	record.Number = 1
	testkit.Must(t, resolve.Restore(e.resolver, record))
	target, err := e.resolver.Resolve([]byte("sho.rt"), []byte("abc"), netip.Addr{}, time.Now())
	testkit.Must(t, err)
	location, x := target.Extended()
	testkit.Equal(t, "location", string(location), "https://example.com/")
	for n, want := range map[uint64]string{0: "https://example.com/a a", 50: "https://example.com/x x", 51: "https://example.com/y y"} {
		location, name := x.Route(anybody{n})
		testkit.Equal(t, "route", string(location)+" "+string(name), want)
	}
	testkit.Equal(t, "card", x.Card(), resolve.Card{Title: "title", Description: "description", Image: "https://example.com/i"})
}

func FuzzRestore(f *testing.F) {
	for _, record := range []resolve.SnapshotRecord{resolve.SavedLink, resolve.SavedExtended, resolve.SavedHost} {
		f.Add(record.Kind, record.Body)
	}
	for kind := range byte(8) {
		f.Add(kind, []byte("12345678abc"))
	}
	for _, answer := range []string{"", "\x00", "\x01x", "\x04", "\x04http://a", "\x08", "\x08\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xffhttp://a", "\x10"} {
		f.Add(resolve.SavedLink.Kind, []byte("\x0b\x00\x00\x00\x00\x00\x00\x00\x00abc\x01\x01"+answer))
	}
	e := newEnv(f, nil)
	e.store.inject(down) // so that what was restored is served
	now := time.Now()
	f.Fuzz(func(t *testing.T, kind byte, body []byte) {
		before := slices.Clone(body)
		err := resolve.Restore(e.resolver, resolve.SnapshotRecord{Kind: kind, Number: 1, Body: body})
		if known := kind < 7 && kind > 0 || kind == resolve.SavedLink.Kind || kind == resolve.SavedHost.Kind; known != (err == nil) {
			t.Errorf("kind %d: %v", kind, err)
		}
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
