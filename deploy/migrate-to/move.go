package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"linkstream/deploy/standalone/embedded"
	"linkstream/edge/edgeservice"
	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/filelock"
	"linkstream/schema/linkstore/postgres"
	linksqlite "linkstream/schema/linkstore/sqlite"
	"linkstream/schema/sqlite"
	"linkstream/schema/sqlitefile"
	"linkstream/schema/stream"
)

// look is the time between two looks whether the service runs.
const look = 200 * time.Millisecond

// move moves the data of a service. Each of its steps may be repeated, and each begins only when the one before is
// durable:
//
//  1. The click store is frozen: a transaction that counts is either before, and as a whole in the copy, or is refused,
//     and its clicks stay in the spool. The counts do not change any more, so the copy is the same whenever it is made.
//  2. The copy is put in place in one step, together with the marks of all lanes: from now on workers drop what was
//     counted before.
//  3. The link store is frozen and copied in one transaction.
//  4. When the service has stopped, its spool is sent to Kafka as an edge sends it: each lane in its order, to one
//     partition, from the last click that was released. Clicks are released only after the commit that counts them, so
//     nothing is missing between the marks and the spool, and the marks drop what is in both. A move that is killed
//     sends again from there.
type move struct {
	from   embedded.Dir
	links  *postgres.Store
	clicks *clickhouse.ClickStore
	topic  spool.Topic
	out    io.Writer
	log    *slog.Logger
}

func (m *move) run(ctx context.Context) error {
	for _, path := range []string{m.from.Links(), m.from.Clicks()} {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%q is not the data directory of a service: %w", string(m.from), err)
		}
	}
	lock, err := filelock.TryAcquire(m.from.BackupLock())
	if err != nil {
		return fmt.Errorf("a backup, a restore or another migrate-to runs: %w", err)
	}
	defer lock.Release()
	id, err := m.moveClicks(ctx)
	if err != nil {
		return err
	}
	if err := m.moveLinks(ctx, id); err != nil {
		return err
	}
	return m.moveSpool(ctx)
}

// moveClicks freezes and copies the click store.
func (m *move) moveClicks(ctx context.Context) (id schema.MoveID, err error) {
	began := time.Now()
	if id, err = sqlitefile.Freeze(ctx, m.from.Clicks(), schema.MoveID{}); err != nil {
		return id, err
	}
	from, err := sqlite.OpenClickStore(ctx, m.from.Clicks())
	if err != nil {
		return id, err
	}
	clicks, err := m.clicks.Import(ctx, id, clickhouse.Counted{
		Clicks: func(ctx context.Context, each func(*schema.ClickCount) error) error {
			return sqlite.ExportClicks(ctx, m.from.Clicks(), each)
		},
		Lanes: from.LaneCounts,
		Visitors: func(ctx context.Context, each func(schema.CountedVisitor) error) error {
			return sqlite.ExportVisitors(ctx, m.from.Clicks(), each)
		},
		Gaps: func(ctx context.Context) ([]schema.Gap, error) { return sqlite.ExportGaps(ctx, m.from.Clicks()) },
		Histories: func(ctx context.Context, each func(schema.History) error) error {
			return sqlite.ExportHistories(ctx, m.from.Clicks(), each)
		},
	})
	if err == nil {
		m.say("%d counted clicks are in ClickHouse, after %v", clicks, time.Since(began).Round(time.Millisecond))
	}
	return id, errors.Join(err, from.Close())
}

// moveLinks freezes and copies the link store.
func (m *move) moveLinks(ctx context.Context, id schema.MoveID) error {
	began := time.Now()
	if _, err := sqlitefile.Freeze(ctx, m.from.Links(), id); err != nil {
		return err
	}
	m.say("the API of the old service is read-only from now on")
	_, err := m.links.Import(ctx, id, func(each func(schema.TableRows) error) error {
		return linksqlite.ExportLinks(ctx, m.from.Links(), each)
	})
	if err == nil {
		m.say("all links and accounts are in Postgres, after %v: send clients and visitors to the new services, then stop "+
			"the old one",
			time.Since(began).Round(time.Millisecond))
	}
	return err
}

// moveSpool sends the clicks that wait in the spool when the service has stopped, and stay there until then.
func (m *move) moveSpool(ctx context.Context) error {
	for {
		lock, err := filelock.TryAcquire(m.from.Lock())
		if err == nil {
			return errors.Join(m.drain(ctx), lock.Release())
		}
		if !errors.Is(err, filelock.ErrHeld) {
			return err
		}
		if stream.Sleep(ctx, look); ctx.Err() != nil {
			return fmt.Errorf("stopped before the clicks of the spool were sent, start it again to go on: %w", ctx.Err())
		}
	}
}

// drain sends the clicks in the spool. The caller has the lock of the service.
func (m *move) drain(ctx context.Context) error {
	cfg := spool.DefaultConfig()
	cfg.Dir = m.from.Spool()
	sent := new(strings.Builder)
	if _, err := os.Stat(cfg.Dir); !errors.Is(err, fs.ErrNotExist) {
		if err := edgeservice.Drain(ctx, cfg, m.topic, m.links, sent, m.log); err != nil {
			return fmt.Errorf("send the spool, start it again to go on: %w", err)
		}
	}
	m.say("%sall clicks of the spool are in Kafka: everything has moved", sent)
	return nil
}

func (m *move) say(format string, args ...any) {
	fmt.Fprintf(m.out, format+"\n", args...)
}
