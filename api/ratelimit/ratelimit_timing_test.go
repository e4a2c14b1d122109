package ratelimit_test

import (
	"context"
	"testing"
	"time"

	"linkstream/api/ratelimit"
)

// grants answers every lease with the same grant. What a lease costs in a store is measured by the stores' benchmarks.
type grants int

func (g grants) LeaseRequests(context.Context, int64, time.Time, int) (granted, left int, err error) {
	return int(g), int(g), nil
}

func BenchmarkRequestLimiter(b *testing.B) {
	for name, store := range map[string]grants{"within a lease": 1 << 60, "refused": 0} {
		b.Run(name, func(b *testing.B) {
			limiter := ratelimit.NewRequestLimiter(store)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for id := int64(0); pb.Next(); id++ {
					_, _ = limiter.Allow(b.Context(), id%1000)
				}
			})
		})
	}
}
