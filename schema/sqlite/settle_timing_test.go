package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// BenchmarkSettle measures a click that is counted, and settles with the next batches.
func BenchmarkSettle(b *testing.B) {
	const clicks = 8_000
	store, source := openClicks(b, filepath.Join(b.TempDir(), "clicks.db")), newVisits()
	for b.Loop() {
		b.StopTimer()
		batch := source.fill(clicks)
		source.at = source.at.Add(7 * time.Minute)
		store.SetNow(func() time.Time { return source.at })
		b.StartTimer()
		testkit.Must(b, store.InsertClicks(b.Context(), batch))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*clicks), "ns/click")
}
