package clickhouse

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"linkstream/schema"
)

const (
	// One query, so that all counts are of one moment. The store adds up its few rows per day, which is faster than
	// another level of the query.
	linkStats = `
	SELECT toDate(clicked_at) AS day, device, browser, ` + people + ` + ` + bots + `
	FROM clicks WHERE link_id = ? GROUP BY day, device, browser` + unionAll + importedStats
	clickCounts = `SELECT link_id, ` + people + ` + ` + bots + ` FROM clicks WHERE link_id IN (?) GROUP BY link_id` +
		unionAll + importedCounts
	ownedCounts = `SELECT link_id, ` + people + ` + ` + bots +
		` FROM clicks WHERE account_id = ? AND link_id BETWEEN ? AND ? GROUP BY link_id` + unionAll + importedOwned
	linkTotals = `SELECT toUInt8(0) AS of_account, link_id AS id, toInt64(` + people + `), toInt64(` + bots + `),
	toInt64(0) FROM clicks WHERE link_id IN (?) GROUP BY link_id` + unionAll + importedOfLinks
	accountTotals = `SELECT toUInt8(1) AS of_account, account_id AS id,
	toInt64(` + people + `), toInt64(` + bots + `), toInt64(0) FROM clicks WHERE account_id IN (?) GROUP BY account_id` +
		unionAll + importedOfAccounts
)

// LinkStats implements schema.ClickStore.
func (c *ClickStore) LinkStats(ctx context.Context, linkID int64) (schema.Stats, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	stats := schema.Stats{Devices: map[schema.Device]int64{}, Browsers: map[string]int64{}}
	days, browsers := map[time.Time]int64{}, map[string]int64{}
	rows, err := c.conn.Query(ch.Context(ctx, ch.WithSettings(lookupSettings("link_clients"))), linkStats, linkID, linkID)
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

// listed is how many links a query names. The counts of more are found among those of the account.
const listed = 5000

// ClickCounts implements schema.ClickStore.
func (c *ClickStore) ClickCounts(ctx context.Context, accountID int64, linkIDs []int64) (map[int64]int64, error) {
	if len(linkIDs) == 0 {
		return map[int64]int64{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	query, projection, args := clickCounts, "link_clients", []any{linkIDs, linkIDs}
	if len(linkIDs) > listed {
		query, projection, args = ownedCounts, "account_links", []any{accountID, slices.Min(linkIDs), slices.Max(linkIDs)}
		args = append(args, args...)
	}
	asked, counts := make(map[int64]bool, len(linkIDs)), make(map[int64]int64, len(linkIDs))
	for _, id := range linkIDs {
		asked[id] = true
	}
	settings := projectionSettings(projection)
	settings["max_query_size"] = maxReportQuery // it names the links twice
	rows, err := c.conn.Query(ch.Context(ctx, ch.WithSettings(settings)), query, args...)
	err = forEachRow(rows, err, func() error {
		var link int64
		var total uint64
		err := rows.Scan(&link, &total)
		if asked[link] {
			counts[link] += int64(total)
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
	if len(linkIDs) == 0 {
		return series, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	rows, err := c.conn.Query(ch.Context(ctx, ch.WithSettings(lookupSettings("link_quarters"))), seriesOf(bounds), linkIDs,
		linkIDs)
	err = forEachRow(rows, err, func() error {
		var link, clicks int64
		var begin uint32
		err := rows.Scan(&link, &begin, &clicks)
		q.CountSeries(series, link, time.Unix(int64(begin), 0), clicks)
		return err
	})
	return series, wrap(err, "read series of %d links", len(linkIDs))
}

func seriesOf(bounds []time.Time) string {
	return fmt.Sprintf(`SELECT link_id, roundDown(toUnixTimestamp(%s), %s) AS begin, toInt64(%s + %s)
	FROM clicks WHERE link_id IN (?) AND %s GROUP BY link_id, begin
	UNION ALL
	SELECT link_id, toUInt32(toUInt32(toUInt16(day)) * 86400 + %d) AS begin, toInt64(sum(n))
	FROM `+importedDays+` WHERE link_id IN (?) AND toUInt16(day) >= %d AND toUInt16(day) < %d AND n > 0
	GROUP BY link_id, day`,
		quarter, unixTimes(bounds[:len(bounds)-1]), people, bots, quarters(bounds[0], bounds[len(bounds)-1]),
		schema.ImportedAt(0).Unix(), schema.ImportedSince(bounds[0]), schema.ImportedSince(bounds[len(bounds)-1]))
}

const unionAll = "\nUNION ALL\n"

// totalsSettings lets the server find the projection of each part of a query, with which a single preferred one does
// not agree.
func totalsSettings() ch.Settings {
	settings := lookupSettings("")
	delete(settings, preferredProjection)
	settings["max_query_size"] = maxReportQuery
	return settings
}

// ClickTotals implements schema.ClickStore.
func (c *ClickStore) ClickTotals(
	ctx context.Context, links, accounts []int64,
) (ofLinks, ofAccounts map[int64]schema.Period, err error) {
	ofLinks, ofAccounts = map[int64]schema.Period{}, map[int64]schema.Period{}
	var queries []string
	var args []any
	if len(links) > 0 {
		queries, args = append(queries, linkTotals), append(args, links, links)
	}
	if len(accounts) > 0 {
		queries, args = append(queries, accountTotals), append(args, accounts, accounts)
	}
	if len(queries) == 0 {
		return ofLinks, ofAccounts, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	rows, err := c.conn.Query(ch.Context(ctx, ch.WithSettings(totalsSettings())), strings.Join(queries, unionAll), args...)
	err = forEachRow(rows, err, func() error {
		var ofAccount uint8
		var id int64
		var clicks schema.Period
		err := rows.Scan(&ofAccount, &id, &clicks.People, &clicks.Bots, &clicks.Imported)
		sums := ofLinks
		if ofAccount == 1 {
			sums = ofAccounts
		}
		clicks.Add(sums[id])
		sums[id] = clicks
		return err
	})
	return ofLinks, ofAccounts, wrap(err, "read clicks of %d links and %d accounts", len(links), len(accounts))
}
