package groupcommit_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"linkstream/schema/groupcommit"
)

// BenchmarkSubmit measures the cost of batching per call, with a commit function that does nothing.
func BenchmarkSubmit(b *testing.B) {
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			batches := 0
			group := groupcommit.New(groupcommit.Limits{Batch: 256, Queue: 1 << 13, Timeout: time.Minute},
				func(context.Context, []*groupcommit.Call[int]) error {
					batches++
					return nil
				})
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			b.ReportAllocs()
			b.SetParallelism(callers)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := group.Submit(ctx, 1); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/float64(batches), "calls/batch")
		})
	}
}
