package sqlite

import (
	"context"
	"database/sql"
	"time"

	"linkstream/schema"
)

const (
	reportDays = `SELECT day, coalesce(sum(total) FILTER (WHERE device <> 'bot'), 0),
	coalesce(sum(total) FILTER (WHERE device = 'bot'), 0)
	FROM counters WHERE link_id = ? AND day >= ? GROUP BY day ORDER BY day`
	reportDevices  = `SELECT device, sum(total) FROM counters WHERE link_id = ? AND day >= ? GROUP BY device`
	reportBrowsers = `SELECT browser, sum(total) FROM counters WHERE link_id = ? AND day >= ? AND device <> 'bot'
	GROUP BY browser ORDER BY sum(total) DESC, browser LIMIT ?`
	// Clicks of people without a name are not in the table: their number is ?4, all clicks of people, minus the rest.
	reportSources = `WITH named AS (
		SELECT name, sum(total) AS total FROM sources WHERE link_id = ?1 AND kind = ?2 AND day >= ?3 GROUP BY name)
	SELECT name, total FROM (
		SELECT name, total FROM named UNION ALL SELECT '', ?4 - coalesce(sum(total), 0) FROM named)
	WHERE total > 0 ORDER BY total DESC, name LIMIT ?5`
	accountDays  = `SELECT day, people, bots FROM owned_days WHERE account_id = ? AND day >= ? ORDER BY day`
	accountLinks = `SELECT link_id, sum(people + bots) AS total FROM owned WHERE account_id = ? AND day >= ?
	GROUP BY link_id ORDER BY total DESC, link_id LIMIT ?`
)

// LinkReport implements schema.ReportStore.
func (c *ClickStore) LinkReport(ctx context.Context, linkID int64, since time.Time) (schema.LinkReport, error) {
	report, day := schema.LinkReport{Devices: map[schema.Device]int64{}}, schema.DayNumber(since)
	err := c.db.view(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, reportDays, linkID, day)
		if report.Days, err = scanDays(rows, err); err != nil {
			return err
		}
		people := int64(0)
		for _, d := range report.Days {
			people += d.People
		}
		rows, err = tx.QueryContext(ctx, reportDevices, linkID, day)
		if err = scanCounts(rows, err, report.Devices); err != nil {
			return err
		}
		rows, err = tx.QueryContext(ctx, reportBrowsers, linkID, day, schema.TopNames)
		if report.Browsers, err = scanNames(rows, err); err != nil {
			return err
		}
		for kind, names := range map[sourceKind]*[]schema.NameCount{system: &report.Systems, language: &report.Languages,
			referrer: &report.Referrers, country: &report.Countries} {
			rows, err = tx.QueryContext(ctx, reportSources, linkID, kind, day, people, schema.TopNames)
			if *names, err = scanNames(rows, err); err != nil {
				return err
			}
		}
		return nil
	})
	return report, wrap(err, "read report of link %d", linkID)
}

// AccountReport implements schema.ReportStore.
func (c *ClickStore) AccountReport(ctx context.Context, accountID int64, since, linksSince time.Time) (schema.AccountReport, error) {
	var report schema.AccountReport
	if accountID == 0 {
		return report, nil // not an account, but links without one
	}
	err := c.db.view(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, accountDays, accountID, schema.DayNumber(since))
		if report.Days, err = scanDays(rows, err); err != nil {
			return err
		}
		rows, err = tx.QueryContext(ctx, accountLinks, accountID, schema.DayNumber(linksSince), schema.TopNames)
		return forEachRow(rows, err, func() error {
			var link schema.LinkCount
			err := rows.Scan(&link.LinkID, &link.Total)
			report.Links = append(report.Links, link)
			return err
		})
	})
	return report, wrap(err, "read report of account %d", accountID)
}

// AccountDays implements schema.ReportStore.
func (c *ClickStore) AccountDays(ctx context.Context, accountID int64, since time.Time) ([]schema.DayReport, error) {
	if accountID == 0 {
		return nil, nil
	}
	rows, err := c.db.read.QueryContext(ctx, accountDays, accountID, schema.DayNumber(since))
	days, err := scanDays(rows, err)
	return days, wrap(err, "read days of account %d", accountID)
}

// scanDays scans rows of a day number, its clicks of people and its clicks of bots.
func scanDays(rows *sql.Rows, err error) (days []schema.DayReport, _ error) {
	err = forEachRow(rows, err, func() error {
		var number int64
		var day schema.DayReport
		err := rows.Scan(&number, &day.People, &day.Bots)
		day.Date = dateOf(number)
		days = append(days, day)
		return err
	})
	return days, err
}

// scanNames scans rows of a name and its count.
func scanNames(rows *sql.Rows, err error) (names []schema.NameCount, _ error) {
	err = forEachRow(rows, err, func() error {
		var name schema.NameCount
		err := rows.Scan(&name.Name, &name.Total)
		names = append(names, name)
		return err
	})
	return names, err
}
