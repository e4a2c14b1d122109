// Package filelock locks files between processes, by flock(2).
//
// A lock belongs to the open file: it also excludes other holders in the same process. The kernel releases it when the
// process ends, however it ends: before wait(2) returns, but not before the process becomes a zombie, since other
// threads may hold the file while they free the memory. The file stays, so that nobody can lock a file that another
// process has just removed.
//
// Do not lock a file that SQLite has open: POSIX drops all of a process's record locks on a file, SQLite's among them,
// when the process closes any descriptor of it.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrHeld is returned by TryAcquire if somebody else holds the lock.
var ErrHeld = errors.New("in use by another process")

// retryInterval is the pause between two attempts of Acquire. flock(2) itself could wait, but not be canceled.
const retryInterval = 10 * time.Millisecond

// Lock is an exclusive lock on a file. Its holder keeps it: a Lock that is garbage collected is released.
type Lock struct{ file *os.File }

// TryAcquire locks the file at path, which it creates with mode 0600 if needed. ErrHeld if somebody else holds the
// lock.
func TryAcquire(path string) (*Lock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	for {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrHeld
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %q: %w", path, err), file.Close())
	}
	return &Lock{file}, nil
}

// Acquire is TryAcquire, but waits while somebody else holds the lock. If ctx is done first, it returns ctx's error.
func Acquire(ctx context.Context, path string) (*Lock, error) {
	ticker := time.NewTicker(retryInterval)
	defer ticker.Stop()
	for {
		lock, err := TryAcquire(path)
		if !errors.Is(err, ErrHeld) {
			return lock, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for lock %q: %w", path, ctx.Err())
		}
	}
}

// Release gives the lock up. It must be called once.
func (l *Lock) Release() error { return l.file.Close() }
