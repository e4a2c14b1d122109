package service

import (
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	shortestAcceptPause = 5 * time.Millisecond
	longestAcceptPause  = time.Second
	acceptWarnEvery     = 10 * time.Second
)

// patientListener is a listener that outlasts a lack of file descriptors or memory, which ends fasthttp's server. Clients wait
// in the kernel's queue meanwhile.
type patientListener struct {
	net.Listener
	warn fasthttp.Logger

	pause  time.Duration
	warned time.Time
}

// Accept waits for the next client. One goroutine at a time calls it.
func (l *patientListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if !isShortage(err) {
			l.pause = 0
			return conn, err
		}
		if now := time.Now(); now.Sub(l.warned) > acceptWarnEvery {
			l.warned = now
			warn(l.warn, "clients have to wait", err)
		}
		l.pause = min(max(2*l.pause, shortestAcceptPause), longestAcceptPause)
		time.Sleep(l.pause)
	}
}

// isShortage reports whether err is of a system that has run out of something, which others may give back.
func isShortage(err error) bool {
	for _, shortage := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, shortage) {
			return true
		}
	}
	return false
}

// warn logs trouble that concerns more than one connection.
func warn(log fasthttp.Logger, message string, err error) {
	switch log := log.(type) {
	case nil:
	case connLogger:
		log.log.Warn(message, "error", err)
	default:
		log.Printf("%s: %v", message, err)
	}
}
