//go:build engines

package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/sqlite"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// openSource returns a click store in a file, and the file.
func openSource(t *testing.T) (*sqlite.ClickStore, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "clicks.db")
	store, err := sqlite.OpenClickStore(t.Context(), path)
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Close(t, store) })
	return store, path
}

// countedBy returns the counts of the store in a file.
func countedBy(store *sqlite.ClickStore, path string) clickhouse.Counted {
	return clickhouse.Counted{
		Clicks: func(ctx context.Context, each func(*schema.ClickCount) error) error {
			return sqlite.ExportClicks(ctx, path, each)
		},
		Lanes: store.LaneCounts,
		Visitors: func(ctx context.Context, each func(schema.CountedVisitor) error) error {
			return sqlite.ExportVisitors(ctx, path, each)
		},
		Gaps: func(ctx context.Context) ([]schema.Gap, error) { return sqlite.ExportGaps(ctx, path) },
		Histories: func(ctx context.Context, each func(schema.History) error) error {
			return sqlite.ExportHistories(ctx, path, each)
		},
	}
}

// oneClick returns a batch of the first click of a lane.
func oneClick(link int64) *schema.ClickBatch {
	return storetest.NoNames(&schema.ClickBatch{Next: 1, Time: time.Now(), Offset: []int64{0},
		Lane: []schema.Lane{{Number: 3}}, Seq: []uint64{1},
		LinkID: []int64{link}, AccountID: []int64{1}, ClickedAt: []time.Time{time.Now().UTC()},
		Device:  []schema.Device{schema.Mobile},
		Browser: []string{"Firefox"}, Referrer: []string{"a.example"}, Country: []string{"DE"},
		OS: []string{"iOS"}, Language: []string{"de"}, Route: []string{"phones"}})
}

func TestImport(t *testing.T) {
	t.Parallel()
	id := schema.MoveID{1, 2, 3}
	t.Run("changes no result", func(t *testing.T) {
		t.Parallel()
		dsn := engines.ClickHouse(t)
		from, path := openSource(t)
		to, raw := openClicks(t, dsn), openRaw(t, dsn)
		storetest.TestMove(t, from, to, func() {
			_, err := to.Import(t.Context(), id, countedBy(from, path))
			testkit.Must(t, err)
		})
		detail, err := to.ReportDetail(t.Context())
		testkit.Must(t, err)
		testkit.Equal(t, "detail of clicks that have moved", detail, schema.ReportDetail{})
		testkit.Equal(t, "tables left over", number(t, raw,
			"SELECT count() FROM system.tables WHERE database = currentDatabase() AND name = 'clicks_moved'"), 0)
		// Months of other clicks are compacted, this one is not.
		before := number(t, raw, "SELECT count() FROM clicks WHERE month = 2000000")
		_, err = hurriedCompactor(to, 0).CompactAll(t.Context())
		testkit.Must(t, err)
		testkit.Equal(t, "rows of the move", number(t, raw, "SELECT count() FROM clicks WHERE month = 2000000"), before)
	})
	t.Run("refuses a store with other clicks", func(t *testing.T) {
		t.Parallel()
		dsn := engines.ClickHouse(t)
		from, path := openSource(t)
		to := openClicks(t, dsn)
		testkit.Must(t, to.InsertClicks(t.Context(), oneClick(1)))
		_, err := to.Import(t.Context(), id, countedBy(from, path))
		testkit.WantError(t, err, schema.CodeConflict, "it has clicks of another service")
	})
	t.Run("refuses the move of another service", func(t *testing.T) {
		t.Parallel()
		from, path := openSource(t)
		testkit.Must(t, from.InsertClicks(t.Context(), oneClick(1)))
		to := openClicks(t, engines.ClickHouse(t))
		_, err := to.Import(t.Context(), id, countedBy(from, path))
		testkit.Must(t, err)
		_, err = to.Import(t.Context(), schema.MoveID{9}, countedBy(from, path))
		testkit.WantError(t, err, schema.CodeConflict, "it has clicks of another service")
	})
	t.Run("goes on after a run that was killed, and puts nothing in place that differs", func(t *testing.T) {
		t.Parallel()
		from, path := openSource(t)
		testkit.Must(t, from.InsertClicks(t.Context(), oneClick(1)))
		to := openClicks(t, engines.ClickHouse(t))
		killed := countedBy(from, path)
		died := errors.New("died")
		killed.Gaps = func(context.Context) ([]schema.Gap, error) { return nil, died }
		if _, err := to.Import(t.Context(), id, killed); !errors.Is(err, died) {
			t.Fatalf("error %v", err)
		}
		changing, lanes := countedBy(from, path), countedBy(from, path)
		runs := 0 // the second one compares
		changing.Clicks = func(ctx context.Context, each func(*schema.ClickCount) error) error {
			runs++
			return sqlite.ExportClicks(ctx, path, func(c *schema.ClickCount) error {
				c.Names[schema.ByReferrer] = fmt.Sprint(runs)
				return each(c)
			})
		}
		reads := 0
		lanes.Lanes = func(ctx context.Context, each func(schema.LaneCount) error) error {
			reads++
			return from.LaneCounts(ctx, func(lane schema.LaneCount) error {
				lane.Mark += uint64(reads)
				return each(lane)
			})
		}
		for name, changed := range map[string]clickhouse.Counted{"other counts": changing, "other marks": lanes} {
			_, err := to.Import(t.Context(), id, changed)
			testkit.WantError(t, err, schema.CodeInternal, "nothing was put in place")
			counts, err := to.ClickCounts(t.Context(), 1, []int64{1})
			testkit.Must(t, err)
			testkit.Equal(t, "links with clicks after "+name, len(counts), 0)
		}
		clicks, err := to.Import(t.Context(), id, countedBy(from, path))
		testkit.Must(t, err)
		testkit.Equal(t, "clicks", clicks, 1)
		counts, err := to.ClickCounts(t.Context(), 1, []int64{1})
		testkit.Must(t, err)
		testkit.Equal(t, "counts", counts, map[int64]int64{1: 1})
	})
}
