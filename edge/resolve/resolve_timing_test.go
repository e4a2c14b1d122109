package resolve_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/edge/resolve"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// endlessLinks is a store that has a link with a URL of 111 bytes at every hash.
type endlessLinks struct {
	schema.LinkStore
	schema.DomainStore
}

func (endlessLinks) Destinations(_ context.Context, keys []schema.LinkKey) ([]schema.Destination, error) {
	found := make([]schema.Destination, len(keys))
	for i, key := range keys {
		url := "https://shop.example.com/campaigns/autumn/collection/" + key.Hash + "?utm_source=newsletter&utm_medium=email&utm_content=hero"
		found[i] = schema.Destination{LinkID: 1, AccountID: 2, URL: url[:111], Active: true}
	}
	return found, nil
}

// BenchmarkCachedLink measures the memory of a link in the cache, with a million links.
func BenchmarkCachedLink(b *testing.B) {
	cfg := resolve.DefaultConfig()
	cfg.URL, cfg.CacheBytes = schema.MustParseBaseURL("http://sho.rt"), 400e6
	const links = 1_000_000
	for range b.N {
		before := heapBytes()
		r, err := resolve.New(cfg, endlessLinks{}, endlessLinks{}, metrics.NewSet(), slog.New(slog.DiscardHandler))
		testkit.Must(b, err)
		empty := heapBytes() - before
		now := time.Now()
		for i := range links {
			if _, err := r.Resolve([]byte("sho.rt"), fmt.Appendf(nil, "h%07d", i), netip.Addr{}, now); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(heapBytes()-before)/links, "bytes/link")
		b.ReportMetric(float64(empty)/links, "empty-bytes/link")
		r.Close()
	}
}

// newResolver returns a resolver of a store that knows look-ups only.
func newResolver(tb testing.TB, store interface {
	schema.LinkStore
	schema.DomainStore
}) *resolve.Resolver {
	tb.Helper()
	cfg := resolve.DefaultConfig()
	cfg.URL = schema.MustParseBaseURL("http://sho.rt")
	r, err := resolve.New(cfg, store, store, metrics.NewSet(), slog.New(slog.DiscardHandler))
	testkit.Must(tb, err)
	tb.Cleanup(r.Close)
	return r
}

// BenchmarkResolve measures the look-up of a cached link.
func BenchmarkResolve(b *testing.B) {
	r := newResolver(b, endlessLinks{})
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		host, hash, now := []byte("sho.rt"), []byte("abcdefg"), time.Now()
		for pb.Next() {
			if _, err := r.Resolve(host, hash, netip.Addr{}, now); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkResolveMany measures the look-up of ten thousand cached links in turn.
func BenchmarkResolveMany(b *testing.B) {
	r := newResolver(b, endlessLinks{})
	const links = 10_000
	host, now := []byte("sho.rt"), time.Now()
	hashes := make([][]byte, links)
	for i := range hashes {
		hashes[i] = fmt.Appendf(nil, "h%07d", i)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if _, err := r.Resolve(host, hashes[i%links], netip.Addr{}, now); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMiss measures the look-up of links that are not cached, in a store that costs nothing, by 64 requests at a time.
func BenchmarkMiss(b *testing.B) {
	r := newResolver(b, endlessLinks{})
	b.ReportAllocs()
	b.SetParallelism(32)
	var n atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		host, now := []byte("sho.rt"), time.Now()
		for pb.Next() {
			if _, err := r.Resolve(host, fmt.Appendf(nil, "h%010d", n.Add(1)), netip.Addr{}, now); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkRestore measures the start of a resolver per link in its snapshot.
func BenchmarkRestore(b *testing.B) {
	e := newSavedEnv(b)
	e.resolver.Close()
	e.cfg.CacheBytes = 512 << 20
	testkit.Must(b, resolve.WriteSnapshot(e.cfg.Snapshot, b.N))
	b.ReportAllocs()
	b.ResetTimer()
	e.open(b)
	b.StopTimer()
	testkit.Equal(b, "restored", e.resolver.Restored(), b.N)
}
