package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// idlePerAddress is how many idle connections come from one local address, which has 28,000 ports by default, for all programs. More addresses of the
// loopback interface are used beyond, which exist on Linux only.
const idlePerAddress = 5000

// Idle is connections that each had an answer and are kept open since. It belongs to one goroutine.
type Idle struct {
	addr   string
	source Source
	conns  []net.Conn
	in     []byte // scratch
	out    []byte
}

// NewIdle returns no connections yet. source makes the requests of all of them.
func NewIdle(addr string, source Source) *Idle {
	return &Idle{addr: addr, source: source, in: make([]byte, maxHeaderBytes+maxIdleBody)}
}

// maxIdleBody bounds the body of an answer.
const maxIdleBody = 64 << 10

// Grow opens connections until there are count, and lets each ask once.
func (i *Idle) Grow(ctx context.Context, count int) error {
	for n := len(i.conns); n < count; n++ {
		dialer := net.Dialer{Timeout: dialTimeout, KeepAlive: -1}
		if host := n / idlePerAddress; host > 0 {
			dialer.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+host))}
		}
		conn, err := dialer.DialContext(ctx, "tcp", i.addr)
		if err != nil {
			return fmt.Errorf("open connection %d: %w", n+1, err)
		}
		i.conns = append(i.conns, conn)
		if err := i.ask(conn); err != nil {
			return fmt.Errorf("connection %d: %w", n+1, err)
		}
	}
	return ctx.Err()
}

// Ask lets each connection ask again, and returns how many get an answer.
func (i *Idle) Ask(ctx context.Context) (answered int64, err error) {
	for _, conn := range i.conns {
		if i.ask(conn) == nil {
			answered++
		}
		if ctx.Err() != nil {
			return answered, ctx.Err()
		}
	}
	return answered, nil
}

// ask sends a request and checks the answer.
func (i *Idle) ask(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(grace)); err != nil {
		return err
	}
	i.out = i.source.Append(i.out[:0])
	if _, err := conn.Write(i.out); err != nil {
		return err
	}
	for got := 0; got < len(i.in); {
		n, err := conn.Read(i.in[got:])
		if err != nil {
			return err
		}
		got += n
		answer, complete, err := parseAnswer(i.in[:got])
		if err != nil || complete {
			return errors.Join(err, i.source.Check(answer))
		}
	}
	return errors.New("the answer is too long")
}

// Close closes the connections.
func (i *Idle) Close() error {
	var errs []error
	for _, conn := range i.conns {
		errs = append(errs, conn.Close())
	}
	i.conns = nil
	return errors.Join(errs...)
}
