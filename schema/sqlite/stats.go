package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"

	"linkstream/schema"
)

const (
	clicksByDay     = `SELECT day, sum(total) FROM counters WHERE link_id = ? GROUP BY day ORDER BY day`
	clicksByDevice  = `SELECT device, sum(total) FROM counters WHERE link_id = ? GROUP BY device`
	clicksByBrowser = `SELECT browser, sum(total) FROM counters WHERE link_id = ?
	GROUP BY browser ORDER BY sum(total) DESC, browser LIMIT ?`
	// The links are one JSON array, so that one statement serves any number of them.
	clickCounts = `SELECT link_id, sum(total) FROM totals WHERE link_id IN (SELECT value FROM json_each(?))
	GROUP BY link_id`
)

// LinkStats implements schema.ClickStore.
func (c *ClickStore) LinkStats(ctx context.Context, linkID int64) (schema.Stats, error) {
	stats := schema.Stats{Devices: map[schema.Device]int64{}, Browsers: map[string]int64{}}
	err := c.db.view(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, clicksByDay, linkID)
		err = forEachRow(rows, err, func() error {
			var number, total int64
			err := rows.Scan(&number, &total)
			stats.ClicksByDay = append(stats.ClicksByDay, schema.DayCount{Date: dateOf(number), Total: total})
			stats.TotalClicks += total
			return err
		})
		if err != nil {
			return err
		}
		rows, err = tx.QueryContext(ctx, clicksByDevice, linkID)
		if err = scanCounts(rows, err, stats.Devices); err != nil {
			return err
		}
		rows, err = tx.QueryContext(ctx, clicksByBrowser, linkID, schema.TopBrowsers)
		return scanCounts(rows, err, stats.Browsers)
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
	rows, err := c.db.read.QueryContext(ctx, clickCounts, string(ids))
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
