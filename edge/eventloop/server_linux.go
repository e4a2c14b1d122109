package eventloop

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const awaitEvery = 5 * time.Millisecond // between two looks whether goroutines have finished

// serveLoops is Serve on loops. served is false if ln is not a TCP listener of the kernel.
func (s *Server) serveLoops(ctx context.Context, ln net.Listener, grace time.Duration) (served bool, err error) {
	listener, err := borrow(ln)
	if err != nil || listener < 0 {
		return err != nil, err
	}
	if err := s.openLoops(listener, ln.Addr()); err != nil {
		return true, errors.Join(fmt.Errorf("serve on %s: %w", ln.Addr(), err), unix.Close(listener))
	}
	// While ln is open, Go's poller wakes a thread for each connection in vain. The loops' descriptor keeps the socket
	// listening.
	closed := ln.Close()
	s.looping.Store(&s.loops)
	ended := make(chan error, len(s.loops))
	for _, l := range s.loops {
		go func() { ended <- l.run() }()
	}
	running := len(s.loops)
	var failed error
	select {
	case <-ctx.Done():
	case failed = <-ended:
		running--
	}
	failed = errors.Join(closed, failed)
	if err := errors.Join(failed, s.stopLoops(listener, ended, running, grace)); err != nil {
		return true, fmt.Errorf("serve on %s: %w", ln.Addr(), err)
	}
	return true, nil
}

// stopLoops stops the loops and closes the listener's socket. It waits for a loop no longer than grace and endGrace.
func (s *Server) stopLoops(listener int, ended <-chan error, running int, grace time.Duration) error {
	graceful, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	// 1. Waiting connections are accepted; received requests are answered; idle connections are closed.
	s.stopping.Store(true)
	s.wakeLoops()
	drained := true
	for _, l := range s.loops {
		select {
		case <-l.drained:
		case <-graceful.Done():
			drained = false
		}
	}
	// 2. The listener queues no more connections. A loop that is not drained may still use the descriptor.
	var failed error
	if drained {
		failed = unix.Close(listener)
	}
	s.closeIdle()
	// 3. Requests under way may finish.
	defer context.AfterFunc(graceful, func() {
		for _, l := range s.loops {
			l.aborted.Store(true)
		}
		s.wakeLoops()
	})()
	end := time.NewTimer(grace + endGrace)
	defer end.Stop()
	for ; running > 0; running-- {
		select {
		case err := <-ended:
			failed = errors.Join(failed, err)
		case <-end.C:
			return errors.Join(failed, fmt.Errorf("%w: %d of %d do not end", ErrStuck, running, len(s.loops)))
		}
	}
	if !drained {
		failed = errors.Join(failed, unix.Close(listener))
	}
	s.awaitHanded(graceful)
	return failed
}

// awaitHanded waits until no goroutine has a connection of a loop, or ctx is done.
func (s *Server) awaitHanded(ctx context.Context) {
	ticker := time.NewTicker(awaitEvery)
	defer ticker.Stop()
	for s.handed.Load() > 0 && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

func (s *Server) openLoops(listener int, local net.Addr) (err error) {
	defer func() {
		if err != nil {
			for _, open := range s.loops {
				err = errors.Join(err, open.closeFDs())
			}
		}
	}()
	for i := range s.cfg.loopCount() {
		l, err := newLoop(s, i, listener, local)
		if err != nil {
			return err
		}
		s.loops = append(s.loops, l)
	}
	return nil
}

func (s *Server) wakeLoops() {
	for _, l := range s.loops {
		l.post(message{kind: wakeUp})
	}
}

// borrow returns a descriptor of ln, or -1 if it has none, and sets options that connections inherit.
func borrow(ln net.Listener) (fd int, err error) {
	kernel, ok := ln.(syscall.Conn)
	if _, tcp := ln.Addr().(*net.TCPAddr); !ok || !tcp {
		return -1, nil
	}
	raw, err := kernel.SyscallConn()
	if err != nil {
		return -1, err
	}
	var failed error
	err = raw.Control(func(own uintptr) {
		if fd, failed = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0); failed != nil {
			failed = os.NewSyscallError("fcntl", failed)
			return
		}
		// Both options save time and are not essential: an MPTCP socket, for example, may refuse the first.
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, 1)
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	})
	if err = errors.Join(err, failed); err != nil {
		return -1, fmt.Errorf("use listener on %s: %w", ln.Addr(), err)
	}
	return fd, nil
}
