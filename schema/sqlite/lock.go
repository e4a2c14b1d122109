package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockRetry is how often a lock that someone else holds is tried again. It is held for milliseconds.
const lockRetry = 5 * time.Millisecond

// lockFile waits for the exclusive lock on a file, which it creates if need be. The kernel drops the lock when the
// process ends, however it ends; the file stays. It must not be the database itself: POSIX drops all of a process's
// record locks on a file, SQLite's among them, when the process closes any descriptor of it.
func lockFile(ctx context.Context, path string) (unlock func() error, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	ticker := time.NewTicker(lockRetry)
	defer ticker.Stop()
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return file.Close, nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return nil, errors.Join(fmt.Errorf("lock %q: %w", path, err), file.Close())
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for lock %q: %w", path, ctx.Err()), file.Close())
		}
	}
}
