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

// serveLoops is Serve on loops. served is false if ln is not a TCP listener of the kernel.
func (s *Server) serveLoops(ctx context.Context, ln net.Listener, grace time.Duration) (served bool, err error) {
	listener, err := borrow(ln)
	if err != nil || listener < 0 {
		return err != nil, err
	}
	if err := s.openLoops(listener, ln.Addr()); err != nil {
		return true, errors.Join(fmt.Errorf("serve on %s: %w", ln.Addr(), err), unix.Close(listener))
	}
	s.accepting.Store(1)
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
	// 1. Connections that wait for accept are taken; what was received is answered; all but those of goroutines are closed.
	s.stopping.Store(true)
	s.wakeLoops()
	for _, l := range s.loops {
		<-l.drained
	}
	// 2. No connection is queued for this listener any more.
	closed := errors.Join(ln.Close(), unix.Close(listener))
	// 3. Requests under way may finish.
	timer := time.AfterFunc(grace, func() {
		for _, l := range s.loops {
			l.aborted.Store(true)
		}
		s.wakeLoops()
	})
	defer timer.Stop()
	for range running {
		failed = errors.Join(failed, <-ended)
	}
	if failed = errors.Join(failed, closed); failed != nil {
		return true, fmt.Errorf("serve on %s: %w", ln.Addr(), failed)
	}
	return true, nil
}

func (s *Server) openLoops(listener int, local net.Addr) error {
	for i := range s.cfg.loopCount() {
		l, err := newLoop(s, i, listener, local)
		if err != nil {
			for _, open := range s.loops {
				err = errors.Join(err, open.closeFDs())
			}
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

// borrow returns a descriptor of ln, or -1 if it has none. Its connections inherit the options that are set here.
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
		// Both save time and can be done without: an MPTCP socket, for one, may refuse the first.
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, 1)
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	})
	if err = errors.Join(err, failed); err != nil {
		return -1, fmt.Errorf("use listener on %s: %w", ln.Addr(), err)
	}
	return fd, nil
}
