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

// endless is a topic that always has more clicks of one lane, made without allocating.
type endless struct {
	seq    uint64
	bodies [][]byte // in turn
	value  []byte
}

func (e *endless) Fetch(_ context.Context, _ int, offset int64, _ time.Duration,
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

func (e *endless) Offsets(context.Context, int) (first, next int64, err error) {
	return 0, 0, errors.New("unused")
}
func (e *endless) ProduceDead(context.Context, *stream.Batch) error { return errors.New("unused") }

// bottomless is a store that counts nothing.
type bottomless struct{ schema.ClickStore }

func (bottomless) Position(context.Context, int) (schema.Position, error) {
	return schema.Position{}, nil
}
func (bottomless) InsertClicks(_ context.Context, batch *schema.ClickBatch) error { return nil }

// builder returns a partition whose Steps count batches of the given number of clicks.
func builder(tb testing.TB, clicks int) *worker.Partition {
	tb.Helper()
	cfg := worker.DefaultConfig()
	cfg.MaxBatch, cfg.MaxWait = clicks, time.Hour
	topic := &endless{bodies: crowd(4096)}
	return worker.NewPartition(0, cfg, topic, bottomless{}, openCountries(tb), slog.New(slog.DiscardHandler))
}

// crowd returns a click of each of so many visitors, as public links see them. Three of them share a network.
func crowd(visitors int) (bodies [][]byte) {
	for i, v := range load.Visitors(visitors, 1) {
		n := uint16(i / 3)
		bodies = append(bodies, schema.AppendClickBody(nil, &schema.Click{LinkID: link, AccountID: account, ClickedAt: noon,
			UserAgent: []byte(v.UserAgent), Referrer: []byte(v.Referrer), Network: []byte{81, byte(n >> 8), byte(n)}}))
	}
	return bodies
}

func TestBuildingABatchDoesNotAllocatePerClick(t *testing.T) {
	p := builder(t, 10_000)
	step := func() {
		if _, err := p.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	step() // makes the room
	if allocs := testing.AllocsPerRun(10, step); allocs > 5 {
		t.Errorf("got %v allocations for a batch of 10,000 clicks", allocs)
	}
}

// BenchmarkStep measures a click from the bytes of its record to its row in the batch.
func BenchmarkStep(b *testing.B) {
	for _, clicks := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprintf("batch=%d", clicks), func(b *testing.B) {
			p := builder(b, clicks)
			b.ReportAllocs()
			for done := 0; done < b.N; done += clicks {
				if _, err := p.Step(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
