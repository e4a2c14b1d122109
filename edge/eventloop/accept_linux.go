package eventloop

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// accept accepts at most most connections and answers their requests. The kernel queues a connection when its first
// bytes have arrived (TCP_DEFER_ACCEPT), so most visitors are answered without being registered with the poller.
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
	l.noteOldest()
	l.server.runShort()
	l.retry = min(max(2*l.retry, shortestRetry), longestRetry)
	l.acceptAt = l.now + l.retry
	l.stopAccepting()
	l.server.complain("connections have to wait: the system is out of files or memory", "error", errno)
}

// admit makes room for a new connection if necessary, and serves it. The connection enters the table when it has to
// be kept.
func (l *loop) admit(fd int32, from peer) {
	s := l.server
	if s.addresses.Take(s.client(from.addr()), 1) != nil {
		s.refuseAddress(from.addr().String())
		refuse(fd, tooManyPerAddress)
		return
	}
	l.guest = conn{fd: fd, peer: from}
	if s.open.Add(1) > int64(s.cfg.MaxConnections) {
		l.noteOldest()
		if !s.makeRoom() {
			s.leave(&l.guest)
			s.refuseFull()
			refuse(fd, tooMany)
			return
		}
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

// longestIdle returns the loop of the connection that has been idle for longest, and since when; nil and never if
// none is idle.
func (s *Server) longestIdle() (longest *loop, idle time.Duration) {
	idle = never
	if loops := s.looping.Load(); loops != nil {
		for _, l := range *loops {
			if at := time.Duration(l.oldest.Load()); at < idle {
				longest, idle = l, at
			}
		}
	}
	return longest, idle
}

// noteOldest publishes since when the longest idle connection of the loop has been idle.
func (l *loop) noteOldest() { l.oldest.Store(int64(min(since(l.fresh.first), since(l.idle.first)))) }

// askToShed asks a loop, which may be nil, to close the connection that has been idle for longest, and reports
// whether it will. Until the loop's next turn, that connection counts as a little younger, so that the next one may
// be another loop's.
func (l *loop) askToShed(idle time.Duration) bool {
	if l == nil {
		return false
	}
	l.oldest.CompareAndSwap(int64(idle), int64(idle+time.Millisecond))
	return l.post(message{kind: shedOne, idle: idle})
}

// shed closes the connection of the loop that has been idle for longest. If that is in use again, another one makes
// room.
func (l *loop) shed(idle time.Duration) {
	from := &l.idle
	if since(l.fresh.first) < since(l.idle.first) {
		from = &l.fresh
	}
	c := from.first
	if c == nil || c.since > idle {
		l.noteOldest()
		l.server.makeRoom()
		return
	}
	from.remove(c)
	l.close(c)
	l.server.shed.Inc()
}
