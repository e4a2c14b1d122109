package service

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	standbyTimeout   = 5 * time.Second // for a request, and for its answer
	standbyClients   = 1024            // at the same time
	handOverGrace    = time.Second     // for requests under way when the service takes over
	startRetrySecond = "1"
)

// Standby is a listener that answers 503 by itself until its first Accept or SyscallConn. So the service has its port, and its clients an
// answer, before it can do its work. Who connects while it hands over waits for a moment; the port is never closed.
type Standby struct {
	*net.TCPListener
	server   *fasthttp.Server
	served   chan error
	handOver func()
	over     atomic.Bool // the service has taken over
}

// ListenStandby listens. Requests are answered with 503 and this body until the service takes over. The caller closes it,
// also where a server has done so.
func ListenStandby(addr, contentType, body string, log *slog.Logger) (*Standby, error) {
	ln, err := Listen(addr)
	if err != nil {
		return nil, err
	}
	s := &Standby{TCPListener: ln.(*net.TCPListener), served: make(chan error, 1)}
	s.handOver = sync.OnceFunc(s.stop)
	s.server = &fasthttp.Server{
		Handler: func(ctx *fasthttp.RequestCtx) {
			ctx.SetStatusCode(fasthttp.StatusServiceUnavailable)
			ctx.SetContentType(contentType)
			ctx.SetBodyString(body)
			ctx.Response.Header.Set("Retry-After", startRetrySecond)
			ctx.Response.Header.Set("Cache-Control", "no-store")
		},
		ReadTimeout: standbyTimeout, WriteTimeout: standbyTimeout, Concurrency: standbyClients,
		DisableKeepalive: true, // the next request may be one for the service
		CloseOnShutdown:  true, NoDefaultServerHeader: true, SecureErrorLogMessage: true, Logger: ConnLogger(log),
	}
	go func() {
		s.served <- s.server.Serve(&patientListener{Listener: borrowed{s.TCPListener}, warn: s.server.Logger})
	}()
	return s, nil
}

// Ready returns an Unready until the service has taken over.
func (s *Standby) Ready(context.Context) error {
	if !s.over.Load() {
		return &Unready{What: "its start", Cause: errors.New("the service does not accept connections yet")}
	}
	return nil
}

// Accept waits for the next client of the service, which has taken over.
func (s *Standby) Accept() (net.Conn, error) {
	s.handOver()
	s.over.Store(true)
	return s.TCPListener.Accept()
}

// SyscallConn returns the port for the service, which takes over by it as by Accept.
func (s *Standby) SyscallConn() (syscall.RawConn, error) {
	s.handOver()
	s.over.Store(true)
	return s.TCPListener.SyscallConn()
}

// Close closes the port.
func (s *Standby) Close() error {
	s.handOver()
	return s.TCPListener.Close()
}

// stop ends the own server and leaves the port open.
func (s *Standby) stop() {
	grace, cancel := context.WithTimeout(context.Background(), handOverGrace)
	defer cancel()
	borrowed{s.TCPListener}.Close() // the server does not know the listener if it has yet to begin
	_ = s.server.ShutdownWithContext(grace)
	<-s.served
	_ = s.SetDeadline(time.Time{})
}

// borrowed is a listener whose Close ends Accept for good and leaves the port open.
type borrowed struct{ *net.TCPListener }

func (b borrowed) Close() error { return b.SetDeadline(time.Unix(1, 0)) }

func (b borrowed) Accept() (net.Conn, error) {
	conn, err := b.TCPListener.Accept()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF // which ends a server without an error
	}
	return conn, err
}
