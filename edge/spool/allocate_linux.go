package spool

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allocate allocates the file's blocks, see fallocate(2).
func allocate(f *os.File, size int) error {
	for {
		err := unix.Fallocate(int(f.Fd()), 0, 0, int64(size))
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EOPNOTSUPP): // not supported by this file system: writeZeros allocates
			return nil
		default:
			return err
		}
	}
}

// prefault maps the pages now, so that appends cause no page faults. Kernels before 5.14 do not support it; appends are
// slower there.
func prefault(data []byte) { _ = unix.Madvise(data, unix.MADV_POPULATE_WRITE) }
