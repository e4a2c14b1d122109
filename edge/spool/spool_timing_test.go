package spool_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/edge/spool"
	"linkstream/schema/stream"
)

// headerSizes are total lengths of User-Agent and Referrer: none, typical, and the limit.
var headerSizes = []int{0, 200, 1024}

// BenchmarkAppend appends on all CPUs, as handlers do, while the lanes are read and acknowledged, as by shippers.
func BenchmarkAppend(b *testing.B) {
	for _, size := range headerSizes {
		b.Run(fmt.Sprintf("headers=%d", size), func(b *testing.B) {
			cfg := spool.DefaultConfig()
			cfg.Dir = b.TempDir()
			s, _ := open(b, cfg)
			stop := drain(s)
			defer stop()
			c := *click(1)
			c.UserAgent, c.Referrer = bytes.Repeat([]byte("u"), size/2), bytes.Repeat([]byte("r"), size/2)
			var hints atomic.Uint64
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				c, hint := c, hints.Add(1)
				for pb.Next() {
					for !s.Append(hint, &c) { // full: wait for the reader
						runtime.Gosched()
					}
				}
			})
			b.ReportMetric(float64(s.Dropped())/float64(b.N), "full/op")
		})
	}
}

// drain reads and acknowledges all lanes until stop is called.
func drain(s *spool.Spool) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var readers sync.WaitGroup
	for _, lane := range s.Lanes() {
		readers.Go(func() {
			var batch stream.Batch
			for ctx.Err() == nil {
				batch.Reset(time.Time{})
				if lane.Read(&batch, 768<<10) == 0 {
					time.Sleep(time.Millisecond)
				}
				if err := lane.Acknowledge(); err != nil {
					panic(err)
				}
			}
		})
	}
	return func() { cancel(); readers.Wait() }
}

func BenchmarkRead(b *testing.B) {
	for _, size := range headerSizes {
		b.Run(fmt.Sprintf("headers=%d", size), func(b *testing.B) {
			cfg := spool.DefaultConfig()
			cfg.Dir, cfg.Lanes = b.TempDir(), 1
			c := click(1)
			c.UserAgent, c.Referrer = bytes.Repeat([]byte("u"), size/2), bytes.Repeat([]byte("r"), size/2)
			s, closeSpool := open(b, cfg)
			const clicks = 100_000
			for range clicks {
				s.Append(0, c)
			}
			closeSpool()
			b.ReportAllocs()
			var batch stream.Batch
			for b.Loop() {
				b.StopTimer() // a lane can be read once: open it again
				s, closeSpool := open(b, cfg)
				lane := recovered(s)[0]
				b.StartTimer()
				n := 0
				for more := 1; more > 0; n += more {
					batch.Reset(time.Time{})
					more = lane.Read(&batch, 768<<10)
				}
				if n != clicks {
					b.Fatalf("read %d clicks of %d", n, clicks)
				}
				b.StopTimer()
				closeSpool()
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/clicks, "ns/click")
		})
	}
}
