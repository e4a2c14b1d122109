package spool_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/edge/spool"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

var errAway = errors.New("broker does not answer")

func TestShip(t *testing.T) {
	t.Run("nothing is sent when nothing is pending", func(t *testing.T) {
		s, topic, shipper := shipping(t, config(t.TempDir(), 1))
		n, err := shipper.Ship(t.Context(), s.Lanes()[0], new(stream.Batch))
		testkit.Must(t, err)
		testkit.Equal(t, "acknowledged", n, 0)
		testkit.Equal(t, "attempts", len(topic.attempts), 0)
	})
	t.Run("a batch is repeated unchanged until it is acknowledged", func(t *testing.T) {
		s, topic, shipper := shipping(t, config(t.TempDir(), 1))
		lane, batch := s.Lanes()[0], new(stream.Batch)
		topic.produce = func(context.Context, attempt) error { return errAway }
		for i := range int64(5) {
			appendClicks(t, s, 0, 10*i+1, 10*i+10)
			if n, err := shipper.Ship(t.Context(), lane, batch); n != 0 || !errors.Is(err, errAway) {
				t.Fatalf("%d acknowledged, error %v", n, err)
			}
			testkit.Equal(t, "same bytes", slices.EqualFunc(topic.attempts[i].values, topic.attempts[0].values, bytes.Equal),
				true)
		}
		testkit.Equal(t, "pending", s.Pending(), 50)
		topic.produce = nil
		for _, want := range []int{10, 40, 0} {
			n, err := shipper.Ship(t.Context(), lane, batch)
			testkit.Must(t, err)
			testkit.Equal(t, "acknowledged", n, want)
		}
		isRun(t, topic.counted(t)[lane.ID()], lane.ID(), 1, 1, 50)
		testkit.Equal(t, "pending", s.Pending(), 0)
		testkit.Equal(t, "shipped", shipper.Shipped(), 50)
	})
	t.Run("a batch is smaller than one megabyte", func(t *testing.T) {
		cfg := config(t.TempDir(), 1)
		cfg.SegmentBytes, cfg.MaxBytes = 256<<10, 8<<20
		s, topic, shipper := shipping(t, cfg)
		c := click(1)
		c.UserAgent, c.Referrer = make([]byte, 512), make([]byte, 512)
		for range 3000 {
			s.Append(0, c)
		}
		for batch := new(stream.Batch); s.Pending() > 0; {
			_, err := shipper.Ship(t.Context(), s.Lanes()[0], batch)
			testkit.Must(t, err)
		}
		for _, a := range topic.attempts {
			size := 0
			for _, v := range a.values {
				size += len(v) + 12 // overhead of a record
			}
			if size > 1<<20 {
				t.Fatalf("a batch of %d bytes", size)
			}
		}
	})
}

func TestPartition(t *testing.T) {
	ship := func(t *testing.T, shipper *spool.Shipper, lane *spool.Lane) error {
		t.Helper()
		_, err := shipper.Ship(t.Context(), lane, new(stream.Batch))
		return err
	}
	t.Run("lanes of a process have different partitions", func(t *testing.T) {
		s, topic, shipper := shipping(t, config(t.TempDir(), 4))
		used := make(map[int]bool)
		for i, lane := range s.Lanes() {
			appendClicks(t, s, uint64(i), 1, 1)
			testkit.Must(t, ship(t, shipper, lane))
			used[topic.attempts[i].partition] = true
		}
		testkit.Equal(t, "partitions", len(used), topic.partitions)
	})
	t.Run("nothing is sent before it is on the disk", func(t *testing.T) {
		cfg := config(t.TempDir(), 1)
		s, topic, shipper := shipping(t, cfg)
		lane, batch := s.Lanes()[0], new(stream.Batch)
		appendClicks(t, s, 0, 1, 10)
		topic.partitions = noAnswer
		if _, err := shipper.Ship(t.Context(), lane, batch); err == nil { // which reads the clicks
			t.Fatal("no error")
		}
		topic.partitions = 4
		truncate(t, onlySegment(t, cfg.Dir), 0) // the header cannot be written
		for range 3 {
			if _, err := shipper.Ship(t.Context(), lane, batch); err == nil {
				t.Error("no error")
			}
			testkit.Equal(t, "batches sent", len(topic.attempts), 0)
		}
	})
	t.Run("none is chosen while their number is unknown", func(t *testing.T) {
		s, topic, shipper := shipping(t, config(t.TempDir(), 1))
		for _, topic.partitions = range []int{noAnswer, 0} {
			appendClicks(t, s, 0, 1, 10)
			if err := ship(t, shipper, s.Lanes()[0]); err == nil {
				t.Fatal("no error")
			}
			if _, bound := s.Lanes()[0].Partition(); bound {
				t.Fatal("the lane is bound")
			}
		}
	})
}

func TestFewClicksFillOneLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config(t.TempDir(), 3)
		cfg.MaxBytes, cfg.SegmentBytes = 8<<20, 256<<10
		s, topic, shipper := shipping(t, cfg)
		// until all clicks are appended
		topic.produce = func(context.Context, attempt) error { time.Sleep(time.Millisecond); return nil }
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { shipper.Run(ctx); close(done) }()
		lanes, before := s.Lanes(), make([]int, 3)
		// want appends clicks with each hint, the first ones in a batch of their own, and requires the given number in each
		// lane.
		want := func(clicks int64, in ...int) {
			t.Helper()
			for _, n := range []int64{1, clicks - 1} {
				for hint := range lanes {
					appendClicks(t, s, uint64(hint), 1, n)
				}
				synctest.Wait()
			}
			time.Sleep(time.Second)
			counted := topic.counted(t)
			for i, l := range lanes {
				all := len(counted[l.ID()])
				testkit.Equal(t, fmt.Sprintf("clicks in lane %d", i), all-before[i], in[i])
				before[i] = all
			}
		}
		want(1, 1, 1, 1) // nothing is known
		want(1, 3, 0, 0)
		want(100, 300, 0, 0)
		want(300, 300, 300, 300)
		want(1, 1, 1, 1)
		want(1, 3, 0, 0)
		cancel()
		<-done
	})
}

func TestShipperRun(t *testing.T) {
	// run appends clicks 1 to 100 while the shipper runs, calls during, stops the shipper, and returns how long that took.
	run := func(t *testing.T, s *spool.Spool, shipper *spool.Shipper, during func()) (stopped time.Duration) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { shipper.Run(ctx); close(done) }()
		for link := range int64(100) {
			appendClicks(t, s, 0, link+1, link+1)
			time.Sleep(time.Millisecond)
		}
		during()
		start := time.Now()
		cancel()
		<-done
		return time.Since(start)
	}
	bubble := func(name string, f func(t *testing.T)) {
		t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
	}
	bubble("clicks are shipped within 50 ms, in batches", func(t *testing.T) {
		s, topic, shipper := shipping(t, config(t.TempDir(), 1))
		run(t, s, shipper, func() {
			time.Sleep(50 * time.Millisecond)
			testkit.Equal(t, "pending", s.Pending(), 0)
		})
		if n := len(topic.attempts); n > 10 {
			t.Fatalf("%d batches for 100 clicks in 100 ms", n)
		}
		isRun(t, topic.counted(t)[s.Lanes()[0].ID()], s.Lanes()[0].ID(), 1, 1, 100)
	})
	bubble("each batch waits until the topic wants it, and may be as large as the topic allows", func(t *testing.T) {
		cfg := config(t.TempDir(), 1)
		cfg.SegmentBytes, cfg.MaxBytes, cfg.BatchBytes = 256<<10, 8<<20, 4<<20
		cfg.Await = func(ctx context.Context) { stream.Sleep(ctx, time.Second) }
		s, topic, shipper := shipping(t, cfg)
		run(t, s, shipper, func() {
			time.Sleep(5 * time.Second) // now the lane is idle
			synctest.Wait()
			before := len(topic.attempts)
			c := click(1)
			c.UserAgent = make([]byte, 512)
			for range 3000 {
				s.Append(0, c)
				time.Sleep(100 * time.Microsecond)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			testkit.Equal(t, "batches", len(topic.attempts)-before, 1)
			testkit.Equal(t, "clicks in it", len(topic.attempts[before].values), 3000)
		})
	})
	bubble("an idle lane costs nothing, and ships the next click at once", func(t *testing.T) {
		cfg := config(t.TempDir(), 1)
		var attempts atomic.Int64 // to find a click: each begins with a look at the clock
		cfg.Now = func() time.Time { attempts.Add(1); return time.Now() }
		s, topic, shipper := shipping(t, cfg)
		run(t, s, shipper, func() {
			for i := range 3 {
				time.Sleep(time.Second)
				before, sent := attempts.Load(), len(topic.attempts)
				time.Sleep(time.Hour)
				testkit.Equal(t, "attempts in an idle hour", attempts.Load()-before, 0)
				appendClicks(t, s, 0, 101, 101)
				synctest.Wait()
				testkit.Equal(t, fmt.Sprintf("batches after click %d", i), len(topic.attempts)-sent, 1)
				testkit.Equal(t, "pending", s.Pending(), 0)
			}
		})
	})
	bubble("a click that comes while a lane becomes idle is not waited for", func(t *testing.T) {
		s, _ := open(t, config(t.TempDir(), 1))
		appendClicks(t, s, 0, 1, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		s.Lanes()[0].AwaitClick(ctx, 0) // no click was there before
		testkit.Must(t, ctx.Err())
	})
	bubble("damage does not make an idle lane look for clicks", func(t *testing.T) {
		cfg := config(t.TempDir(), 1)
		var attempts atomic.Int64
		cfg.Now = func() time.Time { attempts.Add(1); return time.Now() }
		s, _, shipper := shipping(t, cfg)
		appendClicks(t, s, 0, 1, 10)
		damage(t, onlySegment(t, cfg.Dir), func(data []byte) { record(data, 2)[8] ^= 1 })
		run(t, s, shipper, func() {
			time.Sleep(time.Second)
			before := attempts.Load()
			time.Sleep(time.Hour)
			testkit.Equal(t, "attempts in an idle hour", attempts.Load()-before, 0)
		})
	})
	bubble("one batch per lane is in flight", func(t *testing.T) {
		s, topic, shipper := shipping(t, config(t.TempDir(), 3))
		topic.produce = func(context.Context, attempt) error { time.Sleep(77 * time.Millisecond); return nil }
		appendClicks(t, s, 1, 1, 500)
		appendClicks(t, s, 2, 1, 500)
		run(t, s, shipper, func() {})
		testkit.Equal(t, "batches of one lane in flight", topic.mostOfLane, 1)
		testkit.Equal(t, "batches in flight", topic.most, 3)
		testkit.Equal(t, "pending", s.Pending(), 0)
	})
	bubble("the age of the oldest click that waits is a metric", func(t *testing.T) {
		cfg := config(t.TempDir(), 2)
		began := time.Now()
		// the time of all clicks here
		cfg.Now = func() time.Time { return time.UnixMilli(1_800_000_000_000).Add(time.Since(began)) }
		s, topic, shipper := shipping(t, cfg)
		set := metrics.NewSet()
		s.RegisterMetrics(set)
		age := func() float64 {
			var page bytes.Buffer
			set.WritePrometheus(&page)
			_, text, _ := strings.Cut(page.String(), "\nlinkstream_edge_oldest_click_seconds ")
			value, err := strconv.ParseFloat(strings.TrimSpace(text[:strings.IndexByte(text, '\n')]), 64)
			testkit.Must(t, err)
			return value
		}
		testkit.Equal(t, "age without clicks", age(), 0)
		topic.produce = func(context.Context, attempt) error { return errAway }
		run(t, s, shipper, func() {
			time.Sleep(time.Minute)
			testkit.Equal(t, "age while the broker is away", math.Round(age()), 60)
			topic.setProduce(nil)
			time.Sleep(4 * time.Second)
			testkit.Equal(t, "age after the broker is back", age(), 0)
		})
	})
	bubble("failed batches are retried with pauses until the broker answers", func(t *testing.T) {
		s, topic, _ := shipping(t, config(t.TempDir(), 1))
		log := new(testkit.Buffer)
		shipper := spool.NewShipper(s, topic, log.Logger())
		topic.produce = func(context.Context, attempt) error { return errAway }
		run(t, s, shipper, func() {
			time.Sleep(time.Minute)
			if n := shipper.Failures(); n < 20 || n > 120 {
				t.Fatalf("%d attempts in a minute", n)
			}
			testkit.Equal(t, "pending", s.Pending(), 100)
			topic.setProduce(nil)
			time.Sleep(4 * time.Second)
			testkit.Equal(t, "pending after the broker is back", s.Pending(), 0)
			appendClicks(t, s, 0, 101, 110)
			time.Sleep(time.Second)
			said := strings.Count(log.String(), "cannot ship clicks, retrying")
			testkit.Equal(t, "lines of the log", strings.Count(log.String(), "\n"), 2)
			testkit.Equal(t, "lines about the outage", said, 1)
		})
		isRun(t, topic.counted(t)[s.Lanes()[0].ID()][:100], s.Lanes()[0].ID(), 1, 1, 100)
		testkit.Equal(t, "shipped", shipper.Shipped(), 110)
	})
	bubble("pending clicks are shipped before Run returns", func(t *testing.T) {
		s, topic, shipper := shipping(t, config(t.TempDir(), 1))
		topic.produce = func(_ context.Context, a attempt) error {
			if len(topic.attempts)%3 != 0 {
				return errAway
			}
			return nil
		}
		run(t, s, shipper, func() { appendClicks(t, s, 0, 101, 200) })
		testkit.Equal(t, "pending", s.Pending(), 0)
	})
	bubble("Run returns after 10 s if the broker does not answer", func(t *testing.T) {
		for _, produce := range []func(ctx context.Context, a attempt) error{
			func(context.Context, attempt) error { return errAway },
			func(ctx context.Context, _ attempt) error { <-ctx.Done(); return ctx.Err() },
		} {
			s, topic, shipper := shipping(t, config(t.TempDir(), 1))
			topic.produce = produce
			if d := run(t, s, shipper, func() {}); d < 5*time.Second || d > 15*time.Second {
				t.Fatalf("stopped after %v", d)
			}
			testkit.Equal(t, "pending", s.Pending(), 100)
		}
	})
}

func TestShipperRecoveredLanes(t *testing.T) {
	bubble := func(name string, f func(t *testing.T)) {
		t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
	}
	shipAll := func(t *testing.T, shipper *spool.Shipper) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // drain
		shipper.Run(ctx)
	}
	bubble("clicks keep their identity and their folders are removed", func(t *testing.T) {
		cfg := config(t.TempDir(), 2)
		s, _ := open(t, cfg)
		a, b := s.Lanes()[0].ID(), s.Lanes()[1].ID()
		appendClicks(t, s, 0, 1, 500)
		appendClicks(t, s, 1, 501, 600)
		cfg = kill(t, cfg)
		s, topic, shipper := shipping(t, cfg)
		appendClicks(t, s, 0, 1, 50)
		shipAll(t, shipper)
		clicks := topic.counted(t)
		testkit.Equal(t, "lanes", len(clicks), 3)
		isRun(t, clicks[a], a, 1, 1, 500)
		isRun(t, clicks[b], b, 1, 501, 600)
		testkit.Equal(t, "folders", folders(t, cfg.Dir), 1)
		testkit.Equal(t, "pending", s.Pending(), 0)
	})
	bubble("acknowledged lanes are removed without sending", func(t *testing.T) {
		cfg := config(t.TempDir(), 1)
		s, _ := open(t, cfg)
		appendClicks(t, s, 0, 1, 500)
		read(t, s.Lanes()[0])
		testkit.Must(t, s.Lanes()[0].Acknowledge())
		cfg = kill(t, cfg)
		_, topic, shipper := shipping(t, cfg)
		shipAll(t, shipper)
		testkit.Equal(t, "attempts", len(topic.attempts), 0)
		testkit.Equal(t, "folders", folders(t, cfg.Dir), 1)
	})
	bubble("what is damaged at the end of a lane is not pending any more", func(t *testing.T) {
		cfg, _, segments := left(t, smallest)
		last := segments[len(segments)-1]
		damage(t, last, func(data []byte) { record(data, leftClicks-int(firstSeq(t, last)))[4] ^= 1 })
		damage(t, last, func(data []byte) { record(data, leftClicks-int(firstSeq(t, last))-1)[4] ^= 1 })
		damage(t, segments[0], func(data []byte) { record(data, 2)[4] ^= 1 })
		s, _, shipper := shipping(t, cfg)
		shipAll(t, shipper)
		testkit.Equal(t, "pending", s.Pending(), 0)
	})
}

// shipping opens a spool and returns it with a topic and a shipper from one to the other.
func shipping(tb testing.TB, cfg spool.Config) (*spool.Spool, *topic, *spool.Shipper) {
	tb.Helper()
	s, _ := open(tb, cfg)
	topic := &topic{partitions: 4}
	return s, topic, spool.NewShipper(s, topic, slog.New(slog.DiscardHandler))
}
