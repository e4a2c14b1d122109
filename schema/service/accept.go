package service

import (
	"errors"
	"log/slog"
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
	for _, shortage := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
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

// spareFiles are for databases, brokers, segments and logs, beside the connections of clients.
const spareFiles = 256

// AllowConnections raises the process's limit of open files to what this many connections of clients need. If the limit
// cannot be raised it says so: connections above it wait, and so may the engines.
func AllowConnections(connections int, log *slog.Logger) {
	need := uint64(connections + spareFiles)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		log.Warn("cannot read the limit of open files", "error", err)
		return
	}
	if limit.Cur >= need {
		return
	}
	raised := syscall.Rlimit{Cur: need, Max: max(need, limit.Max)}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised); err != nil {
		log.Warn("the limit of open files is below what the connections need: raise it, or lower -edge.max-connections",
			"limit", limit.Cur, "need", need, "error", err)
	}
}
