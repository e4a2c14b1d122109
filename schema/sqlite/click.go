package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"linkstream/schema"
	"linkstream/schema/namebound"
)

const (
	position       = `SELECT epoch, next, last_offset, incarnation, lane FROM positions WHERE partition = ?`
	lastSeq        = `SELECT coalesce(max(seq), 0) FROM marks WHERE partition = ? AND incarnation = ? AND lane = ?`
	combinationsOf = `SELECT quarter, ` + nameColumns + ` FROM settled_facts WHERE link_id = ?1 AND quarter >= ?2 * 96 AND quarter < (?2 + 1) * 96
		UNION ALL SELECT quarter, ` + nameColumns + ` FROM recent WHERE link_id = ?1 AND quarter >= ?2 * 96 AND quarter < (?2 + 1) * 96`
	// One look-up per partition by the primary key of marks.
	markOfLane = `SELECT max(coalesce((SELECT seq FROM marks WHERE partition = 0 AND incarnation = ?1 AND lane = ?2), 0), coalesce(max(m.seq), 0))
		FROM positions p CROSS JOIN marks m ON m.partition = p.partition WHERE m.incarnation = ?1 AND m.lane = ?2`
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

// LaneMarks implements schema.ClickStore.
func (c *ClickStore) LaneMarks(ctx context.Context, lanes []schema.Lane) ([]uint64, error) {
	marks := make([]uint64, len(lanes))
	err := c.db.view(ctx, func(tx *snapshot) error {
		for i, lane := range lanes {
			if err := tx.queryRow(ctx, markOfLane, lane.Incarnation[:], lane.Number).Scan(&marks[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return marks, wrap(err, "read marks of %d lanes", len(lanes))
}

// InsertClicks implements schema.ClickStore.
func (c *ClickStore) InsertClicks(ctx context.Context, batch *schema.ClickBatch) error {
	err := c.insert(ctx, batch)
	return wrap(err, "insert clicks of partition %d from offset %d", batch.Partition, batch.Base)
}

// InsertLanes counts a batch and moves the marks of its lanes, atomically. CodeConflict, and nothing is counted, if a
// click is at or below its lane's mark. When it returns nil, both are on the disk.
func (c *ClickStore) InsertLanes(ctx context.Context, batch *schema.ClickBatch) error {
	err := c.insertWith(ctx, batch, func(tx *sql.Tx, a *aggregate) error { return c.checkMarks(ctx, tx, a.lanes) }, nil)
	return wrap(err, "insert %d clicks", batch.Len())
}

// checkMarks compares the first click of each lane with the lane's mark.
func (c *ClickStore) checkMarks(ctx context.Context, tx *sql.Tx, lanes map[schema.Lane]laneMark) error {
	markOf := tx.StmtContext(ctx, c.markOf)
	for lane, m := range lanes {
		var mark int64
		err := markOf.QueryRowContext(ctx, lane.Incarnation[:], lane.Number).Scan(&mark)
		if err != nil {
			return err
		}
		if m.first <= uint64(mark) {
			return schema.Errorf(schema.CodeConflict, "lane %s is counted up to %d", lane, mark)
		}
	}
	return nil
}

func (c *ClickStore) insert(ctx context.Context, batch *schema.ClickBatch) error {
	if err := batch.CheckEpoch(); err != nil {
		return err
	}
	return c.insertWith(ctx, batch, func(tx *sql.Tx, _ *aggregate) error {
		at, err := readPosition(ctx, tx, batch.Partition)
		if err == nil && (at.Epoch != batch.BaseEpoch || at.Next != batch.Base) {
			err = schema.Errorf(schema.CodeConflict, "the partition is at offset %d of epoch %d", at.Next, at.Epoch)
		}
		return err
	}, func(tx *sql.Tx) error { return writePosition(ctx, tx, batch) })
}

// insertWith counts a batch in a transaction that check begins. The transaction holds the write lock, so what check has
// read does not change until the commit.
func (c *ClickStore) insertWith(ctx context.Context, batch *schema.ClickBatch, check func(*sql.Tx, *aggregate) error,
	end func(*sql.Tx) error) error {
	var a *aggregate
	select {
	case a = <-c.idle:
		defer func() { c.idle <- a }()
	case <-ctx.Done():
		return ctx.Err()
	}
	batch, err := c.names.Apply(ctx, batch, &a.bounded)
	if err != nil {
		return err
	}
	if err := a.fillClients(ctx, c.db, batch); err != nil {
		return err
	}
	a.fill(batch)
	done := c.settling
	err = c.db.update(ctx, func(tx *sql.Tx) error {
		if err := check(tx, a); err != nil {
			return err
		}
		if err := c.insertCounts(ctx, tx, a); err != nil {
			return err
		}
		if err := c.insertVisits(ctx, tx, a.visits); err != nil {
			return err
		}
		if err := c.insertMarks(ctx, tx, batch.Partition, a.lanes); err != nil {
			return err
		}
		if err := insertGaps(ctx, tx, batch); err != nil {
			return err
		}
		if end != nil {
			if err := end(tx); err != nil {
				return err
			}
		}
		done, err = c.settling.next(ctx, tx, len(a.recent), quarterOf(c.now()))
		return err
	})
	if err == nil {
		c.settling = done
		c.visitorLog.known = true
	}
	return err
}

// loadNames is a namebound.Load.
func (c *ClickStore) loadNames(
	ctx context.Context, keys []namebound.Key, each func(namebound.Key, int64, []string),
) error {
	return c.db.view(ctx, func(tx *snapshot) error {
		listed, err := readNames(tx.query(ctx, allNames))
		if err != nil {
			return err
		}
		var names []string
		for _, key := range keys {
			rows, err := tx.query(ctx, combinationsOf, key.Link, key.Day)
			err = forEachRow(rows, err, func() error {
				var quarter int64
				var row factNames
				err := rows.Scan(append([]any{&quarter}, row.into()...)...)
				names = names[:0]
				for _, by := range schema.Dimensions() {
					names = append(names, listed.name(by, &row))
				}
				each(key, quarter, names)
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
		w := row.written
		err := recent.add(ctx, row.link, row.quarter, row.account, row.client, a.names[w[0]], a.names[w[1]], a.names[w[2]],
			row.clicks)
		if err != nil {
			return err
		}
	}
	if err := recent.flush(ctx); err != nil {
		return err
	}
	quarters := c.ownedQuarters.begin(ctx, tx)
	for key, clicks := range a.quarters {
		if err := quarters.add(ctx, key.account, key.quarter, clicks.People, clicks.Bots); err != nil {
			return err
		}
	}
	return quarters.flush(ctx)
}

func (c *ClickStore) insertMarks(ctx context.Context, tx *sql.Tx, partition int, lanes map[schema.Lane]laneMark) error {
	rows := c.marks.begin(ctx, tx)
	for lane, m := range lanes {
		if err := rows.add(ctx, partition, lane.Incarnation[:], lane.Number, int64(m.seq), m.clicks); err != nil {
			return err
		}
	}
	return rows.flush(ctx)
}
