package sqlite

import (
	"context"
	"database/sql"
	"time"

	"linkstream/schema"
)

const (
	exportFacts = `SELECT link_id, quarter, account_id, total, ` + nameColumns + ` FROM settled_facts
	UNION ALL SELECT link_id, quarter, account_id, total, ` + nameColumns + ` FROM recent`
	exportVisitors = `SELECT v.owner, v.day, v.visitor, v.early, v.late, coalesce(s.level, 0) FROM visitors v
	LEFT JOIN visitor_samples s ON s.owner = v.owner AND s.day = v.day`
	exportGaps = `SELECT incarnation, lane, first, last, partition, offset, found FROM gaps`
)

// ExportClicks calls each for all clicks in the click store in the file at path. The counts are only valid during the call.
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

// ExportVisitors calls each for all visitors in the click store in the file at path, once for every quarter of an hour in which they have
// clicked.
func ExportVisitors(ctx context.Context, path string, each func(schema.CountedVisitor) error) error {
	err := withExisting(path, func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, exportVisitors)
		return forEachRow(rows, err, func() error {
			var owner, day, hash, early, late int64
			var visitor schema.CountedVisitor
			if err := rows.Scan(&owner, &day, &hash, &early, &late, &visitor.Level); err != nil {
				return err
			}
			visitor.LinkID, visitor.AccountID, visitor.Visitor = max(0, owner), max(0, -owner), uint64(hash)
			for quarter := range int64(quartersPerDay) {
				if e, l := quarterBit(quarter); early&e|late&l == 0 {
					continue
				}
				visitor.Begin = time.Unix((day*quartersPerDay+quarter)*secondsPerQuarter, 0).UTC()
				if err := each(visitor); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return wrap(err, "export visitors of %q", path)
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
