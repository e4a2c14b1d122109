package eventloop

import (
	"errors"
	"net"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls of this file return at once, as their descriptors do not block (wait aside, which says what it does). So
// they are made without telling Go's scheduler, which would prepare for a call that takes long, and at times hand the
// loop's place over to another thread.

// receive reads what has come, without waiting. 0 bytes and no error mean that the client has said its last word.
func receive(fd int32, p []byte) (int, unix.Errno) {
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))),
			uintptr(len(p)), unix.MSG_DONTWAIT, 0, 0)
		if errno != unix.EINTR {
			return int(n), errno
		}
	}
}

// send writes what the kernel has room for. more says that endSending is next: the last bytes then leave in one packet with the
// end of the connection.
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

// tcpAddr returns the address as package net has it.
func (p *peer) tcpAddr() *net.TCPAddr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(p.addr(), p.port))
}

// accept takes the next connection of a listener, which does not block either.
func accept(listener int, p *peer) (fd int32, errno unix.Errno) {
	var sa unix.RawSockaddrInet6 // has room for IPv4's
	length := uint32(unsafe.Sizeof(sa))
	n, _, errno := unix.RawSyscall6(unix.SYS_ACCEPT4, uintptr(listener), uintptr(unsafe.Pointer(&sa)),
		uintptr(unsafe.Pointer(&length)), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	port := (*[2]byte)(unsafe.Pointer(&sa.Port)) // in network order, whatever the machine's
	p.port = uint16(port[0])<<8 | uint16(port[1])
	p.ip = sa.Addr
	if sa.Family == unix.AF_INET {
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(&sa)).Addr
		p.ip = [16]byte{10: 0xff, 11: 0xff, 12: v4[0], 13: v4[1], 14: v4[2], 15: v4[3]}
	}
	return int32(n), 0
}

// endSending sends what send has kept, and the end of the connection. Without it, close would drop both if the client has sent bytes
// that nobody has read.
func endSending(fd int32) {
	_, _, _ = unix.RawSyscall(unix.SYS_SHUTDOWN, uintptr(fd), unix.SHUT_WR, 0)
}

func closeFD(fd int32) { _, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }

// poller is an epoll instance.
type poller struct {
	fd     int
	events [256]unix.EpollEvent
}

// What an event is about, in place of a connection's index.
const (
	aboutListener = -1
	aboutWakeup   = -2
)

// edges are the events of connections. They are told once, when they occur: see epoll(7) on EPOLLET.
const edges = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLET

func (p *poller) control(operation int, fd int32, events uint32, index int32, generation uint32) error {
	// Pad has the upper half of the user data.
	return unix.EpollCtl(p.fd, operation, int(fd), &unix.EpollEvent{Events: events, Fd: index, Pad: int32(generation)})
}

// wait waits for up to timeout milliseconds, or for ever if it is below zero, with the scheduler's knowledge.
func (p *poller) wait(timeout int) (int, error) {
	n, err := unix.EpollWait(p.fd, p.events[:], timeout)
	if errors.Is(err, unix.EINTR) {
		return 0, nil
	}
	return n, err
}

// waitRaw waits without the scheduler's knowledge: see loop.wait.
func (p *poller) waitRaw(timeout int) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)),
		uintptr(timeout), 0, 0)
	switch errno {
	case 0:
		return int(n), nil
	case unix.EINTR: // the scheduler wants this thread to stop: the next call of a function does
		return 0, nil
	default:
		return 0, errno
	}
}
