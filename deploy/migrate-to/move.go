package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"linkstream/deploy/standalone/embedded"
	"linkstream/edge/edgeservice"
	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/clickhouse"
	"linkstream/schema/filelock"
	"linkstream/schema/postgres"
	"linkstream/schema/sqlite"
	"linkstream/schema/stream"
)

const (
	lockWait = 10 * time.Second       // for a deletion of counted records to end
	look     = 200 * time.Millisecond // between two looks whether the service runs
)

// move moves the data of a service. Each of its steps may be repeated, and each begins only when the one before is durable:
//
//  1. A lock stops the deletion of counted records: the old log keeps everything that follows.
//  2. The click store is frozen. What it has counted does not change any more, so the copy is the same whenever it is made.
//  3. The copy is put in place in one step, together with the marks of all lanes: from now on the new workers drop what was
//     counted before.
//  4. The link store is frozen and copied in one transaction.
//  5. The records of the old topic are sent to the new one, those of a partition in their order and always to the same partition,
//     all of them again after a restart: the new workers know by the marks which ones are repetitions. Clicks of the spool reach
//     the new topic through the old one, so a lane's clicks stay in their order.
type move struct {
	from   embedded.Dir
	links  *postgres.Store
	clicks *clickhouse.ClickStore
	topic  targetTopic
	out    io.Writer
	log    *slog.Logger

	partitions int               // of the new topic when the move began: a partition of the old topic belongs to one of them
	shipments  map[int]*shipment // by partition of the old topic
}

func (m *move) run(ctx context.Context) error {
	for _, path := range []string{m.from.Links(), m.from.Clicks(), m.from.Broker()} {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%q is not the data directory of a service: %w", string(m.from), err)
		}
	}
	wait, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	lock, err := filelock.Acquire(wait, m.from.BackupLock()) // 1.
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
	return m.moveRecords(ctx)
}

// moveClicks freezes and copies the click store.
func (m *move) moveClicks(ctx context.Context) (id schema.MoveID, err error) {
	began := time.Now()
	partitions, err := m.topic.Partitions(ctx)
	if err != nil {
		return id, err
	}
	frozen, err := sqlite.Freeze(ctx, m.from.Clicks(), sqlite.Move{Partitions: partitions})
	if err != nil {
		return id, err
	}
	if partitions < frozen.Partitions {
		return id, fmt.Errorf("the topic has %d partitions, and had %d when the move began: is it the same?", partitions, frozen.Partitions)
	}
	m.partitions = frozen.Partitions
	from, err := sqlite.OpenClickStore(ctx, m.from.Clicks())
	if err != nil {
		return id, err
	}
	clicks, err := m.clicks.Import(ctx, frozen.ID, clickhouse.Counted{
		Days: func(ctx context.Context, each func(*schema.DayCounts) error) error {
			return sqlite.ExportClicks(ctx, m.from.Clicks(), each)
		},
		Lanes: from.LaneCounts,
		Gaps:  func(ctx context.Context) ([]schema.Gap, error) { return sqlite.ExportGaps(ctx, m.from.Clicks()) },
	})
	if err == nil {
		m.say("%d counted clicks are in ClickHouse, after %v", clicks, time.Since(began).Round(time.Millisecond))
	}
	return frozen.ID, errors.Join(err, from.Close())
}

// moveLinks freezes and copies the link store.
func (m *move) moveLinks(ctx context.Context, id schema.MoveID) error {
	began := time.Now()
	if _, err := sqlite.Freeze(ctx, m.from.Links(), sqlite.Move{ID: id, Partitions: m.partitions}); err != nil {
		return err
	}
	m.say("the API of the old service is read-only from now on")
	_, err := m.links.Import(ctx, id, func(each func(schema.TableRows) error) error {
		return sqlite.ExportLinks(ctx, m.from.Links(), each)
	})
	if err == nil {
		m.say("all links and accounts are in Postgres, after %v: send clients and visitors to the new services, then stop the old one",
			time.Since(began).Round(time.Millisecond))
	}
	return err
}

// moveRecords sends the records of the old topic, first while the service runs, then what it has left behind.
func (m *move) moveRecords(ctx context.Context) error {
	m.shipments = map[int]*shipment{}
	for {
		lock, err := filelock.TryAcquire(m.from.Lock())
		if err == nil {
			return errors.Join(m.moveRest(ctx), lock.Release())
		}
		if !errors.Is(err, filelock.ErrHeld) {
			return err
		}
		if addr, ok := m.from.RunningBroker(); ok {
			if err := m.moveWhile(ctx, addr); err != nil {
				return err
			}
		}
		if stream.Sleep(ctx, look); ctx.Err() != nil {
			return fmt.Errorf("stopped after %d records, start it again to go on: %w", m.shipped(), ctx.Err())
		}
	}
}

// moveWhile sends records until the broker of the service goes away.
func (m *move) moveWhile(ctx context.Context, addr string) error {
	client, err := m.openOld(addr)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		for ctx.Err() == nil {
			if now, ok := m.from.RunningBroker(); !ok || now != addr {
				return
			}
			stream.Sleep(ctx, look)
		}
	}()
	return m.ship(ctx, client, false)
}

// moveRest sends everything that a service has left behind which does not run. The caller has its lock.
func (m *move) moveRest(ctx context.Context) error {
	secret, err := m.from.Secret()
	if err != nil {
		return err
	}
	broker, err := m.from.StartBroker(secret, m.log.With("service", "broker"))
	if err != nil {
		return err
	}
	defer broker.Close()
	client, err := m.openOld(broker.ListenAddrs()[0])
	if err != nil {
		return err
	}
	defer client.Close()
	drained := m.drain(ctx, client)
	if err := errors.Join(m.ship(ctx, client, true), ctx.Err()); err != nil {
		return errors.Join(fmt.Errorf("stopped after %d records, start it again to go on: %w", m.shipped(), err), drained)
	}
	if drained != nil {
		return drained
	}
	m.say("all %d records of the old topic are in the new one: everything has moved", m.shipped())
	return nil
}

// drain sends the clicks in the spool to the old topic.
func (m *move) drain(ctx context.Context, client *stream.Client) error {
	cfg := spool.DefaultConfig()
	cfg.Dir = m.from.Spool()
	if _, err := os.Stat(cfg.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return edgeservice.Drain(ctx, cfg, client, io.Discard, m.log)
}

func (m *move) openOld(addr string) (*stream.Client, error) {
	secret, err := m.from.Secret()
	if err != nil {
		return nil, err
	}
	return stream.New(embedded.StreamConfig([]string{addr}, secret), m.log)
}

func (m *move) say(format string, args ...any) {
	fmt.Fprintf(m.out, format+"\n", args...)
}
