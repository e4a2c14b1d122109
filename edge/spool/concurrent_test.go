package spool_test

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/edge/spool"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// TestConcurrentAppends appends from several goroutines while a shipper sends and the broker fails now and then.
func TestConcurrentAppends(t *testing.T) {
	const handlers, clicks = 8, 4000
	cfg := config(t.TempDir(), 3)
	cfg.MaxBytes, cfg.Sync = 64<<20, 1 // sync continuously
	s, closeSpool := open(t, cfg)
	var attempts atomic.Int64
	topic := &topic{partitions: 2, produce: func(context.Context, attempt) error {
		if attempts.Add(1)%50 == 10 {
			return errAway
		}
		return nil
	}}
	shipper := spool.NewShipper(s, topic, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var shipping, appending sync.WaitGroup
	shipping.Go(func() { shipper.Run(ctx) })
	for h := range handlers {
		appending.Go(func() {
			for i := range clicks {
				if !s.Append(uint64(h+i), click(int64(h*clicks+i))) {
					t.Errorf("no room for click %d of handler %d", i, h)
					return
				}
			}
		})
	}
	appending.Wait()
	cancel()
	shipping.Wait()

	testkit.Equal(t, "pending", s.Pending(), 0)
	testkit.Equal(t, "batches of one lane in flight", topic.mostOfLane, 1)
	var links []int64
	for lane, clicks := range topic.counted(t) {
		for i, c := range clicks {
			if c.Seq != uint64(i+1) {
				t.Fatalf("click %d of lane %v has seq %d", i, lane, c.Seq)
			}
			links = append(links, c.LinkID)
		}
	}
	slices.Sort(links)
	testkit.Equal(t, "clicks", len(links), handlers*clicks)
	testkit.Equal(t, "different clicks", len(slices.Compact(links)), handlers*clicks)
	closeSpool()
	testkit.Equal(t, "segments", len(files(t, cfg.Dir, ".segment")), 0)
}

// TestReadIsInterrupted reads while clicks are appended, on one CPU: the kernel's timer interrupts the reader anywhere,
// and then segments are filled before it goes on.
func TestReadIsInterrupted(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	cfg := config(memoryDir(t), 1)
	cfg.MaxBytes, cfg.Sync = 64<<20, time.Hour
	s, log, _ := openLogged(t, cfg)
	lane := s.Lanes()[0]
	const interrupts, clicks = 150, 150 // more than a segment has
	last := uint64(interrupts * clicks)
	var appending sync.WaitGroup
	appending.Go(func() {
		for range interrupts {
			for range clicks {
				s.Append(0, click(1))
			}
			runtime.Gosched() // until the reader is interrupted again
		}
	})
	var batch stream.Batch
	seq := uint64(0)
	for seq < last && !log.Contains("damaged") {
		batch.Reset(time.Time{})
		lane.Read(&batch, 1<<30)
		for _, c := range decode(t, &batch) {
			if seq++; c.Seq != seq {
				t.Fatalf("click %d comes after click %d", c.Seq, seq-1)
			}
		}
		testkit.Must(t, lane.Acknowledge())
	}
	appending.Wait()
	testkit.Equal(t, "damaged segments", s.Damaged(), 0)
}
