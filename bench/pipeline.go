package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"linkstream/bench/load"
	"linkstream/bench/proc"
	"linkstream/bench/report"
	"linkstream/ingest/worker"
	"linkstream/schema"
	"linkstream/schema/stream"
)

const (
	producedBytes = 256 << 10 // of a batch
	fetchedBytes  = 1 << 20   // of a fetch of the bare loop, as of a worker's
)

// runPipeline measures how fast clicks get from a topic into the store, and from the spool into a topic.
func runPipeline(ctx context.Context, b *bench) error {
	on, err := b.startEngines(ctx)
	if err != nil {
		return err
	}
	addr, broker, err := on.broker(ctx)
	if err != nil {
		return err
	}
	topics := stream.DefaultConfig()
	topics.Brokers = addr
	client, err := stream.New(topics, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer client.Close()
	b.say("putting %d clicks into a topic", b.cfg.Clicks)
	if err := createTopics(ctx, topics); err != nil {
		return err
	}
	if err := produce(ctx, client, topics.Partitions, b.cfg.Clicks, b.cfg.Links); err != nil {
		return err
	}
	fetch := &fetchLoop{addr: addr, topic: topics.Clicks, partitions: topics.Partitions, clicks: int64(b.cfg.Clicks)}
	reading := &subject{name: "bare kafka-go fetch", work: fetch.work}
	fetch.done = &reading.done
	subjects, err := on.bareCounting(ctx, b.cfg.Clicks, reading)
	if err != nil {
		return err
	}
	count := &counting{topics: topics, engines: on, clicks: int64(b.cfg.Clicks), links: b.cfg.Links}
	whole := &subject{name: "worker", prepare: count.prepare, work: count.work}
	count.done = &whole.done
	for _, s := range []*subject{reading, whole} {
		s.processes = append([]process{{"bench", proc.Self}}, broker...)
	}
	err = errors.Join(b.rounds(ctx, "counted click", append(subjects, whole)), count.finish(ctx))
	b.report.Checks = append(b.report.Checks, report.Check{Name: "clicks in the stores of all rounds",
		Want: int64(b.cfg.Clicks) * int64(count.rounds), Got: count.stored})
	return errors.Join(err, b.measureShipping(ctx, addr, broker))
}

// produce fills the topic with clicks, those of each partition from one lane.
func produce(ctx context.Context, client *stream.Client, partitions, clicks, links int) error {
	visitors := load.Visitors(crowdSize, crowdSeed)
	var group errgroup.Group
	for p := range partitions {
		group.Go(func() error {
			popularity := load.NewPopularity(links, uint64(p))
			lane := schema.Lane{Incarnation: schema.Incarnation([]byte("benchmark clicks")), Number: uint32(p)}
			var batch stream.Batch
			var encoded []byte
			share := (clicks + p) / partitions // the shares of all partitions sum up to clicks
			batch.Reset(time.Now())
			for seq := range share {
				visitor := visitors[(seq*partitions+p)%len(visitors)]
				encoded = schema.AppendClick(encoded[:0], &schema.Click{Lane: lane, Seq: uint64(seq) + 1,
					LinkID: int64(popularity.Next()) + 1, AccountID: 1, ClickedAt: time.Now(),
					UserAgent: []byte(visitor.UserAgent), Referrer: []byte(visitor.Referrer), Network: []byte{192, 0, 2}})
				batch.Append(nil, encoded)
				if batch.Size() < producedBytes && seq < share-1 {
					continue
				}
				if err := client.Produce(ctx, p, &batch); err != nil {
					return err
				}
				batch.Reset(time.Now())
			}
			return nil
		})
	}
	return group.Wait()
}

// fetchLoop reads a topic and does nothing with it: what kafka-go alone takes.
type fetchLoop struct {
	addr, topic string
	partitions  int
	clicks      int64
	done        *atomic.Int64
}

func (f *fetchLoop) work(ctx context.Context, _ time.Duration) (load.Result, error) {
	transport := new(kafka.Transport)
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(f.addr), Transport: transport}
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	var read atomic.Int64
	for p := range f.partitions {
		group.Go(func() error {
			n, err := f.readPartition(ctx, client, p)
			read.Add(n)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return load.Result{}, err
	}
	if read.Load() != f.clicks {
		return load.Result{}, fmt.Errorf("read %d of %d clicks", read.Load(), f.clicks)
	}
	return load.Result{Answers: f.clicks, Elapsed: time.Since(began)}, nil
}

// readPartition reads all records of a partition and returns how many.
func (f *fetchLoop) readPartition(ctx context.Context, client *kafka.Client, partition int) (n int64, err error) {
	value := make([]byte, schema.MaxClickLen)
	for end := int64(math.MaxInt64); n < end; {
		res, err := client.Fetch(ctx, &kafka.FetchRequest{Topic: f.topic, Partition: partition, Offset: n,
			MinBytes: 1, MaxBytes: fetchedBytes, MaxWait: time.Second})
		if err == nil {
			err = res.Error
		}
		if err != nil {
			return n, fmt.Errorf("fetch: %w", err)
		}
		end = res.HighWatermark
		before := n
		for {
			r, err := res.Records.ReadRecord()
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return n, fmt.Errorf("read record: %w", err)
			}
			_, err = io.ReadFull(r.Value, value[:r.Value.Len()])
			r.Value.Close()
			if err != nil {
				return n, fmt.Errorf("read record: %w", err)
			}
			if r.Offset >= n { // a batch may start before
				n = r.Offset + 1
			}
		}
		f.done.Add(n - before)
	}
	return n, nil
}

// counting has a worker count the topic into a new store in each round.
type counting struct {
	topics  stream.Config
	engines engines
	clicks  int64
	links   int
	done    *atomic.Int64

	rounds int
	store  clickStore // of the last round
	client *stream.Client
	stored int64 // clicks, in the stores of all rounds
}

// prepare opens a new store, and a client whose consumer group is new, too.
func (c *counting) prepare(ctx context.Context) (err error) {
	if err := c.finish(ctx); err != nil {
		return err
	}
	c.rounds++
	topics := c.topics
	topics.Group = fmt.Sprintf("round_%d", c.rounds)
	if c.client, err = stream.New(topics, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	c.store, err = c.engines.openClicks(ctx, topics.Group)
	return err
}

// finish sums up what the last round has stored, and closes it.
func (c *counting) finish(ctx context.Context) error {
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
			c.stored += n
		}
	}
	c.client.Close()
	err := c.store.Close()
	c.store = nil
	return err
}

func (c *counting) work(ctx context.Context, _ time.Duration) (load.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	store := &watchedStore{ClickStore: c.store, left: c.clicks, done: c.done, complete: cancel}
	w := worker.New(worker.DefaultConfig(), c.client, store, nil, slog.New(slog.DiscardHandler), metrics.NewSet())
	if err := w.Run(ctx); err != nil {
		return load.Result{}, err
	}
	store.mu.Lock()
	defer store.mu.Unlock()
	if store.left > 0 {
		return load.Result{}, fmt.Errorf("%d clicks are not counted: %w", store.left, ctx.Err())
	}
	return load.Result{Answers: c.clicks, Elapsed: store.end.Sub(store.began)}, nil
}

// watchedStore notes when the first partition is asked for and when the last click is stored.
type watchedStore struct {
	schema.ClickStore
	done     *atomic.Int64
	complete func() // called when all clicks are there

	mu         sync.Mutex
	left       int64
	began, end time.Time
}

func (s *watchedStore) Position(ctx context.Context, partition int) (schema.Position, error) {
	s.mu.Lock()
	if s.began.IsZero() {
		s.began = time.Now()
	}
	s.mu.Unlock()
	return s.ClickStore.Position(ctx, partition)
}

func (s *watchedStore) InsertClicks(ctx context.Context, batch *schema.ClickBatch) error {
	n := int64(batch.Len()) // the batch is the worker's again once it is stored
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
