package simulation_test

import (
	"bytes"
	"context"
	"errors"

	"linkstream/schema/stream"
)

// broker is a model of the topic: partitions of records, and batches that are still on their way.
type broker struct {
	partitions [][][]byte
	delayed    []delayed
}

// delayed is a batch whose producer was told that it failed. It arrives all the same.
type delayed struct {
	partition int
	values    [][]byte
}

func (b *broker) append(partition int, values [][]byte) {
	b.partitions[partition] = append(b.partitions[partition], values...)
}

// arrive lets delayed batch i arrive.
func (b *broker) arrive(i int) {
	d := b.delayed[i]
	b.delayed = append(b.delayed[:i], b.delayed[i+1:]...)
	b.append(d.partition, d.values)
}

var errNetwork = errors.New("no answer")

// uplink is the broker as the shipper of one lane sees it.
type uplink struct {
	*simulation
	pause    pause
	attempts int  // of the batch that is being sent
	inFlight bool // a batch is on its way, and its shipper does not know whether it arrived
}

func (u *uplink) Partitions(context.Context) (int, error) {
	if err := u.pause(); err != nil {
		return 0, err
	}
	if u.fault(unknownPartitions, 4) {
		return 0, errNetwork
	}
	return len(u.broker.partitions), nil
}

// Produce does to a batch what may happen to one on its way.
func (u *uplink) Produce(_ context.Context, partition int, batch *stream.Batch) error {
	if err := u.pause(); err != nil {
		return err
	}
	values := make([][]byte, batch.Len())
	for i := range values {
		values[i] = bytes.Clone(batch.Value(i))
	}
	u.attempts++
	if u.broken.rebinds && u.attempts > 1 {
		partition = (partition + 1) % len(u.broker.partitions)
	}
	u.inFlight = true
	err := u.transmit(partition, values)
	if pauseErr := u.pause(); pauseErr != nil {
		return pauseErr
	}
	u.inFlight = false
	if err == nil {
		u.attempts = 0
	}
	return err
}

func (u *uplink) transmit(partition int, values [][]byte) error {
	switch {
	case u.broken.overtakes && u.random.IntN(4) == 0: // taken for sent, so that the next one is sent before it arrives
		u.broker.delayed = append(u.broker.delayed, delayed{partition, values})
		return nil
	case u.fault(refused, 12):
		return errNetwork
	case u.fault(delayedBatch, 12):
		u.broker.delayed = append(u.broker.delayed, delayed{partition, values})
		return errNetwork
	}
	u.broker.append(partition, values)
	if u.fault(repeatedBatch, 12) {
		u.broker.append(partition, values)
	}
	if u.fault(lostAcknowledgement, 8) {
		return errNetwork
	}
	return nil
}
