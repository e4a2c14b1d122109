package spool

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allocate reserves the file's blocks.
func allocate(f *os.File, size int) error {
	for {
		err := unix.Fallocate(int(f.Fd()), 0, 0, int64(size))
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EOPNOTSUPP): // a file system without it: writing reserves blocks, too
			return nil
		default:
			return err
		}
	}
}

// prefault brings the pages in now, so that an append need not wait for a page fault. It is a matter of speed alone:
// kernels before 5.14 refuse it.
func prefault(data []byte) { _ = unix.Madvise(data, unix.MADV_POPULATE_WRITE) }
