package simulation_test

import (
	"bytes"
	"context"
	"errors"

	"linkstream/schema/stream"
)

// broker is a model of the clicks topic: the partitions' records, and produce requests that have yet to arrive.
type broker struct {
	partitions [][][]byte
	delayed    []delayedRequest
	restarts   []int // by partition: how often its leader has lost records
}

// delayedRequest is a produce request that arrives after its producer was told that it failed.
type delayedRequest struct {
	partition int
	values    [][]byte
}

func (b *broker) append(partition int, values [][]byte) {
	b.partitions[partition] = append(b.partitions[partition], values...)
}

// deliver appends the values of delayed request i.
func (b *broker) deliver(i int) {
	d := b.delayed[i]
	b.delayed = append(b.delayed[:i], b.delayed[i+1:]...)
	b.append(d.partition, d.values)
}

var errNetwork = errors.New("no answer")

// producer is the broker as the shipper of one lane sees it.
type producer struct {
	*simulation
	yield    yield
	attempts int  // to send the current batch
	inFlight bool // a request is under way, and its outcome is unknown to the shipper
}

func (p *producer) Partitions(context.Context) (int, error) {
	if err := p.yield(); err != nil {
		return 0, err
	}
	if p.fault(unknownPartitions, 4) {
		return 0, errNetwork
	}
	return len(p.broker.partitions), nil
}

// Produce sends a batch, subject to faults.
func (p *producer) Produce(_ context.Context, partition int, batch *stream.Batch) error {
	if err := p.yield(); err != nil {
		return err
	}
	values := make([][]byte, batch.Len())
	for i := range values {
		values[i] = bytes.Clone(batch.Value(i))
	}
	p.attempts++
	if p.broken.rebinds && p.attempts > 1 {
		partition = (partition + 1) % len(p.broker.partitions)
	}
	p.inFlight = true
	err := p.send(partition, values)
	if yieldErr := p.yield(); yieldErr != nil {
		return yieldErr
	}
	p.inFlight = false
	if err == nil {
		p.attempts = 0
	}
	return err
}

func (p *producer) send(partition int, values [][]byte) error {
	switch {
	case p.broken.pipelines && p.random.IntN(4) == 0: // reported as sent, so the next batch may arrive first
		p.broker.delayed = append(p.broker.delayed, delayedRequest{partition, values})
		return nil
	case p.fault(refusedBatch, 12):
		return errNetwork
	case p.fault(delayedBatch, 12):
		p.broker.delayed = append(p.broker.delayed, delayedRequest{partition, values})
		return errNetwork
	}
	p.broker.append(partition, values)
	if p.fault(repeatedBatch, 12) {
		p.broker.append(partition, values)
	}
	if p.fault(lostAcknowledgement, 8) {
		return errNetwork
	}
	return nil
}
