package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// maxWait bounds the time in which a generator does not notice that its context has ended.
const maxWait = 20 * time.Millisecond

// generate generates a load in t.Threads threads, and merges their results.
func generate(ctx context.Context, t Target, p pace) (Result, error) {
	if t.TLS != nil {
		return generatePortable(ctx, t, p)
	}
	total := NewResult()
	threads := min(max(1, t.Threads), t.Conns)
	generators := make([]*generator, threads)
	for i := range generators {
		g, err := newGenerator(t, p, i, threads)
		generators[i] = g
		defer g.close()
		if err != nil {
			return total, fmt.Errorf("load %s: %w", t.Addr, err)
		}
	}
	group, failed := errgroup.WithContext(ctx)
	began := time.Now()
	for _, g := range generators {
		group.Go(func() error { return g.run(failed, began) })
	}
	err := group.Wait()
	total.Elapsed = time.Since(began)
	for _, g := range generators {
		total.Merge(g.result)
	}
	if err != nil {
		return total, errors.Join(ctx.Err(), fmt.Errorf("load %s: %w", t.Addr, err))
	}
	return total, ctx.Err()
}

// generator is a thread that sends requests, receives answers and keeps the pace. While its thread has a core, a request
// is sent when it is due.
type generator struct {
	target Target
	pace   pace
	addr   address
	poll   *poll
	conns  []*conn
	free   []*conn // connections of an open loop without a request, a ring
	first  int     // in free
	nFree  int

	start    time.Time
	next     int64 // number of the next request of an open loop, counted over all threads
	stride   int64
	inFlight int
	result   Result
}

// newGenerator returns the generator with the given index, and connects it unless each request gets a new connection.
func newGenerator(t Target, p pace, index, threads int) (*generator, error) {
	g := &generator{target: t, pace: p, next: int64(index), stride: int64(threads), result: NewResult()}
	var err error
	if g.addr, err = resolve(t.Addr); err != nil {
		return g, err
	}
	if g.poll, err = newPoll(); err != nil {
		return g, err
	}
	for i := index; i < t.Conns; i += threads {
		c := &conn{fd: -1, index: int32(len(g.conns)), source: t.Source(i)}
		g.conns = append(g.conns, c)
		if t.Reconnect {
			continue
		}
		if err := c.connect(g.addr); err != nil {
			return g, err
		}
		if err := c.awaitConnect(); err != nil {
			return g, err
		}
		if err := g.poll.add(c); err != nil {
			return g, err
		}
	}
	return g, nil
}

func (g *generator) close() {
	for _, c := range g.conns {
		c.close()
	}
	if g.poll != nil {
		g.poll.close()
	}
}

// run generates the load until it is complete or ctx ends.
func (g *generator) run(ctx context.Context, start time.Time) error {
	runtime.LockOSThread() // the thread ends with the goroutine, and its timer slack with it
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	g.start = start
	if g.pace.rate > 0 {
		g.free, g.nFree = append([]*conn(nil), g.conns...), len(g.conns)
		return g.runOpen(ctx)
	}
	for _, c := range g.conns {
		if err := g.send(c, time.Now()); err != nil {
			return err
		}
	}
	for g.inFlight > 0 {
		if err := g.receive(ctx, maxWait); err != nil {
			return err
		}
	}
	return nil
}

func (g *generator) runOpen(ctx context.Context) error {
	for {
		wait, more, err := g.sendDue(time.Now())
		if err != nil {
			return err
		}
		if !more && g.inFlight == 0 {
			break
		}
		if err := g.receive(ctx, wait); err != nil {
			return err
		}
	}
	for ; g.next < g.pace.count(); g.next += g.stride {
		g.result.Unsent++
	}
	return nil
}

// sendDue sends the requests of an open loop that are due, as far as connections are free. It returns the time until the
// next one, and whether there are more.
func (g *generator) sendDue(now time.Time) (wait time.Duration, more bool, err error) {
	for g.next < g.pace.count() {
		due := g.start.Add(g.pace.due(g.next))
		late := now.Sub(due)
		switch {
		case late < 0 && g.nFree > 0:
			return min(-late, maxWait), true, nil
		case late > g.pace.grace:
			return maxWait, false, nil
		case late < 0 || g.nFree == 0:
			return maxWait, true, nil
		}
		c := g.free[g.first]
		g.first, g.nFree = (g.first+1)%len(g.free), g.nFree-1
		g.next += g.stride
		record(g.result.SendDelay, late)
		if err := g.send(c, due); err != nil {
			return 0, false, err
		}
		now = time.Now()
	}
	return maxWait, false, nil
}

// send begins a request, whose latency counts from since.
func (g *generator) send(c *conn, since time.Time) error {
	g.inFlight++
	c.since = since
	c.out, c.in = c.source.Append(c.out[:0]), c.in[:0]
	c.unsent, c.answered = c.out, false
	if c.fd >= 0 {
		return c.flush(g.poll)
	}
	if err := c.connect(g.addr); err != nil {
		return err
	}
	if c.connecting { // until EPOLLOUT, which a failure causes as well
		c.wantsWrite = true
		return g.poll.add(c)
	}
	if err := c.flush(nil); err != nil {
		return err
	}
	return g.poll.add(c)
}

// receive waits for events and handles them. In between, it sends the requests of an open loop that are due.
func (g *generator) receive(ctx context.Context, wait time.Duration) error {
	events, err := g.poll.wait(wait)
	if err != nil {
		return err
	}
	if len(events) == 0 {
		return ctx.Err()
	}
	for _, e := range events {
		c := g.conns[e.Fd]
		if e.Events&unix.EPOLLOUT != 0 && len(c.unsent) > 0 {
			if err := c.flush(g.poll); err != nil {
				return err
			}
		}
		if e.Events&^unix.EPOLLOUT == 0 {
			continue
		}
		now, err := g.read(c)
		if err == nil && g.pace.rate > 0 {
			_, _, err = g.sendDue(now)
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// read reads what a connection has received, and completes its request if the answer is complete.
func (g *generator) read(c *conn) (now time.Time, err error) {
	n, err := c.read()
	now = time.Now()
	switch {
	case errors.Is(err, unix.EAGAIN):
		return now, nil
	case err != nil:
		return now, fmt.Errorf("read answer: %w", err)
	case c.answered && n > 0:
		return now, errNotClosed
	case c.answered:
		return now, g.release(c, now)
	case n == 0:
		return now, errors.New("read answer: the server closed the connection")
	}
	answer, complete, err := parseAnswer(c.in)
	if err != nil || !complete {
		return now, err
	}
	if err := c.source.Check(answer); err != nil {
		return now, err
	}
	record(g.result.Latency, now.Sub(c.since))
	g.result.Answers++
	g.target.Done.Add(1)
	if !g.target.Reconnect {
		return now, g.release(c, now)
	}
	c.answered = true
	return g.read(c) // most often the end of the connection has arrived with the answer
}

// release ends a request, and begins the next one of a closed loop.
func (g *generator) release(c *conn, now time.Time) error {
	g.inFlight--
	c.answered = false
	if g.target.Reconnect {
		c.close()
	}
	if g.pace.rate > 0 {
		g.free[(g.first+g.nFree)%len(g.free)] = c
		g.nFree++
		return nil
	}
	if now.Sub(g.start) < g.pace.window {
		return g.send(c, now)
	}
	return nil
}

// address is a resolved host:port. Connecting writes to it, so each thread has its own.
type address struct {
	family   int
	sockaddr unix.Sockaddr
}

func resolve(addr string) (address, error) {
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return address{}, err
	}
	if ip := tcp.IP.To4(); ip != nil {
		return address{unix.AF_INET, &unix.SockaddrInet4{Port: tcp.Port, Addr: [4]byte(ip)}}, nil
	}
	return address{unix.AF_INET6, &unix.SockaddrInet6{Port: tcp.Port, Addr: [16]byte(tcp.IP.To16())}}, nil
}
