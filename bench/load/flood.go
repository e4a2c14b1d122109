package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	reconnectPause = 10 * time.Millisecond // after a server has refused or closed a connection
	floodTimeout   = 10 * time.Second      // without an answer, after which a flood connects again
	slowPart       = 4 << 10               // bytes that a flood reads at once if it reads slowly
	slowEnd        = time.Second           // without more bytes, after which it takes an answer for complete
)

// Flood is a hostile load. It accepts any answer, and connects again when the server closes a connection.
type Flood struct {
	Addr   string // host:port
	From   string // local address, so that the server can distinguish the flood from others
	Spread bool   // each connection has a local address of its own, instead of From
	Conns  int
	// Request appends the next request in wire format to dst; nil: the connections are idle. It is called concurrently.
	Request func(dst []byte) []byte
	// Pipeline is how many requests are sent at once. Answers to them are awaited together.
	Pipeline int
	// Once ends each connection after the first bytes of its answer.
	Once    bool
	Rate    float64       // requests per second of all connections; 0: as fast as they are answered
	ByteGap time.Duration // between the bytes of a request; 0: all are sent at once
	ReadGap time.Duration // between parts of slowPart bytes of an answer; 0: all is read at once
}

// ClientHello returns the first bytes of a TLS client. Sending them again costs nothing, and makes the server compute a
// handshake.
func ClientHello(config *tls.Config) []byte {
	near, far := net.Pipe()
	go func() {
		_ = tls.Client(near, config).Handshake() // until far is closed
		near.Close()
	}()
	defer far.Close()
	hello := make([]byte, 16<<10)
	n, _ := far.Read(hello) // one record, in one call
	return hello[:n]
}

// Harm counts the work of a flood.
type Harm struct {
	Connections int64 // that were opened
	Answers     int64
}

// Run runs the flood until ctx is done.
func (f Flood) Run(ctx context.Context) Harm {
	var connections, answers atomic.Int64
	var all sync.WaitGroup
	for i := range f.Conns {
		all.Go(func() {
			var turn time.Duration // between pipelines
			if f.Rate > 0 {
				turn = time.Duration(float64(f.Conns*f.Pipeline) / f.Rate * float64(time.Second))
			}
			from := net.ParseIP(f.From)
			if f.Spread {
				from = net.IPv4(127, 1, byte(i/250), byte(1+i%250))
			}
			a := &attacker{flood: f, from: from, turn: turn,
				next:        time.Now().Add(turn * time.Duration(i) / time.Duration(f.Conns)),
				connections: &connections, answers: &answers}
			for ctx.Err() == nil {
				a.connect(ctx)
				wait(ctx, reconnectPause)
			}
		})
	}
	all.Wait()
	return Harm{connections.Load(), answers.Load()}
}

// attacker is one connection of a flood after the other.
type attacker struct {
	flood                Flood
	from                 net.IP
	turn                 time.Duration
	next                 time.Time // when to send next
	out, in              []byte
	connections, answers *atomic.Int64
}

// connect serves one connection until it ends.
func (a *attacker) connect(ctx context.Context) {
	dialer := net.Dialer{Timeout: dialTimeout, LocalAddr: &net.TCPAddr{IP: a.from}}
	conn, err := dialer.DialContext(ctx, "tcp", a.flood.Addr)
	if err != nil {
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	a.connections.Add(1)
	if tcp, ok := conn.(*net.TCPConn); ok && a.flood.ReadGap > 0 {
		_ = tcp.SetReadBuffer(slowPart) // otherwise the kernel takes most of the answer
	}
	if a.in == nil {
		a.in = make([]byte, 64<<10)
	}
	if a.flood.Request == nil {
		_, _ = conn.Read(a.in) // until the server ends the connection
		return
	}
	for ctx.Err() == nil && a.exchange(ctx, conn) == nil {
	}
}

// exchange sends the next requests and reads their answers.
func (a *attacker) exchange(ctx context.Context, conn net.Conn) error {
	wait(ctx, time.Until(a.next))
	a.next = a.next.Add(a.turn)
	if now := time.Now(); a.next.Before(now) { // late requests are left out
		a.next = now.Add(a.turn)
	}
	a.out = a.out[:0]
	for range a.flood.Pipeline {
		a.out = a.flood.Request(a.out)
	}
	if err := conn.SetDeadline(time.Now().Add(floodTimeout)); err != nil {
		return err
	}
	if err := a.send(ctx, conn); err != nil {
		return err
	}
	if a.flood.Once {
		n, err := conn.Read(a.in)
		if n > 0 {
			a.answers.Add(1)
		}
		return errors.Join(err, errOnce)
	}
	if a.flood.ReadGap > 0 {
		return a.readSlowly(ctx, conn)
	}
	for missing := a.flood.Pipeline; missing > 0; {
		n, err := conn.Read(a.in)
		// an answer that is split there is missed, which costs a timeout at worst
		got := bytes.Count(a.in[:n], []byte("HTTP/1.1 "))
		missing -= got
		a.answers.Add(int64(got))
		if err != nil {
			return err
		}
	}
	return nil
}

// readSlowly reads an answer in parts.
func (a *attacker) readSlowly(ctx context.Context, conn net.Conn) error {
	began := false
	for ctx.Err() == nil {
		n, err := conn.Read(a.in[:slowPart])
		a.answers.Add(int64(bytes.Count(a.in[:n], []byte("HTTP/1.1 "))))
		if began && errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
		wait(ctx, a.flood.ReadGap)
		began = true
		if err := conn.SetDeadline(time.Now().Add(slowEnd)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// errOnce ends a connection that is used once.
var errOnce = errors.New("the connection was used")

func (a *attacker) send(ctx context.Context, conn net.Conn) error {
	if a.flood.ByteGap == 0 {
		_, err := conn.Write(a.out)
		return err
	}
	for i := range a.out {
		if _, err := conn.Write(a.out[i : i+1]); err != nil {
			return err
		}
		wait(ctx, a.flood.ByteGap)
	}
	return nil
}

// wait waits, but not longer than ctx.
func wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
