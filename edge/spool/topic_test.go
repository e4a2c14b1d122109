package spool_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// topic is a producer that keeps every attempt and fails as the test asks it to.
type topic struct {
	mu         sync.Mutex
	partitions int
	produce    func(context.Context, attempt) error
	attempts   []attempt

	inFlight         map[schema.Lane]int
	mostOfLane, most int // maximum number of batches in flight, of a lane and of all lanes
}

// noAnswer is a number of partitions: the broker does not answer.
const noAnswer = -1

// attempt is a batch that a shipper has sent.
type attempt struct {
	partition int
	lane      schema.Lane // of its first click
	at        time.Time   // timestamp of the batch
	values    [][]byte
	refused   bool
}

func (p *topic) Partitions(context.Context) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.partitions == noAnswer {
		return 0, errors.New("no answer")
	}
	return p.partitions, nil
}

func (p *topic) Produce(ctx context.Context, partition int, batch *stream.Batch) error {
	a := attempt{partition: partition, at: batch.Time}
	for i := range batch.Len() {
		a.values = append(a.values, bytes.Clone(batch.Value(i)))
	}
	var first schema.Click
	if err := schema.DecodeClick(a.values[0], &first); err != nil {
		return err
	}
	a.lane = first.Lane
	produce := p.begin(a.lane)
	var err error
	if produce != nil {
		err = produce(ctx, a)
	}
	a.refused = err != nil
	p.end(a)
	return err
}

func (p *topic) begin(lane schema.Lane) func(context.Context, attempt) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inFlight == nil {
		p.inFlight = make(map[schema.Lane]int)
	}
	p.inFlight[lane]++
	all := 0
	for _, n := range p.inFlight {
		all += n
	}
	p.mostOfLane, p.most = max(p.mostOfLane, p.inFlight[lane]), max(p.most, all)
	return p.produce
}

func (p *topic) end(a attempt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inFlight[a.lane]--
	p.attempts = append(p.attempts, a)
}

func (p *topic) setProduce(produce func(context.Context, attempt) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.produce = produce
}

// counted returns the acknowledged clicks per lane.
func (p *topic) counted(tb testing.TB) map[schema.Lane][]schema.Click {
	tb.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	clicks := make(map[schema.Lane][]schema.Click)
	for _, a := range p.attempts {
		if a.refused {
			continue
		}
		for _, value := range a.values {
			var c schema.Click
			testkit.Must(tb, schema.DecodeClick(value, &c))
			clicks[c.Lane] = append(clicks[c.Lane], c)
		}
	}
	return clicks
}
