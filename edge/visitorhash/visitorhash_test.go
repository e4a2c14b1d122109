package visitorhash_test

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"time"

	"linkstream/edge/visitorhash"
	"linkstream/schema"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/testkit"
)

var (
	noon   = time.Date(2026, time.November, 20, 11, 0, 0, 0, time.UTC)
	client = netip.MustParseAddr("203.0.113.7")
	agent  = []byte("Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0")
)

// store is a link store that may be away.
type store struct {
	visitorhash.Store
	away  bool
	names map[string]bool // of the values
}

func openStore(t testing.TB) *store {
	t.Helper()
	links := sqlitetest.New(t)
	return &store{Store: links, names: map[string]bool{}}
}

func (s *store) SharedValue(ctx context.Context, name string, first []byte) ([]byte, error) {
	if s.away {
		return nil, errors.New("away")
	}
	value, err := s.Store.SharedValue(ctx, name, first)
	if err == nil {
		s.names[name] = true
	}
	return value, err
}

// keys returns the days whose keys are in the store.
func (s *store) keys(t *testing.T) (days []string) {
	t.Helper()
	for name := range s.names {
		if _, err := s.Store.SharedValue(t.Context(), name, nil); err == nil {
			days = append(days, name[len(schema.SharedVisitorKeys):])
		}
	}
	slices.Sort(days)
	return days
}

func newKeys(s *store) *visitorhash.Keys { return visitorhash.New(s, slog.New(slog.DiscardHandler)) }

func TestHash(t *testing.T) {
	s := openStore(t)
	one, other := newKeys(s), newKeys(s)
	testkit.Equal(t, "hash without keys", one.Hash(noon, 1, client, agent), 0)
	testkit.Must(t, one.Update(t.Context(), noon))
	testkit.Must(t, other.Update(t.Context(), noon))
	hash := one.Hash(noon, 1, client, agent)
	for name, same := range map[string]uint64{
		"on another edge":       other.Hash(noon, 1, client, agent),
		"later that day":        one.Hash(noon.Add(12*time.Hour), 1, client, agent),
		"as an address in IPv6": one.Hash(noon, 1, netip.AddrFrom16(client.As16()), agent),
	} {
		testkit.Equal(t, "hash "+name, same, hash)
	}
	long := slices.Repeat([]byte("x"), schema.MaxUserAgentLen)
	testkit.Equal(t, "hash of a longer header", one.Hash(noon, 1, client, append(long, 'y')),
		one.Hash(noon, 1, client, long))
	testkit.Must(t, one.Update(t.Context(), noon.Add(12*time.Hour)))
	different := map[uint64]string{0: "none", hash: "the first"}
	for name, hash := range map[string]uint64{
		"another account": one.Hash(noon, 2, client, agent),
		"another address": one.Hash(noon, 1, client.Next(), agent),
		"no address":      one.Hash(noon, 1, netip.Addr{}, agent),
		"another agent":   one.Hash(noon, 1, client, agent[1:]),
		"no agent":        one.Hash(noon, 1, client, nil),
		"the next day":    one.Hash(noon.AddDate(0, 0, 1), 1, client, agent),
	} {
		if as, found := different[hash]; found {
			t.Errorf("%s has the hash of %s", name, as)
		}
		different[hash] = name
	}
	if n := testing.AllocsPerRun(100, func() { one.Hash(noon, 1, client, agent) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestKeys(t *testing.T) {
	s := openStore(t)
	keys, day := newKeys(s), noon.Truncate(24*time.Hour)
	for _, c := range []struct {
		at   time.Duration
		want []string
	}{
		{11 * time.Hour, []string{"2026-11-20"}},
		{12 * time.Hour, []string{"2026-11-20", "2026-11-21"}}, // the next one is made ahead
		{35 * time.Hour, []string{"2026-11-20", "2026-11-21"}},
		{36 * time.Hour, []string{"2026-11-21", "2026-11-22"}}, // the first one is 48 hours old
		{24 * 9 * time.Hour, []string{"2026-11-29"}},           // nobody was there for a week
	} {
		testkit.Must(t, keys.Update(t.Context(), day.Add(c.at)))
		testkit.Equal(t, "keys after "+c.at.String(), s.keys(t), c.want)
	}
	testkit.Equal(t, "hash of a day whose key is deleted", keys.Hash(noon, 1, client, agent), 0)
}

func TestKeysWithoutStore(t *testing.T) {
	s := openStore(t)
	keys, evening := newKeys(s), noon.Add(9*time.Hour)
	s.away = true
	if keys.Update(t.Context(), evening) == nil || keys.Ready(evening) {
		t.Error("there are keys without a store")
	}
	s.away = false
	testkit.Must(t, keys.Update(t.Context(), evening))
	tonight, tomorrow := keys.Hash(evening, 1, client, agent), keys.Hash(evening.Add(6*time.Hour), 1, client, agent)
	s.away = true
	if keys.Update(t.Context(), evening.Add(6*time.Hour)) == nil {
		t.Error("no error")
	}
	testkit.Equal(t, "hash after midnight", keys.Hash(evening.Add(6*time.Hour), 1, client, agent), tomorrow)

	// A store that has lost the keys, as a restored one may, gets them back.
	lost := openStore(t)
	s.Store, s.away = lost.Store, false
	testkit.Must(t, keys.Update(t.Context(), evening))
	other := newKeys(s)
	testkit.Must(t, other.Update(t.Context(), evening))
	testkit.Equal(t, "hash of another edge", other.Hash(evening, 1, client, agent), tonight)

	// An edge that began with a store of its own takes over the keys of the other one.
	elsewhere := newKeys(openStore(t))
	testkit.Must(t, elsewhere.Update(t.Context(), evening))
	s.Store = openStore(t).Store
	testkit.Must(t, newKeys(s).Update(t.Context(), evening))
	testkit.Must(t, other.Update(t.Context(), evening))
	if other.Hash(evening, 1, client, agent) == tonight {
		t.Error("the edge goes on with its key, and not with that of the store")
	}
}

// BenchmarkHash measures the additional cost per click. Other fields of the header are read anyway.
func BenchmarkHash(b *testing.B) {
	keys := newKeys(openStore(b))
	testkit.Must(b, keys.Update(b.Context(), noon))
	b.ReportAllocs()
	for b.Loop() {
		keys.Hash(noon, 1, client, agent)
	}
}
