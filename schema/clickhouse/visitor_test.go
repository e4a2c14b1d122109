//go:build engines

package clickhouse_test

import (
	"testing"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestVisitors(t *testing.T) {
	t.Parallel()
	t.Run("are the same after compaction", func(t *testing.T) {
		t.Parallel()
		store := openClicks(t, engines.ClickHouse(t))
		storetest.TestVisitors(t, store, storetest.ManyVisitors, func() storetest.ClickStores {
			_, err := hurriedCompactor(store, 0).CompactAll(t.Context())
			testkit.Must(t, err)
			return store
		})
	})
	t.Run("are the same after a move", func(t *testing.T) {
		t.Parallel()
		from, path := openSource(t)
		to := openClicks(t, engines.ClickHouse(t))
		storetest.TestVisitors(t, from, 25_000, func() storetest.ClickStores { // SQLite has a sample of more
			_, err := to.Import(t.Context(), schema.MoveID{1}, countedBy(from, path))
			testkit.Must(t, err)
			return to
		})
	})
	t.Run("of a sample are the same number after a move", func(t *testing.T) {
		t.Parallel()
		from, path := openSource(t)
		to := openClicks(t, engines.ClickHouse(t))
		source, batch := storetest.NewTraffic(), new(schema.ClickBatch)
		const clicks = 100_000
		source.Fill(batch, 0, clicks)
		for i := range clicks {
			batch.LinkID[i], batch.AccountID[i] = storetest.HotLink, storetest.HotAccount
		}
		testkit.Must(t, from.InsertClicks(t.Context(), batch))
		_, err := to.Import(t.Context(), schema.MoveID{1}, countedBy(from, path))
		testkit.Must(t, err)
		report, err := to.Report(t.Context(), storetest.Days(storetest.HotAccount, []int64{storetest.HotLink}, source.Day, 1))
		testkit.Must(t, err)
		if got := report.Visitors.Total; got < clicks*98/100 || got > clicks*102/100 {
			t.Errorf("%d visitors instead of %d", got, clicks)
		}
	})
}
