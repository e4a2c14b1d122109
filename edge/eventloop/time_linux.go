package eventloop

import (
	"math"
	"runtime"
	"time"
)

const (
	// shortWait bounds a wait that keeps the loop's thread, in milliseconds.
	shortWait = 1
)

// wait waits for the next events and returns how many there are, perhaps none.
//
// While events follow one another fast, the loop is hot, and waits in a raw system call that Go's scheduler does
// not see: otherwise the scheduler gives the loop's P to another thread, and the loop needs another P afterwards,
// which costs a fifth of a redirect. Other goroutines run on the reserved Ps (ReserveCPUs). To stop the world, the
// scheduler sends the thread a signal, which ends a raw wait.
//
// A loop that was hot a moment ago is warm, and waits for up to a millisecond in a system call that blocks its
// thread. After that it waits like any other goroutine. That is slower to wake up, but lets the runtime's monitor
// sleep, too: for each blocked thread the monitor wakes up some sixty times until it takes its P away, which costs
// more than many redirects.
func (l *loop) wait() (int, error) {
	timeout := l.untilNext()
	l.sleeping.Store(true)
	if l.posted.Load() { // a message that was posted before sleeping was set writes no wake-up
		timeout = 0
	}
	var n int
	var err error
	switch {
	case timeout == 0:
		n, err = l.poller.waitRaw(0)
	case l.hot:
		short := 0
		if l.spareCPUs {
			short = shortWait
		}
		n, err = l.poller.waitRaw(short)
		l.hot, l.warm = n > 0, true
	case l.warm:
		n, err = l.poller.waitBlocking(min(uint(timeout), shortWait)) // never, -1, is the largest
		l.hot, l.warm = n > 0, n > 0
	default:
		began := time.Now()
		n, err = l.poller.wait(timeout)
		l.hot = time.Since(began) < shortWait*time.Millisecond
		l.spareCPUs = runtime.GOMAXPROCS(0) > len(l.server.loops)
	}
	l.sleeping.Store(false)
	return n, err
}

// untilNext returns the milliseconds until the next timeout, rounded up; below zero without one.
func (l *loop) untilNext() int {
	next := l.nextDue()
	if next == never {
		return -1
	}
	wait := next - l.now + time.Millisecond - 1
	return int(min(max(wait, 0)/time.Millisecond, math.MaxInt32))
}

func (l *loop) nextDue() time.Duration {
	next := never
	if c := l.fresh.first; c != nil {
		next = min(next, c.since+l.server.cfg.ReadTimeout)
	}
	if c := l.idle.first; c != nil {
		next = min(next, c.since+l.server.cfg.IdleTimeout)
	}
	if !l.accepts && !l.draining {
		next = min(next, l.acceptAt)
	}
	return next
}

// keepTime handles timeouts, and accepts again after a shortage.
func (l *loop) keepTime() error {
	for c := l.fresh.first; c != nil && l.now >= c.since+l.server.cfg.ReadTimeout; c = l.fresh.first {
		l.fresh.remove(c)
		l.handOver(c, &handed{late: true}) // which answers 408
	}
	for c := l.idle.first; c != nil && l.now >= c.since+l.server.cfg.IdleTimeout; c = l.idle.first {
		l.idle.remove(c)
		l.close(c)
	}
	l.noteOldest()
	if !l.accepts && !l.draining && l.now >= l.acceptAt {
		return l.startAccepting()
	}
	return nil
}

func since(c *conn) time.Duration {
	if c == nil {
		return never
	}
	return c.since
}
