package sqlite_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// Concurrent transactions that prepare the same new queries do not wait for each other's connections.
func TestFirstQueriesAtOnce(t *testing.T) {
	store := openClicks(t, filepath.Join(t.TempDir(), "clicks.db"))
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	var readers sync.WaitGroup
	for link := range int64(32) {
		readers.Go(func() {
			if _, err := store.Report(ctx, storetest.Days(1, []int64{link}, time.Now(), 3)); err != nil {
				t.Error(err)
			}
		})
	}
	readers.Wait()
}
