package load

import (
	"errors"
	"fmt"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// conn is a connection with at most one request in flight. With Target.Reconnect it is a series of connections.
type conn struct {
	fd         int   // -1 without a connection
	index      int32 // in the generator's connections
	connecting bool
	wantsWrite bool // registered for EPOLLOUT
	source     Source
	since      time.Time // from which the latency counts
	out        []byte    // the request
	unsent     []byte    // rest of out
	in         []byte    // the answer so far
	answered   bool      // the answer is complete, but not the end of the connection
}

// connect opens a connection. It sets connecting if the kernel has not completed it on return, as it has on loopback.
func (c *conn) connect(addr address) error {
	fd, err := unix.Socket(addr.family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open socket: %w", err)
	}
	c.fd, c.connecting, c.wantsWrite = fd, false, false
	switch err := unix.Connect(fd, addr.sockaddr); {
	case errors.Is(err, unix.EINPROGRESS):
		c.connecting = true
	case err != nil:
		return fmt.Errorf("connect: %w", err)
	}
	return nil
}

// awaitConnect waits until the connection is open or has failed, which the first write reports.
func (c *conn) awaitConnect() error {
	if !c.connecting {
		return nil
	}
	fds := []unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLOUT}}
	for deadline := time.Now().Add(dialTimeout); ; {
		n, err := unix.Poll(fds, int(max(0, time.Until(deadline).Milliseconds())))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("connect: %w", err)
		case n == 0:
			return fmt.Errorf("connect: no answer within %v", dialTimeout)
		default:
			c.connecting = false
			return nil
		}
	}
}

// flush sends as much of the request as the kernel takes. If some is left, it waits for EPOLLOUT; without a poll, the
// caller does. It returns the error of a connection that could not be opened.
func (c *conn) flush(p *poll) error {
	c.connecting = false
	for len(c.unsent) > 0 {
		n, err := transfer(unix.SYS_WRITE, c.fd, c.unsent)
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		if err != nil {
			return fmt.Errorf("send request: %w", err)
		}
		c.unsent = c.unsent[n:]
	}
	wants := len(c.unsent) > 0
	if wants == c.wantsWrite {
		return nil
	}
	c.wantsWrite = wants
	if p == nil {
		return nil
	}
	return p.modify(c)
}

// read reads once and appends to c.in. It returns 0 at the end of the connection.
func (c *conn) read() (int, error) {
	if len(c.in) == cap(c.in) {
		c.in = grow(c.in)
	}
	n, err := transfer(unix.SYS_READ, c.fd, c.in[len(c.in):cap(c.in)])
	if err != nil {
		return 0, err
	}
	c.in = c.in[:len(c.in)+n]
	return n, nil
}

func (c *conn) close() {
	if c.fd >= 0 {
		_ = unix.Close(c.fd)
		c.fd = -1
	}
}

// transfer reads or writes without telling Go's scheduler: the call does not block, and the scheduler could give the
// thread's place to another goroutine.
func transfer(call uintptr, fd int, buf []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// poll is an epoll instance, level-triggered.
type poll struct {
	fd     int
	events [128]unix.EpollEvent
	coarse bool // the kernel is older than 5.11, which introduced epoll_pwait2
}

func newPoll() (*poll, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create epoll instance: %w", err)
	}
	return &poll{fd: fd}, nil
}

func (p *poll) close() { _ = unix.Close(p.fd) }

func (p *poll) add(c *conn) error { return p.control(unix.EPOLL_CTL_ADD, c) }

func (p *poll) modify(c *conn) error { return p.control(unix.EPOLL_CTL_MOD, c) }

func (p *poll) control(op int, c *conn) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: c.index} // wait returns Fd, which need not be a descriptor
	if c.wantsWrite {
		event.Events |= unix.EPOLLOUT
	}
	if err := unix.EpollCtl(p.fd, op, c.fd, &event); err != nil {
		return fmt.Errorf("register connection: %w", err)
	}
	return nil
}

// wait returns events, none if the timeout passes or a signal arrives.
func (p *poll) wait(timeout time.Duration) ([]unix.EpollEvent, error) {
	if p.coarse {
		return p.result(unix.EpollWait(p.fd, p.events[:], int(timeout.Milliseconds())))
	}
	spec := unix.NsecToTimespec(int64(timeout))
	n, _, errno := syscall.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events)),
		uintptr(len(p.events)), uintptr(unsafe.Pointer(&spec)), 0, 0)
	switch errno {
	case 0:
		return p.events[:n], nil
	case unix.ENOSYS:
		p.coarse = true
		return nil, nil
	default:
		return p.result(0, errno)
	}
}

func (p *poll) result(n int, err error) ([]unix.EpollEvent, error) {
	if err != nil && !errors.Is(err, unix.EINTR) {
		return nil, fmt.Errorf("wait for answers: %w", err)
	}
	return p.events[:max(0, n)], nil
}
