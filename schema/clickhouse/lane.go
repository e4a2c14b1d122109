package clickhouse

import (
	"context"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"linkstream/schema"
)

const (
	// Aggregates of compacted months are of no lane.
	laneCounts = `SELECT incarnation, lane, max(seq), sum(lane_clicks) AS clicks FROM clicks GROUP BY incarnation, lane ` +
		`HAVING clicks > 0`
	laneGaps = `SELECT first, last, kafka_partition, kafka_offset, found FROM click_gaps FINAL
	WHERE incarnation = ? AND lane = ? ORDER BY first LIMIT ?`
	addGaps = `INSERT INTO click_gaps (incarnation, lane, first, last, kafka_partition, kafka_offset, found)`
)

// lanesTimeout bounds a query of all lanes.
const lanesTimeout = 5 * time.Minute

// LaneCounts implements schema.ClickStore.
func (c *ClickStore) LaneCounts(ctx context.Context, each func(schema.LaneCount) error) error {
	ctx, cancel := context.WithTimeout(c.readContext(ctx, projectionSettings("lane_marks")), lanesTimeout)
	defer cancel()
	rows, err := c.conn.Query(ctx, laneCounts)
	err = forEachRow(rows, err, func() error {
		var lane schema.LaneCount
		if err := rows.Scan(&lane.Lane.Incarnation, &lane.Lane.Number, &lane.Mark, &lane.Clicks); err != nil {
			return err
		}
		return each(lane)
	})
	return wrap(err, "read counts of lanes")
}

// ClickSums implements schema.ClickStore.
func (c *ClickStore) ClickSums(ctx context.Context) (map[string]uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, lanesTimeout)
	defer cancel()
	rows := rowSettings()
	delete(rows, "max_threads")
	reads := map[string]ch.Settings{"rows": rows}
	names := []string{"account_links", "link_quarters", "account_quarters", "link_visitors", "account_visitors",
		"dimensions"}
	for _, group := range linkGroups {
		names = append(names, group.projection)
	}
	for _, name := range names {
		reads[name] = projectionSettings(name)
	}
	sums := make(map[string]uint64)
	for name, settings := range reads {
		var clicks uint64
		row := c.conn.QueryRow(c.readContext(ctx, settings), `SELECT `+people+` + `+bots+` FROM clicks`)
		if err := row.Scan(&clicks); err != nil {
			return nil, wrap(err, "read sum of clicks in %s", name)
		}
		sums[name] = clicks
	}
	return sums, nil
}

// LaneGaps implements schema.ClickStore.
func (c *ClickStore) LaneGaps(ctx context.Context, lane schema.Lane) (gaps []schema.Gap, err error) {
	ctx, cancel := context.WithTimeout(c.readContext(ctx, ch.Settings{}), readTimeout)
	defer cancel()
	rows, err := c.conn.Query(ctx, laneGaps, string(lane.Incarnation[:]), lane.Number, schema.MaxGaps)
	err = forEachRow(rows, err, func() error {
		gap, partition := schema.Gap{Lane: lane}, int32(0)
		err := rows.Scan(&gap.First, &gap.Last, &partition, &gap.Offset, &gap.Found)
		gap.Partition = int(partition)
		gaps = append(gaps, gap)
		return err
	})
	return gaps, wrap(err, "read gaps of lane %s", lane)
}

func (c *ClickStore) insertGaps(ctx context.Context, batch *schema.ClickBatch) error {
	if len(batch.Gaps) == 0 {
		return nil
	}
	rows, err := c.conn.PrepareBatch(ch.Context(ctx, ch.WithSettings(ch.Settings{"async_insert": 0})), addGaps)
	if err != nil {
		return err
	}
	defer rows.Close()
	for _, gap := range batch.Gaps {
		err := rows.Append(string(gap.Lane.Incarnation[:]), gap.Lane.Number, gap.First, gap.Last, int32(gap.Partition),
			gap.Offset, gap.Found)
		if err != nil {
			return err
		}
	}
	return rows.Send()
}
