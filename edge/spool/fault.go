package spool

import (
	"errors"
	"runtime/debug"
)

var errFault = errors.New("the kernel has no page for a mapped file: the disk is full, or fails")

// guarded calls f, which accesses a mapped file. It returns errFault, and f ends where it is, if the kernel cannot
// provide a page: the file system has no block for it, the disk cannot read it, or the file was truncated. Otherwise
// the kernel's SIGBUS would end the process. All this takes a few nanoseconds and neither a system call nor an
// allocation.
func guarded(f func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch cause := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }: // see debug.SetPanicOnFault
			err = errFault
		default:
			panic(cause)
		}
	}()
	f()
	return nil
}
