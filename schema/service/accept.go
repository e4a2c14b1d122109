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

// patientListener retries Accept when the system is out of file descriptors or memory. Such an error would end fasthttp's
// server; with retries, clients wait in the kernel's queue.
type patientListener struct {
	net.Listener
	warn fasthttp.Logger

	pause  time.Duration
	warned time.Time
}

// Accept waits for the next connection. It must not be called concurrently.
func (l *patientListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if !IsShortage(err) {
			l.pause = 0
			return conn, err
		}
		if now := time.Now(); now.Sub(l.warned) > acceptWarnEvery {
			l.warned = now
			warn(l.warn, "cannot accept connections, retrying", err)
		}
		l.pause = min(max(2*l.pause, shortestAcceptPause), longestAcceptPause)
		time.Sleep(l.pause)
	}
}

// IsShortage reports whether err means that the system is out of a resource for the moment.
func IsShortage(err error) bool {
	for _, shortage := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, shortage) {
			return true
		}
	}
	return false
}

// warn logs a problem that concerns more than one connection.
func warn(log fasthttp.Logger, message string, err error) {
	switch log := log.(type) {
	case nil:
	case connLogger:
		log.log.Warn(message, "error", err)
	default:
		log.Printf("%s: %v", message, err)
	}
}

// spareFiles is the number of files reserved for databases, brokers, segments and logs.
const spareFiles = 256

// AllowConnections raises the process's limit of open files so that it suffices for this many client connections. If the
// limit cannot be raised, AllowConnections logs that: further connections, and possibly those to engines, will wait.
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
		log.Warn("the limit of open files is too low for the connections: raise it, or lower -edge.max-connections or -api.max-connections",
			"limit", limit.Cur, "need", need, "error", err)
	}
}
