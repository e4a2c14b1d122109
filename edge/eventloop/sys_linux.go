package eventloop

import (
	"errors"
	"net/netip"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls of this file, except those of a poller that waits, return at once, because their descriptors do
// not block. They are made without Go's scheduler, which prepares for long calls and may give the loop's P to
// another thread.

// receive reads without waiting. 0 bytes and no error mean that the client has closed its side.
func receive(fd int32, p []byte) (int, unix.Errno) {
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))),
			uintptr(len(p)), unix.MSG_DONTWAIT, 0, 0)
		if errno != unix.EINTR {
			return int(n), errno
		}
	}
}

// send writes as much as the kernel's buffer takes. more means that endSending follows: the last bytes then share a
// packet with the FIN.
func send(fd int32, p []byte, more bool) (int, unix.Errno) {
	flags := uintptr(unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL)
	if more {
		flags |= unix.MSG_MORE
	}
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))),
			uintptr(len(p)), flags, 0, 0)
		if errno != unix.EINTR {
			return int(n), errno
		}
	}
}

// peer is the address of a client, without pointers and in 20 bytes, as there may be a million of them.
type peer struct {
	ip   [16]byte // IPv4 as ::ffff:a.b.c.d
	port uint16
}

func (p *peer) addr() netip.Addr { return netip.AddrFrom16(p.ip).Unmap() }

// accept accepts the next connection of a listener, without waiting.
func accept(listener int, p *peer) (fd int32, errno unix.Errno) {
	var sa unix.RawSockaddrInet6 // has room for IPv4's
	length := uint32(unsafe.Sizeof(sa))
	n, _, errno := unix.RawSyscall6(unix.SYS_ACCEPT4, uintptr(listener), uintptr(unsafe.Pointer(&sa)),
		uintptr(unsafe.Pointer(&length)), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	port := (*[2]byte)(unsafe.Pointer(&sa.Port)) // in network order
	p.port = uint16(port[0])<<8 | uint16(port[1])
	p.ip = sa.Addr
	if sa.Family == unix.AF_INET {
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(&sa)).Addr
		p.ip = [16]byte{10: 0xff, 11: 0xff, 12: v4[0], 13: v4[1], 14: v4[2], 15: v4[3]}
	}
	return int32(n), 0
}

// endSending sends the bytes that send has held back, and the FIN. Without it, close would drop both if bytes of
// the client are unread.
func endSending(fd int32) {
	_, _, _ = unix.RawSyscall(unix.SYS_SHUTDOWN, uintptr(fd), unix.SHUT_WR, 0)
}

func closeFD(fd int32) { _, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }

// poller is an epoll instance.
type poller struct {
	fd     int
	events [256]unix.EpollEvent

	// gate is another epoll instance, which Go's poller watches. The first is behind it during a wait that blocks no
	// thread, and only then: otherwise each event would wake up a thread.
	gate     *os.File
	gateFD   int
	gateConn syscall.RawConn
	bounded  bool // the gate has a deadline

	// Of the last look for events during such a wait.
	n    int
	err  error
	look func(uintptr) bool
}

func openPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	gate, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, errors.Join(os.NewSyscallError("epoll_create1", err), unix.Close(fd))
	}
	_ = unix.SetNonblock(gate, true) // fails for no descriptor that is open
	p := &poller{fd: fd, gate: os.NewFile(uintptr(gate), "epoll"), gateFD: gate}
	p.look = func(uintptr) bool {
		p.n, p.err = p.waitRaw(0)
		return p.n > 0 || p.err != nil
	}
	if p.gateConn, err = p.gate.SyscallConn(); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *poller) close() error { return errors.Join(p.gate.Close(), unix.Close(p.fd)) }

// Values in place of a connection's index.
const (
	aboutListener = -1
	aboutWakeup   = -2
)

// edges are the events of connections. Each is reported once, when it occurs: see EPOLLET in epoll(7).
const edges = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET

func (p *poller) control(operation int, fd int32, events uint32, index int32, generation uint32) error {
	// Pad has the upper half of the user data.
	return unix.EpollCtl(p.fd, operation, int(fd), &unix.EpollEvent{Events: events, Fd: index, Pad: int32(generation)})
}

// wait waits like any other goroutine for at most timeout milliseconds, without a bound if it is below zero.
func (p *poller) wait(timeout int) (int, error) {
	if timeout >= 0 || p.bounded {
		var deadline time.Time
		if p.bounded = timeout >= 0; p.bounded {
			deadline = time.Now().Add(time.Duration(timeout) * time.Millisecond)
		}
		if err := p.gate.SetReadDeadline(deadline); err != nil {
			return 0, err
		}
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN}
	if err := unix.EpollCtl(p.gateFD, unix.EPOLL_CTL_ADD, p.fd, &event); err != nil {
		return 0, os.NewSyscallError("epoll_ctl", err)
	}
	p.n, p.err = 0, nil
	err := p.gateConn.Read(p.look)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	return p.n, errors.Join(err, p.err, unix.EpollCtl(p.gateFD, unix.EPOLL_CTL_DEL, p.fd, nil))
}

// waitBlocking waits in a system call that blocks the thread, for at most timeout milliseconds.
func (p *poller) waitBlocking(timeout uint) (int, error) {
	n, err := unix.EpollWait(p.fd, p.events[:], int(timeout))
	if errors.Is(err, unix.EINTR) {
		return 0, nil
	}
	return n, err
}

// waitRaw waits in a raw system call: see loop.wait.
func (p *poller) waitRaw(timeout int) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events[0])),
		uintptr(len(p.events)), uintptr(timeout), 0, 0)
	switch errno {
	case 0:
		return int(n), nil
	case unix.EINTR: // the scheduler stops this thread at the next function call
		return 0, nil
	default:
		return 0, errno
	}
}
