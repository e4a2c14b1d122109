package eventloop

// maxWaiters is how many waiters a loop keeps for later requests.
const maxWaiters = 1 << 10

// waiterState is the loop's part of a Waiter. Only the loop's goroutine uses it.
type waiterState struct {
	conn *conn
	in   []byte // from the request on
}

// newWaiter returns a waiter of the loop that no request has.
func (l *loop) newWaiter() *Waiter {
	if n := len(l.waiters); n > 0 {
		w := l.waiters[n-1]
		l.waiters = l.waiters[:n-1]
		return w
	}
	return &Waiter{wake: l.wakeWaiter}
}

// wakeWaiter is Waiter.Done.
func (l *loop) wakeWaiter(w *Waiter) { l.post(message{kind: mayGoOn, waiter: w}) }

// park puts a connection that is in no list aside until the waiter's Done. rest begins with the request that waits;
// reported means that the poller has reported more bytes.
func (l *loop) park(c *conn, w *Waiter, rest []byte, reported bool) {
	if c == &l.guest {
		c = l.enter(c)
	}
	w.conn, w.in = c, append(w.in[:0], rest...)
	c.state, c.reported, c.waiter = parked, reported, w
	l.parked++
}

// resume answers the request of a waiter, unless its connection has left the loop since.
func (l *loop) resume(w *Waiter) {
	if c := w.conn; c != nil && c.waiter == w {
		c.waiter = nil
		l.parked--
		l.request.Resumed = w
		l.respond(c, w.in, c.reported)
		l.request.Resumed = nil
	}
	w.Value, w.conn = nil, nil
	if len(l.waiters) < maxWaiters {
		l.waiters = append(l.waiters, w)
	}
}
