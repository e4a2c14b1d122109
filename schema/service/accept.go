package service

import (
	"context"
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

// patientListener retries Accept when the system is out of file descriptors or memory. Such an error would end
// fasthttp's server; with retries, clients wait in the kernel's queue.
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
	for _, shortage := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM,
		syscall.ECONNABORTED} {
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

const (
	// DefaultConnections is the default bound of clients' connections to a service.
	DefaultConnections = 16 << 10
	// spareFiles is the number of files for databases, brokers, segments and logs.
	spareFiles = 256
)

// AllowConnections raises the process's limit of open files so that it suffices for all client connections. If that is
// not permitted, it lowers the bounds of connections to what the limit allows. It logs this as a warning if a bound is
// not DefaultConnections: an operator has set it.
func AllowConnections(log *slog.Logger, bounds ...*int) {
	connections, level := 0, slog.LevelDebug
	for _, bound := range bounds {
		if connections += *bound; *bound != DefaultConnections {
			level = slog.LevelWarn
		}
	}
	need := uint64(connections + spareFiles)
	limit, err := raiseFiles(need)
	if err != nil {
		log.Warn("cannot read the limit of open files", "error", err)
		return
	}
	if limit >= need {
		return
	}
	possible := int(limit - min(spareFiles, limit/2))
	for _, bound := range bounds {
		*bound = max(1, int(int64(*bound)*int64(possible)/int64(connections)))
	}
	log.Log(context.Background(), level, "the limit of open files allows fewer connections", "limit", limit, "need", need,
		"connections", possible)
}

// raiseFiles raises the limit of open files to need, or as far as is permitted, and returns it.
func raiseFiles(need uint64) (uint64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur >= need {
		return limit.Cur, err
	}
	for _, raised := range []syscall.Rlimit{{Cur: need, Max: max(need, limit.Max)}, {Cur: limit.Max, Max: limit.Max}} {
		if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised) == nil {
			return raised.Cur, nil
		}
	}
	return limit.Cur, nil
}
