package sqlite

import (
	"context"
	"database/sql"

	"linkstream/schema"
	"linkstream/schema/namebound"
)

var combinationsOf = `SELECT quarter, ` + nameColumns +
	` FROM settled_facts WHERE link_id = ?1 AND quarter >= ?2 * 96 AND quarter < (?2 + 1) * 96
	UNION ALL SELECT quarter, ` + nameColumns + ` FROM recent
		WHERE link_id = ?1 AND quarter >= ?2 * 96 AND quarter < (?2 + 1) * 96`

// Without a topic there is one partition, 0.
const markOfLane = `SELECT coalesce((SELECT seq FROM marks WHERE partition = 0 AND incarnation = ? AND lane = ?), 0)`

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

// InsertClicks implements schema.ClickStore. A batch's partition and offsets do not matter.
func (c *ClickStore) InsertClicks(ctx context.Context, batch *schema.ClickBatch) error {
	return wrap(c.insert(ctx, batch), "insert %d clicks", batch.Len())
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

// insert counts a batch in a transaction that holds the write lock from its beginning, so the marks that it has
// compared do not change until the commit.
func (c *ClickStore) insert(ctx context.Context, batch *schema.ClickBatch) error {
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
		if err := c.checkMarks(ctx, tx, a.lanes); err != nil {
			return err
		}
		if err := c.insertCounts(ctx, tx, a); err != nil {
			return err
		}
		if err := c.insertVisits(ctx, tx, a.visits); err != nil {
			return err
		}
		if err := c.insertMarks(ctx, tx, a.lanes); err != nil {
			return err
		}
		if err := insertGaps(ctx, tx, batch); err != nil {
			return err
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

func (c *ClickStore) insertCounts(ctx context.Context, tx *sql.Tx, a *aggregate) error {
	recent := c.recent.begin(ctx, tx)
	var values []any
	for _, row := range a.recent {
		values = append(values[:0], row.link, row.quarter, row.account, row.client)
		for _, number := range row.written {
			values = append(values, a.names[number])
		}
		if err := recent.add(ctx, append(values, row.clicks)...); err != nil {
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

func (c *ClickStore) insertMarks(ctx context.Context, tx *sql.Tx, lanes map[schema.Lane]laneMark) error {
	rows := c.marks.begin(ctx, tx)
	for lane, m := range lanes {
		if err := rows.add(ctx, 0, lane.Incarnation[:], lane.Number, int64(m.seq), m.clicks); err != nil {
			return err
		}
	}
	return rows.flush(ctx)
}
