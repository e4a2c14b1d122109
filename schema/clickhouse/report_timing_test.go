package clickhouse_test

import (
	"flag"
	"slices"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// BenchmarkBigReads reads from 10 million clicks of 30 days. The hot link has two fifths of them, and its account slightly
// more.
func BenchmarkBigReads(b *testing.B) {
	const batches, clicks, days = 20, 500_000, 30
	store := openClicks(b, engines.ClickHouse(b))
	batch, source := new(schema.ClickBatch), storetest.NewTraffic()
	for range batches {
		source.Fill(batch, 0, clicks)
		for i := range clicks {
			batch.ClickedAt[i] = batch.ClickedAt[i].AddDate(0, 0, i%days)
			if source.Random.IntN(5) < 2 {
				batch.LinkID[i], batch.AccountID[i] = storetest.HotLink, storetest.HotAccount
			}
		}
		testkit.Must(b, store.InsertClicks(b.Context(), batch))
	}
	all, week := source.Day, source.Day.AddDate(0, 0, days-7)
	report := func(links []int64, first time.Time, days int) func(*clickhouse.ClickStore) error {
		return func(s *clickhouse.ClickStore) error {
			_, err := s.Report(b.Context(), storetest.Days(storetest.HotAccount, links, first, days))
			return err
		}
	}
	for _, bench := range []struct {
		name string
		read func(*clickhouse.ClickStore) error
	}{
		{"LinkStats", func(s *clickhouse.ClickStore) error {
			_, err := s.LinkStats(b.Context(), storetest.HotLink)
			return err
		}},
		{"LinkStats of a cold link", func(s *clickhouse.ClickStore) error {
			_, err := s.LinkStats(b.Context(), storetest.TrafficLinks/2)
			return err
		}},
		{"report of a link", report([]int64{storetest.HotLink}, all, days)},
		{"report of a week of a link", report([]int64{storetest.HotLink}, week, 7)},
		{"report of a cold link", report([]int64{storetest.TrafficLinks / 2}, all, days)},
		{"report of an account", report(nil, all, days)},
		{"report of a week of an account", report(nil, week, 7)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				begin := time.Now()
				testkit.Must(b, bench.read(store))
				took = append(took, time.Since(begin))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

var floodClicks = flag.Int("flood", 1_000_000, "`clicks` of BenchmarkFlood")

func BenchmarkFlood(b *testing.B) {
	dsn := engines.ClickHouse(b)
	storetest.BenchmarkFlood(b, openClicks(b, dsn), *floodClicks)
	raw := openRaw(b, dsn)
	for name, query := range map[string]string{
		"rows of the projection dimensions": "SELECT sum(rows) FROM system.projection_parts WHERE name = 'dimensions' AND",
		"KiB":                               "SELECT intDiv(sum(bytes_on_disk), 1024) FROM system.parts WHERE",
	} {
		b.Logf("%d %s of %d clicks", number(b, raw, query+" database = currentDatabase() AND table = 'clicks' AND active"), name, *floodClicks)
	}
}
