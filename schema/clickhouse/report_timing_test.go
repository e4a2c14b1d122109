package clickhouse_test

import (
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
	all, week := time.Time{}, source.Day.AddDate(0, 0, days-7)
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
		{"LinkReport", func(s *clickhouse.ClickStore) error {
			_, err := s.LinkReport(b.Context(), storetest.HotLink, all)
			return err
		}},
		{"LinkReport of a week", func(s *clickhouse.ClickStore) error {
			_, err := s.LinkReport(b.Context(), storetest.HotLink, week)
			return err
		}},
		{"LinkReport of a cold link", func(s *clickhouse.ClickStore) error {
			_, err := s.LinkReport(b.Context(), storetest.TrafficLinks/2, all)
			return err
		}},
		{"AccountReport", func(s *clickhouse.ClickStore) error {
			_, err := s.AccountReport(b.Context(), storetest.HotAccount, all, all)
			return err
		}},
		{"AccountReport of a week", func(s *clickhouse.ClickStore) error {
			_, err := s.AccountReport(b.Context(), storetest.HotAccount, week, week)
			return err
		}},
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
