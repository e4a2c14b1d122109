package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkSettle measures a click that is counted, and settles with the next batches.
func BenchmarkSettle(b *testing.B) {
	store, source := openClicks(b, filepath.Join(b.TempDir(), "clicks.db")), newVisits()
	source.insert(b, store, 8_000, func() {
		source.at = source.at.Add(7 * time.Minute)
		store.SetNow(func() time.Time { return source.at })
	})
}
