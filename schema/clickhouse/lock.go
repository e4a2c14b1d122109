package clickhouse

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

const (
	lockRetry     = 200 * time.Millisecond // between two attempts to lock
	unlockTimeout = 10 * time.Second
)

// tableLock is a lock in the form of a table: one of several processes succeeds in creating it. The others wait until
// it is dropped, or until it is so old that its holder must have died. The nodes of a cluster execute these statements
// in one order, so they agree on the holder.
type tableLock struct {
	layout layout
	name   string        // of the table
	stale  time.Duration // age at which another process may take the lock
}

const (
	createLock = `CREATE TABLE %s {{.OnCluster}} (holder String) ENGINE = Memory`
	dropLock   = `DROP TABLE IF EXISTS %s {{.OnCluster}}`
	lockAge    = `SELECT dateDiff('second', metadata_modification_time, now()) FROM system.tables
	WHERE database = currentDatabase() AND name = ?`
)

// Lock implements goose's lock.Locker.
func (l tableLock) Lock(ctx context.Context, db *sql.DB) error {
	ticker := time.NewTicker(lockRetry)
	defer ticker.Stop()
	for {
		if locked, err := l.tryLock(ctx, db); locked || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for lock: %w", ctx.Err())
		}
	}
}

// tryLock reports whether it has taken the lock.
func (l tableLock) tryLock(ctx context.Context, db *sql.DB) (bool, error) {
	for range 2 {
		err := l.layout.exec(ctx, db, fmt.Sprintf(createLock, l.name))
		if err == nil {
			return true, nil
		}
		if exceptionCode(err) != tableExists {
			return false, fmt.Errorf("lock: %w", err)
		}
		if stale, err := l.dropStale(ctx, db); !stale || err != nil {
			return false, err
		}
	}
	return false, nil // another process took the stale lock
}

// dropStale reports whether the lock's holder is gone.
func (l tableLock) dropStale(ctx context.Context, db *sql.DB) (bool, error) {
	var age int64
	err := db.QueryRowContext(ctx, lockAge, l.name).Scan(&age)
	if errors.Is(err, sql.ErrNoRows) { // just dropped
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read age of lock: %w", err)
	}
	if time.Duration(age)*time.Second < l.stale {
		return false, nil
	}
	return true, l.layout.exec(ctx, db, fmt.Sprintf(dropLock, l.name))
}

// Unlock implements goose's lock.Locker.
func (l tableLock) Unlock(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, unlockTimeout)
	defer cancel()
	if err := l.layout.exec(ctx, db, fmt.Sprintf(dropLock, l.name)); err != nil {
		return fmt.Errorf("unlock: %w", err)
	}
	return nil
}
