package contender

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/bench/load"
	"linkstream/bench/proc"
	"linkstream/bench/system"
	"linkstream/ingest/worker"
	"linkstream/schema"
	"linkstream/schema/stream"
)

// Counting is a worker of ingest that counts all clicks of a topic, into a new store in every round.
type Counting struct {
	*Contender
	Rounds int
	Stored int64 // clicks in the stores of all rounds; complete after Close

	topics  stream.Config
	engines system.Engines
	clicks  int64
	links   int
	store   positionStore // of the last round
	client  *stream.Client
}

// Count returns a worker that counts the clicks of a topic, whose links are numbered from 1 to links.
func Count(topics stream.Config, on system.Engines, clicks, links int) *Counting {
	c := &Counting{topics: topics, engines: on, clicks: int64(clicks), links: links}
	c.Contender = &Contender{Name: "worker", Processes: []proc.Process{thisProcess()},
		Prepare: c.prepare, Work: c.work}
	return c
}

// prepare opens a new store, and a client with a new consumer group.
func (c *Counting) prepare(ctx context.Context) (err error) {
	if err := c.Close(ctx); err != nil {
		return err
	}
	c.Rounds++
	topics := c.topics
	round := fmt.Sprintf("%s_%d", c.Name, c.Rounds)
	topics.Group += "." + round
	if c.client, err = stream.New(topics, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	opened, err := c.engines.OpenClicks(ctx, round)
	if err != nil {
		return err
	}
	var ok bool
	if c.store, ok = opened.(positionStore); !ok {
		return errors.Join(errors.New("the store does not count a topic"), opened.Close())
	}
	return nil
}

// positionStore is the store of clicks of a system with a broker.
type positionStore interface {
	schema.PositionStore
	io.Closer
}

// Close adds the clicks of the last round's store to Stored, and closes the store.
func (c *Counting) Close(ctx context.Context) error {
	if c.store == nil {
		return nil
	}
	const chunk = 1000
	for first := 1; first <= c.links; first += chunk {
		ids := make([]int64, 0, chunk)
		for id := first; id < first+chunk && id <= c.links; id++ {
			ids = append(ids, int64(id))
		}
		counts, err := c.store.ClickCounts(ctx, 1, ids)
		if err != nil {
			return err
		}
		for _, n := range counts {
			c.Stored += n
		}
	}
	c.client.Close()
	err := c.store.Close()
	c.store = nil
	return err
}

func (c *Counting) work(ctx context.Context, _ time.Duration) (load.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	store := &timedStore{PositionStore: c.store, clicks: c.clicks, next: make([]int64, c.topics.Partitions),
		complete: cancel}
	w := worker.New(worker.DefaultConfig(), c.client, store, nil, slog.New(slog.DiscardHandler), metrics.NewSet())
	if err := w.Run(ctx); err != nil {
		return load.Result{}, err
	}
	store.mu.Lock()
	defer store.mu.Unlock()
	if store.counted < c.clicks {
		return load.Result{}, fmt.Errorf("%d of %d clicks are counted: %w", store.counted, c.clicks, ctx.Err())
	}
	return load.Result{Answers: c.clicks, Elapsed: store.end.Sub(store.began)}, nil
}

// timedStore measures the time from the first read of a position until the last click is stored. All records of the
// topic are clicks, so the number of stored clicks follows from the positions, even if an insert succeeds with an
// error.
type timedStore struct {
	schema.PositionStore
	clicks   int64  // in the topic
	complete func() // called when all clicks are stored

	mu         sync.Mutex
	next       []int64 // position of each partition
	counted    int64   // sum of next
	began, end time.Time
}

func (s *timedStore) Position(ctx context.Context, partition int) (schema.Position, error) {
	s.mu.Lock()
	if s.began.IsZero() {
		s.began = time.Now()
	}
	s.mu.Unlock()
	at, err := s.PositionStore.Position(ctx, partition)
	if err == nil {
		s.move(partition, at.Next)
	}
	return at, err
}

// move records the position of a partition.
func (s *timedStore) move(partition int, next int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clicks := next - s.next[partition]
	s.next[partition] = next
	if s.counted += clicks; clicks > 0 && s.counted >= s.clicks {
		s.end = time.Now()
		s.complete()
	}
}

func (s *timedStore) InsertClicks(ctx context.Context, batch *schema.ClickBatch) error {
	partition, next := batch.Partition, batch.Next // after the insert, the worker owns the batch again
	err := s.PositionStore.InsertClicks(ctx, batch)
	if err == nil {
		s.move(partition, next)
	}
	return err
}
