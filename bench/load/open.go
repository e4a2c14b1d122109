package load

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// Open sends rate requests a second for as long as window, evenly spaced, whether or not earlier ones are answered. The
// latency of a request counts from the moment it was due: one that had to wait for a free connection, since the server
// was slow with others, is as late as its client would have seen it. (A load that waits before it sends leaves such
// requests out, which Gil Tene calls coordinated omission.) Requests that are due but unsent a grace after the window
// are given up and counted.
func Open(ctx context.Context, t Target, rate float64, window time.Duration) (Result, error) {
	if rate <= 0 {
		return Result{}, fmt.Errorf("load %s: rate %v is not above zero", t.Addr, rate)
	}
	// One thread sleeps until the next request is due, most of the time: give the others what they had without it.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1))
	ctx, cancel := context.WithTimeout(ctx, window+2*grace)
	defer cancel()
	schedule := NewSchedule(rate, window, sleep)
	result, err := t.run(ctx, func(c *client, _ time.Time) error {
		for {
			due, ok := schedule.Next()
			if !ok {
				return nil
			}
			record(c.result.Lateness, time.Since(due))
			if _, err := c.ask(due); err != nil {
				return err
			}
		}
	})
	result.Unsent = schedule.Unsent()
	return result, err
}

// Schedule says when requests are due. It is shared by the connections: whichever is free takes the next request.
type Schedule struct {
	interval float64 // nanoseconds
	count    int64
	sleep    func(time.Duration)

	turn  chan struct{} // holds a token while nobody waits; whoever has it has what follows
	start time.Time     // of the first call
	next  int64
}

// NewSchedule returns a schedule that begins with the first call of Next. sleep is what it waits with.
func NewSchedule(rate float64, window time.Duration, sleep func(time.Duration)) *Schedule {
	s := &Schedule{interval: float64(time.Second) / rate, count: int64(rate * window.Seconds()), sleep: sleep,
		turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	return s
}

// Next waits until the next request is due and returns when that was, which is long ago if all connections were busy.
// It returns false when there are no more, or when they are due longer ago than the grace.
func (s *Schedule) Next() (due time.Time, ok bool) {
	// One connection waits for the moment and the others for their turn. So it can send at once: nobody has to be woken.
	<-s.turn
	defer func() { s.turn <- struct{}{} }()
	now := time.Now()
	if s.start.IsZero() {
		s.start = now
	}
	due = s.start.Add(time.Duration(float64(s.next) * s.interval))
	if s.next >= s.count || now.Sub(due) > grace {
		return time.Time{}, false
	}
	s.next++
	for wait := due.Sub(now); wait > 0; wait = time.Until(due) {
		s.sleep(wait)
	}
	return due, true
}

// Unsent returns how many requests were never taken.
func (s *Schedule) Unsent() int64 {
	<-s.turn
	defer func() { s.turn <- struct{}{} }()
	return s.count - s.next
}
