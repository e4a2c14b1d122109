package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"

	"linkstream/schema"
)

// ClickStore counts clicks. All methods may be called concurrently; batches are inserted one after the other.
type ClickStore struct {
	db                                      *database
	counters, totals, sources, owned, marks *upsert
	free                                    chan *sums // holds the one there is while no batch is being inserted
}

var (
	_ schema.ClickStore  = (*ClickStore)(nil)
	_ schema.ReportStore = (*ClickStore)(nil)
)

// OpenClickStore opens or creates the file at path and brings it up to date. Its folder must exist.
func OpenClickStore(ctx context.Context, path string) (*ClickStore, error) {
	files, err := fs.Sub(migrations, "migrations/clicks")
	if err != nil {
		return nil, err
	}
	// NORMAL does not sync the log at each commit. A power loss may undo the last batches, but whole and in order: the
	// positions go back with the counts, and what followed them is read from the topic again.
	db, err := openFile(ctx, path, "NORMAL", files)
	if err != nil {
		return nil, err
	}
	c := &ClickStore{db: db, free: make(chan *sums, 1)}
	c.free <- newSums()
	if err := c.prepare(ctx); err != nil {
		return nil, errors.Join(wrap(err, "prepare statements of %q", path), db.close())
	}
	return c, nil
}

func (c *ClickStore) prepare(ctx context.Context) (err error) {
	const addTotal = "total = total + excluded.total"
	for _, into := range []struct {
		upsert       **upsert
		table, merge string
	}{
		{&c.counters, "counters (link_id, day, device, browser, total)", addTotal},
		{&c.totals, "totals (link_id, total)", addTotal},
		{&c.sources, "sources (link_id, kind, day, name, total)", addTotal},
		{&c.owned, "owned (account_id, day, link_id, people, bots)",
			"people = people + excluded.people, bots = bots + excluded.bots"},
		{&c.marks, "marks (partition, incarnation, lane, seq)", "seq = max(seq, excluded.seq)"},
	} {
		if *into.upsert, err = prepareUpsert(ctx, c.db.write, into.table, into.merge); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the store. Calls that come later fail; those under way may fail or succeed.
func (c *ClickStore) Close() error { return c.db.close() }

const (
	position  = `SELECT next FROM positions WHERE partition = ?`
	laneMarks = `SELECT incarnation, lane, seq FROM marks WHERE partition = ?`
)

// Position implements schema.ClickStore.
func (c *ClickStore) Position(ctx context.Context, partition int) (schema.Position, error) {
	at := schema.Position{Marks: map[schema.Lane]uint64{}}
	err := c.db.view(ctx, func(tx *sql.Tx) (err error) {
		if at.Next, err = nextOffset(ctx, tx, partition); err != nil {
			return err
		}
		rows, err := tx.QueryContext(ctx, laneMarks, partition)
		return each(rows, err, func() error {
			var incarnation sql.RawBytes
			var lane schema.Lane
			var seq int64
			err := rows.Scan(&incarnation, &lane.Number, &seq)
			copy(lane.Incarnation[:], incarnation)
			at.Marks[lane] = uint64(seq)
			return err
		})
	})
	return at, wrap(err, "read position of partition %d", partition)
}

func nextOffset(ctx context.Context, tx *sql.Tx, partition int) (offset int64, err error) {
	err = tx.QueryRowContext(ctx, position, partition).Scan(&offset)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return offset, err
}

// InsertClicks implements schema.ClickStore.
func (c *ClickStore) InsertClicks(ctx context.Context, batch *schema.ClickBatch) error {
	err := c.insert(ctx, batch)
	return wrap(err, "insert clicks of partition %d from offset %d", batch.Partition, batch.Base)
}

func (c *ClickStore) insert(ctx context.Context, batch *schema.ClickBatch) error {
	var s *sums
	select {
	case s = <-c.free:
		defer func() { c.free <- s }()
	case <-ctx.Done():
		return ctx.Err()
	}
	s.add(batch)
	return c.db.update(ctx, func(tx *sql.Tx) error {
		// The transaction has the write lock, so the position stays as it is read until the commit.
		next, err := nextOffset(ctx, tx, batch.Partition)
		if err != nil {
			return err
		}
		if next != batch.Base {
			return schema.Errorf(schema.CodeConflict, "the partition is at offset %d", next)
		}
		if err := c.insertSums(ctx, tx, s); err != nil {
			return err
		}
		if err := c.insertMarks(ctx, tx, batch.Partition, s); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO positions (partition, next) VALUES (?, ?)
			ON CONFLICT DO UPDATE SET next = excluded.next`, batch.Partition, batch.Next)
		return err
	})
}

func (c *ClickStore) insertSums(ctx context.Context, tx *sql.Tx, s *sums) error {
	if err := c.insertCounters(ctx, tx, s.counters.sorted); err != nil {
		return err
	}
	sources := c.sources.begin(ctx, tx)
	for _, sum := range s.sources.sorted {
		of := sum.key
		if err := sources.add(ctx, of.link, int64(of.kind), of.day, of.name, sum.clicks); err != nil {
			return err
		}
	}
	if err := sources.end(ctx); err != nil {
		return err
	}
	return c.insertOwned(ctx, tx, s.owned.sorted)
}

func (c *ClickStore) insertCounters(ctx context.Context, tx *sql.Tx, sorted []sum[counter]) error {
	counters, totals := c.counters.begin(ctx, tx), c.totals.begin(ctx, tx)
	total := int64(0) // of the link so far: its counters stand side by side
	for i, sum := range sorted {
		of := sum.key
		if err := counters.add(ctx, of.link, of.day, string(of.device), of.browser, sum.clicks); err != nil {
			return err
		}
		total += sum.clicks
		if i+1 < len(sorted) && sorted[i+1].key.link == of.link {
			continue
		}
		if err := totals.add(ctx, of.link, total); err != nil {
			return err
		}
		total = 0
	}
	if err := counters.end(ctx); err != nil {
		return err
	}
	return totals.end(ctx)
}

func (c *ClickStore) insertOwned(ctx context.Context, tx *sql.Tx, sorted []sum[owned]) error {
	rows := c.owned.begin(ctx, tx)
	people, bots := int64(0), int64(0) // of the row so far: its sums stand side by side
	for i, sum := range sorted {
		of := sum.key
		if of.bot {
			bots += sum.clicks
		} else {
			people += sum.clicks
		}
		if i+1 < len(sorted) && sorted[i+1].key.compare(of) == 0 {
			continue
		}
		if err := rows.add(ctx, of.account, of.day, of.link, people, bots); err != nil {
			return err
		}
		people, bots = 0, 0
	}
	return rows.end(ctx)
}

func (c *ClickStore) insertMarks(ctx context.Context, tx *sql.Tx, partition int, s *sums) error {
	marks := c.marks.begin(ctx, tx)
	for lane, seq := range s.marks {
		if err := marks.add(ctx, partition, lane.Incarnation[:], lane.Number, int64(seq)); err != nil {
			return err
		}
	}
	return marks.end(ctx)
}
