package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"linkstream/bench/proc"
)

// generate generates a load with a goroutine per connection.
func generate(ctx context.Context, t Target, p pace) (Result, error) {
	total := NewResult()
	clients := make([]*client, t.Conns)
	defer func() {
		for _, c := range clients {
			if c != nil {
				c.close()
			}
		}
	}()
	for i := range clients {
		clients[i] = newClient(t, i)
		if err := clients[i].connect(ctx); err != nil {
			return total, err
		}
	}
	group, failed := errgroup.WithContext(ctx)
	defer context.AfterFunc(failed, func() {
		for _, c := range clients {
			c.interrupt()
		}
	})()
	began := time.Now()
	schedule := &schedule{pace: p, start: began}
	for _, c := range clients {
		group.Go(func() error {
			if p.rate > 0 {
				return c.runOpen(failed, schedule)
			}
			return c.runClosed(failed, began, p.window)
		})
	}
	err := group.Wait()
	total.Elapsed = time.Since(began)
	for _, c := range clients {
		total.Merge(c.result)
	}
	if p.rate > 0 {
		total.Unsent = p.count() - schedule.next
	}
	if err != nil {
		return total, errors.Join(ctx.Err(), fmt.Errorf("load %s: %w", t.Addr, err))
	}
	return total, ctx.Err()
}

// schedule hands out the requests of an open loop. The connections share it: whichever is free takes the next request.
type schedule struct {
	pace
	start time.Time

	mu   sync.Mutex
	next int64
}

// take returns when the next request is due. It returns false if there are no more, or if they are too late.
func (s *schedule) take() (due time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	due = s.start.Add(s.due(s.next))
	if s.next >= s.count() || time.Since(due) > s.late {
		return time.Time{}, false
	}
	s.next++
	return due, true
}

// client is a connection with its requests and their results.
type client struct {
	target Target
	source Source
	out    []byte // the request in flight, reused
	in     []byte // the last answer, reused
	result Result

	answered int // requests on this connection

	mu   sync.Mutex // interrupt runs in another goroutine
	conn net.Conn
	tls  *tls.Config // nil without TLS
}

func newClient(t Target, conn int) *client {
	c := &client{target: t, source: t.Source(conn), result: NewResult()}
	if t.TLS != nil {
		c.tls = t.TLS.Clone()
		if t.Resume { // a cache of its own, since a client uses a ticket once
			c.tls.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		}
	}
	return c
}

func (c *client) runClosed(ctx context.Context, began time.Time, window time.Duration) error {
	for now := began; now.Sub(began) < window; {
		var err error
		if now, err = c.ask(ctx, now); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) runOpen(ctx context.Context, s *schedule) error {
	for {
		due, ok := s.take()
		if !ok {
			return nil
		}
		if err := await(ctx, due, s.rate); err != nil {
			return err
		}
		sent := time.Now()
		record(c.result.SendDelay, sent.Sub(due))
		c.result.Sending = sent.Sub(s.start) + s.due(1)
		answered, err := c.ask(ctx, due)
		if err != nil {
			return err
		}
		record(c.result.Sent, answered.Sub(sent))
	}
}

const (
	coarse = 2 * time.Millisecond // more than a timer of an idle Go program is late
	spin   = 100 * time.Microsecond
	// preciseRate is the rate above which timers are precise enough, as answers wake the program all the time.
	preciseRate = 2000
)

// await waits until a request is due. At low rates it sleeps short of that time in the kernel, whose timers are more
// precise than the runtime's, and yields for the rest.
func await(ctx context.Context, due time.Time, rate float64) error {
	early := time.Duration(0)
	if rate <= preciseRate {
		early = coarse
	}
	if wait := time.Until(due) - early; wait > 0 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
	if nap := time.Until(due) - spin; nap > 0 && ctx.Err() == nil {
		proc.Nap(nap)
	}
	for time.Now().Before(due) && ctx.Err() == nil {
		runtime.Gosched()
	}
	return ctx.Err()
}

// ask sends one request and returns when the answer was there. Its latency counts from since.
func (c *client) ask(ctx context.Context, since time.Time) (answered time.Time, err error) {
	if c.conn == nil {
		if err := c.connect(ctx); err != nil {
			return time.Time{}, err
		}
	}
	c.out = c.source.Append(c.out[:0])
	answer, err := c.roundTrip()
	if err != nil && c.answered > 0 && len(c.in) == 0 && closed(err) && bytes.HasPrefix(c.out, []byte("GET ")) {
		// The server has closed a lasting connection, as RFC 9112, section 9.5, allows at any time.
		c.close()
		c.result.Reconnects++
		if err = c.connect(ctx); err == nil {
			answer, err = c.roundTrip()
		}
	}
	if err != nil {
		return time.Time{}, err
	}
	c.answered++
	answered = time.Now()
	if err := c.source.Check(answer); err != nil {
		return time.Time{}, err
	}
	record(c.result.Latency, answered.Sub(since))
	c.result.Answers++
	if c.target.Reconnect {
		if n, err := c.conn.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
			return time.Time{}, fmt.Errorf("%w: read %d bytes, error %v", errNotClosed, n, err)
		}
		c.close()
		answered = time.Now()
	} else if answer.last {
		c.close()
		c.result.Reconnects++
	}
	return answered, nil
}

// closed reports whether the other side has closed the connection.
func closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// errNotClosed is for a server that does not close a connection after the answer.
var errNotClosed = errors.New("the server did not close the connection after the answer")

// roundTrip sends c.out and reads the answer.
func (c *client) roundTrip() (Answer, error) {
	c.in = c.in[:0]
	if _, err := c.conn.Write(c.out); err != nil {
		return Answer{}, fmt.Errorf("send request: %w", err)
	}
	for {
		if len(c.in) == cap(c.in) {
			c.in = grow(c.in)
		}
		n, err := c.conn.Read(c.in[len(c.in):cap(c.in)])
		if err != nil {
			return Answer{}, fmt.Errorf("read answer: %w", err)
		}
		c.in = c.in[:len(c.in)+n]
		if answer, complete, err := parseAnswer(c.in); complete || err != nil {
			return answer, err
		}
	}
}

// grow returns buf with twice its capacity.
func grow(buf []byte) []byte {
	return append(make([]byte, 0, max(4<<10, 2*cap(buf))), buf...)
}

func (c *client) connect(ctx context.Context) error {
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", c.target.Addr)
	if err == nil && c.tls != nil {
		conn, err = c.secure(ctx, conn)
	}
	if err != nil {
		return fmt.Errorf("connect to %q: %w", c.target.Addr, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil { // interrupt may have run before there was a connection
		return errors.Join(ctx.Err(), conn.Close())
	}
	c.conn, c.answered = conn, 0
	return nil
}

// secure begins TLS on a connection, and closes it if that fails.
func (c *client) secure(ctx context.Context, conn net.Conn) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	secured := tls.Client(conn, c.tls)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if secured.ConnectionState().DidResume {
		c.result.Resumed++
	}
	return secured, nil
}

func (c *client) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// interrupt ends the read or write in progress.
func (c *client) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		_ = c.conn.SetDeadline(time.Now())
	}
}
