package clickhouse

import (
	"context"

	"linkstream/schema"
)

const (
	// One query, so that all counts are of one moment: the projection's rows are added up three times. Browsers come in
	// the order in which they are named, days in theirs.
	linkStats = `
	SELECT kind, key, sum(clicks) AS total
	FROM (
		SELECT toDate(clicked_at) AS day, device, browser, count() AS clicks
		FROM clicks WHERE link_id = ? GROUP BY day, device, browser
	)
	ARRAY JOIN ['day', 'device', 'browser'] AS kind, [toString(day), toString(device), toString(browser)] AS key
	GROUP BY kind, key
	ORDER BY if(kind = 'browser', total, 0) DESC, key`
	clickCounts = `SELECT link_id, count() FROM clicks WHERE link_id IN (?) GROUP BY link_id`
)

// LinkStats implements schema.ClickStore.
func (c *Clicks) LinkStats(ctx context.Context, linkID int64) (schema.Stats, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	stats := schema.Stats{Devices: map[schema.Device]int64{}, Browsers: map[string]int64{}}
	rows, err := c.conn.Query(lookingUp(ctx), linkStats, linkID)
	err = each(rows, err, func() error {
		var kind, key string
		var total uint64
		if err := rows.Scan(&kind, &key, &total); err != nil {
			return err
		}
		n := int64(total)
		switch kind {
		case "day":
			stats.ClicksByDay = append(stats.ClicksByDay, schema.DayCount{Date: key, Total: n})
			stats.TotalClicks += n
		case "device":
			stats.Devices[schema.Device(key)] = n
		case "browser":
			if len(stats.Browsers) < schema.TopBrowsers {
				stats.Browsers[key] = n
			}
		}
		return nil
	})
	return stats, coded(err, "read stats of link %d", linkID)
}

// ClickCounts implements schema.ClickStore.
func (c *Clicks) ClickCounts(ctx context.Context, linkIDs []int64) (map[int64]int64, error) {
	if len(linkIDs) == 0 {
		return map[int64]int64{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	counts := make(map[int64]int64, len(linkIDs))
	rows, err := c.conn.Query(ctx, clickCounts, linkIDs)
	err = each(rows, err, func() error {
		var link int64
		var total uint64
		err := rows.Scan(&link, &total)
		counts[link] = int64(total)
		return err
	})
	return counts, coded(err, "read counts of %d links", len(linkIDs))
}
