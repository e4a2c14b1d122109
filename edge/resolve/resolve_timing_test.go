package resolve_test

import (
	"context"
	"fmt"
	"log/slog"
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

func (endlessLinks) Link(_ context.Context, _ int64, hash string) (schema.Link, error) {
	url := "https://shop.example.com/campaigns/autumn/collection/" + hash + "?utm_source=newsletter&utm_medium=email&utm_content=hero"
	return schema.Link{ID: 1, AccountID: 2, URL: url[:111], Active: true}, nil
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
			if _, err := r.Resolve([]byte("sho.rt"), fmt.Appendf(nil, "h%07d", i), now); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(heapBytes()-before)/links, "bytes/link")
		b.ReportMetric(float64(empty)/links, "empty-bytes/link")
		r.Close()
	}
}

// BenchmarkResolve measures the look-up of a cached link.
func BenchmarkResolve(b *testing.B) {
	cfg := resolve.DefaultConfig()
	cfg.URL = schema.MustParseBaseURL("http://sho.rt")
	r, err := resolve.New(cfg, endlessLinks{}, endlessLinks{}, metrics.NewSet(), slog.New(slog.DiscardHandler))
	testkit.Must(b, err)
	defer r.Close()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		host, hash, now := []byte("sho.rt"), []byte("abcdefg"), time.Now()
		for pb.Next() {
			if _, err := r.Resolve(host, hash, now); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
