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
	standbyTimeout     = 5 * time.Second // to read a request, and to write its answer
	standbyConnections = 1024
	standbyGrace       = time.Second // for requests under way when the service takes over
	standbyRetryAfter  = "1"         // seconds

	// standbyPatience is how long clients of an inherited socket wait before the answer that the service is not ready:
	// most restarts take less.
	standbyPatience = 5 * time.Second
)

// Standby is a listener that answers requests with 503 until the service takes over, by its first call of Accept or
// SyscallConn. So a service occupies its port, and its clients get an answer, before it can do its work. The port stays
// open all the time: clients that connect while the service takes over wait, but are not refused.
type Standby struct {
	*net.TCPListener
	server    *fasthttp.Server
	served    chan error
	ended     chan struct{} // closed when server must not begin any more
	stop      func()        // stops server, once
	takenOver atomic.Bool   // by the service
}

// ListenStandby listens on addr, or on the inherited socket of that name. Until the service takes over, requests are
// answered with 503 and body; on an inherited socket they wait 5 seconds before. The caller closes the Standby, which
// is no error if a server has closed it already.
func (s Sockets) ListenStandby(name, addr, contentType, body string, log *slog.Logger) (*Standby, error) {
	ln, inherited, err := s.Listen(name, addr)
	if err != nil {
		return nil, err
	}
	patience := time.Duration(0)
	if inherited {
		patience = standbyPatience
	}
	return newStandby(ln.(*net.TCPListener), patience, contentType, body, log), nil
}

func newStandby(ln *net.TCPListener, patience time.Duration, contentType, body string, log *slog.Logger) *Standby {
	s := &Standby{TCPListener: ln, served: make(chan error, 1), ended: make(chan struct{})}
	s.stop = sync.OnceFunc(s.stopServer)
	s.server = &fasthttp.Server{
		Handler: func(ctx *fasthttp.RequestCtx) {
			ctx.SetStatusCode(fasthttp.StatusServiceUnavailable)
			ctx.SetContentType(contentType)
			ctx.SetBodyString(body)
			ctx.Response.Header.Set("Retry-After", standbyRetryAfter)
			ctx.Response.Header.Set("Cache-Control", "no-store")
		},
		ReadTimeout: standbyTimeout, WriteTimeout: standbyTimeout, Concurrency: standbyConnections,
		DisableKeepalive: true, // so that the next request can go to the service
		CloseOnShutdown:  true, NoDefaultServerHeader: true, SecureErrorLogMessage: true, Logger: ConnLogger(log),
	}
	CheckRequests(s.server, refusePlainly)
	go func() { s.served <- s.serve(patience) }()
	return s
}

// serve answers requests after a time, unless the service takes over before.
func (s *Standby) serve(patience time.Duration) error {
	if patience > 0 {
		begin := time.NewTimer(patience)
		defer begin.Stop()
		select {
		case <-s.ended:
			return nil
		case <-begin.C:
		}
	}
	return s.server.Serve(&patientListener{Listener: sharedListener{s.TCPListener}, warn: s.server.Logger})
}

// Ready returns an Unready until the service takes over.
func (s *Standby) Ready(context.Context) error {
	if !s.takenOver.Load() {
		return &Unready{What: "its start", Cause: errors.New("the service does not accept connections yet")}
	}
	return nil
}

// Accept waits for the service's next connection.
func (s *Standby) Accept() (net.Conn, error) {
	s.stop()
	s.takenOver.Store(true)
	return s.TCPListener.Accept()
}

// SyscallConn returns the listening socket to a service that accepts by itself.
func (s *Standby) SyscallConn() (syscall.RawConn, error) {
	s.stop()
	s.takenOver.Store(true)
	return s.TCPListener.SyscallConn()
}

// Close closes the port.
func (s *Standby) Close() error {
	s.stop()
	return s.TCPListener.Close()
}

// stopServer stops the server and leaves the port open.
func (s *Standby) stopServer() {
	grace, cancel := context.WithTimeout(context.Background(), standbyGrace)
	defer cancel()
	close(s.ended)
	sharedListener{s.TCPListener}.Close() // the shutdown does not close it if server.Serve has not begun yet
	_ = s.server.ShutdownWithContext(grace)
	<-s.served
	_ = s.SetDeadline(time.Time{})
}

// sharedListener is a listener whose Close makes Accept fail, but leaves the port open: it sets a deadline in the past.
type sharedListener struct{ *net.TCPListener }

func (l sharedListener) Close() error { return l.SetDeadline(time.Unix(1, 0)) }

func (l sharedListener) Accept() (net.Conn, error) {
	conn, err := l.TCPListener.Accept()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF // which fasthttp.Server takes for the end of the listener
	}
	return conn, err
}
