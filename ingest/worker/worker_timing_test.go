package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"linkstream/bench/load"
	"linkstream/ingest/worker"
	"linkstream/schema"
	"linkstream/schema/stream"
)

// endlessTopic is a topic with an endless lane of clicks. Fetch does not allocate.
type endlessTopic struct {
	seq    uint64
	bodies [][]byte // used in turn
	value  []byte
}

func (e *endlessTopic) Fetch(_ context.Context, _ int, offset int64, _ time.Duration,
	each func(stream.Record) error) (lag int64, err error) {
	for {
		e.value = append(schema.AppendClickIdentity(e.value[:0], lane(1), e.seq+1), e.bodies[e.seq%uint64(len(e.bodies))]...)
		if err := each(stream.Record{Offset: offset, Time: noon, Value: e.value}); err != nil {
			return 0, err
		}
		e.seq++
		offset++
	}
}

func (e *endlessTopic) Offsets(context.Context, int) (start, end int64, err error) {
	return 0, 0, errors.New("unused")
}
func (e *endlessTopic) ProduceDead(context.Context, *stream.Batch) error { return errors.New("unused") }

// discardStore is a store that discards clicks.
type discardStore struct{ schema.PositionStore }

func (discardStore) Position(context.Context, int) (schema.Position, error) {
	return schema.Position{}, nil
}
func (discardStore) LaneMarks(_ context.Context, lanes []schema.Lane) ([]uint64, error) {
	return make([]uint64, len(lanes)), nil
}

func (discardStore) InsertClicks(_ context.Context, batch *schema.ClickBatch) error { return nil }

// newBenchPartition returns a partition whose Steps count batches of the given number of clicks.
func newBenchPartition(tb testing.TB, clicks int) *worker.Partition {
	tb.Helper()
	cfg := worker.DefaultConfig()
	cfg.MaxBatch, cfg.MaxWait, cfg.Pause = clicks, time.Hour, 0 // endlessTopic has the next records at once
	topic := &endlessTopic{bodies: visitorClicks(4096)}
	return worker.NewPartition(0, cfg, topic, discardStore{}, openCountries(tb), slog.New(slog.DiscardHandler))
}

// visitorClicks returns a click per visitor, from the mix of visitors of public links. Three visitors share a network.
func visitorClicks(visitors int) (bodies [][]byte) {
	for i, v := range load.Visitors(visitors, 1) {
		n := uint16(i / 3)
		bodies = append(bodies, schema.AppendClickBody(nil, &schema.Click{LinkID: link, AccountID: account, ClickedAt: noon,
			UserAgent: []byte(v.UserAgent), Referrer: []byte(v.Referrer), Network: []byte{81, byte(n >> 8), byte(n)}}))
	}
	return bodies
}

func TestStepDoesNotAllocatePerClick(t *testing.T) {
	p := newBenchPartition(t, 10_000)
	step := func() {
		if _, err := p.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	step() // grows the columns
	if allocs := testing.AllocsPerRun(10, step); allocs > 5 {
		t.Errorf("got %v allocations per batch of 10,000 clicks", allocs)
	}
}

// BenchmarkStep measures a click from the bytes of its record to its row in the batch.
func BenchmarkStep(b *testing.B) {
	for _, clicks := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprintf("batch=%d", clicks), func(b *testing.B) {
			p := newBenchPartition(b, clicks)
			b.ReportAllocs()
			for done := 0; done < b.N; done += clicks {
				if _, err := p.Step(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
