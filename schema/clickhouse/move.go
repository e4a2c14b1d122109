package clickhouse

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"strings"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"linkstream/schema"
)

// The counts of another store are one month of their own, in the form of compacted months: aggregates and marks. It is
// built in a table of its own, compared with its source, and put in place in one step, as often as necessary. Inserts
// and compaction never touch this month. Marks have a partition that no log has, so the new topic begins without a
// position.
const (
	movedMonth     = 2_000_000
	movedPartition = -2
	movedBuild     = "clicks_moved"

	movedRowsPerInsert = 100_000
	movedTimeout       = 6 * time.Hour
)

const (
	createMovedFrom = `CREATE TABLE IF NOT EXISTS moved_from (source FixedString(16)) ENGINE = MergeTree ORDER BY source`
	selectMovedFrom = `SELECT countIf(source = ?), countIf(source != ?) FROM moved_from`
	insertMovedFrom = `INSERT INTO moved_from (source) VALUES (?)`
	movedLanes      = `SELECT incarnation, lane, max(seq), sum(lane_clicks) FROM %s WHERE month = ? AND weight = 0 ` +
		`GROUP ` +
		`BY incarnation, lane`
)

var (
	insertMovedRows = `INSERT INTO ` + movedBuild +
		` (link_id, account_id, clicked_at, weight, lane_clicks, kafka_partition, incarnation, lane, seq, month, ` +
		allNames + `)`
	movedRows = `SELECT link_id, account_id, clicked_at, weight, [` + strings.ReplaceAll(allNames, ",", "::String,") +
		`::String] FROM %s
	WHERE month = ? AND weight > 0`
)

// Counted is what another store has counted and does not change any more. Each of its functions may be called several
// times.
type Counted struct {
	Clicks func(ctx context.Context, each func(*schema.ClickCount) error) error
	Lanes  func(ctx context.Context, each func(schema.LaneCount) error) error
	// Visitors are those of the clicks, of links and of accounts.
	Visitors func(ctx context.Context, each func(schema.CountedVisitor) error) error
	Gaps     func(ctx context.Context) ([]schema.Gap, error)
	// Histories are the clicks that the store has not counted, but imported.
	Histories func(ctx context.Context, each func(schema.History) error) error
}

// Import makes the store count what another store has counted: clicks by quarter of an hour with all dimensions, and
// the marks of lanes. Readers see all of it or nothing. If the store has it already, from a move with this ID, Import
// only compares. CodeConflict if the store has clicks of another service; CodeInvalid on a cluster. It returns the
// number of clicks.
func (c *ClickStore) Import(ctx context.Context, id schema.MoveID, from Counted) (clicks int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, movedTimeout)
	defer cancel()
	if c.layout.Cluster != "" {
		return 0, schema.Errorf(schema.CodeInvalid,
			"clicks cannot be moved to a cluster: ClickHouse does not replace months through Distributed tables")
	}
	m := &movement{store: c, from: from}
	for _, step := range []func() error{
		func() error { return m.claim(ctx, id) },
		func() error { return m.fill(ctx) },
	} {
		if err := step(); err != nil {
			return 0, wrap(err, "import clicks")
		}
	}
	return m.clicks, nil
}

// movement is a run of Import.
type movement struct {
	store  *ClickStore
	from   Counted
	clicks int64  // in the source
	insert string // the statement of rows
	rows   driver.Batch
}

// claim marks the store as the target of a move, unless it has clicks of others.
func (m *movement) claim(ctx context.Context, id schema.MoveID) error {
	if err := m.exec(ctx, createMovedFrom); err != nil {
		return err
	}
	var same, others, rows uint64
	source := string(id[:])
	if err := m.store.conn.QueryRow(ctx, selectMovedFrom, source, source).Scan(&same, &others); err != nil {
		return err
	}
	const all = "SELECT (SELECT count() FROM clicks) + (SELECT count() FROM imported_clicks)"
	if err := m.store.conn.QueryRow(ctx, all).Scan(&rows); err != nil {
		return err
	}
	switch {
	case others > 0 || same == 0 && rows > 0:
		return schema.Errorf(schema.CodeConflict, "the database is not empty: it has clicks of another service")
	case same > 0:
		return nil
	}
	return m.exec(ctx, insertMovedFrom, source)
}

// fill puts the month in place, unless it is there.
func (m *movement) fill(ctx context.Context) error {
	var rows uint64
	err := m.store.conn.QueryRow(ctx, "SELECT count() FROM clicks WHERE month = ?", movedMonth).Scan(&rows)
	if err != nil {
		return err
	}
	if rows > 0 {
		if err := m.compare(ctx, "clicks"); err != nil {
			return fmt.Errorf("compare the clicks of an earlier run: %w", err)
		}
		return nil
	}
	for _, statement := range []string{"DROP TABLE IF EXISTS " + movedBuild, fmt.Sprintf(buildTable, movedBuild),
		fmt.Sprintf(syncMerges, movedBuild)} {
		if err := m.exec(ctx, statement); err != nil {
			return err
		}
	}
	if err := m.build(ctx); err != nil {
		return err
	}
	if err := m.compare(ctx, movedBuild); err != nil {
		return err
	}
	if err := m.importVisitors(ctx); err != nil {
		return err
	}
	if err := m.importHistories(ctx); err != nil {
		return err
	}
	gaps, err := m.from.Gaps(ctx)
	if err != nil {
		return err
	}
	if err := m.store.insertGaps(ctx, &schema.ClickBatch{Gaps: gaps}); err != nil {
		return err
	}
	if err := m.exec(ctx, fmt.Sprintf(replaceMonth, movedMonth, movedBuild)); err != nil {
		return err
	}
	return m.exec(ctx, "DROP TABLE IF EXISTS "+movedBuild)
}

// build inserts the rows of the month into the table of the build.
func (m *movement) build(ctx context.Context) error {
	dimensions := schema.Dimensions()
	names := make([]any, len(dimensions))
	m.insert = insertMovedRows
	err := m.from.Clicks(ctx, func(c *schema.ClickCount) error {
		for i, by := range dimensions {
			names[i] = c.Names[by]
		}
		return m.append(ctx, names, c.LinkID, c.AccountID, c.Begin, uint64(c.Total), uint64(0), int32(-1), "", uint32(0),
			uint64(0), uint32(movedMonth))
	})
	if err != nil {
		return err
	}
	for i := range names {
		names[i] = ""
	}
	err = m.from.Lanes(ctx, func(lane schema.LaneCount) error {
		return m.append(ctx, names, int64(0), int64(0), time.Unix(0, 0).UTC(), uint64(0), lane.Clicks, int32(movedPartition),
			string(lane.Lane.Incarnation[:]), lane.Lane.Number, lane.Mark, uint32(movedMonth))
	})
	if err != nil {
		return err
	}
	return m.flush()
}

// append adds a row, which ends with names, and inserts the rows once there are enough of them.
func (m *movement) append(ctx context.Context, names []any, row ...any) (err error) {
	if m.rows == nil {
		if m.rows, err = m.store.conn.PrepareBatch(m.context(ctx), m.insert); err != nil {
			return err
		}
	}
	if err := m.rows.Append(append(row, names...)...); err != nil {
		return err
	}
	if m.rows.Rows() < movedRowsPerInsert {
		return nil
	}
	return m.flush()
}

// flush inserts the rows, if there are any.
func (m *movement) flush() error {
	rows := m.rows
	if m.rows = nil; rows == nil {
		return nil
	}
	return rows.Send()
}

func (m *movement) exec(ctx context.Context, statement string, args ...any) error {
	return m.store.conn.Exec(m.context(ctx), statement, args...)
}

// context returns a context for a statement of a move. Equal blocks are not repetitions here.
func (m *movement) context(ctx context.Context) context.Context {
	return ch.Context(ctx, ch.WithSettings(ch.Settings{"async_insert": 0, "insert_deduplicate": 0,
		"max_execution_time": int(movedTimeout.Seconds()), "max_partition_size_to_drop": 0, "max_table_size_to_drop": 0}))
}

// clickSum is a number of clicks and a checksum of them, which does not depend on the order and the grouping of the
// rows.
type clickSum struct {
	clicks int64
	hash   uint64
}

var clickSeed = maphash.MakeSeed()

func (s *clickSum) add(link, account int64, at time.Time, names []string, clicks int64) {
	key := binary.LittleEndian.AppendUint64(nil, uint64(link))
	key = binary.LittleEndian.AppendUint64(key, uint64(account))
	key = binary.LittleEndian.AppendUint64(key, uint64(at.UnixMilli()))
	for _, name := range names {
		key = append(binary.AppendUvarint(key, uint64(len(name))), name...)
	}
	s.clicks += clicks
	s.hash += maphash.Bytes(clickSeed, key) * uint64(clicks)
}

// compare returns an error unless a table has in its month exactly what the source has counted.
func (m *movement) compare(ctx context.Context, table string) error {
	var want, got clickSum
	dimensions := schema.Dimensions()
	names := make([]string, len(dimensions))
	err := m.from.Clicks(ctx, func(c *schema.ClickCount) error {
		for i, by := range dimensions {
			names[i] = c.Names[by]
		}
		want.add(c.LinkID, c.AccountID, c.Begin, names, c.Total)
		return nil
	})
	if err != nil {
		return err
	}
	rows, err := m.store.conn.Query(m.context(ctx), fmt.Sprintf(movedRows, table), movedMonth)
	err = forEachRow(rows, err, func() error {
		var link, account int64
		var at time.Time
		var weight uint64
		err := rows.Scan(&link, &account, &at, &weight, &names)
		got.add(link, account, at, names, int64(weight))
		return err
	})
	if err != nil {
		return err
	}
	if got != want {
		return schema.Errorf(schema.CodeInternal,
			"%d clicks were copied and %d are in the source, or they differ: nothing was put in place",
			got.clicks, want.clicks)
	}
	m.clicks = want.clicks
	return m.compareLanes(ctx, table)
}

func (m *movement) compareLanes(ctx context.Context, table string) error {
	here := map[schema.Lane]schema.LaneCount{}
	rows, err := m.store.conn.Query(ctx, fmt.Sprintf(movedLanes, table), movedMonth)
	err = forEachRow(rows, err, func() error {
		var lane schema.LaneCount
		err := rows.Scan(&lane.Lane.Incarnation, &lane.Lane.Number, &lane.Mark, &lane.Clicks)
		here[lane.Lane] = lane
		return err
	})
	if err != nil {
		return err
	}
	err = m.from.Lanes(ctx, func(want schema.LaneCount) error {
		got, ok := here[want.Lane]
		delete(here, want.Lane)
		if !ok || got.Mark != want.Mark || got.Clicks != want.Clicks {
			return schema.Errorf(schema.CodeInternal, "lane %s has mark %d, and %d in the source: nothing was put in place",
				want.Lane, got.Mark, want.Mark)
		}
		return nil
	})
	if err == nil && len(here) > 0 {
		err = schema.Errorf(schema.CodeInternal, "there are %d lanes more than in the source", len(here))
	}
	return err
}
