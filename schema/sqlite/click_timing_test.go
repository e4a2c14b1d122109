package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func BenchmarkInsertClicks(b *testing.B) {
	for _, clicks := range []int{100, 1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("clicks=%d", clicks), func(b *testing.B) {
			store := openClicks(b, filepath.Join(b.TempDir(), "clicks.db"))
			batch, source := new(schema.ClickBatch), storetest.NewTraffic()
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				source.Fill(batch, 0, clicks)
				b.StartTimer()
				testkit.Must(b, store.InsertClicks(b.Context(), batch))
			}
			b.ReportMetric(float64(b.N*clicks)/b.Elapsed().Seconds(), "clicks/s")
		})
	}
}

func BenchmarkClicks(b *testing.B) {
	for _, days := range []int{1, 10, 100} {
		storetest.BenchmarkClickStore(b, openClicks(b, filepath.Join(b.TempDir(), "clicks.db")), days, 20_000)
	}
}
