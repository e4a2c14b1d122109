package eventloop

import (
	"math"
	"runtime"
	"time"
)

const (
	// hotWait bounds a wait that Go's scheduler does not know of, in milliseconds.
	hotWait = 1
	never   = math.MaxInt64
)

// wait waits for the next events and returns how many there are, perhaps none.
//
// A wait through Go's scheduler costs a fifth of a redirect: the scheduler gives the loop's P to another thread, and the loop needs
// another P afterwards. While events follow one another fast, the loop therefore waits in a raw system call and keeps its P. Other
// goroutines run on the reserved Ps (ReserveCPUs). After a millisecond without an event the loop waits through the scheduler. To stop
// the world, the scheduler sends the thread a signal, which ends a raw wait.
func (l *loop) wait() (int, error) {
	l.balance.worked += time.Since(l.server.started) - l.now
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
			short = hotWait
		}
		n, err = l.poller.waitRaw(short)
		l.hot = n > 0
	default:
		began := time.Now()
		n, err = l.poller.wait(timeout)
		l.hot = time.Since(began) < hotWait*time.Millisecond
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
	next := time.Duration(never)
	if c := l.fresh.first; c != nil {
		next = min(next, c.since+l.server.cfg.ReadTimeout)
	}
	if c := l.idle.first; c != nil {
		next = min(next, c.since+l.server.cfg.IdleTimeout)
	}
	if !l.accepts && l.isEnlisted() {
		next = min(next, l.acceptAt)
	}
	return next
}

// keepTime handles timeouts, and starts or stops accepting.
func (l *loop) keepTime() error {
	for c := l.fresh.first; c != nil && l.now >= c.since+l.server.cfg.ReadTimeout; c = l.fresh.first {
		l.fresh.remove(c)
		l.handOver(c, &handed{late: true}, false) // which answers 408
	}
	for c := l.idle.first; c != nil && l.now >= c.since+l.server.cfg.IdleTimeout; c = l.idle.first {
		l.idle.remove(c)
		l.close(c)
	}
	l.oldest.Store(int64(min(since(l.fresh.first), since(l.idle.first))))
	switch accepting := l.isEnlisted(); {
	case accepting && !l.accepts && l.now >= l.acceptAt:
		return l.startAccepting()
	case !accepting && l.accepts:
		l.stopAccepting()
		return l.accept(acceptsAtEnd) // the poller may not report waiting connections to other loops again
	}
	return nil
}

func (l *loop) isEnlisted() bool { return l.number < int(l.server.accepting.Load()) && !l.draining }

func since(c *conn) time.Duration {
	if c == nil {
		return never
	}
	return c.since
}
