// Package load sends HTTP requests to one server over keep-alive connections: as fast as it answers (Closed), which finds
// the ceiling, or at a fixed rate whatever it answers (Open), which measures latency as clients see it.
package load

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"
)

// grace is how long answers may take that are under way when a window ends.
const grace = 10 * time.Second

// Source makes the requests of one connection, and is used by its goroutine alone.
type Source interface {
	// Append appends the next request, as it is sent, to dst.
	Append(dst []byte) []byte
	// Check looks at the answer to the last request. An error ends the load.
	Check(Answer) error
}

// Target is a server under load.
type Target struct {
	Addr   string // host:port
	Conns  int
	Source func(conn int) Source
	Done   *atomic.Int64 // counts the answers, for whoever watches
}

// Result is what became of a load.
type Result struct {
	Answers int64 // each of which Check had no objection to
	Elapsed time.Duration
	Latency *hdrhistogram.Histogram // in nanoseconds
	// Open loads only: how late requests were sent, in nanoseconds, which is part of their latency: because all
	// connections were busy, or because the machine had no time for the sender.
	Lateness *hdrhistogram.Histogram
	Unsent   int64 // requests that were due and given up, since the server was too far behind
}

// NewHistogram returns an empty histogram of times from a microsecond to a minute in nanoseconds, three digits exact.
func NewHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(int64(time.Microsecond), int64(time.Minute), 3)
}

func newResult() Result { return Result{Latency: NewHistogram(), Lateness: NewHistogram()} }

// record adds a time that is capped at the largest a histogram holds.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(0, int64(d)), h.HighestTrackableValue())) // fails only beyond that
}

func (r *Result) merge(other Result) {
	r.Answers += other.Answers
	r.Latency.Merge(other.Latency)
	r.Lateness.Merge(other.Lateness)
}

// run connects, and then has work use each connection in a goroutine of its own.
func (t Target) run(ctx context.Context, work func(c *client, began time.Time) error) (Result, error) {
	total := newResult()
	clients := make([]*client, t.Conns)
	defer func() {
		for _, c := range clients {
			if c != nil {
				c.Close()
			}
		}
	}()
	for i := range clients {
		c, err := dial(ctx, t.Addr)
		if err != nil {
			return total, err
		}
		clients[i] = &client{conn: c, source: t.Source(i), done: t.Done, result: newResult()}
	}
	group, failed := errgroup.WithContext(ctx)
	defer context.AfterFunc(failed, func() {
		for _, c := range clients {
			_ = c.SetDeadline(time.Now()) // ends reads and writes under way
		}
	})()
	began := time.Now()
	for _, c := range clients {
		group.Go(func() error { return work(c, began) })
	}
	err := group.Wait()
	total.Elapsed = time.Since(began)
	for _, c := range clients {
		total.merge(c.result)
	}
	if err != nil {
		return total, errors.Join(ctx.Err(), fmt.Errorf("load %s: %w", t.Addr, err))
	}
	return total, ctx.Err()
}

// client is a connection with its requests and what became of them.
type client struct {
	*conn
	source Source
	done   *atomic.Int64
	result Result
}

// ask sends one request and returns when the answer was there. Its latency counts from since.
func (c *client) ask(since time.Time) (answered time.Time, err error) {
	c.out = c.source.Append(c.out[:0])
	answer, err := c.roundTrip()
	if err != nil {
		return time.Time{}, err
	}
	answered = time.Now()
	if err := c.source.Check(answer); err != nil {
		return time.Time{}, err
	}
	record(c.result.Latency, answered.Sub(since))
	c.result.Answers++
	c.done.Add(1)
	return answered, nil
}
