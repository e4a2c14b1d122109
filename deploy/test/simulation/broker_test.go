//go:build !race

package simulation_test

import (
	"bytes"
	"context"
	"errors"
	"time"

	"linkstream/schema/stream"
)

// broker is a model of the clicks topic: the partitions' logs, and produce requests that have yet to arrive.
type broker struct {
	partitions []partitionLog
	delayed    []delayedRequest
	maxBytes   int // of a batch that the topic accepts; 0: any
}

// partitionLog is the log of a partition. Record i has offset i.
type partitionLog struct {
	records  [][]byte
	start    int64 // offset of the first record that is not deleted
	restarts int   // how often the partition's leader has lost records
}

func (l *partitionLog) end() int64 { return int64(len(l.records)) }

// delayedRequest is a produce request that arrives after its producer got an error.
type delayedRequest struct {
	partition int
	values    [][]byte
}

// append appends records to a partition, unless the topic does not have it any more.
func (b *broker) append(partition int, values [][]byte) {
	if partition < len(b.partitions) {
		log := &b.partitions[partition]
		log.records = append(log.records, values...)
	}
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
	attempts int       // to send the current batch
	inFlight bool      // a request is under way, and its outcome is unknown to the shipper
	first    time.Time // timestamp of the current batch in its first attempt
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
	if p.attempts == 1 {
		p.first = batch.Time
	}
	err := p.check(partition, batch)
	if err == nil {
		err = p.send(partition, values)
	}
	if yieldErr := p.yield(); yieldErr != nil {
		return yieldErr
	}
	p.inFlight = false
	if err == nil {
		p.attempts = 0
	}
	return err
}

// check returns an error if the broker refuses a batch whenever it is sent.
func (p *producer) check(partition int, batch *stream.Batch) error {
	at := batch.Time
	if p.broken.keepsTime {
		at = p.first
	}
	switch {
	case at.After(p.now().Add(time.Hour)):
		p.occur(refusedTime)
		return errors.New("invalid timestamp")
	case partition >= len(p.broker.partitions):
		p.occur(lostPartition)
		return stream.ErrNoPartition
	case p.broker.maxBytes == 0 || batch.Size() <= p.broker.maxBytes:
		return nil
	case p.broken.neverSplits:
		return errNetwork
	case batch.Len() == 1:
		p.occur(refusedClick)
		p.lost[p.linkOf(bytes.Clone(batch.Value(0)))] = true
	default:
		p.occur(refusedSize)
	}
	return stream.ErrRefused
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
	p.traceEvent("append", partition, p.linkOf(bytes.Clone(values[0])), nil)
	if p.fault(repeatedBatch, 12) {
		p.broker.append(partition, values)
	}
	if p.fault(lostAcknowledgement, 8) {
		return errNetwork
	}
	return nil
}
