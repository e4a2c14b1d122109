package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"
)

const (
	standbyTimeout   = 5 * time.Second // for a request, and for its answer
	standbyClients   = 1024            // at the same time
	handOverGrace    = time.Second     // for requests under way when the service takes over
	startRetrySecond = "1"
)

// Standby is a listener that answers by itself until its first Accept or SyscallConn: it is alive, not ready, and says what the
// service waits for. So the service has its port, and its operator an answer, before it can do its work. Who connects
// while it hands over waits for a moment; the port is never closed.
type Standby struct {
	*net.TCPListener
	waiting  atomic.Pointer[string]
	server   *fasthttp.Server
	served   chan error
	handOver func()
}

// ListenStandby listens. Requests other than the operator's are answered with 503 and this body until the service takes over.
// The caller closes it, also where a server has done so.
func ListenStandby(addr, contentType, body string, log *slog.Logger) (*Standby, error) {
	ln, err := Listen(addr)
	if err != nil {
		return nil, err
	}
	s := &Standby{TCPListener: ln.(*net.TCPListener), served: make(chan error, 1)}
	s.handOver = sync.OnceFunc(s.stop)
	s.Waiting("its start", nil)
	endpoints := Endpoints{Ready: s.ready, Metrics: metrics.NewSet()}
	s.server = &fasthttp.Server{
		Handler: func(ctx *fasthttp.RequestCtx) {
			if endpoints.Handle(ctx) {
				return
			}
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

// Waiting says what the service waits for, and the error of the last attempt, if there was one.
func (s *Standby) Waiting(what string, err error) {
	text := "waiting for " + what
	if err != nil {
		text = fmt.Sprintf("%s: %v", text, err)
	}
	s.waiting.Store(&text)
}

// Report returns a WaitReport that logs each failed attempt and shows it at /readyz.
func (s *Standby) Report(log *slog.Logger) WaitReport {
	logged := ReportToLog(log)
	return func(what string, err error) {
		s.Waiting(what, err)
		logged(what, err)
	}
}

func (s *Standby) ready(context.Context) error { return errors.New(*s.waiting.Load()) }

// Accept waits for the next client of the service, which has taken over.
func (s *Standby) Accept() (net.Conn, error) {
	s.handOver()
	return s.TCPListener.Accept()
}

// SyscallConn returns the port for the service, which takes over by it as by Accept.
func (s *Standby) SyscallConn() (syscall.RawConn, error) {
	s.handOver()
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
