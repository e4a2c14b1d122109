package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"linkstream/schema"
)

const (
	// The links are one JSON array, so that one statement serves any number of them.
	clickCounts = `
	SELECT value, coalesce((SELECT total FROM settled_totals WHERE link_id = value), 0) +
		coalesce((SELECT sum(total) FROM recent WHERE link_id = value), 0) AS clicks
	FROM json_each(?) WHERE clicks > 0`
)

// LinkStats implements schema.ClickStore.
func (c *ClickStore) LinkStats(ctx context.Context, linkID int64) (schema.Stats, error) {
	stats := schema.Stats{Browsers: map[string]int64{}}
	err := c.db.view(ctx, func(tx *snapshot) error {
		clicks, err := c.readLink(ctx, tx, linkID, schema.DayNumber(time.Time{}), false)
		if err != nil {
			return err
		}
		for _, day := range clicks.days {
			total := day.people + day.bots
			stats.ClicksByDay = append(stats.ClicksByDay, schema.DayCount{Date: dateOf(day.number), Total: total})
			stats.TotalClicks += total
		}
		stats.Devices = clicks.devices()
		for _, browser := range mostFrequent(clicks.browsers(true), schema.TopBrowsers) {
			stats.Browsers[browser.Name] = browser.Total
		}
		return nil
	})
	return stats, wrap(err, "read stats of link %d", linkID)
}

// ClickCounts implements schema.ClickStore.
func (c *ClickStore) ClickCounts(ctx context.Context, linkIDs []int64) (map[int64]int64, error) {
	ids, err := json.Marshal(linkIDs)
	if err != nil {
		return nil, wrap(err, "encode link IDs")
	}
	counts := make(map[int64]int64, len(linkIDs))
	rows, err := c.db.query(ctx, clickCounts, string(ids))
	return counts, wrap(scanCounts(rows, err, counts), "read counts of %d links", len(linkIDs))
}

// scanCounts scans rows of a key and its count into counts.
func scanCounts[K comparable](rows *sql.Rows, err error, counts map[K]int64) error {
	return forEachRow(rows, err, func() error {
		var key K
		var total int64
		err := rows.Scan(&key, &total)
		counts[key] = total
		return err
	})
}
