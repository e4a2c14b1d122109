package clickhouse_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"linkstream/deploy/testengines"
	"linkstream/deploy/testengines/enginetest"
	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestOutage(t *testing.T) {
	engine := enginetest.Own(t, testengines.StartClickHouse)
	for protocol, dsn := range map[string]string{"native protocol": engine.Addr, "HTTP": engine.HTTPAddr} {
		t.Run(protocol, func(t *testing.T) {
			store := openClicks(t, dsn)
			batch, source := new(schema.ClickBatch), storetest.NewTraffic()
			at, err := store.Position(t.Context(), 0)
			testkit.Must(t, err)
			source.Next = at.Next
			source.Fill(batch, 0, 100)
			insert(t, store, batch)
			source.Fill(batch, 0, 100)

			testkit.Must(t, engine.Stop())
			for name, call := range callsOf(store, batch) {
				begin := time.Now()
				err := call(t.Context())
				if took := time.Since(begin); schema.ErrorCode(err) != schema.CodeUnavailable || took > storetest.Promptly {
					t.Errorf("%s without a server: got error %v after %v", name, err, took)
				}
			}
			testkit.Must(t, engine.Start(t.Context()))
			awaitPosition(t, store, 0)
			for name, call := range callsOf(store, batch) {
				if err := call(t.Context()); err != nil {
					t.Errorf("%s after the server came back: %v", name, err)
				}
			}
		})
	}
}

// callsOf returns a call of each kind.
func callsOf(store *clickhouse.ClickStore, batch *schema.ClickBatch) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Position":     func(ctx context.Context) error { _, err := store.Position(ctx, 0); return err },
		"InsertClicks": func(ctx context.Context) error { return store.InsertClicks(ctx, batch) },
		"LinkStats":    func(ctx context.Context) error { _, err := store.LinkStats(ctx, storetest.HotLink); return err },
		"ClickCounts":  func(ctx context.Context) error { _, err := store.ClickCounts(ctx, []int64{1, 2}); return err },
	}
}

// awaitPosition returns a partition's position once the server answers. Connections from before the outage may fail, but
// only as unavailable.
func awaitPosition(t *testing.T, store *clickhouse.ClickStore, partition int) (at schema.Position) {
	t.Helper()
	testkit.Succeeds(t, func() (err error) {
		if at, err = store.Position(t.Context(), partition); err != nil {
			testkit.WantCode(t, err, schema.CodeUnavailable)
		}
		return err
	})
	return at
}

// TestKills kills the engine again and again while it takes batches of two partitions. Each batch that was answered is
// there, each other one as a whole or not at all, and what workers count in the end is exact.
func TestKills(t *testing.T) {
	const rounds, partitions = 15, 2
	engine := enginetest.Own(t, testengines.StartClickHouse)
	store := openClicks(t, engine.Addr)
	sources := [partitions]*storetest.Traffic{storetest.NewTraffic(), storetest.NewTraffic()}
	random := rand.New(rand.NewPCG(3, 4))
	var unanswered atomic.Int64
	for range rounds {
		var killed atomic.Bool
		var answered [partitions]int64
		var group sync.WaitGroup
		for p, source := range sources {
			answered[p] = awaitPosition(t, store, p).Next
			source.Next = answered[p]
			group.Go(func() { // until the engine is killed
				batch := new(schema.ClickBatch)
				for {
					source.Fill(batch, p, 1+source.Random.IntN(40_000))
					err := store.InsertClicks(t.Context(), batch)
					if err == nil {
						answered[p] = batch.Next
						continue
					}
					unanswered.Add(1)
					if !killed.Load() || schema.ErrorCode(err) != schema.CodeUnavailable {
						t.Errorf("insert into partition %d: %v", p, err)
					}
					return
				}
			})
		}
		<-time.After(time.Duration(100+random.IntN(300)) * time.Millisecond) // to kill it at any moment
		killed.Store(true)
		testkit.Must(t, engine.Kill())
		group.Wait()
		testkit.Must(t, engine.Start(t.Context()))
		for p := range partitions {
			if at := awaitPosition(t, store, p); at.Next < answered[p] {
				t.Fatalf("partition %d is counted to %d, and was answered to be to %d", p, at.Next, answered[p])
			}
		}
	}
	raw := openRaw(t, engine.Addr)
	for p := range partitions {
		at := awaitPosition(t, store, p)
		sources[p].Next = at.Next
		batch := new(schema.ClickBatch)
		sources[p].Fill(batch, p, 1000)
		insert(t, store, batch)
		allCounted(t, raw, p, uint64(batch.Next))
		t.Logf("partition %d: %d clicks", p, batch.Next)
	}
	t.Logf("%d inserts were under way when the engine was killed", unanswered.Load())
	projectionsEqualRows(t, raw)
}

// projectionsEqualRows adds up the projections, and the rows as they would be without them.
func projectionsEqualRows(t *testing.T, raw driver.Conn) {
	t.Helper()
	for _, query := range []string{
		`SELECT sum(cityHash64(*)) FROM (SELECT link_id, toDate(clicked_at), device, browser, count() FROM clicks GROUP BY ALL)`,
		`SELECT sum(cityHash64(*)) FROM (SELECT kafka_partition, incarnation, lane, max(kafka_next), max(seq) FROM clicks GROUP BY ALL)`,
	} {
		projected := number(t, raw, query+` SETTINGS force_optimize_projection = 1`)
		if rows := number(t, raw, query+` SETTINGS optimize_use_projections = 0`); projected != rows {
			t.Errorf("the projection says %d, the rows %d: %s", projected, rows, query)
		}
	}
}
