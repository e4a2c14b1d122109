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

// fsNoCOW is FS_NOCOW_FL of linux/fs.h.
const fsNoCOW = 0x00800000

// noCopyOnWrite makes files that are created in a folder keep their blocks when they are written again. A file system
// such as btrfs otherwise writes to new blocks, which a full disk lacks in spite of the allocation. Other file systems
// refuse the attribute and do not need it.
func noCopyOnWrite(dir string) {
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	if flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS); err == nil {
		_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags|fsNoCOW))
	}
}
