package eventloop

import (
	"bytes"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// One busy loop costs less than two half-busy ones: each wake-up is a switch of threads, and a busy loop finds several events at each.
// So the loops of a server take up work one after another. At first, loop 0 accepts all connections, and keeps them. When all loops that
// accept are busy and a CPU is idle, the next one joins them: without an idle CPU, as beside a proxy on the same machine, one loop more
// would make all of them wait for CPUs, and serve less. A busy loop gives connections that it hears of often to the least busy loop, and a
// loop that does not accept any more gives all of them away.
const (
	window     = 20 * time.Millisecond // over which a loop's work is measured
	busy       = 0.8                   // of a window
	unbusy     = 0.5                   // below this, the accepting loops become one less
	unequal    = 0.3                   // two loops that differ by more share
	maxGiven   = 1024                  // connections per window
	staleAfter = 2 * window            // age of a measurement that does not count any more
	recently   = time.Second           // used connections leave a loop that does not accept any more

	idleWindow = 5 * window // over which idle CPUs are measured
	spareCPU   = 0.5        // a loop joins if so much of a CPU is idle
)

// balance is what a loop knows of how busy it is.
type balance struct {
	began  time.Duration // the window
	worked time.Duration // in it
	spare  spare         // of loop 0

	// For other loops: how busy the last window was, in thousandths, and when it ended.
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
	b.busyness.Store(int64(1000 * share))
	b.measured.Store(int64(l.now))
	b.began, b.worked = l.now, 0
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

// spare measures how many CPUs are idle while all loops that accept are busy.
type spare struct {
	measuring bool
	began     time.Duration
	idle      time.Duration // of all CPUs, when it began
}

// found is told in each window whether all loops are busy, and reports whether a CPU was idle for an idleWindow in which they were. idle
// returns for how long CPUs have been idle in total.
func (s *spare) found(now time.Duration, busy bool, idle func() time.Duration) bool {
	if !busy || !s.measuring {
		s.measuring = busy
		if busy {
			s.began, s.idle = now, idle()
		}
		return false
	}
	passed := now - s.began
	if passed < idleWindow {
		return false
	}
	s.measuring = false
	return float64(idle()-s.idle) >= spareCPU*float64(passed)
}

// idleCPUs returns for how long the CPUs have been idle since the system started, in total: see proc_uptime(5). Where that is not known,
// it returns the time for which one CPU would have been idle.
var idleCPUs = func() time.Duration {
	text, err := os.ReadFile("/proc/uptime")
	_, idle, _ := bytes.Cut(bytes.TrimSpace(text), []byte(" "))
	seconds, parseErr := strconv.ParseFloat(string(idle), 64)
	if err != nil || parseErr != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(seconds * float64(time.Second))
}

// busyness returns how busy a loop was a moment ago: 0 for a sleeping loop, which does not measure.
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
	full := total > busy*float64(accepting) && accepting < len(s.loops)
	switch {
	case l.balance.spare.found(l.now, full, idleCPUs):
		s.enlistOne(accepting)
	case accepting > 1 && total < unbusy*float64(accepting-1):
		s.dismissOne(accepting)
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
