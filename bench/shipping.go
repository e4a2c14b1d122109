package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"linkstream/bench/load"
	"linkstream/bench/proc"
	"linkstream/bench/report"
	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/stream"
)

const (
	producedRecords = 2048 // of a bare loop's batch: about as many as a shipper's has under load
	spoolPerClick   = 1024 // bytes of disk that a click may take
	shippedPoll     = time.Millisecond
)

// measureShipping measures what it takes to get clicks from the spool into a topic, beside a loop that produces records of
// the same size with kafka-go and nothing else.
func (b *bench) measureShipping(ctx context.Context, broker string, processes []process) error {
	topics := aloneTopics(broker)
	if err := createTopics(ctx, topics); err != nil {
		return err
	}
	client, err := stream.New(topics, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	b.stops = append(b.stops, func() error { client.Close(); return nil })
	bare := &subject{name: "bare kafka-go produce"}
	produce := &produceLoop{topics: topics, clicks: b.cfg.Clicks, done: &bare.done}
	bare.work = produce.work
	ships := &shipping{client: client, dir: filepath.Join(b.dir, "shipping"), clicks: b.cfg.Clicks}
	shipper := &subject{name: "shipper", prepare: ships.prepare, work: ships.work}
	ships.done = &shipper.done
	for _, s := range []*subject{bare, shipper} {
		s.processes = append([]process{{"bench", proc.Self}}, processes...)
	}
	if err := b.rounds(ctx, "shipped click", []*subject{bare, shipper}); err != nil {
		return err
	}
	b.report.Checks = append(b.report.Checks, report.Check{Name: "clicks that the broker has acknowledged, of all rounds",
		Want: int64(b.cfg.Clicks) * int64(ships.rounds), Got: ships.shipped})
	return nil
}

// createTopics creates the topics on a broker, and returns when each partition takes records. Real brokers need a moment.
func createTopics(ctx context.Context, topics stream.Config) error {
	client, err := stream.New(topics, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.EnsureTopics(ctx); err != nil {
		return err
	}
	pause := backoff.NewExponentialBackOff()
	for partition := range topics.Partitions {
		_, err := backoff.Retry(ctx, func() (int64, error) {
			_, next, err := client.Offsets(ctx, partition)
			return next, err
		}, backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(startTimeout))
		if err != nil {
			return err
		}
	}
	return nil
}

// someClicks returns the clicks of a crowd, each with another visitor.
func someClicks(n int) []schema.Click {
	clicks := make([]schema.Click, n)
	visitors := load.Visitors(crowdSize, crowdSeed)
	for i := range clicks {
		v := visitors[i%len(visitors)]
		clicks[i] = schema.Click{LinkID: int64(i) + 1, AccountID: historyAccount, ClickedAt: time.Now(),
			UserAgent: []byte(v.UserAgent), Referrer: []byte(v.Referrer), Network: []byte{192, 0, 2}}
	}
	return clicks
}

// shipping fills a spool and has it shipped.
type shipping struct {
	client *stream.Client
	dir    string
	clicks int
	done   *atomic.Int64

	rounds  int
	shipped int64 // in all rounds
	spool   *spool.Spool
}

// prepare fills a new spool.
func (s *shipping) prepare(context.Context) (err error) {
	s.rounds++
	cfg := spool.DefaultConfig()
	cfg.Dir = filepath.Join(s.dir, fmt.Sprint(s.rounds))
	cfg.MaxBytes = max(cfg.MaxBytes, int64(s.clicks)*spoolPerClick)
	if s.spool, err = spool.Open(cfg, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	clicks := someClicks(crowdSize)
	for i := range s.clicks {
		if !s.spool.Append(uint64(i), &clicks[i%len(clicks)]) {
			return fmt.Errorf("the spool is full after %d of %d clicks", i, s.clicks)
		}
	}
	return nil
}

func (s *shipping) work(ctx context.Context, _ time.Duration) (load.Result, error) {
	began := time.Now()
	shipper := spool.NewShipper(s.spool, s.client, slog.New(slog.DiscardHandler))
	running, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { shipper.Run(running); close(ended) }()
	tick := time.NewTicker(shippedPoll)
	defer tick.Stop()
	for before := s.done.Load(); s.spool.Pending() > 0 && ctx.Err() == nil; <-tick.C {
		s.done.Store(before + int64(shipper.Shipped()))
	}
	elapsed := time.Since(began)
	stop()
	<-ended
	s.shipped += int64(shipper.Shipped())
	if err := s.spool.Close(); err != nil {
		return load.Result{}, err
	}
	return load.Result{Answers: int64(s.clicks), Elapsed: elapsed}, os.RemoveAll(s.dir)
}

// produceLoop produces records to all partitions at the same time, one batch of each under way, as a shipper does.
type produceLoop struct {
	topics stream.Config
	clicks int
	done   *atomic.Int64
}

func (p *produceLoop) work(ctx context.Context, _ time.Duration) (load.Result, error) {
	var values [][]byte
	for i, click := range someClicks(producedRecords) {
		click.Seq = uint64(i) + 1
		values = append(values, schema.AppendClick(nil, &click))
	}
	transport := new(kafka.Transport)
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(p.topics.Brokers), Transport: transport}
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for partition := range p.topics.Partitions {
		share := (p.clicks + partition) / p.topics.Partitions // the shares sum up to clicks
		group.Go(func() error { return p.produce(ctx, client, partition, share, values) })
	}
	err := group.Wait()
	return load.Result{Answers: int64(p.clicks), Elapsed: time.Since(began)}, err
}

func (p *produceLoop) produce(ctx context.Context, client *kafka.Client, partition, share int, values [][]byte) error {
	records := make([]kafka.Record, len(values))
	for sent := 0; sent < share; {
		n := min(share-sent, len(values))
		now := time.Now()
		for i := range n {
			records[i] = kafka.Record{Time: now, Value: kafka.NewBytes(values[i])}
		}
		res, err := client.Produce(ctx, &kafka.ProduceRequest{Topic: p.topics.Clicks, Partition: partition,
			RequiredAcks: kafka.RequireAll, Compression: kafka.Zstd, Records: kafka.NewRecordReader(records[:n]...)})
		if err == nil {
			err = res.Error
		}
		if err != nil {
			return fmt.Errorf("produce: %w", err)
		}
		sent += n
		p.done.Add(int64(n))
	}
	return nil
}
