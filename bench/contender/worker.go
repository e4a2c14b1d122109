package contender

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"golang.org/x/sync/errgroup"

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
	Workers int // in one consumer group; set before the first round
	Rounds  int
	Stored  int64 // clicks in the stores of all rounds; complete after Close
	// Inserts and FailedInserts count the inserts of all rounds. Failure is the first error.
	Inserts, FailedInserts int64
	Failure                error

	topics  stream.Config
	engines system.Engines
	clicks  int64
	links   int
	store   positionStore    // of the last round
	clients []*stream.Client // one per worker
}

// Count returns a worker that counts the clicks of a topic, whose links are numbered from 1 to links.
func Count(topics stream.Config, on system.Engines, clicks, links int) *Counting {
	c := &Counting{Workers: 1, topics: topics, engines: on, clicks: int64(clicks), links: links}
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
	// Workers of several contenders, which have different names, share neither stores nor groups.
	round := fmt.Sprintf("%s_%d", strings.NewReplacer(" ", "_", ",", "", ":", "").Replace(c.Name), c.Rounds)
	topics.Group += "." + round
	for range c.Workers {
		client, err := stream.New(topics, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		c.clients = append(c.clients, client)
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
	for _, client := range c.clients {
		client.Close()
	}
	c.clients = nil
	err := c.store.Close()
	c.store = nil
	return err
}

func (c *Counting) work(ctx context.Context, _ time.Duration) (load.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	store := &timedStore{PositionStore: c.store, clicks: c.clicks, next: make([]int64, c.topics.Partitions),
		complete: cancel}
	var workers errgroup.Group
	start := newGate(len(c.clients), c.topics.Partitions)
	for i, client := range c.clients {
		member := &gatedMember{client, start, i}
		w := worker.New(worker.DefaultConfig(), member, store, nil, slog.New(slog.DiscardHandler), metrics.NewSet())
		workers.Go(func() error { return w.Run(ctx) })
	}
	if err := workers.Wait(); err != nil {
		return load.Result{}, err
	}
	store.mu.Lock()
	defer store.mu.Unlock()
	c.Inserts += store.inserts
	c.FailedInserts += store.failed
	if c.Failure == nil {
		c.Failure = store.failure
	}
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

	mu              sync.Mutex
	next            []int64 // position of each partition
	counted         int64   // sum of next
	inserts, failed int64
	failure         error
	began, end      time.Time
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
	s.mu.Lock()
	s.inserts++
	if err != nil {
		if s.failed++; s.failure == nil {
			s.failure = err
		}
	}
	s.mu.Unlock()
	if err == nil {
		s.move(partition, next)
	}
	return err
}
