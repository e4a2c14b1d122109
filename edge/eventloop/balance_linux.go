package eventloop

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// One loop that is busy costs less than two that are half so: each wake-up is a switch of threads, and a busy loop finds
// several events at each. So the loops of a server take up work one after another. At first, the loop with number 0 accepts
// all connections, and keeps them. When the loops that accept are busy, the next one joins them; and a loop that is busy
// gives connections that it hears of often to the one that has least to do.
const (
	window     = 20 * time.Millisecond // over which a loop's work is measured
	busy       = 0.8                   // of a window
	unbusy     = 0.5                   // below this, the accepting loops become one less
	unequal    = 0.3                   // two loops that differ by more share
	maxGiven   = 1024                  // connections per window
	staleAfter = 2 * window            // what a loop measured
)

// balance is what a loop knows of how busy it is.
type balance struct {
	began  time.Duration // the window
	worked time.Duration // in it

	// What other loops may know: how busy it was in its last window, in thousandths, and when that ended.
	busyness atomic.Int64
	measured atomic.Int64
}

// measure is called at the start of a turn, and does what there is to do at the end of a window.
func (l *loop) measure() {
	b := &l.balance
	passed := l.now - b.began
	if passed < window {
		return
	}
	share := min(float64(b.worked)/float64(passed), 1)
	b.began, b.worked = l.now, 0
	b.busyness.Store(int64(1000 * share))
	b.measured.Store(int64(l.now))
	if l.number == 0 {
		l.enlist()
	}
	if share > busy {
		l.give(share)
	}
}

// busyness returns how busy a loop was a moment ago. One that sleeps does not measure.
func (l *loop) busyness(now time.Duration) float64 {
	if now-time.Duration(l.balance.measured.Load()) > staleAfter {
		return 0
	}
	return float64(l.balance.busyness.Load()) / 1000
}

// enlist decides how many loops accept. Loop 0 does it, as it always accepts.
func (l *loop) enlist() {
	s := l.server
	accepting := int(s.accepting.Load())
	total := 0.0
	for _, other := range s.loops[:accepting] {
		total += other.busyness(l.now)
	}
	switch {
	case total > busy*float64(accepting):
		s.enlistOne(accepting)
	case accepting > 1 && total < unbusy*float64(accepting-1):
		s.accepting.CompareAndSwap(int32(accepting), int32(accepting-1)) // the loop sees it at its next turn
	}
}

// enlistOne has one loop more accept than there were.
func (s *Server) enlistOne(accepting int) {
	if accepting < len(s.loops) && s.accepting.CompareAndSwap(int32(accepting), int32(accepting+1)) {
		s.loops[accepting].post(message{kind: wakeUp})
	}
}

// give passes connections on to the loop that has least to do: so many of those that were in use in the last window that
// both loops have the same afterwards, if all are used alike.
func (l *loop) give(share float64) {
	to, least := l, share-unequal
	for _, other := range l.server.loops {
		if b := other.busyness(l.now); other != l && b < least {
			to, least = other, b
		}
	}
	if to == l {
		return
	}
	used := 0
	for c := l.idle.last; c != nil && l.now-c.since < window && used < maxGiven; c = c.prev {
		used++
	}
	given := int(float64(used) * (share - least) / (2 * share))
	for c := l.idle.last; c != nil && given > 0; given-- {
		previous := c.prev
		l.idle.remove(c)
		l.pass(c, to)
		c = previous
	}
}

// pass gives a connection that is in no list to another loop.
func (l *loop) pass(c *conn, to *loop) {
	if l.poller.control(unix.EPOLL_CTL_DEL, c.fd, 0, 0, 0) != nil || !to.post(message{kind: passedOn, passed: *c}) {
		l.close(c)
		return
	}
	l.table.release(c)
}

// takeOver keeps a connection that another loop passes on.
func (l *loop) takeOver(c *conn) {
	l.guest = *c
	if l.draining {
		l.serve(&l.guest, 0)
		return
	}
	l.keep(&l.guest, idle, false)
}
