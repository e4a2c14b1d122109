package clickhouse_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/testkit"
)

// madeClicks makes a block of clicks within 30 days on the server: two fifths of them on link 1, the others on a million links, as
// many on the links 2 to 10 as on those from 100,000 on. Systems depend on devices, languages on countries. Most visitors come
// twice, half of a month apart.
const madeClicks = `
INSERT INTO clicks (link_id, account_id, clicked_at, device, browser, os, referrer, country, language, kafka_partition, kafka_offset,
	kafka_next, incarnation, lane, seq, month, visitor)
WITH toUInt64(?) AS total, ? + number AS n, cityHash64(n) AS a, cityHash64(n, 1) AS b, cityHash64(n, 2) AS c,
	if(a % 10 < 4, 1, 2 + toInt64(exp((a % 1000000007) / 1000000007 * log(999999)) - 1) * 7919 % 999999) AS link,
	toDateTime64('2026-10-24 00:00:00', 3, 'UTC') + toIntervalMillisecond(intDiv(n * 2592000, total) * 1000 + n % 1000) AS at,
	b % 100 AS of_device, multiIf(of_device < 55, 'mobile', of_device < 88, 'desktop', of_device < 92, 'tablet', of_device < 99, 'bot', 'other') AS kind,
	least(intDiv(b, 128) % 7, intDiv(b, 1024) % 7) AS of_browser, least(c % 40, intDiv(c, 64) % 40) AS land
SELECT link, link % 1000 + 1, at, kind,
	['Chrome', 'Safari', 'Edge', 'Samsung Internet', 'Firefox', 'Opera', 'Brave'][1 + of_browser],
	if(kind = 'mobile', ['Android', 'iOS'][1 + least(1, of_browser)], ['Windows', 'macOS', 'Linux'][1 + of_browser % 3]),
	if(intDiv(c, 4096) % 5 < 3, '', concat('host-', toString(least(intDiv(c, 65536) % 300, intDiv(c, 33554432) % 300)), '.example')),
	char(65 + land % 20, 65 + intDiv(land, 20)), if(intDiv(b, 65536) % 5 = 0, 'en', char(97 + land % 20, 97 + intDiv(land, 20))),
	n % 8, n, if(number = rows - 1, n + 1, 0), unhex('01020304050607080102030405060708'), n % 8, n + 1, toYYYYMM(at),
	if(kind = 'bot', 0, cityHash64(n % intDiv(total, 2), 3))
FROM (SELECT number, toUInt64(?) AS rows FROM numbers(toUInt64(?)))
SETTINGS max_threads = 1, async_insert = 0, max_block_size = 1000000, min_insert_block_size_rows = 1000000, max_insert_block_size = 1000000`

// warmUp is how many reads are not measured: a server that has just started reads marks and opens files.
const warmUp = 3

// serverCPU is the CPU time of all queries and merges, in microseconds.
const serverCPU = "SELECT toUInt64(value) FROM system.events WHERE event = 'OSCPUVirtualTimeMicroseconds'"

// benchDatabase returns a database of its own, or the one that LINKSTREAM_BENCH_CLICKHOUSE names: there, clicks that a benchmark has
// made stay for the next one.
func benchDatabase(b *testing.B) (dsn string) {
	b.Helper()
	if dsn = os.Getenv("LINKSTREAM_BENCH_CLICKHOUSE"); dsn == "" {
		dsn = engines.ClickHouse(b)
	}
	return dsn
}

// makeClicks makes clicks, by default a million, unless there are some. LINKSTREAM_BENCH_CLICKS is another number: the targets are those
// of 50 million, and those of statistics also of 500 million.
func makeClicks(b *testing.B, raw driver.Conn) (clicks int) {
	b.Helper()
	clicks, err := strconv.Atoi(cmp.Or(os.Getenv("LINKSTREAM_BENCH_CLICKS"), "1000000"))
	testkit.Must(b, err)
	for n := int(number(b, raw, "SELECT count() FROM clicks")); n < clicks; n += 500_000 {
		rows := min(clicks-n, 500_000)
		ctx := ch.Context(b.Context(), ch.WithSettings(ch.Settings{"max_execution_time": 600}))
		testkit.Must(b, raw.Exec(ctx, madeClicks, clicks, n, rows, rows))
	}
	testkit.Eventually(b, "merges end", func() bool {
		return number(b, raw, "SELECT count() FROM system.merges WHERE database = currentDatabase()") == 0
	})
	return clicks
}

// BenchmarkReports reads statistics and reports of a month, of a link that has two fifths of all clicks, of a link that has few, and
// of an account. The server's CPU time says more than times on a busy machine.
func BenchmarkReports(b *testing.B) {
	dsn := benchDatabase(b)
	store, raw := openClicks(b, dsn), openRaw(b, dsn)
	b.Logf("%d clicks", makeClicks(b, raw))
	const hot, cold = 1, 500_001
	month := func(links []int64, zone *time.Location, filter map[schema.Dimension]string) func(*clickhouse.ClickStore) error {
		q := schema.ReportQuery{AccountID: hot%1000 + 1, Links: links, Limit: 10, TopLinks: links == nil, Filter: filter, Visitors: true}
		if len(links) > 0 {
			q.AccountID = links[0]%1000 + 1
		}
		for i := range 31 {
			q.Bounds = append(q.Bounds, time.Date(2026, time.October, 24+i, 0, 0, 0, 0, zone).UTC())
		}
		q.Previous = q.Bounds[0].AddDate(0, 0, -30)
		return func(s *clickhouse.ClickStore) error {
			_, err := s.Report(b.Context(), q)
			return err
		}
	}
	berlin := time.FixedZone("Berlin", 3600)
	country, device := map[schema.Dimension]string{schema.ByCountry: "CA"}, map[schema.Dimension]string{schema.ByDevice: "mobile"}
	for _, bench := range []struct {
		name string
		read func(*clickhouse.ClickStore) error
	}{
		{"stats/hot", func(s *clickhouse.ClickStore) error { _, err := s.LinkStats(b.Context(), hot); return err }},
		{"stats/cold", func(s *clickhouse.ClickStore) error { _, err := s.LinkStats(b.Context(), cold); return err }},
		{"month/hot", month([]int64{hot}, time.UTC, nil)}, {"month/cold", month([]int64{cold}, time.UTC, nil)},
		{"month/hot in Berlin", month([]int64{hot}, berlin, nil)},
		{"filtered by country/hot", month([]int64{hot}, time.UTC, country)},
		{"filtered by country/cold", month([]int64{cold}, time.UTC, country)},
		{"filtered by device/hot", month([]int64{hot}, time.UTC, device)},
		{"filtered by country in Berlin/hot", month([]int64{hot}, berlin, country)},
		{"account", month(nil, time.UTC, nil)}, {"account in Berlin", month(nil, berlin, nil)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			for range warmUp {
				testkit.Must(b, bench.read(store))
			}
			var took []time.Duration
			before := number(b, raw, serverCPU)
			for b.Loop() {
				begin := time.Now()
				testkit.Must(b, bench.read(store))
				took = append(took, time.Since(begin))
			}
			b.ReportMetric(float64(number(b, raw, serverCPU)-before)/1000/float64(b.N), "server-cpu-ms")
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[(len(took)*99-1)/100].Microseconds())/1000, "p99-ms") // of 100 reads and more; else the slowest
		})
	}
}

// BenchmarkProjections inserts the same clicks into tables that lack one projection each, and reports how much CPU time of the server
// is the projection's, of tables on a server that does nothing else.
func BenchmarkProjections(b *testing.B) {
	dsn := engines.ClickHouse(b)
	openClicks(b, dsn)
	raw := openRaw(b, dsn)
	const source = `CREATE TABLE made ENGINE = Memory AS SELECT * FROM clicks`
	testkit.Must(b, raw.Exec(b.Context(), "SYSTEM STOP MERGES clicks"))
	testkit.Must(b, raw.Exec(b.Context(), madeClicks, 50_000_000, 0, 500_000, 500_000))
	testkit.Must(b, raw.Exec(b.Context(), source))
	tables := []string{"", "none", "link_clients", "link_places", "link_referrers", "link_quarters", "dimensions", "account_links",
		"account_quarters", "link_visitors", "account_visitors", "account_rows", "log_ends", "lane_marks"}
	for i, without := range tables {
		table := fmt.Sprintf("clicks_%d", i)
		testkit.Must(b, raw.Exec(b.Context(), "CREATE TABLE "+table+" AS clicks"))
		for _, projection := range tables[2:] {
			if without == projection || without == "none" {
				testkit.Must(b, raw.Exec(b.Context(), "ALTER TABLE "+table+" DROP PROJECTION "+projection))
			}
		}
		b.Run("without "+cmp.Or(without, "nothing"), func(b *testing.B) {
			before := number(b, raw, serverCPU)
			for b.Loop() {
				testkit.Must(b, raw.Exec(b.Context(), "INSERT INTO "+table+" SELECT * FROM made SETTINGS max_threads = 1, max_block_size = 1000000, "+
					"min_insert_block_size_rows = 1000000, group_by_two_level_threshold = 0, group_by_two_level_threshold_bytes = 0"))
			}
			b.ReportMetric(float64(number(b, raw, serverCPU)-before)*1000/float64(b.N)/500_000, "server-cpu-ns/click")
		})
	}
}
