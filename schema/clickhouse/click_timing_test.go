package clickhouse_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// BenchmarkInsertClicks alternates with a loop that inserts the same rows into the same table through clickhouse-go alone,
// so that both use the server under the same load. The metric ratio is the time of InsertClicks divided by that of the
// loop.
func BenchmarkInsertClicks(b *testing.B) {
	for _, clicks := range []int{1_000, 10_000, 100_000, 500_000} {
		b.Run(fmt.Sprintf("clicks=%d", clicks), func(b *testing.B) {
			dsn := engines.ClickHouse(b)
			store, bare := openClicks(b, dsn), openRaw(b, dsn)
			batch, source := new(schema.ClickBatch), storetest.NewTraffic()
			var inserting, looping, cpu time.Duration
			for b.Loop() {
				source.Fill(batch, 0, clicks)
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

// cpuTime returns the CPU time of this process, which does not include the server.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	testkit.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// insertBare inserts a batch row by row, as in the documentation of clickhouse-go.
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

func BenchmarkClicks(b *testing.B) {
	for _, days := range []int{1, 30} {
		storetest.BenchmarkClickStore(b, openClicks(b, engines.ClickHouse(b)), days, 100_000)
	}
}

// BenchmarkInsertSize reports what a click costs the server in inserts of different sizes, its merges included: a partition's batch is
// what arrives within -ingest.max-wait, so more partitions, or less traffic, make smaller inserts.
func BenchmarkInsertSize(b *testing.B) {
	for _, clicks := range []int{250, 1000, 4000, 16_000, 100_000} {
		b.Run(fmt.Sprintf("clicks=%d", clicks), func(b *testing.B) {
			dsn := engines.ClickHouse(b)
			store, raw := openClicks(b, dsn), openRaw(b, dsn)
			batch, source := new(schema.ClickBatch), storetest.NewTraffic()
			before := number(b, raw, serverCPU)
			for b.Loop() {
				source.Fill(batch, 0, clicks)
				testkit.Must(b, store.InsertClicks(b.Context(), batch))
			}
			b.StopTimer()
			testkit.Eventually(b, "merges have ended", func() bool {
				return number(b, raw, `SELECT count() FROM system.merges WHERE database = currentDatabase()`) == 0
			})
			b.ReportMetric(float64(number(b, raw, serverCPU)-before)/float64(b.N*clicks), "server-cpu-µs/click")
			b.ReportMetric(float64(number(b, raw, serverCPU)-before)/1000/float64(b.N), "server-cpu-ms/insert")
		})
	}
}
