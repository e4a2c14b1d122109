package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"linkstream/schema"
	"linkstream/schema/namebound"
)

const (
	position = `SELECT epoch, next, last_offset, incarnation, lane FROM positions WHERE partition = ?`
	lastSeq  = `SELECT coalesce(max(seq), 0) FROM marks WHERE partition = ? AND incarnation = ? AND lane = ?`
	names    = `SELECT name FROM sources WHERE link_id = ? AND kind = ? AND day = ? LIMIT ?`
	// One look-up per partition by the primary key of marks.
	markOfLane = `SELECT coalesce(max(m.seq), 0) FROM positions p CROSS JOIN marks m ON m.partition = p.partition
		WHERE m.incarnation = ? AND m.lane = ?`
)

// Position implements schema.ClickStore.
func (c *ClickStore) Position(ctx context.Context, partition int) (schema.Position, error) {
	var at schema.Position
	err := c.db.view(ctx, func(tx *snapshot) (err error) {
		if at, err = readPosition(ctx, tx.Tx, partition); err != nil {
			return err
		}
		lane := at.Last.Lane
		return tx.queryRow(ctx, lastSeq, partition, lane.Incarnation[:], lane.Number).Scan(&at.Last.Seq)
	})
	return at, wrap(err, "read position of partition %d", partition)
}

// readPosition returns a partition's position without the number of its last click.
func readPosition(ctx context.Context, tx *sql.Tx, partition int) (at schema.Position, err error) {
	var incarnation []byte
	err = tx.QueryRowContext(ctx, position, partition).
		Scan(&at.Epoch, &at.Next, &at.Last.Offset, &incarnation, &at.Last.Lane.Number)
	if errors.Is(err, sql.ErrNoRows) {
		return schema.Position{}, nil
	}
	copy(at.Last.Lane.Incarnation[:], incarnation)
	return at, err
}

// LaneMark implements schema.ClickStore.
func (c *ClickStore) LaneMark(ctx context.Context, lane schema.Lane) (uint64, error) {
	var seq int64
	err := c.db.view(ctx, func(tx *snapshot) error {
		return tx.queryRow(ctx, markOfLane, lane.Incarnation[:], lane.Number).Scan(&seq)
	})
	return uint64(seq), wrap(err, "read mark of lane %d of %s", lane.Number, lane.Incarnation)
}

// InsertClicks implements schema.ClickStore.
func (c *ClickStore) InsertClicks(ctx context.Context, batch *schema.ClickBatch) error {
	err := c.insert(ctx, batch)
	return wrap(err, "insert clicks of partition %d from offset %d", batch.Partition, batch.Base)
}

func (c *ClickStore) insert(ctx context.Context, batch *schema.ClickBatch) error {
	if err := batch.CheckEpoch(); err != nil {
		return err
	}
	var a *aggregate
	select {
	case a = <-c.idle:
		defer func() { c.idle <- a }()
	case <-ctx.Done():
		return ctx.Err()
	}
	referrers, err := c.referrers.Referrers(ctx, batch, &a.names)
	if err != nil {
		return err
	}
	if err := a.number(ctx, c.db, batch); err != nil {
		return err
	}
	a.fill(batch, referrers)
	done := c.settling
	err = c.db.update(ctx, func(tx *sql.Tx) error {
		// The transaction holds the write lock, so the position does not change until the commit.
		at, err := readPosition(ctx, tx, batch.Partition)
		if err != nil {
			return err
		}
		if at.Epoch != batch.BaseEpoch || at.Next != batch.Base {
			return schema.Errorf(schema.CodeConflict, "the partition is at offset %d of epoch %d", at.Next, at.Epoch)
		}
		if err := c.insertCounts(ctx, tx, a); err != nil {
			return err
		}
		if err := c.insertMarks(ctx, tx, batch.Partition, a.lanes); err != nil {
			return err
		}
		if err := insertGaps(ctx, tx, batch); err != nil {
			return err
		}
		if err := writePosition(ctx, tx, batch); err != nil {
			return err
		}
		done, err = c.settling.next(ctx, tx, len(a.recent), quarterOf(c.now()))
		return err
	})
	if err == nil {
		c.settling = done
	}
	return err
}

// loadReferrers is a namebound.Load.
func (c *ClickStore) loadReferrers(ctx context.Context, keys []namebound.Key, each func(namebound.Key, string)) error {
	return c.db.view(ctx, func(tx *snapshot) error {
		for _, key := range keys {
			rows, err := tx.query(ctx, names, key.Link, referrer, key.Day, schema.MaxNames)
			err = forEachRow(rows, err, func() error {
				var name string
				err := rows.Scan(&name)
				each(key, name)
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func writePosition(ctx context.Context, tx *sql.Tx, batch *schema.ClickBatch) error {
	last := batch.Len() - 1
	lane := batch.Lane[last]
	_, err := tx.ExecContext(ctx, `
		INSERT INTO positions (partition, epoch, next, last_offset, incarnation, lane) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET epoch = excluded.epoch, next = excluded.next, last_offset = excluded.last_offset,
			incarnation = excluded.incarnation, lane = excluded.lane`,
		batch.Partition, batch.Epoch, batch.Next, batch.Offset[last], lane.Incarnation[:], lane.Number)
	return err
}

func (c *ClickStore) insertCounts(ctx context.Context, tx *sql.Tx, a *aggregate) error {
	recent := c.recent.begin(ctx, tx)
	for _, row := range a.recent {
		err := recent.add(ctx, row.link, row.quarter, row.account, row.client, a.referrers[row.referrer], row.clicks)
		if err != nil {
			return err
		}
	}
	if err := recent.flush(ctx); err != nil {
		return err
	}
	return c.insertOwned(ctx, tx, a.owned)
}

// insertOwned adds to the counts of each account's links, and to those of its days.
func (c *ClickStore) insertOwned(ctx context.Context, tx *sql.Tx, rows []ownedCount) error {
	owned, days := c.owned.begin(ctx, tx), c.ownedDays.begin(ctx, tx)
	var sum ownedCount
	for i, row := range rows {
		if err := owned.add(ctx, row.account, row.day, row.link, row.people, row.bots); err != nil {
			return err
		}
		sum.people += row.people
		sum.bots += row.bots
		if i+1 < len(rows) && rows[i+1].account == row.account && rows[i+1].day == row.day {
			continue
		}
		if err := days.add(ctx, row.account, row.day, sum.people, sum.bots); err != nil {
			return err
		}
		sum = ownedCount{}
	}
	if err := owned.flush(ctx); err != nil {
		return err
	}
	return days.flush(ctx)
}

func (c *ClickStore) insertMarks(ctx context.Context, tx *sql.Tx, partition int, lanes map[schema.Lane]laneMark) error {
	rows := c.marks.begin(ctx, tx)
	for lane, m := range lanes {
		if err := rows.add(ctx, partition, lane.Incarnation[:], lane.Number, int64(m.seq), m.clicks, int64(m.seq)); err != nil {
			return err
		}
	}
	return rows.flush(ctx)
}
