package main

import (
	"context"
	"errors"
	"time"

	"linkstream/schema/filelock"
	"linkstream/schema/stream"
)

// trimEvery is how often counted records are deleted.
const trimEvery = time.Minute

// trimLog deletes the records of the clicks topic that come before the last counted click, until ctx is done. The click
// itself stays: the log never becomes empty, so its offsets survive a restart of the broker, and the click identifies the
// log. The topic's retention is off. It would delete by age, also what was not counted yet, and the whole log of an idle
// week, after which the broker gives offset 0 again.
func (a *App) trimLog(ctx context.Context) {
	ticker := time.NewTicker(trimEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			a.trimLogOnce(ctx)
		}
	}
}

// trimLogOnce deletes nothing while a backup runs: its copy of the click store may be older than its copy of the log.
func (a *App) trimLogOnce(ctx context.Context) {
	lock, err := filelock.TryAcquire(a.cfg.dir().BackupLock())
	if err != nil {
		if !errors.Is(err, filelock.ErrHeld) {
			a.log.Warn("cannot delete counted records", "error", err)
		}
		return
	}
	topic := stream.DefaultConfig().Clicks
	for partition, last := range a.ingest.LastCounted() {
		start, _, err := a.client.Offsets(ctx, partition)
		if err == nil && start < last {
			err = a.broker.DeleteRecords(topic, int32(partition), last)
		}
		if err != nil && ctx.Err() == nil {
			a.log.Warn("cannot delete counted records", "partition", partition, "before", last, "error", err)
		}
	}
	if err := lock.Release(); err != nil {
		a.log.Warn("cannot release the lock of backups", "error", err)
	}
}
