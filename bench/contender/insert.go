package contender

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"linkstream/bench/load"
	"linkstream/bench/proc"
	"linkstream/bench/system"
	"linkstream/bench/workload"
	"linkstream/ingest/worker"
	"linkstream/schema"
)

// thisProcess is the process of contenders that run inside the bench.
func thisProcess() proc.Process { return proc.Process{Name: "bench", Usage: proc.Self} }

// LinkCalls returns a loop that inserts links, or looks them up, and does nothing else.
func LinkCalls(calls system.LinkCall) *Contender {
	c := &Contender{Name: calls.Name, Processes: []proc.Process{thisProcess()}}
	var started atomic.Int64
	c.Work = func(ctx context.Context, window time.Duration) (load.Result, error) {
		var done atomic.Int64
		began := time.Now()
		group, ctx := errgroup.WithContext(ctx)
		for range calls.Goroutines {
			group.Go(func() error {
				for time.Since(began) < window {
					if err := calls.Call(ctx, started.Add(1)); err != nil {
						return fmt.Errorf("%s: %w", calls.Name, err)
					}
					done.Add(1)
				}
				return nil
			})
		}
		err := group.Wait()
		return load.Result{Answers: done.Load(), Elapsed: time.Since(began)}, err
	}
	return c
}

// ClickInserts returns a loop that inserts clicks into ClickHouse in blocks of a worker's batch: the cost of counting
// without a topic, without checks and without exactly-once.
func ClickInserts(insert system.ClickInsert, clicks int, links workload.Links) *Contender {
	c := &Contender{Name: "bare clickhouse-go insert", Processes: []proc.Process{thisProcess()}}
	var batch schema.ClickBatch // the rows of every block
	workload.NewHistory(links, 0).Append(&batch, min(clicks, worker.DefaultConfig().MaxBatch), time.Now().UTC(),
		time.Millisecond)
	c.Work = func(ctx context.Context, _ time.Duration) (load.Result, error) {
		began := time.Now()
		for n := 0; n < clicks; {
			rows := min(clicks-n, batch.Len())
			if err := insert(ctx, &batch, rows); err != nil {
				return load.Result{}, err
			}
			n += rows
		}
		return load.Result{Answers: int64(clicks), Elapsed: time.Since(began)}, nil
	}
	return c
}

// PerLink returns a contender of calls of many links each as a contender of links.
func PerLink(c *Contender, links int64) *Contender {
	work := c.Work
	c.Work = func(ctx context.Context, window time.Duration) (load.Result, error) {
		result, err := work(ctx, window)
		result.Answers *= links
		return result, err
	}
	return c
}
