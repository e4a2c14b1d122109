package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"

	"linkstream/schema"
)

const (
	// The links are one JSON array, so that one statement serves any number of them.
	clickCounts = `
	SELECT value, coalesce((SELECT total FROM settled_totals WHERE link_id = value), 0) +
		coalesce((SELECT sum(total) FROM recent WHERE link_id = value), 0) +
		coalesce((SELECT sum(clicks) FROM imported WHERE link_id = value), 0) AS clicks
	FROM json_each(?) WHERE clicks > 0`
	// Those of most links in a range are read faster by the range.
	rangeCounts = `
	SELECT link_id, total FROM settled_totals WHERE link_id BETWEEN ?1 AND ?2
	UNION ALL
	SELECT link_id, sum(total) FROM recent WHERE link_id BETWEEN ?1 AND ?2 GROUP BY link_id
	UNION ALL
	SELECT link_id, sum(clicks) FROM imported WHERE link_id BETWEEN ?1 AND ?2 GROUP BY link_id`
	clickSeries = `
	SELECT link_id, quarter, people + bots FROM settled_quarters
	WHERE ` + ofQueryLinks + ` AND quarter >= ?2 AND quarter < ?3
	UNION ALL
	SELECT link_id, quarter, sum(total) FROM recent
	WHERE ` + ofQueryLinks + ` AND quarter >= ?2 AND quarter < ?3 GROUP BY link_id, quarter
	UNION ALL
	SELECT link_id, day * 96 + ?6, sum(clicks) FROM imported_days
	WHERE ` + ofQueryLinks + ` AND day >= ?4 AND day < ?5 AND clicks > 0 GROUP BY link_id, day`
)

// The statistics of a link ?1, with the arguments of a report of all time.
var (
	linkDays     = sums(dayTables(ofLink, byDay))
	linkDevices  = topSums(dayTables(ofLink, byName(schema.ByDevice)), shownName(schema.ByDevice), "people + bots")
	linkBrowsers = topSums(dayTables(ofLink, byName(schema.ByBrowser)), shownName(schema.ByBrowser), "people + bots")
)

// The clicks of links ?1, and of accounts ?1, of all time.
var (
	linkTotals    = sums(dayTables(ofQueryLinks, byLink))
	accountTotals = sums([]clickTable{sumTable("owned_quarters",
		"account_id IN (SELECT value FROM json_each(?1))"+inQuarters, byAccount)})
)

const ofLink = "link_id = ?1"

// LinkStats implements schema.ClickStore.
func (c *ClickStore) LinkStats(ctx context.Context, linkID int64) (schema.Stats, error) {
	stats := schema.Stats{Devices: map[schema.Device]int64{}, Browsers: map[string]int64{}}
	days := map[int64]int64{}
	args := []any{linkID, 0, math.MinInt64, math.MaxInt64, schema.TopBrowsers, math.MinInt64, math.MaxInt64}
	err := c.db.view(ctx, func(tx *snapshot) error {
		rows, err := tx.query(ctx, linkDays, args...)
		err = forEachRow(rows, err, func() error {
			var day int64
			var clicks schema.Period
			err := rows.Scan(&day, &clicks.People, &clicks.Bots)
			days[day] += clicks.Total()
			return err
		})
		if err != nil {
			return err
		}
		rows, err = tx.query(ctx, linkDevices, args...)
		if err := scanCounts(rows, err, stats.Devices); err != nil {
			return err
		}
		rows, err = tx.query(ctx, linkBrowsers, args...)
		if err := scanCounts(rows, err, stats.Browsers); err != nil {
			return err
		}
		return addImportedStats(ctx, tx, linkID, &stats, days)
	})
	for _, day := range slices.Sorted(maps.Keys(days)) {
		stats.ClicksByDay = append(stats.ClicksByDay, schema.DayCount{Date: dateOf(day), Total: days[day]})
		stats.TotalClicks += days[day]
	}
	return stats, wrap(err, "read stats of link %d", linkID)
}

// ClickCounts implements schema.ClickStore.
func (c *ClickStore) ClickCounts(ctx context.Context, _ int64, linkIDs []int64) (map[int64]int64, error) {
	ids, err := json.Marshal(linkIDs)
	if err != nil {
		return nil, wrap(err, "encode link IDs")
	}
	asked, query, args := make(map[int64]bool, len(linkIDs)), clickCounts, []any{string(ids)}
	for _, id := range linkIDs {
		asked[id] = true
	}
	if n := int64(len(linkIDs)); n > 1000 && slices.Max(linkIDs)-slices.Min(linkIDs) < 4*n {
		query, args = rangeCounts, []any{slices.Min(linkIDs), slices.Max(linkIDs)}
	}
	counts := make(map[int64]int64, len(linkIDs))
	rows, err := c.db.query(ctx, query, args...)
	err = forEachRow(rows, err, func() error {
		var link, total int64
		err := rows.Scan(&link, &total)
		if asked[link] {
			counts[link] += total
		}
		return err
	})
	return counts, wrap(err, "read counts of %d links", len(linkIDs))
}

// ClickSeries implements schema.ReportStore.
func (c *ClickStore) ClickSeries(
	ctx context.Context, _ int64, linkIDs []int64, bounds []time.Time,
) (map[int64][]int64, error) {
	series, q := map[int64][]int64{}, schema.ReportQuery{Bounds: bounds}
	ids, err := json.Marshal(linkIDs)
	if err != nil {
		return nil, wrap(err, "encode link IDs")
	}
	rows, err := c.db.query(ctx, clickSeries, string(ids), quarterOf(bounds[0]), quarterOf(q.End()),
		schema.ImportedSince(bounds[0]), schema.ImportedSince(q.End()), importedQuarter)
	err = forEachRow(rows, err, func() error {
		var link, quarter, clicks int64
		err := rows.Scan(&link, &quarter, &clicks)
		q.CountSeries(series, link, time.Unix(quarter*secondsPerQuarter, 0), clicks)
		return err
	})
	return series, wrap(err, "read series of %d links", len(linkIDs))
}

// ClickTotals implements schema.ClickStore.
func (c *ClickStore) ClickTotals(
	ctx context.Context, links, accounts []int64,
) (ofLinks, ofAccounts map[int64]schema.Period, err error) {
	ofLinks, ofAccounts = map[int64]schema.Period{}, map[int64]schema.Period{}
	err = c.db.view(ctx, func(tx *snapshot) error {
		for _, read := range []struct {
			query, imported string
			ids             []int64
			sums            map[int64]schema.Period
		}{{linkTotals, importedOfLinks, links, ofLinks}, {accountTotals, importedOfAccounts, accounts, ofAccounts}} {
			if len(read.ids) == 0 {
				continue
			}
			ids, err := json.Marshal(read.ids)
			if err != nil {
				return err
			}
			args := []any{string(ids), 0, math.MinInt64, math.MaxInt64, 0, math.MinInt64, math.MaxInt64}
			rows, err := tx.query(ctx, read.query, args...)
			err = forEachRow(rows, err, func() error {
				var id int64
				var clicks schema.Period
				err := rows.Scan(&id, &clicks.People, &clicks.Bots)
				sum := read.sums[id]
				sum.Add(clicks)
				read.sums[id] = sum
				return err
			})
			if err != nil {
				return err
			}
			rows, err = tx.query(ctx, read.imported, args[0])
			if err := scanImported(rows, err, read.sums); err != nil {
				return err
			}
		}
		return nil
	})
	return ofLinks, ofAccounts, wrap(err, "read clicks of %d links and %d accounts", len(links), len(accounts))
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
