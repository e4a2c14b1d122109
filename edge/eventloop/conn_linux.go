package eventloop

import "time"

// conn is a connection of a loop. While it is idle, it has no other memory.
type conn struct {
	fd         int32
	index      int32  // in the table
	generation uint32 // how often its place in the table was taken: events of earlier connections have another one
	state      connState
	registered bool // with the poller
	reported   bool // the poller has reported an event while it was parked
	peer       peer

	since      time.Duration // when it was put into its list, since the server's start
	prev, next *conn
	waiter     *Waiter // while it is parked
}

type connState uint8

const (
	free   connState = iota
	fresh            // accepted, has sent nothing yet; in list fresh
	idle             // between requests; in list idle
	parked           // until the waiter's Done
)

// table has the connections of a loop by index. Places are reused, and never move.
type table struct {
	chunks [][]conn
	free   *conn // linked by next
}

const chunkConns = 256

func (t *table) take() *conn {
	if t.free == nil {
		t.grow()
	}
	c := t.free
	t.free = c.next
	c.next = nil
	return c
}

func (t *table) grow() {
	chunk := make([]conn, chunkConns)
	for i := range chunk {
		c := &chunk[i]
		c.index = int32(len(t.chunks)*chunkConns + i)
		c.next, t.free = t.free, c
	}
	t.chunks = append(t.chunks, chunk)
}

// at returns the connection that an event is for, or nil if it is closed.
func (t *table) at(index int32, generation uint32) *conn {
	c := &t.chunks[index/chunkConns][index%chunkConns]
	if c.generation != generation || c.state == free {
		return nil
	}
	return c
}

// each calls f with every connection.
func (t *table) each(f func(*conn)) {
	for _, chunk := range t.chunks {
		for i := range chunk {
			if c := &chunk[i]; c.state != free {
				f(c)
			}
		}
	}
}

func (t *table) release(c *conn) {
	*c = conn{index: c.index, generation: c.generation + 1, next: t.free}
	t.free = c
}

// list is a list of connections in the order in which they entered it.
type list struct{ first, last *conn }

func (l *list) push(c *conn, now time.Duration) {
	c.since = now
	c.prev, c.next = l.last, nil
	if l.last != nil {
		l.last.next = c
	} else {
		l.first = c
	}
	l.last = c
}

func (l *list) remove(c *conn) {
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		l.first = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		l.last = c.prev
	}
	c.prev, c.next = nil, nil
}
