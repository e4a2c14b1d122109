//go:build engines

package clickhouse_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

const day = 24 * time.Hour

func hurriedCompactor(store *clickhouse.ClickStore, retention time.Duration) *clickhouse.Compactor {
	c := clickhouse.NewCompactor(store, clickhouse.Retention{Raw: retention}, slog.New(slog.DiscardHandler))
	c.Hurry()
	return c
}

func TestCompactionChangesNoResult(t *testing.T) {
	t.Parallel()
	for protocol, database := range map[string]func(testing.TB) string{
		"native protocol": engines.ClickHouse, "HTTP": engines.ClickHouseHTTP,
	} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			dsn := database(t)
			store, raw := openClicks(t, dsn), openRaw(t, dsn)
			compactor := hurriedCompactor(store, 0)
			storetest.TestCompaction(t, store, func() {
				single := number(t, raw, singleClicks)
				done, err := compactor.CompactAll(t.Context())
				testkit.Must(t, err)
				if compacted := len(done) > 0; compacted != (single > 0) {
					t.Errorf("%d clicks were single, and %v was compacted", single, done)
				}
				testkit.Equal(t, "single clicks", number(t, raw, singleClicks), 0)
			})
			wantExactProjections(t, raw)
		})
	}
}

const singleClicks = `SELECT count() FROM clicks WHERE weight > 0 AND lane_clicks > 0`

// Links of insertMonthOf.
const compactedLinks, compactedAccount = 5, 77

// insertMonthOf inserts rows of 3000 clicks of a month, as a worker has long ago, each month in an incarnation of its
// own.
func insertMonthOf(t *testing.T, raw driver.Conn, at time.Time, month uint32) {
	t.Helper()
	exec(t, raw,
		fmt.Sprintf(`INSERT INTO clicks (link_id, account_id, clicked_at, device, browser, referrer, country, os, language,
			kafka_partition, kafka_offset, kafka_next, incarnation, lane, seq, month)
		SELECT number %% %d + 1, %d, toDateTime64('%s', 3, 'UTC') + number * 400,
			['bot', 'mobile', 'desktop'][number %% 3 + 1],
			['Chrome', 'Firefox'][number %% 2 + 1], ['', 'a.example', 'b.example'][number %% 11 %% 3 + 1],
			['', 'DE'][number %% 2 + 1],
			['', 'iOS', 'Linux'][number %% 3 + 1], ['', 'de'][number %% 2 + 1], number %% 2, number + 3000 * %[4]d,
			if(number >= 2998, number + 3000 * %[4]d + 1, 0), unhex(leftPad('%[4]d', 32, '0')),
			number %% 4, intDiv(number, 4) + 1, %[4]d
		FROM numbers(3000)`, compactedLinks, compactedAccount, at.UTC().Format("2006-01-02 15:04:05"), month))
}

func monthsAgo(n int) time.Time {
	now := time.Now().UTC()
	return time.Date(now.Year(), now.Month()-time.Month(n), 2, 0, 0, 0, 0, time.UTC)
}

// results are the answers of a store about the clicks of insertMonthOf.
type results struct {
	Positions []schema.Position
	Lanes     map[schema.Lane]schema.LaneCount // without the lanes of late clicks
	Counts    map[int64]int64
	Stats     []schema.Stats
	Reports   []schema.Report
}

func readResults(ctx context.Context, store *clickhouse.ClickStore) (r results, err error) {
	var links []int64
	for link := int64(1); link <= compactedLinks; link++ {
		links = append(links, link)
		stats, err := store.LinkStats(ctx, link)
		if err != nil {
			return r, err
		}
		report, err := store.Report(ctx, storetest.Days(compactedAccount, []int64{link}, monthsAgo(20), 640))
		if err != nil {
			return r, err
		}
		r.Stats, r.Reports = append(r.Stats, stats), append(r.Reports, report)
	}
	r.Lanes = map[schema.Lane]schema.LaneCount{}
	err = store.LaneCounts(ctx, func(lane schema.LaneCount) error {
		if lane.Lane.Incarnation[0] == 0 {
			r.Lanes[lane.Lane] = lane
		}
		return nil
	})
	if err != nil {
		return r, err
	}
	for p := range 2 {
		at, err := store.Position(ctx, p)
		if err != nil {
			return r, err
		}
		r.Positions = append(r.Positions, at)
	}
	if r.Counts, err = store.ClickCounts(ctx, 1, links); err != nil {
		return r, err
	}
	first := monthsAgo(16)
	for _, links := range [][]int64{nil, {1, 2}} {
		for _, filter := range []map[schema.Dimension]string{nil, {schema.ByOS: "iOS", schema.ByLanguage: "de"}} {
			report, err := store.Report(ctx, schema.ReportQuery{
				AccountID: compactedAccount, Links: links, Filter: filter, Limit: 10, TopLinks: true,
				Previous: first.AddDate(0, -1, 0), Bounds: []time.Time{first, first.AddDate(0, 2, 0), first.AddDate(0, 4, 0)},
			})
			if err != nil {
				return r, err
			}
			r.Reports = append(r.Reports, report)
		}
	}
	return r, nil
}

func wantResults(t *testing.T, store *clickhouse.ClickStore, want results) {
	t.Helper()
	got, err := readResults(t.Context(), store)
	testkit.Must(t, err)
	testkit.Equal(t, "results", got, want)
}

// wantHours requires that reports have the hours of clicks from the month of first on.
func wantHours(t *testing.T, store *clickhouse.ClickStore, first time.Time) {
	t.Helper()
	detail, err := store.ReportDetail(t.Context())
	testkit.Must(t, err)
	testkit.Equal(t, "first day with hours", detail, schema.ReportDetail{Hours: first.AddDate(0, 0, 1-first.Day())})
}

func TestCompact(t *testing.T) {
	t.Parallel()
	dsn := engines.ClickHouse(t)
	store, raw := openClicks(t, dsn), openRaw(t, dsn)
	old, recent := clickhouse.MonthOf(monthsAgo(15)), clickhouse.MonthOf(monthsAgo(13))
	months := map[uint32]bool{ // whether it is compacted
		old: true, recent: false, clickhouse.MonthOf(monthsAgo(0)): false,
		clickhouse.LateMonths + old: true, clickhouse.LateMonths + recent: false,
	}
	for month := range months {
		insertMonthOf(t, raw, monthsAgo(20), month)
	}
	want, err := readResults(t.Context(), store)
	testkit.Must(t, err)
	testkit.Equal(t, "clicks of link 1", want.Counts[1], int64(len(months)*3000/compactedLinks))
	single := func() uint64 { return number(t, raw, singleClicks) }
	before := single()

	t.Run("compacts no month if clicks are kept for ever", func(t *testing.T) {
		c := clickhouse.NewCompactor(store, clickhouse.Retention{}, slog.New(slog.DiscardHandler))
		done, err := c.Compact(t.Context())
		testkit.Must(t, err)
		testkit.Equal(t, "compacted months", len(done), 0)
		testkit.Equal(t, "single clicks", single(), before)
		wantResults(t, store, want)
	})
	t.Run("does nothing while another process does so", func(t *testing.T) {
		exec(t, raw, "CREATE TABLE compaction_lock (holder String) ENGINE = Memory")
		defer exec(t, raw, "DROP TABLE compaction_lock")
		c := clickhouse.NewCompactor(store, clickhouse.DefaultRetention(), slog.New(slog.DiscardHandler))
		done, err := c.Compact(t.Context())
		testkit.Must(t, err)
		testkit.Equal(t, "compacted months", len(done), 0)
	})
	t.Run("compacts the months before the retention", func(t *testing.T) {
		c := clickhouse.NewCompactor(store, clickhouse.DefaultRetention(), slog.New(slog.DiscardHandler))
		done, err := c.Compact(t.Context())
		testkit.Must(t, err)
		for _, m := range done {
			if !months[m.Month] || m.RowsBefore != 3000 || m.RowsAfter >= m.RowsBefore {
				t.Errorf("compacted %+v", m)
			}
			delete(months, m.Month)
		}
		testkit.Equal(t, "months that stay", len(months), 3)
		wantHours(t, store, monthsAgo(14))
		testkit.Equal(t, "single clicks", single(), 3*3000)
		wantResults(t, store, want)
		wantExactProjections(t, raw)
	})
	t.Run("does nothing again, and leaves no tables", func(t *testing.T) {
		done, err := clickhouse.NewCompactor(store, clickhouse.DefaultRetention(),
			slog.New(slog.DiscardHandler)).Compact(t.Context())
		testkit.Must(t, err)
		testkit.Equal(t, "compacted months", len(done), 0)
		wantHours(t, store, monthsAgo(14))
		testkit.Equal(t, "tables", number(t, raw, `SELECT count() FROM system.tables WHERE database = currentDatabase()`), 6)
	})
	t.Run("does nothing on a cluster, and says so once", func(t *testing.T) {
		cluster, err := clickhouse.OnCluster(clickhouse.Config{DSN: dsn, Cluster: "main"})
		testkit.Must(t, err)
		defer testkit.Close(t, cluster)
		log := new(testkit.Buffer)
		c := clickhouse.NewCompactor(cluster, clickhouse.Retention{Raw: 120 * day}, log.Logger())
		done, err := c.Compact(t.Context())
		testkit.Must(t, err)
		if len(done) > 0 || strings.Count(log.String(), "not supported on a cluster") != 1 {
			t.Errorf("compacted %v, log %s", done, log)
		}
	})
}

// TestCompactionDuringReadsAndInserts reads all the time while months are compacted and late clicks arrive.
func TestCompactionDuringReadsAndInserts(t *testing.T) {
	t.Parallel()
	const months, latePartition, lateLink = 2, 5, 999
	dsn := engines.ClickHouse(t)
	store, raw := openClicks(t, dsn), openRaw(t, dsn)
	for i := range months {
		at := monthsAgo(14 + i)
		insertMonthOf(t, raw, at, clickhouse.MonthOf(at))
	}
	want, err := readResults(t.Context(), store)
	testkit.Must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var reads, late atomic.Int64
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			got, err := readResults(t.Context(), store)
			if err != nil {
				t.Error(err)
				return
			}
			testkit.Equal(t, "results", got, want)
			reads.Add(1)
		}
	})
	group.Go(func() {
		batch, source := new(schema.ClickBatch), storetest.NewTraffic()
		source.Day = monthsAgo(14)
		for ctx.Err() == nil {
			source.Fill(batch, latePartition, 10)
			for i := range batch.LinkID {
				batch.LinkID[i] = lateLink
			}
			if err := store.InsertClicks(t.Context(), batch); err != nil {
				t.Error(err)
				return
			}
			late.Add(10)
		}
	})
	testkit.Eventually(t, "the first read", func() bool { return reads.Load() > 0 && late.Load() > 0 })
	done, err := hurriedCompactor(store, 400*day).Compact(t.Context())
	readsBefore, lateBefore := reads.Load(), late.Load()
	testkit.Eventually(t, "another read", func() bool { return reads.Load() > readsBefore+1 && late.Load() > lateBefore })
	stop()
	group.Wait()
	testkit.Must(t, err)
	testkit.Equal(t, "compacted months", len(done), months)
	wantResults(t, store, want)
	counts, err := store.ClickCounts(t.Context(), 1, []int64{lateLink})
	testkit.Must(t, err)
	testkit.Equal(t, "late clicks", counts[lateLink], late.Load())
}

// TestKilledCompaction cuts a compaction off from the server at each of its statements, before or while the server
// executes it. No later statement arrives, as after a kill. The next compaction completes the work.
func TestKilledCompaction(t *testing.T) {
	t.Parallel()
	dsn := engines.ClickHouse(t)
	store, raw := openClicks(t, dsn), openRaw(t, dsn)
	for i, c := range []struct {
		statement string
		nth       int
		during    bool
	}{
		{"CREATE TABLE compaction_lock", 1, true}, {"CREATE TABLE clicks_compacted", 1, true},
		{"INSERT INTO clicks_compacted", 1, true}, {"INSERT INTO clicks_compacted", 2, false},
		{"SELECT toString((", 2, false}, {"REPLACE PARTITION", 1, false}, {"REPLACE PARTITION", 1, true},
		{"DROP TABLE IF EXISTS clicks_compacted", 1, false}, {"DROP TABLE IF EXISTS compaction_lock", 1, false},
	} {
		t.Run(fmt.Sprintf("at %s %d, during %v", c.statement, c.nth, c.during), func(t *testing.T) {
			at := monthsAgo(14 + i)
			insertMonthOf(t, raw, at, clickhouse.MonthOf(at))
			want, err := readResults(t.Context(), store)
			testkit.Must(t, err)
			var seen atomic.Int64
			_, behind := startProxy(t, dsn, func(sent []byte, forward func()) bool {
				if !bytes.Contains(sent, []byte(c.statement)) || seen.Add(1) != int64(c.nth) {
					return true
				}
				if c.during {
					forward()
				}
				return false
			})
			if _, err := hurriedCompactor(openClicks(t, behind), 400*day).Compact(t.Context()); err == nil {
				t.Fatal("the compaction was not cut off")
			}
			wantResults(t, store, want)
			_, err = hurriedCompactor(store, 400*day).Compact(t.Context())
			testkit.Must(t, err)
			wantResults(t, store, want)
			testkit.Equal(t, "single clicks", number(t, raw, singleClicks), 0)
			testkit.Equal(t, "tables", number(t, raw, `SELECT count() FROM system.tables WHERE database = currentDatabase()`), 6)
		})
	}
	wantExactProjections(t, raw)
}

// TestCompactionOfAChangingMonth inserts a click while its month is compacted, which no worker can.
func TestCompactionOfAChangingMonth(t *testing.T) {
	t.Parallel()
	dsn := engines.ClickHouse(t)
	store, raw := openClicks(t, dsn), openRaw(t, dsn)
	month := clickhouse.MonthOf(monthsAgo(14))
	insertMonthOf(t, raw, monthsAgo(14), month)
	var once sync.Once
	_, behind := startProxy(t, dsn, func(sent []byte, _ func()) bool {
		if bytes.Contains(sent, []byte("SELECT toString((")) {
			once.Do(func() { exec(t, raw, fmt.Sprintf("INSERT INTO clicks (link_id, month) VALUES (1, %d)", month)) })
		}
		return true
	})
	_, err := hurriedCompactor(openClicks(t, behind), 400*day).Compact(t.Context())
	testkit.WantError(t, err, schema.CodeInternal, "it stays as it is")
	testkit.Equal(t, "single clicks", number(t, raw, singleClicks), 3001)
	_, err = hurriedCompactor(store, 400*day).Compact(t.Context())
	testkit.Must(t, err)
	counts, err := store.ClickCounts(t.Context(), 1, []int64{1})
	testkit.Must(t, err)
	testkit.Equal(t, "clicks", counts[1], 3000/compactedLinks+1)
}

func TestRetention(t *testing.T) {
	for raw, valid := range map[time.Duration]bool{0: true, 120 * day: true, 400 * day: true, 119 * day: false,
		-day: false} {
		if err := (&clickhouse.Retention{Raw: raw}).Validate(); (err == nil) != valid {
			t.Errorf("%v: error %v", raw, err)
		}
	}
}
