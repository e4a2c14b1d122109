package testengines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockRetry is how often a lock that another process holds is tried again.
const lockRetry = 100 * time.Millisecond

var errLocked = errors.New("another process uses it")

// tryLock takes the exclusive lock on a file, which it creates if need be and leaves behind. The kernel drops the lock
// when the process ends, however it ends.
func tryLock(path string) (unlock func() error, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errLocked
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %q: %w", path, err), file.Close())
	}
	return file.Close, nil
}

// waitLock waits for the lock that tryLock takes.
func waitLock(ctx context.Context, path string) (unlock func() error, err error) {
	ticker := time.NewTicker(lockRetry)
	defer ticker.Stop()
	for {
		unlock, err := tryLock(path)
		if !errors.Is(err, errLocked) {
			return unlock, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for lock %q: %w", path, ctx.Err())
		}
	}
}
