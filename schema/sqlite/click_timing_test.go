package sqlite_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"linkstream/bench/load"
	"linkstream/schema"
	"linkstream/schema/enrich"
	"linkstream/schema/sqlite"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func BenchmarkInsertClicks(b *testing.B) {
	for _, clicks := range []int{100, 1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("clicks=%d", clicks), func(b *testing.B) {
			store := openClicks(b, filepath.Join(b.TempDir(), "clicks.db"))
			batch, source := new(schema.ClickBatch), storetest.NewTraffic()
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				source.Fill(batch, 0, clicks)
				b.StartTimer()
				testkit.Must(b, store.InsertClicks(b.Context(), batch))
			}
			b.ReportMetric(float64(b.N*clicks)/b.Elapsed().Seconds(), "clicks/s")
		})
	}
}

func BenchmarkClicks(b *testing.B) {
	for _, days := range []int{1, 10, 100} {
		storetest.BenchmarkClickStore(b, openClicks(b, filepath.Join(b.TempDir(), "clicks.db")), days, 20_000)
	}
}

// visits makes batches as bench does: ten thousand links, and the visitors that public links have.
type visits struct {
	batch    schema.ClickBatch
	visitors []load.Visitor
	links    *load.Popularity
	enricher *enrich.Enricher
	random   *rand.Rand
	next     int64
	at       time.Time
}

func newVisits() *visits {
	return &visits{visitors: load.Visitors(4096, 1), links: load.NewPopularity(10_000, 1), enricher: enrich.New(nil),
		random: rand.New(rand.NewPCG(1, 2)), at: time.Now().UTC()}
}

// fill makes the next batch, of clicks that come at 70,000 per second.
func (v *visits) fill(clicks int) *schema.ClickBatch {
	b := &v.batch
	b.Reset(0, v.next)
	b.Time = v.at
	for range clicks {
		number := v.random.IntN(len(v.visitors))
		visitor := v.visitors[number]
		source := v.enricher.Enrich(&schema.Click{UserAgent: []byte(visitor.UserAgent), Referrer: []byte(visitor.Referrer),
			Language: []byte("en-US")})
		v.at = v.at.Add(14 * time.Microsecond)
		b.Offset = append(b.Offset, v.next)
		v.next++
		b.Lane, b.Seq = append(b.Lane, schema.Lane{}), append(b.Seq, uint64(v.next))
		b.LinkID, b.AccountID = append(b.LinkID, int64(v.links.Next())+1), append(b.AccountID, 1)
		b.ClickedAt = append(b.ClickedAt, v.at)
		source.AppendTo(b)
		b.Visitor = append(b.Visitor, uint64(number+1)*0x9e3779b97f4a7c15)
	}
	b.Next = v.next
	return b
}

// BenchmarkInsertVisits measures what standalone spends on a transaction of visits.
func BenchmarkInsertVisits(b *testing.B) {
	for _, clicks := range []int{1_000, 8_000, 32_000} {
		b.Run(fmt.Sprintf("clicks=%d", clicks), func(b *testing.B) {
			store, source := openClicks(b, filepath.Join(b.TempDir(), "clicks.db")), newVisits()
			b.ReportAllocs()
			source.insert(b, store, clicks, func() {})
		})
	}
}

// insert inserts batches until the benchmark ends, and calls next before each. It reports the CPU time per click.
func (v *visits) insert(b *testing.B, store *sqlite.ClickStore, clicks int, next func()) {
	var used time.Duration
	for b.Loop() {
		b.StopTimer()
		batch := v.fill(clicks)
		next()
		before := cpuTime(b)
		b.StartTimer()
		testkit.Must(b, store.InsertClicks(b.Context(), batch))
		used += cpuTime(b) - before
	}
	b.ReportMetric(float64(used.Nanoseconds())/float64(b.N*clicks), "cpu-ns/click")
}

func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	testkit.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
