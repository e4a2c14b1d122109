package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"linkstream/schema"
)

const (
	laneCounts = `SELECT incarnation, lane, seq, clicks FROM marks WHERE partition = 0`
	laneGaps   = `SELECT first, last, partition, offset, found FROM gaps WHERE incarnation = ? AND lane = ? ORDER BY ` +
		`first LIMIT ?`
	addGap = `INSERT INTO gaps (incarnation, lane, first, last, partition, offset, found) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO NOTHING`
)

// LaneCounts implements schema.ClickStore.
func (c *ClickStore) LaneCounts(ctx context.Context, each func(schema.LaneCount) error) error {
	err := c.db.view(ctx, func(tx *snapshot) error {
		rows, err := tx.query(ctx, laneCounts)
		return forEachRow(rows, err, func() error {
			var incarnation sql.RawBytes
			var lane schema.LaneCount
			if err := rows.Scan(&incarnation, &lane.Lane.Number, &lane.Mark, &lane.Clicks); err != nil {
				return err
			}
			copy(lane.Lane.Incarnation[:], incarnation)
			return each(lane)
		})
	})
	return wrap(err, "read counts of lanes")
}

// clickSums are queries of all clicks in a table. Rows of recent belong to each settled table.
var clickSums = func() map[string]string {
	settled := func(query string) string {
		return `SELECT coalesce((` + query + `), 0) + coalesce((SELECT sum(total) FROM recent), 0)`
	}
	queries := map[string]string{
		"owned_quarters": `SELECT coalesce(sum(people + bots), 0) FROM owned_quarters`,
		"settled_facts":  settled(`SELECT sum(total) FROM settled_facts`),
		"settled_totals": settled(`SELECT sum(total) FROM settled_totals`),
	}
	for _, table := range []string{"settled_quarters", "settled_owned"} {
		queries[table] = settled(`SELECT sum(people + bots) FROM ` + table)
	}
	for _, by := range schema.Dimensions() {
		for _, table := range []string{"settled_names", "settled_owned_names"} {
			others := ""
			if slices.Contains(sparse, by) {
				others = fmt.Sprintf(` + coalesce((SELECT sum(total) FROM settled_facts WHERE %s = ''), 0)`, nameOf(by))
			}
			queries[table+" by "+string(by)] = settled(
				fmt.Sprintf(`SELECT coalesce(sum(people + bots), 0)%s FROM %s WHERE dimension = %d`, others, table,
					dimensionNumber(by)))
		}
	}
	return queries
}()

// ClickSums implements schema.ClickStore.
func (c *ClickStore) ClickSums(ctx context.Context) (map[string]uint64, error) {
	sums := make(map[string]uint64)
	err := c.db.view(ctx, func(tx *snapshot) error {
		for name, query := range clickSums {
			var clicks int64
			if err := tx.queryRow(ctx, query).Scan(&clicks); err != nil {
				return err
			}
			sums[name] = uint64(max(0, clicks))
		}
		return nil
	})
	return sums, wrap(err, "read sums of clicks")
}

// LaneGaps implements schema.ClickStore.
func (c *ClickStore) LaneGaps(ctx context.Context, lane schema.Lane) (gaps []schema.Gap, err error) {
	err = c.db.view(ctx, func(tx *snapshot) error {
		rows, err := tx.query(ctx, laneGaps, lane.Incarnation[:], lane.Number, schema.MaxGaps)
		return forEachRow(rows, err, func() error {
			gap, found := schema.Gap{Lane: lane}, int64(0)
			err := rows.Scan(&gap.First, &gap.Last, &gap.Partition, &gap.Offset, &found)
			gap.Found = time.Unix(found, 0).UTC()
			gaps = append(gaps, gap)
			return err
		})
	})
	return gaps, wrap(err, "read gaps of lane %s", lane)
}

func insertGaps(ctx context.Context, tx *sql.Tx, batch *schema.ClickBatch) error {
	for _, gap := range batch.Gaps {
		_, err := tx.ExecContext(ctx, addGap, gap.Lane.Incarnation[:], gap.Lane.Number, int64(gap.First), int64(gap.Last),
			gap.Partition, gap.Offset, gap.Found.Unix())
		if err != nil {
			return err
		}
	}
	return nil
}
