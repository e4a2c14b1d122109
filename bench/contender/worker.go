package contender

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
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

	topics  stream.Config
	engines system.Engines
	clicks  int64
	links   int
	store   system.ClickStore // of the last round
	clients []*stream.Client  // one per worker
}

// Count returns a worker that counts the clicks of a topic, whose links are numbered from 1 to links.
func Count(topics stream.Config, on system.Engines, clicks, links int, broker []proc.Process) *Counting {
	c := &Counting{Workers: 1, topics: topics, engines: on, clicks: int64(clicks), links: links}
	c.Contender = &Contender{Name: "worker", Processes: append([]proc.Process{thisProcess()}, broker...),
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
	round := fmt.Sprintf("%s_%d", strings.NewReplacer(" ", "_", ",", "").Replace(c.Name), c.Rounds)
	topics.Group += "." + round
	for range c.Workers {
		client, err := stream.New(topics, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		c.clients = append(c.clients, client)
	}
	c.store, err = c.engines.OpenClicks(ctx, round)
	return err
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
		counts, err := c.store.ClickCounts(ctx, ids)
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
	store := &timedStore{ClickStore: c.store, left: c.clicks, done: &c.Done, complete: cancel}
	var workers errgroup.Group
	for _, client := range c.clients {
		w := worker.New(worker.DefaultConfig(), client, store, nil, slog.New(slog.DiscardHandler), metrics.NewSet())
		workers.Go(func() error { return w.Run(ctx) })
	}
	if err := workers.Wait(); err != nil {
		return load.Result{}, err
	}
	store.mu.Lock()
	defer store.mu.Unlock()
	if store.left > 0 {
		return load.Result{}, fmt.Errorf("%d clicks are not counted: %w", store.left, ctx.Err())
	}
	return load.Result{Answers: c.clicks, Elapsed: store.end.Sub(store.began)}, nil
}

// timedStore measures the time from the first position that is read until the last click is stored.
type timedStore struct {
	schema.ClickStore
	done     *atomic.Int64
	complete func() // called when all clicks are stored

	mu         sync.Mutex
	left       int64
	began, end time.Time
}

func (s *timedStore) Position(ctx context.Context, partition int) (schema.Position, error) {
	s.mu.Lock()
	if s.began.IsZero() {
		s.began = time.Now()
	}
	s.mu.Unlock()
	return s.ClickStore.Position(ctx, partition)
}

func (s *timedStore) InsertClicks(ctx context.Context, batch *schema.ClickBatch) error {
	n := int64(batch.Len()) // after the insert, the worker owns the batch again
	if err := s.ClickStore.InsertClicks(ctx, batch); err != nil {
		return err
	}
	s.done.Add(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left -= n; s.left <= 0 {
		s.end = time.Now()
		s.complete()
	}
	return nil
}
