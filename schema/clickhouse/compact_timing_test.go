//go:build engines

package clickhouse_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"linkstream/schema/clickhouse"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// insertTraffic inserts clicks of a month as workers do, in 8 lanes of 4 edges. link is an expression of the click's
// number n and a random number r.
func insertTraffic(b *testing.B, raw driver.Conn, begin time.Time, clicks int, link string) {
	b.Helper()
	exec(b, raw,
		fmt.Sprintf(`INSERT INTO clicks (link_id, account_id, clicked_at, device, browser, referrer, country, kafka_partition,
			kafka_offset, kafka_next, incarnation, lane, seq, month)
		WITH number AS n, cityHash64(n, %[1]d) AS r
		SELECT (%[2]s) AS link, link %% 1000 + 1,
			toDateTime64('%[3]s', 3, 'UTC') + toIntervalMillisecond(intDiv(n * 2592000000, %[4]d)),
			['mobile', 'mobile', 'mobile', 'desktop', 'desktop', 'tablet', 'bot'][r %% 7 + 1],
			['Chrome', 'Mobile Safari', 'Chrome', 'Mobile Safari', 'Chrome', 'Safari', 'Edge', 'Firefox',
				'Opera'][intDiv(r, 7) %% 9 + 1],
			if(r %% 10 < 6, '', 'host-' || toString(intDiv(r, 63) %% 1000 %% (1 + intDiv(r, 63000) %% 30)) || '.example'),
			['DE', 'DE', 'DE', 'FR', 'FR', 'US', 'AT', 'CH', 'JP', 'GB'][intDiv(r, 2000000) %% 10 + 1],
			n %% 4, intDiv(n, 4), if(n %% 10000 = 0, intDiv(n, 4) + 1, 0), reinterpretAsFixedString(sipHash128(n %% 4)), n %% 32,
			intDiv(n, 32) + 1, %[1]d
		FROM numbers(%[4]d)`, clickhouse.MonthOf(begin), link, begin.Format("2006-01-02 15:04:05"), clicks))
}

// BenchmarkCompactedDisk compacts a month of a million clicks, and reports bytes on disk and rows per click before and
// after. Use -benchtime 1x for the time of a compaction.
func BenchmarkCompactedDisk(b *testing.B) {
	const clicks = 1_000_000
	for _, traffic := range []struct{ name, link string }{
		{"100 hot links", "r % 100 + 1"},
		{"10,000 links", "r % 10000 + 1"},
		{"long tail of 1,000,000 links", "r % 1000000 + 1"},
	} {
		b.Run(traffic.name, func(b *testing.B) {
			dsn := engines.ClickHouse(b)
			store, raw := openClicks(b, dsn), openRaw(b, dsn)
			begin := monthsAgo(14)
			insertTraffic(b, raw, begin, clicks, traffic.link)
			report := map[string]float64{}
			measure := func(what string) {
				bytes := number(b, raw, bytesOnDisk)
				report[what+"-B/click"] = float64(bytes) / clicks
				report[what+"-rows/click"] = float64(number(b, raw, "SELECT count() FROM clicks")) / clicks
			}
			exec(b, raw, "OPTIMIZE TABLE clicks FINAL")
			measure("raw")
			for b.Loop() { // the first one compacts
				_, err := hurriedCompactor(store, 400*day).Compact(b.Context())
				testkit.Must(b, err)
			}
			exec(b, raw, "OPTIMIZE TABLE clicks FINAL")
			measure("compacted")
			for unit, n := range report {
				b.ReportMetric(n, unit)
			}
		})
	}
}

const bytesOnDisk = `SELECT sum(bytes_on_disk) FROM system.parts WHERE database = currentDatabase() AND table = ` +
	`'clicks' AND active`

// BenchmarkFiveYears reads the statistics and the report of a link with 10,000 clicks in each of 60 months, before and
// after compaction. Other links have the same number of clicks.
func BenchmarkFiveYears(b *testing.B) {
	const months, clicks, link = 60, 20_000, 1
	for _, compacted := range []bool{false, true} {
		dsn := engines.ClickHouse(b)
		store, raw := openClicks(b, dsn), openRaw(b, dsn)
		for i := range months {
			insertTraffic(b, raw, monthsAgo(14+i), clicks, "if(r % 2 = 0, 1, r % 10000 + 1)")
		}
		if compacted {
			_, err := hurriedCompactor(store, 400*day).Compact(b.Context())
			testkit.Must(b, err)
		}
		for name, read := range map[string]func() error{
			"LinkStats": func() error { _, err := store.LinkStats(b.Context(), link); return err },
			"Report": func() error {
				_, err := store.Report(b.Context(), storetest.Days(1, []int64{link}, monthsAgo(15), 480))
				return err
			},
		} {
			b.Run(fmt.Sprintf("%s/compacted=%v", name, compacted), func(b *testing.B) {
				for b.Loop() {
					testkit.Must(b, read())
				}
			})
		}
	}
}
