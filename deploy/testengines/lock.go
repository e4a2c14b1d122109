package testengines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockRetry is the time between two attempts to take a lock.
const lockRetry = 100 * time.Millisecond

var errLocked = errors.New("in use by another process")

// tryLock takes the exclusive lock on a file, which it creates if it does not exist and never removes. The kernel
// releases the lock when the process ends, even if it is killed. If another process has the lock, it returns errLocked.
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

// waitLock is tryLock, but it waits until no other process has the lock.
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
