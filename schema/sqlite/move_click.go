package sqlite

import (
	"context"
	"database/sql"
	"time"

	"linkstream/schema"
)

var exportFacts = `SELECT link_id, quarter, account_id, total, ` + nameColumns + ` FROM settled_facts
	UNION ALL SELECT link_id, quarter, account_id, total, ` + nameColumns + ` FROM recent`

const (
	exportVisitors = `SELECT owner, day, visitors FROM visitors`
	exportGaps     = `SELECT incarnation, lane, first, last, partition, offset, found FROM gaps`
)

// ExportClicks calls each for all clicks in the click store in the file at path. The counts are only valid during the
// call.
func ExportClicks(ctx context.Context, path string, each func(*schema.ClickCount) error) error {
	err := withExisting(path, func(db *sql.DB) error {
		names, err := readNames(db.QueryContext(ctx, allNames))
		if err != nil {
			return err
		}
		clicks := schema.ClickCount{Names: map[schema.Dimension]string{}}
		rows, err := db.QueryContext(ctx, exportFacts)
		return forEachRow(rows, err, func() error {
			var quarter int64
			var row factNames
			into := append([]any{&clicks.LinkID, &quarter, &clicks.AccountID, &clicks.Total}, row.into()...)
			if err := rows.Scan(into...); err != nil {
				return err
			}
			clicks.Begin = time.Unix(quarter*secondsPerQuarter, 0).UTC()
			for _, by := range schema.Dimensions() {
				clicks.Names[by] = names.name(by, &row)
			}
			return each(&clicks)
		})
	})
	return wrap(err, "export %q", path)
}

// ExportVisitors calls each for all visitors in the click store in the file at path, once for every quarter of an hour
// in which they have clicked.
func ExportVisitors(ctx context.Context, path string, each func(schema.CountedVisitor) error) error {
	err := withExisting(path, func(db *sql.DB) error {
		logged, err := readLog(ctx, db)
		if err != nil {
			return err
		}
		rows, err := db.QueryContext(ctx, exportVisitors)
		err = forEachRow(rows, err, func() error {
			var key ownerDay
			var set []byte
			if err := rows.Scan(&key.owner, &key.day, &set); err != nil {
				return err
			}
			all := visitorSet(set).union(logged[key])
			delete(logged, key)
			return exportSet(key, all, each)
		})
		for key, set := range logged {
			if err == nil {
				err = exportSet(key, set, each)
			}
		}
		return err
	})
	return wrap(err, "export visitors of %q", path)
}

// readLog returns the visitors in the log.
func readLog(ctx context.Context, db *sql.DB) (map[ownerDay]visitorSet, error) {
	var visits []visit
	rows, err := db.QueryContext(ctx, visitorLogRows)
	err = forEachRow(rows, err, func() error {
		var log sql.RawBytes
		err := rows.Scan(&log)
		visits = appendOwned(visits, log)
		return err
	})
	return visitorSets(visits), err
}

func exportSet(of ownerDay, set visitorSet, each func(schema.CountedVisitor) error) error {
	for i := range set.len() {
		hash, at := set.visitor(i)
		visitor := schema.CountedVisitor{LinkID: max(0, of.owner), AccountID: max(0, -of.owner), Visitor: hash,
			Level: set.level()}
		for quarter := range uint8(quartersPerDay) {
			var one dayQuarters
			if one.add(quarter); !at.meets(one) {
				continue
			}
			visitor.Begin = time.Unix((of.day*quartersPerDay+int64(quarter))*secondsPerQuarter, 0).UTC()
			if err := each(visitor); err != nil {
				return err
			}
		}
	}
	return nil
}

// ExportGaps returns all gaps in the click store in the file at path.
func ExportGaps(ctx context.Context, path string) (gaps []schema.Gap, err error) {
	err = withExisting(path, func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, exportGaps)
		return forEachRow(rows, err, func() error {
			var gap schema.Gap
			var incarnation sql.RawBytes
			var found int64
			err := rows.Scan(&incarnation, &gap.Lane.Number, &gap.First, &gap.Last, &gap.Partition, &gap.Offset, &found)
			copy(gap.Lane.Incarnation[:], incarnation)
			gap.Found = time.Unix(found, 0).UTC()
			gaps = append(gaps, gap)
			return err
		})
	})
	return gaps, wrap(err, "export gaps of %q", path)
}

// CountOf returns how many clicks the store in the file at path has counted, whose schema may be of any release.
func CountOf(ctx context.Context, path string) (clicks int64, err error) {
	const count = "SELECT (SELECT coalesce(sum(total), 0) FROM settled_totals) + (SELECT coalesce(sum(total), 0) FROM " +
		"recent)"
	err = withExisting(path, func(db *sql.DB) error { return db.QueryRowContext(ctx, count).Scan(&clicks) })
	return clicks, wrap(err, "count clicks of %q", path)
}
