//go:build deploy

package outside_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func openShards(t *testing.T) (*clickhouse.ClickStore, func() *clickhouse.ClickStore) {
	c := newCluster(t)
	store := c.store(t)
	return store, func() *clickhouse.ClickStore {
		testkit.Must(t, store.Close())
		return c.store(t)
	}
}

// TestPositionsOfShards checks what differs most from one server: a position is of all shards. It compares counts and
// reports, too. TestShardsAreAClickStore, with the tag nightly, checks the rest of what a click store promises.
func TestPositionsOfShards(t *testing.T) { storetest.TestPositions(t, openShards) }

// TestABatchIsOneBlockOnOneShard counts partitions of both shards, and opens their databases with and without the
// cluster that they were created with.
func TestABatchIsOneBlockOnOneShard(t *testing.T) {
	c := newCluster(t)
	store := c.store(t)
	const each = 50_000
	for partition := range 2 {
		batch := new(schema.ClickBatch)
		storetest.NewTraffic().Fill(batch, partition, each)
		testkit.Must(t, store.InsertClicks(t.Context(), batch))
	}
	testkit.Equal(t, "rows of the shards", c.rows(t), []int{each, each})
	for i, node := range c.nodes {
		var parts, partitions uint64
		testkit.Must(t, node.QueryRow(t.Context(), `SELECT count() FROM system.parts
			WHERE active AND database = currentDatabase() AND table = 'clicks_of_shard'`).Scan(&parts))
		testkit.Must(t,
			node.QueryRow(t.Context(), "SELECT uniqExact(kafka_partition) FROM clicks_of_shard").Scan(&partitions))
		if parts != 1 || partitions != 1 {
			t.Errorf("shard %d has %d parts of %d partitions", i+1, parts, partitions)
		}
	}
	want := func(cfg clickhouse.Config, text string) {
		t.Helper()
		if _, err := clickhouse.OpenClickStore(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got error %v, want one that says %q", err, text)
		}
	}
	want(clickhouse.Config{DSN: c.dsns[0]}, "-clickhouse.cluster is not set")
	testkit.Must(t, c.nodes[0].Exec(t.Context(), "DROP TABLE clicks"))
	testkit.Must(t, c.nodes[0].Exec(t.Context(), "RENAME TABLE clicks_of_shard TO clicks"))
	want(clickhouse.Config{DSN: c.dsns[0], Cluster: testengines.ShardsCluster},
		"it was created without -clickhouse.cluster")
}

// TestAShardThatIsAway stops a shard while workers count. Nothing can be counted meanwhile, also on the other shard,
// because the position is that of all shards. Afterwards the workers go on, and each click is counted once.
func TestAShardThatIsAway(t *testing.T) {
	c := newCluster(t)
	store := c.store(t)
	const partitions, batches, each = 4, 20, 500
	away := c.engines[1]
	var failures atomic.Int64
	var counted [partitions]atomic.Int64
	var workers errgroup.Group
	for partition := range partitions {
		workers.Go(func() error {
			batch, source := new(schema.ClickBatch), storetest.NewTraffic()
			for next := int64(0); next < batches*each; {
				if source.Next == next {
					source.Fill(batch, partition, each)
				}
				if err := store.InsertClicks(t.Context(), batch); err != nil {
					failures.Add(1)
				}
				at, err := store.Position(t.Context(), partition)
				if err != nil {
					time.Sleep(100 * time.Millisecond)
					continue
				}
				next = at.Next
				counted[partition].Store(next)
			}
			return nil
		})
	}
	some := func() bool {
		for i := range counted {
			if counted[i].Load() < 2*each {
				return false
			}
		}
		return true
	}
	testkit.Eventually(t, "each partition has some clicks", some)
	testkit.Must(t, away.Stop())
	before := failures.Load()
	testkit.Eventually(t, "the workers notice", func() bool { return failures.Load() > before+partitions })
	for partition := range partitions {
		_, err := store.Position(t.Context(), partition)
		testkit.WantCode(t, err, schema.CodeUnavailable)
	}
	_, err := store.LinkStats(t.Context(), storetest.HotLink)
	testkit.WantCode(t, err, schema.CodeUnavailable)
	testkit.Must(t, away.Start(t.Context()))
	testkit.Must(t, workers.Wait())
	testkit.Equal(t, "rows of the shards", c.rows(t),
		[]int{partitions / 2 * batches * each, partitions / 2 * batches * each})
}
