package linkpassword_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/api/auth"
	"linkstream/api/linkpassword"
	"linkstream/api/request"
	"linkstream/schema"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/testkit"
	"linkstream/schema/turns"
)

func TestCheck(t *testing.T) {
	store := sqlitetest.New(t)
	account := schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
	testkit.Must(t, store.CreateAccount(t.Context(), &account))
	pool, now := auth.NewPasswordPool(), time.Date(2026, time.November, 21, 9, 30, 0, 0, time.UTC)
	hash, err := pool.Hash(t.Context(), turns.Account(account.ID), "open sesame")
	testkit.Must(t, err)
	add := func(alias string, version int64, hash string) int64 {
		link := schema.Link{AccountID: account.ID, Hash: alias, URL: "https://example.org/", Active: true, CreatedAt: now,
			Behaviour: &schema.Behaviour{Password: version}, PasswordHash: hash}
		testkit.Must(t, store.CreateLink(t.Context(), &link))
		return link.ID
	}
	locked, other, open := add("locked", 7, hash), add("other", 8, hash), add("open", 0, "")
	c := linkpassword.New(store, pool, func() time.Time { return now }, request.NewRecorder(metrics.NewSet()),
		slog.New(slog.DiscardHandler))
	check := func(t *testing.T, link int64, client, password string) schema.PasswordVerdict {
		t.Helper()
		verdict, err := c.Check(t.Context(), schema.PasswordAttempt{LinkID: link, Client: netip.MustParseAddr(client),
			Password: password})
		testkit.Must(t, err)
		return verdict
	}
	t.Run("accepts the right password", func(t *testing.T) {
		for _, a := range []struct {
			link     int64
			password string
			want     schema.PasswordVerdict
		}{
			{locked, "open sesame", schema.PasswordVerdict{Right: true, Version: 7}},
			{locked, "open", schema.PasswordVerdict{Version: 7}},
			{other, "open sesame", schema.PasswordVerdict{Right: true, Version: 8}},
			{open, "any", schema.PasswordVerdict{Right: true}},
			{1 << 40, "open sesame", schema.PasswordVerdict{}},
		} {
			testkit.Equal(t, a.password, check(t, a.link, "192.0.2.1", a.password), a.want)
		}
	})
	t.Run("accepts as many characters in any Unicode form, and no more", func(t *testing.T) {
		composed, decomposed := "\uac01", "\u1100\u1161\u11a8"
		hash, err := pool.Hash(t.Context(), turns.Account(account.ID), strings.Repeat(composed, schema.MaxLinkPasswordLen))
		testkit.Must(t, err)
		long := add("long", 9, hash)
		for _, typed := range []string{composed, decomposed} {
			verdict := check(t, long, "198.51.100.1", strings.Repeat(typed, schema.MaxLinkPasswordLen))
			testkit.Equal(t, "right", verdict, schema.PasswordVerdict{Right: true, Version: 9})
			verdict = check(t, long, "198.51.100.1", strings.Repeat(typed, schema.MaxLinkPasswordLen+1))
			testkit.Equal(t, "one too many", verdict, schema.PasswordVerdict{})
		}
	})
	t.Run("of a link delays neither another link nor itself by wrong attempts from many networks", func(t *testing.T) {
		const guessers = 8
		var next, wrong atomic.Int64
		var guessing sync.WaitGroup
		ctx, stop := context.WithCancel(t.Context())
		defer guessing.Wait()
		defer stop()
		for range guessers {
			guessing.Go(func() {
				for n := next.Add(1); ctx.Err() == nil; n = next.Add(1) {
					verdict, err := c.Check(t.Context(), schema.PasswordAttempt{LinkID: locked, Password: "wrong",
						Client: netip.AddrFrom4([4]byte{10, byte(n >> 8), byte(n), 1})})
					if wrong.Add(1); err != nil || verdict.Right {
						t.Errorf("verdict %+v, error %v", verdict, err)
					}
				}
			})
		}
		// How long a password takes depends on the machine, but not how many are judged before it: of another link,
		// at most one per turn and a few that are being answered; of the same link, those that were there before.
		for link, most := range map[int64]int64{other: guessers, locked: 2 * guessers} {
			least := int64(math.MaxInt64)
			for try := 0; try < 5 && least > most; try++ {
				before := wrong.Load()
				testkit.Equal(t, "right", check(t, link, fmt.Sprint("203.0.113.", try), "open sesame").Right, true)
				least = min(least, wrong.Load()-before)
			}
			if least > most {
				t.Errorf("the right password waits until %d wrong ones are judged, want at most %d", least, most)
			}
		}
	})
	t.Run("limits attempts per link and network", func(t *testing.T) {
		for range 5 {
			for range 10 {
				testkit.Equal(t, "wait", check(t, open, "2001:db8:0:1::7", "x").Wait, 0)
			}
			testkit.Equal(t, "wait of the 11th in a minute", check(t, open, "2001:db8:0:1::8", "x").Wait, 60)
			testkit.Equal(t, "wait for another link", check(t, other, "2001:db8:0:1::7", "x").Wait, 0)
			testkit.Equal(t, "wait of another network", check(t, open, "2001:db8:0:2::7", "x").Wait, 0)
			now = now.Add(time.Minute)
		}
		for range 10 {
			testkit.Equal(t, "wait", check(t, open, "2001:db8:0:1::7", "x").Wait, 0)
		}
		testkit.Equal(t, "wait of the 61st in an hour", check(t, open, "2001:db8:0:1::7", "x").Wait, 25*60)
	})
}

// TestName has apis that name themselves, one of which ends without a word.
func TestName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &values{all: map[string][]byte{schema.SharedAPIs + "http://killed": []byte("once")}}
		start := func(base string) (stop func()) {
			c := linkpassword.New(store, nil, nil, request.NewRecorder(metrics.NewSet()), slog.New(slog.DiscardHandler))
			ctx, cancel := context.WithCancel(t.Context())
			go c.Name(ctx, schema.MustParseBaseURL(base))
			synctest.Wait()
			return func() { cancel(); synctest.Wait() }
		}
		stopOne := start("http://one")
		stopTwo := start("http://one2")
		named := func(want ...string) {
			t.Helper()
			testkit.Equal(t, "named", store.named(), want)
		}
		time.Sleep(50 * time.Second)
		named("http://killed", "http://one", "http://one2")
		time.Sleep(40 * time.Second)
		named("http://one", "http://one2")
		stopOne()
		named("http://one2")
		stopTwo()
	})
}

// values is a store of shared values.
type values struct {
	linkpassword.Store
	mu  sync.Mutex
	all map[string][]byte
}

func (v *values) named() (apis []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for name := range v.all {
		if api, is := strings.CutPrefix(name, schema.SharedAPIs); is {
			apis = append(apis, api)
		}
	}
	slices.Sort(apis)
	return apis
}

func (v *values) SharedValues(context.Context, string) (map[string][]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	named := maps.Clone(v.all)
	delete(named, schema.SharedAPI)
	return named, nil
}

func (v *values) SetSharedValue(_ context.Context, name string, value []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all[name] = value
	return nil
}

func (v *values) DeleteSharedValues(_ context.Context, from, before string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.all, func(name string, _ []byte) bool { return name >= from && name < before })
	return nil
}
