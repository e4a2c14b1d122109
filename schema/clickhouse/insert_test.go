//go:build engines

package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/go-cmp/cmp/cmpopts"

	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func insert(t *testing.T, store *clickhouse.ClickStore, batch *schema.ClickBatch) {
	t.Helper()
	testkit.Must(t, store.InsertClicks(t.Context(), batch))
}

func TestInsertClicks(t *testing.T) {
	dsn := engines.ClickHouse(t)
	store, raw := openClicks(t, dsn), openRaw(t, dsn)
	batch := new(schema.ClickBatch)

	t.Run("moves the position to the batch's Next, past records that were dropped at its end", func(t *testing.T) {
		source := storetest.NewTraffic()
		source.Fill(batch, 0, 10)
		batch.Next += 5
		insert(t, store, batch)
		if at, err := store.Position(t.Context(), 0); err != nil || at.Next != 15 {
			t.Fatalf("got position %+v, error %v", at, err)
		}
	})
	t.Run("rejects a batch that could become several blocks", func(t *testing.T) {
		many := &schema.ClickBatch{Partition: 1, Offset: make([]int64, 500_001)}
		testkit.WantCode(t, store.InsertClicks(t.Context(), many), schema.CodeInternal)
		wantRows(t, raw, 1, 0)
	})
	t.Run("makes one part of a batch with clicks of many months", func(t *testing.T) {
		source := storetest.NewTraffic()
		source.Fill(batch, 2, 500_000)
		for i := range batch.ClickedAt {
			batch.ClickedAt[i] = batch.ClickedAt[i].AddDate(0, -i%24, 0)
		}
		exec(t, raw, "SYSTEM STOP MERGES clicks")
		defer exec(t, raw, "SYSTEM START MERGES clicks")
		parts := `SELECT count() FROM system.parts WHERE database = currentDatabase() AND table = 'clicks' AND active`
		before := number(t, raw, parts)
		insert(t, store, batch)
		if after := number(t, raw, parts); after != before+1 {
			t.Fatalf("the batch made %d parts", after-before)
		}
	})
	t.Run("uses another token if the server lost a part and kept its token", func(t *testing.T) {
		source := storetest.NewTraffic()
		source.Day = time.Now().UTC()
		source.Fill(batch, 3, 10)
		for lost := range 2 {
			burnToken(t, raw, fmt.Sprintf("3/0/%d", lost), clickhouse.MonthOf(batch.Time))
		}
		insert(t, store, batch)
		wantRows(t, raw, 3, 10)
	})
}

// burnToken leaves a token in the server without rows of partition 3, as if the server had died between recording the
// token and adding the part.
func burnToken(t *testing.T, raw driver.Conn, token string, month uint32) {
	t.Helper()
	ctx := ch.Context(t.Context(), ch.WithSettings(ch.Settings{"async_insert": 0, "insert_deduplication_token": token}))
	err := raw.Exec(ctx, fmt.Sprintf("INSERT INTO clicks (kafka_partition, month) SELECT 1000, %d", month))
	testkit.Must(t, err)
}

// wantRows requires that a partition has a row for each of want records.
func wantRows(t *testing.T, raw driver.Conn, partition int, want uint64) {
	t.Helper()
	rows := number(t, raw, fmt.Sprintf(`SELECT count() FROM clicks WHERE kafka_partition = %d`, partition))
	offsets := number(t, raw, fmt.Sprintf(`SELECT uniqExact(kafka_offset) FROM clicks WHERE kafka_partition = %d`,
		partition))
	if rows != want || offsets != want {
		t.Fatalf("partition %d has %d rows of %d records, want %d of each", partition, rows, offsets, want)
	}
}

// TestCompetingWorkers counts one partition by several workers. Each has its own store and batches of its own length.
func TestCompetingWorkers(t *testing.T) {
	const workers, records = 3, 250
	dsn := engines.ClickHouse(t)
	raw := openRaw(t, dsn)
	openClicks(t, dsn)
	var succeeded, conflicts atomic.Int64
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			store, err := clickhouse.OpenClickStore(t.Context(), clickhouse.Config{DSN: dsn})
			if err != nil {
				t.Error(err)
				return
			}
			defer store.Close()
			batch, source := new(schema.ClickBatch), storetest.NewTraffic()
			for {
				at, err := store.Position(t.Context(), 0)
				if err != nil {
					t.Error(err)
					return
				}
				if source.Next = at.Next; source.Next >= records {
					return
				}
				source.Fill(batch, 0, 1+w+workers*source.Random.IntN(4)) // a length that no other worker uses
				switch err = store.InsertClicks(t.Context(), batch); {
				case err == nil:
					succeeded.Add(int64(batch.Len()))
				case schema.ErrorCode(err) == schema.CodeConflict:
					conflicts.Add(1)
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	counted := number(t, raw, `SELECT max(kafka_next)::UInt64 FROM clicks`)
	wantRows(t, raw, 0, counted)
	if conflicts.Load() == 0 {
		t.Error("the workers never conflicted")
	}
	// An insert with a conflict has counted nothing.
	if got := succeeded.Load(); got < int64(counted) {
		t.Errorf("inserts of %d clicks succeeded, but %d are counted", got, counted)
	}
}

// Workers of more partitions than there are connections wait for their turns.
func TestManyWorkers(t *testing.T) {
	t.Parallel()
	const workers = 24
	dsn := engines.ClickHouse(t)
	openClicks(t, dsn)
	// Together, the queries of all workers take longer on three connections than the driver waits for a connection.
	store,
		err := clickhouse.OnCluster(clickhouse.Config{DSN: dsn +
		"?max_open_conns=3&dial_timeout=1s&sleep_after_receiving_query_ms=200"})
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Close(t, store) })
	var group sync.WaitGroup
	for n := range workers {
		group.Go(func() {
			if _, err := store.LaneMarks(t.Context(), []schema.Lane{{Number: uint32(n)}}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func TestKill(t *testing.T) {
	t.Run("kills a query that runs", func(t *testing.T) {
		dsn := engines.ClickHouse(t)
		store, raw := openClicks(t, dsn), openRaw(t, dsn)
		const id = "given-up"
		ended := make(chan error, 1)
		go func() {
			ended <- raw.Exec(ch.Context(t.Context(), ch.WithQueryID(id)), "SELECT sleepEachRow(0.1) FROM numbers(300) "+
				"SETTINGS max_block_size = 1")
		}()
		testkit.Succeeds(t, func() error {
			testkit.Equal(t, "error", store.Kill(t.Context(), id, context.Canceled), context.Canceled, cmpopts.EquateErrors())
			select {
			case err := <-ended:
				if err == nil {
					t.Fatal("the query was not killed")
				}
				return nil
			default: // the query may not have begun
				return errors.New("the query still runs")
			}
		})
	})
}

func TestColumnsAllocateNothing(t *testing.T) {
	batch := new(schema.ClickBatch)
	storetest.NewTraffic().Fill(batch, 0, 10_000)
	fill := clickhouse.FillColumns()
	fill(batch)
	if n := testing.AllocsPerRun(20, func() { fill(batch) }); n != 0 {
		t.Fatalf("%v allocations per batch of %d clicks", n, batch.Len())
	}
}
