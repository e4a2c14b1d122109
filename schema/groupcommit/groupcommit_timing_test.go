package groupcommit_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"linkstream/schema/groupcommit"
)

// BenchmarkDo is what gathering itself costs a call, beside work that takes no time.
func BenchmarkDo(b *testing.B) {
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			batches := 0
			group := groupcommit.New(groupcommit.Limits{Batch: 256, Waiting: 1 << 13, Time: time.Minute},
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
					if _, err := group.Do(ctx, 1); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/float64(batches), "calls/batch")
		})
	}
}
