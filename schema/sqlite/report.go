package sqlite

import (
	"context"
	"database/sql"
	"time"

	"linkstream/schema"
)

const (
	accountDays  = `SELECT day, people, bots FROM owned_days WHERE account_id = ? AND day >= ? ORDER BY day`
	accountLinks = `SELECT link_id, sum(people + bots) AS total FROM owned WHERE account_id = ? AND day >= ?
	GROUP BY link_id ORDER BY total DESC, link_id LIMIT ?`
)

// LinkReport implements schema.ReportStore.
func (c *ClickStore) LinkReport(ctx context.Context, linkID int64, since time.Time) (schema.LinkReport, error) {
	var report schema.LinkReport
	err := c.db.view(ctx, func(tx *snapshot) error {
		clicks, err := c.readLink(ctx, tx, linkID, schema.DayNumber(since), true)
		if err != nil {
			return err
		}
		for _, day := range clicks.days {
			report.Days = append(report.Days, schema.DayReport{Date: dateOf(day.number), People: day.people, Bots: day.bots})
		}
		report.Devices = clicks.devices()
		report.Browsers = mostFrequent(clicks.browsers(false), schema.TopNames)
		report.Systems = mostFrequent(clicks.sourcesOf(system), schema.TopNames)
		report.Languages = mostFrequent(clicks.sourcesOf(language), schema.TopNames)
		report.Referrers = mostFrequent(clicks.sourcesOf(referrer), schema.TopNames)
		report.Countries = mostFrequent(clicks.sourcesOf(country), schema.TopNames)
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
	err := c.db.view(ctx, func(tx *snapshot) error {
		rows, err := tx.query(ctx, accountDays, accountID, schema.DayNumber(since))
		if report.Days, err = scanDays(rows, err); err != nil {
			return err
		}
		rows, err = tx.query(ctx, accountLinks, accountID, schema.DayNumber(linksSince), schema.TopNames)
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
	rows, err := c.db.query(ctx, accountDays, accountID, schema.DayNumber(since))
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
