package contender

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"linkstream/bench/load"
	"linkstream/bench/proc"
	"linkstream/schema"
	"linkstream/schema/stream"
)

// fetchBytes is the size of a fetch of the bare loop, the same as a worker's.
const fetchBytes = 1 << 20

// Fetch returns a loop that reads the clicks of a topic and drops them: the cost of kafka-go alone.
func Fetch(topics stream.Config, clicks int, broker []proc.Process) *Contender {
	c := &Contender{Name: "bare kafka-go fetch", Processes: append([]proc.Process{thisProcess()}, broker...)}
	f := &fetchLoop{topics, int64(clicks), &c.Done}
	c.Work = f.work
	return c
}

type fetchLoop struct {
	topics stream.Config
	clicks int64
	done   *atomic.Int64
}

func (f *fetchLoop) work(ctx context.Context, _ time.Duration) (load.Result, error) {
	transport := new(kafka.Transport)
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(f.topics.Brokers), Transport: transport}
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	var read atomic.Int64
	for partition := range f.topics.Partitions {
		group.Go(func() error {
			n, err := f.readPartition(ctx, client, partition)
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

// readPartition reads all records of a partition and returns their number.
func (f *fetchLoop) readPartition(ctx context.Context, client *kafka.Client, partition int) (n int64, err error) {
	value := make([]byte, schema.MaxClickLen)
	for end := int64(math.MaxInt64); n < end; {
		res, err := client.Fetch(ctx, &kafka.FetchRequest{Topic: f.topics.Clicks, Partition: partition, Offset: n,
			MinBytes: 1, MaxBytes: fetchBytes, MaxWait: time.Second})
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
			if r.Offset >= n { // a batch may begin before the requested offset
				n = r.Offset + 1
			}
		}
		f.done.Add(n - before)
	}
	return n, nil
}
