package clickhouse_test

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/testkit"
)

const (
	popularLinks = 1_000_000
	someAccounts = 1_000 // that own them
)

// traffic makes batches whose links follow a Zipf law, the popular ones anywhere among the IDs, as in real traffic.
type traffic struct {
	random                     *rand.Rand
	links, browsers, referrers *rand.Zipf
	next                       int64
	day                        time.Time
}

var (
	someDevices = []schema.Device{
		schema.Mobile, schema.Mobile, schema.Mobile, schema.Desktop, schema.Desktop, schema.Tablet, schema.Bot,
	}
	someBrowsers = []string{
		"Chrome", "Mobile Safari", "Safari", "Edge", "Samsung Internet", "Firefox", "Instagram", "Opera", "Googlebot",
		"Facebook", "UC Browser", "Brave", "Yandex Browser", "curl", "Vivaldi",
	}
	someReferrers = names(30, func(i int) string { return fmt.Sprintf("host-%d.example", i) })
	someCountries = names(20, func(i int) string { return string([]rune{rune('A' + i), rune('Z' - i)}) })
)

func names(n int, name func(i int) string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = name(i)
	}
	return all
}

func newTraffic() *traffic {
	random := rand.New(rand.NewPCG(1, 2))
	return &traffic{
		random: random, links: rand.NewZipf(random, 1.1, 10, popularLinks-1),
		browsers:  rand.NewZipf(random, 1.3, 2, uint64(len(someBrowsers)-1)),
		referrers: rand.NewZipf(random, 1.3, 2, uint64(len(someReferrers)-1)),
		day:       time.Date(2026, time.November, 21, 0, 0, 0, 0, time.UTC),
	}
}

func (tr *traffic) fill(b *schema.ClickBatch, partition, clicks int) {
	b.Reset(partition, tr.next)
	b.Time = tr.day
	for i := range clicks {
		b.Offset = append(b.Offset, tr.next)
		tr.next++
		b.Lane = append(b.Lane, schema.Lane{Incarnation: schema.Incarnation{1, 15: 1}, Number: uint32(i % 8)})
		b.Seq = append(b.Seq, uint64(tr.next))
		link := int64(tr.links.Uint64()*7919%popularLinks) + 1
		b.LinkID, b.AccountID = append(b.LinkID, link), append(b.AccountID, link%someAccounts+1)
		b.ClickedAt = append(b.ClickedAt, tr.day.Add(time.Duration(i)*time.Millisecond))
		b.Device = append(b.Device, someDevices[tr.random.IntN(len(someDevices))])
		b.Browser = append(b.Browser, someBrowsers[tr.browsers.Uint64()])
		referrer := ""
		if tr.random.IntN(100) >= 60 {
			referrer = someReferrers[tr.referrers.Uint64()]
		}
		b.Referrer = append(b.Referrer, referrer)
		b.Country = append(b.Country, someCountries[min(tr.random.IntN(20), tr.random.IntN(20))])
	}
	b.Next = tr.next
}

// BenchmarkInsertClicks takes turns with a loop of nothing but clickhouse-go that inserts the same rows into the same
// table as another partition's, so that both meet the same server: ratio is the time of InsertClicks to that of the loop.
func BenchmarkInsertClicks(b *testing.B) {
	for _, clicks := range []int{1_000, 10_000, 100_000, 500_000} {
		b.Run(fmt.Sprintf("clicks=%d", clicks), func(b *testing.B) {
			dsn := engines.ClickHouse(b)
			store, bare := openClicks(b, dsn), openBare(b, dsn)
			batch, source := new(schema.ClickBatch), newTraffic()
			var inserting, looping, cpu time.Duration
			for b.Loop() {
				source.fill(batch, 0, clicks)
				begin, cpuBegin := time.Now(), cpuTime(b)
				testkit.Must(b, store.InsertClicks(b.Context(), batch))
				cpu += cpuTime(b) - cpuBegin
				middle := time.Now()
				insertBare(b, bare, batch)
				inserting += middle.Sub(begin)
				looping += time.Since(middle)
			}
			b.ReportMetric(float64(b.N*clicks)/inserting.Seconds(), "clicks/s")
			b.ReportMetric(float64(b.N*clicks)/looping.Seconds(), "bare-clicks/s")
			b.ReportMetric(float64(inserting)/float64(looping), "ratio")
			b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N*clicks), "client-cpu-ns/click")
		})
	}
}

// cpuTime returns the time that this process has spent on processors; the server is another one.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	testkit.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func openBare(b *testing.B, dsn string) driver.Conn {
	b.Helper()
	options, err := ch.ParseDSN(dsn)
	testkit.Must(b, err)
	conn, err := ch.Open(options)
	testkit.Must(b, err)
	b.Cleanup(func() { conn.Close() })
	return conn
}

// insertBare is the loop that clickhouse-go's documentation shows.
func insertBare(b *testing.B, conn driver.Conn, batch *schema.ClickBatch) {
	ctx := ch.Context(b.Context(), ch.WithSettings(ch.Settings{"async_insert": 0}))
	to, err := conn.PrepareBatch(ctx, `INSERT INTO clicks (link_id, clicked_at, device, browser, kafka_partition,
		kafka_offset, kafka_next, incarnation, lane, seq, month, account_id, referrer, country)`)
	testkit.Must(b, err)
	for i := range batch.Len() {
		err := to.Append(batch.LinkID[i], batch.ClickedAt[i], string(batch.Device[i]), batch.Browser[i], int32(1),
			batch.Offset[i], int64(0), batch.Lane[i].Incarnation[:], batch.Lane[i].Number, batch.Seq[i], uint32(202611),
			batch.AccountID[i], batch.Referrer[i], batch.Country[i])
		testkit.Must(b, err)
	}
	testkit.Must(b, to.Send())
}

// hotLink is the most popular one of traffic.
const (
	hotLink    = 1
	hotAccount = hotLink%someAccounts + 1
)

// countedClicks returns a store with days of traffic.
func countedClicks(b *testing.B, days int) *clickhouse.Clicks {
	b.Helper()
	store := openClicks(b, engines.ClickHouse(b))
	batch, source := new(schema.ClickBatch), newTraffic()
	for range days {
		source.day = source.day.AddDate(0, 0, 1)
		source.fill(batch, 0, 100_000)
		testkit.Must(b, store.InsertClicks(b.Context(), batch))
	}
	return store
}

func BenchmarkReads(b *testing.B) {
	for _, days := range []int{1, 30} {
		store := countedClicks(b, days)
		ids := make([]int64, schema.PageSize)
		for i := range ids {
			ids[i] = int64(i*7919%popularLinks) + 1
		}
		for name, read := range map[string]func() error{
			"LinkStats":   func() error { _, err := store.LinkStats(b.Context(), hotLink); return err },
			"ClickCounts": func() error { _, err := store.ClickCounts(b.Context(), ids); return err },
			"Position":    func() error { _, err := store.Position(b.Context(), 0); return err },
		} {
			b.Run(fmt.Sprintf("%s/days=%d", name, days), func(b *testing.B) {
				for b.Loop() {
					testkit.Must(b, read())
				}
			})
		}
	}
}
