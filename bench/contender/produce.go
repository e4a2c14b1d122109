package contender

import (
	"context"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"linkstream/bench/load"
	"linkstream/bench/proc"
	"linkstream/bench/workload"
	"linkstream/schema"
	"linkstream/schema/stream"
)

// produceRecords is the size of a bare loop's batch. A shipper's batch has about as many records under load.
const produceRecords = 2048

// Produce returns a loop that produces records with kafka-go and does nothing else. Size of records and batches in
// flight per partition (one) are a shipper's.
func Produce(topics stream.Config, clicks int) *Contender {
	p := &produceLoop{topics, clicks}
	return &Contender{Name: "bare kafka-go produce", Processes: []proc.Process{thisProcess()}, Work: p.work}
}

type produceLoop struct {
	topics stream.Config
	clicks int
}

func (p *produceLoop) work(ctx context.Context, _ time.Duration) (load.Result, error) {
	var values [][]byte
	for i, click := range workload.SampleClicks(produceRecords) {
		click.Seq = uint64(i) + 1
		values = append(values, schema.AppendClick(nil, &click))
	}
	transport := new(kafka.Transport)
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(p.topics.Brokers), Transport: transport}
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for partition := range p.topics.Partitions {
		share := (p.clicks + partition) / p.topics.Partitions // the shares add up to clicks
		group.Go(func() error { return p.produce(ctx, client, partition, share, values) })
	}
	err := group.Wait()
	return load.Result{Answers: int64(p.clicks), Elapsed: time.Since(began)}, err
}

// produce produces share records to a partition.
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
	}
	return nil
}
