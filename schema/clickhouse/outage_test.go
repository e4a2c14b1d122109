//go:build engines

package clickhouse_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/deploy/tools/engines/testengines"
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
				testkit.Takes(t, storetest.Promptly, func(int) {
					if err := call(t.Context()); schema.ErrorCode(err) != schema.CodeUnavailable {
						t.Errorf("%s without a server: got error %v", name, err)
					}
				})
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

// callsOf returns calls of the methods by name.
func callsOf(store *clickhouse.ClickStore, batch *schema.ClickBatch) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Position":     func(ctx context.Context) error { _, err := store.Position(ctx, 0); return err },
		"InsertClicks": func(ctx context.Context) error { return store.InsertClicks(ctx, batch) },
		"LinkStats":    func(ctx context.Context) error { _, err := store.LinkStats(ctx, storetest.HotLink); return err },
		"ClickCounts":  func(ctx context.Context) error { _, err := store.ClickCounts(ctx, 1, []int64{1, 2}); return err },
	}
}

// awaitPosition returns a partition's position once the server answers. Connections from before the outage may fail,
// but only as unavailable.
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

// TestKilledServer kills the server repeatedly while it receives batches of two partitions. It has every answered
// batch, and every other batch as a whole or not at all, and the final counts are exact.
func TestKilledServer(t *testing.T) {
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
			group.Go(func() { // until the server is killed
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
		<-time.After(time.Duration(100+random.IntN(300)) * time.Millisecond) // the server may do anything when it is killed
		killed.Store(true)
		testkit.Must(t, engine.Kill())
		group.Wait()
		testkit.Must(t, engine.Start(t.Context()))
		for p := range partitions {
			if at := awaitPosition(t, store, p); at.Next < answered[p] {
				t.Fatalf("partition %d is at %d, but the last answered batch ended at %d", p, at.Next, answered[p])
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
		wantRows(t, raw, p, uint64(batch.Next))
		t.Logf("partition %d: %d clicks", p, batch.Next)
	}
	t.Logf("%d inserts were in progress when the server was killed", unanswered.Load())
	wantExactProjections(t, raw)
}

// wantExactProjections requires that the projections give the same results as the rows.
func wantExactProjections(t *testing.T, raw driver.Conn) {
	t.Helper()
	for _, query := range []string{
		`SELECT sum(cityHash64(*)) FROM (SELECT link_id, toDate(clicked_at), device, browser, sum(weight) FROM clicks ` +
			`GROUP ` +
			`BY ALL)`,
		`SELECT sum(cityHash64(*)) FROM (SELECT incarnation, lane, max(seq), sum(lane_clicks) FROM clicks GROUP BY ALL)`,
		`SELECT sum(cityHash64(*)) FROM (SELECT kafka_partition, ` + clickhouse.LastRow + ` FROM clicks GROUP BY ALL)`,
		`SELECT sum(cityHash64(*)) FROM (SELECT link_id, toStartOfFifteenMinutes(clicked_at), sumIf(weight, device != ` +
			`'bot'), sumIf(weight, device = 'bot') FROM clicks GROUP BY ALL)`,
		`SELECT sum(cityHash64(*)) FROM (SELECT link_id, toDate(clicked_at), os, language, sumIf(weight, device != 'bot') ` +
			`FROM clicks GROUP BY ALL)`,
		`SELECT sum(cityHash64(*)) FROM (SELECT account_id, toDate(clicked_at), link_id, device, browser, os, language, ` +
			`referrer, country, sum(weight) FROM clicks GROUP BY ALL)`,
	} {
		projected := number(t, raw, query+` SETTINGS force_optimize_projection = 1`)
		if rows := number(t, raw, query+` SETTINGS optimize_use_projections = 0`); projected != rows {
			t.Errorf("%d by the projection, %d by the rows: %s", projected, rows, query)
		}
	}
}
