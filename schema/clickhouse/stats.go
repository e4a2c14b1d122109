package clickhouse

import (
	"context"
	"maps"
	"slices"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"linkstream/schema"
)

const (
	// One query, so that all counts are of one moment. The store adds up its few rows per day, which is faster than another
	// level of the query.
	linkStats = `
	SELECT toDate(clicked_at) AS day, device, browser, ` + people + ` + ` + bots + `
	FROM clicks WHERE link_id = ? GROUP BY day, device, browser`
	clickCounts = `SELECT link_id, ` + people + ` + ` + bots + ` FROM clicks WHERE link_id IN (?) GROUP BY link_id`
)

// LinkStats implements schema.ClickStore.
func (c *ClickStore) LinkStats(ctx context.Context, linkID int64) (schema.Stats, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	stats := schema.Stats{Devices: map[schema.Device]int64{}, Browsers: map[string]int64{}}
	days, browsers := map[time.Time]int64{}, map[string]int64{}
	rows, err := c.conn.Query(ch.Context(ctx, ch.WithSettings(lookupSettings("link_clients"))), linkStats, linkID)
	err = forEachRow(rows, err, func() error {
		var day time.Time
		var device, browser string
		var total uint64
		if err := rows.Scan(&day, &device, &browser, &total); err != nil {
			return err
		}
		n := int64(total)
		stats.TotalClicks += n
		days[day] += n
		stats.Devices[schema.Device(device)] += n
		browsers[browser] += n
		return nil
	})
	for _, day := range slices.SortedFunc(maps.Keys(days), time.Time.Compare) {
		stats.ClicksByDay = append(stats.ClicksByDay, schema.DayCount{Date: day.Format(time.DateOnly), Total: days[day]})
	}
	for _, browser := range schema.MostFrequent(browsers, schema.TopBrowsers) {
		stats.Browsers[browser.Name] = browser.Total
	}
	return stats, wrap(err, "read stats of link %d", linkID)
}

// ClickCounts implements schema.ClickStore.
func (c *ClickStore) ClickCounts(ctx context.Context, linkIDs []int64) (map[int64]int64, error) {
	if len(linkIDs) == 0 {
		return map[int64]int64{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	counts := make(map[int64]int64, len(linkIDs))
	rows, err := c.conn.Query(ch.Context(ctx, ch.WithSettings(projectionSettings("link_clients"))), clickCounts, linkIDs)
	err = forEachRow(rows, err, func() error {
		var link int64
		var total uint64
		err := rows.Scan(&link, &total)
		counts[link] = int64(total)
		return err
	})
	return counts, wrap(err, "read counts of %d links", len(linkIDs))
}
