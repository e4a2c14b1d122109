package clickhouse

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

const (
	lockRetry     = 200 * time.Millisecond // how often a lock that another node holds is tried again
	unlockTimeout = 10 * time.Second       // for letting go of it
)

// tableLock is a lock that is a table: of several nodes that create it one succeeds, and the others wait until it has
// dropped it, or until it is so old that its holder must have died. On a cluster the nodes of ClickHouse run the
// statements of all clients in one order, so they agree on who it is.
type tableLock struct {
	of    layout
	stale time.Duration
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
		err := l.of.exec(ctx, db, createLock)
		if err == nil {
			return nil
		}
		if exceptionCode(err) != tableExists {
			return fmt.Errorf("lock: %w", err)
		}
		if err := l.dropStale(ctx, db); err != nil {
			return fmt.Errorf("look at lock: %w", err)
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
	if errors.Is(err, sql.ErrNoRows) { // dropped meanwhile
		return nil
	}
	if err != nil || time.Duration(age)*time.Second < l.stale {
		return err
	}
	return l.of.exec(ctx, db, dropLock)
}

// Unlock implements goose's lock.Locker.
func (l tableLock) Unlock(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, unlockTimeout)
	defer cancel()
	if err := l.of.exec(ctx, db, dropLock); err != nil {
		return fmt.Errorf("unlock: %w", err)
	}
	return nil
}
