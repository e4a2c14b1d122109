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

// tableLock is a lock in the form of a table: one of several processes succeeds in creating it. The others wait until it is
// dropped, or until it is so old that its holder must have died. The nodes of a cluster execute these statements in one
// order, so they agree on the holder.
type tableLock struct {
	layout layout
	stale  time.Duration // age at which another process may take the lock
}

const (
	createLock = `CREATE TABLE migration_lock {{.OnCluster}} (holder String) ENGINE = Memory`
	dropLock   = `DROP TABLE IF EXISTS migration_lock {{.OnCluster}}`
	lockAge    = `SELECT dateDiff('second', metadata_modification_time, now()) FROM system.tables
	WHERE database = currentDatabase() AND name = 'migration_lock'`
)

// Lock implements goose's lock.Locker.
func (l tableLock) Lock(ctx context.Context, db *sql.DB) error {
	ticker := time.NewTicker(lockRetry)
	defer ticker.Stop()
	for {
		err := l.layout.exec(ctx, db, createLock)
		if err == nil {
			return nil
		}
		if exceptionCode(err) != tableExists {
			return fmt.Errorf("lock: %w", err)
		}
		if err := l.dropStale(ctx, db); err != nil {
			return fmt.Errorf("read age of lock: %w", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for lock: %w", ctx.Err())
		}
	}
}

func (l tableLock) dropStale(ctx context.Context, db *sql.DB) error {
	var age int64
	err := db.QueryRowContext(ctx, lockAge).Scan(&age)
	if errors.Is(err, sql.ErrNoRows) { // just dropped
		return nil
	}
	if err != nil || time.Duration(age)*time.Second < l.stale {
		return err
	}
	return l.layout.exec(ctx, db, dropLock)
}

// Unlock implements goose's lock.Locker.
func (l tableLock) Unlock(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, unlockTimeout)
	defer cancel()
	if err := l.layout.exec(ctx, db, dropLock); err != nil {
		return fmt.Errorf("unlock: %w", err)
	}
	return nil
}
