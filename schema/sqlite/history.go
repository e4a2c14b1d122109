package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"linkstream/schema"
)

// Imported clicks have tables of their own, beside the tables of clicks: a source's part of a link is replaced in one
// transaction, and no other count changes.

const (
	sourcesOf      = `SELECT count(*) FROM imported WHERE link_id = ? AND source <> ?`
	addImported    = `INSERT INTO imported (link_id, source, account_id, clicks) VALUES (?, ?, ?, ?)`
	removeImported = `DELETE FROM imported WHERE link_id = ? AND source = ?`
	removeDays     = `DELETE FROM imported_days WHERE link_id = ? AND source = ?`
	ownerOf        = `SELECT account_id FROM imported WHERE link_id = ? AND source = ?`
	daysOf         = `SELECT day, clicks FROM imported_days WHERE link_id = ? AND source = ? ORDER BY day`

	importedDaysOfLink = `SELECT day, sum(clicks) FROM imported_days WHERE link_id = ? GROUP BY day
		HAVING sum(clicks) > 0`
	importedOfLinks = `SELECT link_id, sum(clicks) FROM imported WHERE ` + ofQueryLinks +
		` GROUP BY link_id HAVING sum(clicks) > 0`
	importedOfAccounts = `SELECT account_id, sum(clicks) FROM imported
		WHERE account_id IN (SELECT value FROM json_each(?1)) GROUP BY account_id HAVING sum(clicks) > 0`
	importedSums = `SELECT (SELECT coalesce(sum(clicks), 0) FROM imported),
		(SELECT coalesce(sum(clicks), 0) FROM imported_days)`
	exportHistories = `SELECT link_id, source, account_id FROM imported`
)

// importedQuarter is the quarter of an hour of a UTC day at which reports count its imported clicks.
var importedQuarter = quarterOf(schema.ImportedAt(0))

// inImported is the condition for the imported clicks of a report's time, with the report's arguments.
var inImported = fmt.Sprintf(" AND day >= (?3 + %d) / 96 AND day < (?4 + %[1]d) / 96",
	quartersPerDay-1-importedQuarter)

// importedTable is the imported clicks of a report by a column, as if by bots.
func importedTable(ofLinks bool, key string) clickTable {
	where := ofAccount
	if ofLinks {
		where = ofQueryLinks
	}
	return clickTable{"imported_days", where + inImported, key, "0", "clicks"}
}

// SetHistories implements schema.HistoryStore.
func (c *ClickStore) SetHistories(ctx context.Context, histories ...schema.History) error {
	if err := schema.CheckHistories(histories); err != nil {
		return err
	}
	return wrap(c.db.update(ctx, func(tx *sql.Tx) error {
		for i := range histories {
			if err := c.setHistory(ctx, tx, &histories[i]); err != nil {
				return err
			}
		}
		return nil
	}), "replace %d histories", len(histories))
}

func (c *ClickStore) setHistory(ctx context.Context, tx *sql.Tx, h *schema.History) error {
	var others int
	if err := tx.QueryRowContext(ctx, sourcesOf, h.LinkID, h.Source).Scan(&others); err != nil {
		return err
	}
	if others >= schema.MaxHistorySources {
		return schema.ErrManySources
	}
	if _, err := removeHistory(ctx, tx, h.LinkID, h.Source); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, addImported, h.LinkID, h.Source, h.AccountID, h.Total()); err != nil {
		return err
	}
	days := c.importedDays.begin(ctx, tx)
	for _, day := range h.Days {
		at, err := time.Parse(time.DateOnly, day.Date)
		if err != nil {
			return err
		}
		if err := days.add(ctx, h.AccountID, schema.DayNumber(at), h.LinkID, h.Source, day.Total); err != nil {
			return err
		}
	}
	return days.flush(ctx)
}

func removeHistory(ctx context.Context, tx *sql.Tx, linkID int64, source string) (found bool, err error) {
	if _, err := tx.ExecContext(ctx, removeDays, linkID, source); err != nil {
		return false, err
	}
	removed, err := tx.ExecContext(ctx, removeImported, linkID, source)
	if err != nil {
		return false, err
	}
	n, err := removed.RowsAffected()
	return n > 0, err
}

// DeleteHistory implements schema.HistoryStore.
func (c *ClickStore) DeleteHistory(ctx context.Context, linkID int64, source string) error {
	return wrap(c.db.update(ctx, func(tx *sql.Tx) error {
		found, err := removeHistory(ctx, tx, linkID, source)
		if err == nil && !found {
			err = schema.ErrNoHistory
		}
		return err
	}), "delete imported clicks of link %d", linkID)
}

// History implements schema.HistoryStore.
func (c *ClickStore) History(ctx context.Context, linkID int64, source string) (h schema.History, err error) {
	h = schema.History{LinkID: linkID, Source: source}
	err = c.db.view(ctx, func(tx *snapshot) error {
		err := tx.queryRow(ctx, ownerOf, linkID, source).Scan(&h.AccountID)
		if errors.Is(err, sql.ErrNoRows) {
			return schema.ErrNoHistory
		}
		if err != nil {
			return err
		}
		rows, err := tx.query(ctx, daysOf, linkID, source)
		h.Days, err = scanDays(rows, err)
		return err
	})
	return h, wrap(err, "read imported clicks of link %d", linkID)
}

// scanDays scans rows of a day and its clicks. Its arguments are the results of a query.
func scanDays(rows *sql.Rows, err error) (days []schema.DayCount, _ error) {
	err = forEachRow(rows, err, func() error {
		var day, clicks int64
		err := rows.Scan(&day, &clicks)
		days = append(days, schema.DayCount{Date: dateOf(day), Total: clicks})
		return err
	})
	return days, err
}

// ImportedSums implements schema.HistoryStore.
func (c *ClickStore) ImportedSums(ctx context.Context) (map[string]uint64, error) {
	var ofSources, ofDays uint64
	err := c.db.view(ctx, func(tx *snapshot) error {
		return tx.queryRow(ctx, importedSums).Scan(&ofSources, &ofDays)
	})
	return map[string]uint64{"imported": ofSources, "imported_days": ofDays}, wrap(err, "add up imported clicks")
}

// addImportedStats adds the imported clicks of a link to its statistics and their days.
func addImportedStats(
	ctx context.Context, tx *snapshot, linkID int64, stats *schema.Stats, days map[int64]int64,
) error {
	imported := int64(0)
	rows, err := tx.query(ctx, importedDaysOfLink, linkID)
	err = forEachRow(rows, err, func() error {
		var day, clicks int64
		err := rows.Scan(&day, &clicks)
		days[day] += clicks
		imported += clicks
		return err
	})
	if err != nil || imported == 0 {
		return err
	}
	stats.Devices[schema.Other] += imported
	stats.Browsers[schema.Imported] += imported
	top := schema.MostFrequent(stats.Browsers, schema.TopBrowsers)
	clear(stats.Browsers)
	for _, browser := range top {
		stats.Browsers[browser.Name] = browser.Total
	}
	return nil
}

// scanImported adds the imported clicks of links or accounts to sums. A query returns their IDs and clicks.
func scanImported(rows *sql.Rows, err error, sums map[int64]schema.Period) error {
	return forEachRow(rows, err, func() error {
		var id, clicks int64
		err := rows.Scan(&id, &clicks)
		sum := sums[id]
		sum.Imported += clicks
		sums[id] = sum
		return err
	})
}

// readImported reads the imported clicks of a report by period.
func (r *reportReader) readImported(ofLinks bool) error {
	rows, err := r.rows(sums([]clickTable{importedTable(ofLinks, "day")}))
	err = forEachRow(rows, err, func() error {
		var day int64
		var clicks schema.Period
		err := rows.Scan(&day, &clicks.People, &clicks.Imported)
		r.query.Count(&r.report, schema.ImportedAt(day), clicks)
		return err
	})
	return err
}

// readSources reads the imported clicks of all periods by source, if there are any.
func (r *reportReader) readSources(ofLinks bool) error {
	if !slices.ContainsFunc(r.report.Series, func(p schema.Period) bool { return p.Imported > 0 }) {
		return nil
	}
	sources := map[string]int64{}
	rows, err := r.rows(sums([]clickTable{importedTable(ofLinks, "source")}))
	err = forEachRow(rows, err, func() error {
		var source string
		var clicks schema.Period
		err := rows.Scan(&source, &clicks.People, &clicks.Imported)
		sources[source] = clicks.Imported
		return err
	})
	r.report.Sources = schema.MostFrequent(sources, len(sources))
	return err
}

// ExportHistories calls each for all imported clicks in the click store in the file at path.
func ExportHistories(ctx context.Context, path string, each func(schema.History) error) error {
	return wrap(withExisting(path, func(db *sql.DB) error {
		var all []schema.History
		rows, err := db.QueryContext(ctx, exportHistories)
		err = forEachRow(rows, err, func() error {
			var h schema.History
			err := rows.Scan(&h.LinkID, &h.Source, &h.AccountID)
			all = append(all, h)
			return err
		})
		for _, h := range all {
			if err != nil {
				break
			}
			rows, queryErr := db.QueryContext(ctx, daysOf, h.LinkID, h.Source)
			if h.Days, err = scanDays(rows, queryErr); err == nil {
				err = each(h)
			}
		}
		return err
	}), "export imported clicks of %q", path)
}
