package main

import (
	"context"
	"sync/atomic"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"linkstream/bench/load"
	"linkstream/ingest/worker"
	"linkstream/schema"
)

// insertLoop inserts clicks as clickhouse-go's documentation has it, in blocks of a worker's batch: what counting them
// takes if there is no topic, nothing is checked, and nothing must be exact.
type insertLoop struct {
	conn    ch.Conn
	clicks  int
	history *history
	done    *atomic.Int64
	batch   schema.ClickBatch // the rows of each block
}

const insertClick = `INSERT INTO clicks (link_id, account_id, clicked_at, device, browser, referrer, country,
	kafka_partition, kafka_offset, kafka_next, incarnation, lane, seq, month)`

func (l *insertLoop) work(ctx context.Context, _ time.Duration) (load.Result, error) {
	if l.batch.Len() == 0 {
		l.history.append(&l.batch, min(l.clicks, worker.DefaultConfig().MaxBatch), time.Now().UTC(), time.Millisecond)
	}
	began, ctx := time.Now(), ch.Context(ctx, ch.WithSettings(ch.Settings{"async_insert": 0}))
	for n := 0; n < l.clicks; {
		block, err := l.conn.PrepareBatch(ctx, insertClick)
		if err != nil {
			return load.Result{}, err
		}
		rows := min(l.clicks-n, l.batch.Len())
		for i := range rows {
			b := &l.batch
			err := block.Append(b.LinkID[i], b.AccountID[i], b.ClickedAt[i], string(b.Device[i]), b.Browser[i],
				b.Referrer[i], b.Country[i], int32(0), b.Offset[i], int64(0), b.Lane[i].Incarnation[:], b.Lane[i].Number,
				b.Seq[i], uint32(202611))
			if err != nil {
				return load.Result{}, err
			}
		}
		if err := block.Send(); err != nil {
			return load.Result{}, err
		}
		n += rows
		l.done.Add(int64(rows))
	}
	return load.Result{Answers: int64(l.clicks), Elapsed: time.Since(began)}, nil
}
