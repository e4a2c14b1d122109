package eventloop

import (
	"bytes"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// One loop that is busy costs less than two that are half so: each wake-up is a switch of threads, and a busy loop finds
// several events at each. So the loops of a server take up work one after another. At first, the loop with number 0 accepts
// all connections, and keeps them. When the loops that accept are busy, the next one joins them, and stays if it is worth it
// (crowd). A loop that is busy gives connections that it hears of often to the one that has least to do, and a loop that does not
// accept any more gives away all of them.
const (
	window     = 20 * time.Millisecond // over which a loop's work is measured
	busy       = 0.8                   // of a window
	unbusy     = 0.5                   // below this, the accepting loops become one less
	unequal    = 0.3                   // two loops that differ by more share
	maxGiven   = 1024                  // connections per window
	staleAfter = 2 * window            // what a loop measured
	recently   = time.Second           // used connections leave a loop that does not accept any more
)

// balance is what a loop knows of how busy it is.
type balance struct {
	began    time.Duration // the window
	worked   time.Duration // in it
	answered int           // requests in it
	thread   int           // that the loop ran on when it began
	delay    time.Duration // of that thread, until it began

	// What other loops may know of its last window: how busy it was, and how much of it the loop was ready and waited for a CPU, in
	// thousandths, its answers per second, and when it ended.
	busyness atomic.Int64
	waited   atomic.Int64
	rate     atomic.Int64
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
	b.busyness.Store(int64(1000 * share))
	b.waited.Store(int64(1000 * b.delayed(passed)))
	b.rate.Store(int64(float64(b.answered) / passed.Seconds()))
	b.measured.Store(int64(l.now))
	b.began, b.worked, b.answered = l.now, 0, 0
	if l.number == 0 {
		l.enlist()
	}
	switch {
	case l.number >= int(l.server.accepting.Load()):
		l.giveAll()
	case share > busy:
		l.give(share, passed)
	}
}

// delayed returns for how much of the time that passed since it was called last the loop was ready and waited for a CPU, or 0 if that is not
// known.
func (b *balance) delayed(passed time.Duration) float64 {
	thread, delay, before := unix.Gettid(), runDelay(), b.delay
	same := thread == b.thread // a loop changes threads rarely
	b.thread, b.delay = thread, delay
	if !same {
		return 0
	}
	return float64(max(delay-before, 0)) / float64(passed) // below 0 where one reading failed
}

// runDelay returns for how long the thread that calls it was ready and waited for a CPU since it started, or 0 if that is not known.
func runDelay() time.Duration {
	file, err := unix.Open("/proc/thread-self/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	var stat [64]byte
	n, _ := unix.Read(file, stat[:])
	_ = unix.Close(file) // it was only read
	return parseRunDelay(stat[:max(n, 0)])
}

// parseRunDelay reads a thread's schedstat: its nanoseconds on CPUs, those in which it waited for one, and how often it got one.
func parseRunDelay(stat []byte) time.Duration {
	fields := bytes.Fields(stat)
	if len(fields) != 3 {
		return 0
	}
	delay, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(delay)
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
	total, did := 0.0, work{}
	for _, other := range s.loops[:accepting] {
		if b := other.busyness(l.now); b > 0 {
			total += b
			did.rate += float64(other.balance.rate.Load())
			did.waited += float64(other.balance.waited.Load()) / 1000
		}
	}
	did.full = total > busy*float64(accepting)
	switch l.crowd.judge(l.now, accepting, len(s.loops), did) {
	case oneMore:
		s.enlistOne(accepting)
	case oneLess:
		s.dismissOne(accepting)
	default:
		if accepting > 1 && total < unbusy*float64(accepting-1) {
			s.dismissOne(accepting)
		}
	}
}

// enlistOne has one loop more accept than there were.
func (s *Server) enlistOne(accepting int) {
	if accepting < len(s.loops) && s.accepting.CompareAndSwap(int32(accepting), int32(accepting+1)) {
		s.loops[accepting].post(message{kind: wakeUp})
	}
}

// dismissOne has one loop less accept. The loop sees it at its next turn.
func (s *Server) dismissOne(accepting int) {
	s.accepting.CompareAndSwap(int32(accepting), int32(accepting-1))
}

// give passes connections on to the loop that has least to do: so many of those that were in use in the last window, which took
// a while, that both loops have the same afterwards, if all are used alike.
func (l *loop) give(share float64, while time.Duration) {
	to, least := l, share-unequal
	for _, other := range l.server.loops[:l.server.accepting.Load()] {
		if b := other.busyness(l.now); other != l && b < least && other.moves(l.now) {
			to, least = other, b
		}
	}
	if to == l {
		return
	}
	used := 0
	for c := l.idle.last; c != nil && l.now-c.since <= while && used < maxGiven; c = c.prev {
		used++
	}
	l.passLast(int(float64(used)*(share-least)/(2*share)), while, to)
}

// giveAll passes the connections that were used recently on to the loop that has least to do of those that accept.
func (l *loop) giveAll() {
	var to *loop
	for _, other := range l.server.loops[:l.server.accepting.Load()] {
		if other.moves(l.now) && (to == nil || other.busyness(l.now) < to.busyness(l.now)) {
			to = other
		}
	}
	if to != nil {
		l.passLast(maxGiven, recently, to)
	}
}

// moves reports whether a loop waits for events or has measured a moment ago. Another one may be stuck.
func (l *loop) moves(now time.Duration) bool {
	return l.sleeping.Load() || now-time.Duration(l.balance.measured.Load()) <= staleAfter
}

// passLast passes on the connections that were used last, up to so many of those of the last while.
func (l *loop) passLast(most int, while time.Duration, to *loop) {
	for c := l.idle.last; c != nil && most > 0 && l.now-c.since <= while; most-- {
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
