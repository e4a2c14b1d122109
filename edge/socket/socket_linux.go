package socket

import (
	"io"
	"iter"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// socket costs a request and its answer two system calls, a read and a write, and no more of the scheduler than it has
// to. What package net does, which has to fit every use, takes a seventh of a redirect more.
//
//   - Package net reads at once, in vain, before it waits for the next request. But a read that does not fill its
//     buffer has taken all there is, and the kernel says when there is more: see epoll(7) on edge-triggered events. So
//     the read after a write can wait first. Within a call of RawConn.Read such an event is not lost, from one call to
//     the next it may be, so that there is one call for all reads. It is a coroutine's. (If the other side ends the
//     connection together with its last bytes, that is found when a deadline passes: nothing else will come.)
//   - Package net has the scheduler prepare for a call that takes long. When the kernel lets another program run, which
//     it does most often at the end of a call, another thread is got to take over. But these calls wait for nothing.
type socket struct {
	net.Conn
	raw   syscall.RawConn
	state atomic.Int32 // which keeps Close from stopping the coroutine during a Read

	reads int
	next  func() (struct{}, bool) // resumes the coroutine until a read is done
	stop  func()                  // ends it

	in     []byte // of the Read under way
	inLen  int    // its results
	inErr  error
	wrote  bool   // since then
	out    []byte // what the Write under way has yet to write
	outErr error
	write  func(fd uintptr) bool // method writeSome, bound once
}

// States.
const (
	idle = iota
	reading
	closed
)

// plainReads is how many reads a connection does without a coroutine, which takes some memory and time to make. Most
// people follow one link.
const plainReads = 4

// New returns c at less cost, if it is one of the kernel's, else c itself. One goroutine reads it and writes it.
func New(c net.Conn) net.Conn {
	kernel, ok := c.(syscall.Conn)
	if !ok {
		return c
	}
	raw, err := kernel.SyscallConn()
	if err != nil {
		return c
	}
	s := &socket{Conn: c, raw: raw, stop: func() {}}
	s.write = s.writeSome
	return s
}

// Read implements net.Conn.
func (s *socket) Read(p []byte) (int, error) {
	if s.reads < plainReads {
		s.reads++
		return s.Conn.Read(p)
	}
	if !s.state.CompareAndSwap(idle, reading) {
		return 0, net.ErrClosed
	}
	if s.next == nil {
		s.next, s.stop = iter.Pull(s.readAll)
	}
	s.in = p
	s.next()
	s.in = nil
	if !s.state.CompareAndSwap(reading, idle) {
		s.stop()
	}
	return s.inLen, s.inErr
}

// Close closes the connection and ends a Read or Write under way.
func (s *socket) Close() error {
	if s.state.Swap(closed) == idle {
		s.stop() // the kernel's part would else wait for it
	}
	return s.Conn.Close()
}

// readAll is the coroutine, which yields when a read is done.
func (s *socket) readAll(yield func(struct{}) bool) {
	goOn := true
	for goOn {
		err := s.raw.Read(func(fd uintptr) (done bool) {
			for goOn {
				n, err := call(unix.SYS_READ, fd, s.in)
				if err == unix.EAGAIN {
					return false // which waits
				}
				drained := 0 < n && n < len(s.in)
				s.inLen, s.inErr = n, os.NewSyscallError("read", err)
				if n == 0 && err == nil {
					s.inErr = io.EOF
				}
				s.wrote = false
				if goOn = yield(struct{}{}); goOn && drained && s.wrote {
					return false
				}
			}
			return true
		})
		if goOn { // the deadline has passed
			s.inLen, s.inErr = 0, err
			goOn = yield(struct{}{})
		}
	}
}

// Write writes all of p.
func (s *socket) Write(p []byte) (int, error) {
	s.out, s.outErr, s.wrote = p, nil, true
	err := s.raw.Write(s.write)
	if err == nil {
		err = s.outErr
	}
	n := len(p) - len(s.out)
	s.out = nil
	return n, err
}

// writeSome writes what the kernel has room for and reports whether that is all, or there is an error.
func (s *socket) writeSome(fd uintptr) (done bool) {
	for len(s.out) > 0 {
		n, err := call(unix.SYS_WRITE, fd, s.out)
		if err == unix.EAGAIN {
			return false
		}
		if err != nil {
			s.outErr = os.NewSyscallError("write", err)
			return true
		}
		s.out = s.out[n:]
	}
	return true
}

// call reads or writes without the scheduler's knowledge.
func call(trap, fd uintptr, p []byte) (int, error) {
	for {
		n, _, errno := unix.RawSyscall(trap, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}
