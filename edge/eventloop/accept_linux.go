package eventloop

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// accept accepts at most so many connections and answers their requests. The listener gives out a connection when its first bytes have
// arrived (TCP_DEFER_ACCEPT), so most visitors are answered without being registered with the poller.
func (l *loop) accept(most int) error {
	for range most {
		var from peer
		fd, errno := accept(l.listener, &from)
		switch errno {
		case 0:
			l.retry = 0
			l.admit(fd, from)
		case unix.EAGAIN:
			return nil
		case unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM:
			l.runShort(errno)
			return nil
		case unix.EBADF, unix.EINVAL, unix.ENOTSOCK, unix.EOPNOTSUPP, unix.EFAULT:
			return fmt.Errorf("accept connections: %w", os.NewSyscallError("accept4", errno))
		case unix.EINTR:
		default: // an error of this connection, which is gone: see accept(2)
			l.server.acceptErrors.Inc()
		}
	}
	return nil // the poller reports the others at the next turn
}

// runShort stops accepting for a while, because the listener stays ready and would keep the loop busy.
func (l *loop) runShort(errno unix.Errno) {
	l.server.acceptErrors.Inc()
	for range shedPerShortage {
		if !l.shed() {
			break
		}
	}
	l.retry = min(max(2*l.retry, shortestRetry), longestRetry)
	l.acceptAt = l.now + l.retry
	l.stopAccepting()
	l.server.complain("connections have to wait: the system is out of files or memory", "error", errno)
}

// admit makes room for a new connection if necessary, and serves it. The connection enters the table when it has to be kept.
func (l *loop) admit(fd int32, from peer) {
	s := l.server
	if s.addresses.Take(s.client(from.addr()), 1) != nil {
		s.refuseAddress(from.addr().String())
		refuse(fd, tooManyPerAddress)
		return
	}
	l.guest = conn{fd: fd, peer: from}
	if s.open.Add(1) > int64(s.cfg.MaxConnections) && !s.makeRoom(l) && !s.shedSecure() {
		s.leave(&l.guest)
		s.refuseFull()
		refuse(fd, tooMany)
		return
	}
	l.serve(&l.guest, 0)
}

// refuse answers a connection and closes it.
func refuse(fd int32, answer string) {
	var discarded [1024]byte
	_, _ = receive(fd, discarded[:]) // unread bytes would make the kernel reset the connection and drop the answer
	_, _ = send(fd, []byte(answer), true)
	closeFD(fd)
}

// leave stops counting a connection that is closed.
func (s *Server) leave(c *conn) {
	s.open.Add(-1)
	s.addresses.Leave(s.client(c.peer.addr()), 1)
}

// makeRoom closes the connection that has been idle for longest, and reports whether there is one. If it belongs to another loop, there
// is one connection too many until that loop closes it.
func (s *Server) makeRoom(l *loop) bool {
	l.oldest.Store(int64(min(since(l.fresh.first), since(l.idle.first))))
	longest := s.longestIdle(s.loops)
	if longest == nil {
		return false
	}
	if longest == l {
		return l.shed()
	}
	return longest.askToShed()
}

// shedLooped is makeRoom for goroutines that are not a loop.
func (s *Server) shedLooped() bool {
	loops := s.looping.Load()
	if loops == nil {
		return false
	}
	longest := s.longestIdle(*loops)
	return longest != nil && longest.askToShed()
}

// longestIdle returns the loop of the connection that has been idle for longest, or nil if none is.
func (s *Server) longestIdle(loops []*loop) *loop {
	var longest *loop
	oldest := int64(never)
	for _, l := range loops {
		if at := l.oldest.Load(); at < oldest {
			longest, oldest = l, at
		}
	}
	return longest
}

// askToShed asks a loop to shed, from another goroutine. Until the loop's next turn, its oldest connection counts as a little younger.
func (l *loop) askToShed() bool {
	if oldest := l.oldest.Load(); oldest != never {
		l.oldest.CompareAndSwap(oldest, oldest+int64(time.Millisecond))
	}
	return l.post(message{kind: shedOne})
}

// shed closes the connection that has been idle for longest, and reports whether there was one.
func (l *loop) shed() bool {
	from := &l.idle
	if since(l.fresh.first) < since(l.idle.first) {
		from = &l.fresh
	}
	c := from.first
	if c == nil {
		return false
	}
	from.remove(c)
	l.close(c)
	l.server.shed.Inc()
	return true
}
