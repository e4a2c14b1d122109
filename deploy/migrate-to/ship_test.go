package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// topics is an old topic whose partitions begin at an offset, and a new one.
type topics struct {
	mu      sync.Mutex
	old     [][]string
	begin   int64
	written [][]string
	fails   int // attempts to write that fail
	max     int // records that the new topic accepts at once
}

func (o *topics) Partitions(context.Context) (int, error) { return len(o.old), nil }

func (o *topics) Offsets(_ context.Context, p int) (start, end int64, err error) {
	return o.begin, o.begin + int64(len(o.old[p])), nil
}

func (o *topics) Fetch(_ context.Context, p int, offset int64, wait time.Duration, each func(stream.Record) error) (int64, error) {
	if offset < o.begin {
		return 0, stream.ErrOffsetOutOfRange
	}
	for i, value := range o.old[p][offset-o.begin:] {
		if err := each(stream.Record{Offset: offset + int64(i), Value: []byte(value)}); err != nil {
			return 0, err
		}
	}
	time.Sleep(wait)
	return 0, nil
}

func (o *topics) Produce(_ context.Context, p int, batch *stream.Batch) error {
	if o.max > 0 && batch.Len() > o.max {
		return fmt.Errorf("produce: %w", stream.ErrTooLarge)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range batch.Len() {
		o.written[p] = append(o.written[p], string(batch.Value(i)))
	}
	if o.fails--; o.fails >= 0 {
		return errors.New("the acknowledgement is lost")
	}
	return nil
}

func moveOf(o *topics) *move {
	return &move{topic: o, log: slog.New(slog.DiscardHandler), partitions: len(o.written), shipments: map[int]*shipment{}}
}

func TestShip(t *testing.T) {
	values := func(p string, n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprint(p, i))
		}
		return all
	}
	ship := func(t *testing.T, o *topics) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) { testkit.Must(t, moveOf(o).ship(t.Context(), o, true)) })
	}
	t.Run("sends each partition to one of the new topic, in order, from where the old one begins", func(t *testing.T) {
		o := &topics{old: [][]string{values("a", 5), nil, values("c", 3)}, begin: 40, written: make([][]string, 2)}
		ship(t, o)
		testkit.Equal(t, "partition 1", len(o.written[1]), 0)
		both := map[byte][]string{}
		for _, value := range o.written[0] {
			both[value[0]] = append(both[value[0]], value)
		}
		testkit.Equal(t, "records", both, map[byte][]string{'a': o.old[0], 'c': o.old[2]})
	})
	t.Run("repeats a batch before it sends the next one", func(t *testing.T) {
		o := &topics{old: [][]string{values("a", 3)}, written: make([][]string, 1), fails: 2}
		ship(t, o)
		testkit.Equal(t, "written", o.written[0], append(append(values("a", 3), values("a", 3)...), values("a", 3)...))
	})
	t.Run("sends in parts what is too large", func(t *testing.T) {
		o := &topics{old: [][]string{values("a", 11)}, written: make([][]string, 1), max: 2}
		ship(t, o)
		testkit.Equal(t, "written", o.written[0], o.old[0])
	})
	t.Run("fails for a record that the new topic never accepts", func(t *testing.T) {
		o := &topics{old: [][]string{values("a", 1)}, written: make([][]string, 1)}
		refusing := moveOf(o)
		refusing.topic = refuses{o}
		synctest.Test(t, func(t *testing.T) {
			if err := refusing.ship(t.Context(), o, true); !errors.Is(err, stream.ErrTooLarge) {
				t.Errorf("error %v", err)
			}
		})
	})
	t.Run("bounds a batch", func(t *testing.T) {
		big := string(make([]byte, 200<<10))
		o := &topics{old: [][]string{{big, big, big, big}}, written: make([][]string, 1), max: 2}
		ship(t, o)
		testkit.Equal(t, "records", len(o.written[0]), 4)
	})
}

type refuses struct{ *topics }

func (refuses) Produce(context.Context, int, *stream.Batch) error { return stream.ErrTooLarge }
