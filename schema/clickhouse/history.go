package clickhouse

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"linkstream/schema"
)

const (
	// importedRows are the rows that count: of each link and source the one with the highest version.
	importedRows = `imported_clicks FINAL`
	importedDays = importedRows + ` ARRAY JOIN days AS day, clicks AS n`

	// Parts of the queries of clicks.
	importedStats = `SELECT day, '` + schema.Other + `', '` + schema.Imported + `', sum(n)
	FROM ` + importedDays + ` WHERE link_id = ? AND n > 0 GROUP BY day`
	importedCounts = `SELECT link_id, sum(total) FROM ` + importedRows +
		` WHERE link_id IN (?) AND total > 0 GROUP BY link_id`
	importedOwned = `SELECT link_id, sum(total) FROM ` + importedRows +
		` WHERE account_id = ? AND link_id BETWEEN ? AND ? AND total > 0 GROUP BY link_id`
	importedOfLinks = `SELECT toUInt8(0) AS of_account, link_id AS id, toInt64(0), toInt64(0), toInt64(sum(total))
	FROM ` + importedRows + ` WHERE link_id IN (?) AND total > 0 GROUP BY link_id`
	importedOfAccounts = `SELECT toUInt8(1) AS of_account, account_id AS id, toInt64(0), toInt64(0), toInt64(sum(total))
	FROM ` + importedRows + ` WHERE account_id IN (?) AND total > 0 GROUP BY account_id`

	sources = `SELECT link_id, source, any(account_id), argMax(deleted, version) = 0, max(version) FROM imported_clicks
	WHERE link_id IN (?) GROUP BY link_id, source`
	historyOf    = `SELECT account_id, days, clicks FROM ` + importedRows + ` WHERE link_id = ? AND source = ?`
	allHistories = `SELECT link_id, source, account_id, days, clicks FROM ` + importedRows
	addHistories = `INSERT INTO imported_clicks (link_id, source, version, deleted, account_id, total, days, clicks)`
	importedSums = `SELECT sum(total), sum(arraySum(clicks)) FROM ` + importedRows
)

// knownSources are the sources that links have or had.
type knownSources struct {
	// owners are the owners of the links, by link and source; 0 for a source that has been deleted.
	owners  map[int64]map[string]int64
	version uint64 // the highest one of their rows
}

// set adds a source of a link. CodeInvalid if the link then has too many.
func (k *knownSources) set(link int64, source string, owner int64) error {
	if k.owners[link] == nil {
		k.owners[link] = map[string]int64{}
	}
	k.owners[link][source] = owner
	has := 0
	for _, owner := range k.owners[link] {
		if owner != 0 {
			has++
		}
	}
	if has > schema.MaxHistorySources {
		return schema.ErrManySources
	}
	return nil
}

// SetHistories implements schema.HistoryStore. The histories are one insert of one block, whose rows have a version
// above those that their links had. Calls of a process wait for each other, so that none finds room for a source that
// another one takes. Calls of several processes may give a link more than schema.MaxHistorySources: the bound limits
// the work of reads.
func (c *ClickStore) SetHistories(ctx context.Context, histories ...schema.History) error {
	if err := schema.CheckHistories(histories); err != nil {
		return err
	}
	return wrap(c.changeHistories(ctx, linksOf(histories), func(known knownSources) ([]historyRow, error) {
		var rows []historyRow
		for _, h := range histories {
			if err := known.set(h.LinkID, h.Source, h.AccountID); err != nil {
				return nil, err
			}
			rows = append(rows, historyRow{History: h})
		}
		return rows, nil
	}), "replace %d histories", len(histories))
}

func linksOf(histories []schema.History) (links []int64) {
	for _, h := range histories {
		links = append(links, h.LinkID)
	}
	return links
}

// DeleteHistory implements schema.HistoryStore.
func (c *ClickStore) DeleteHistory(ctx context.Context, linkID int64, source string) error {
	return wrap(c.changeHistories(ctx, []int64{linkID}, func(known knownSources) ([]historyRow, error) {
		owner := known.owners[linkID][source]
		if owner == 0 {
			return nil, schema.ErrNoHistory
		}
		// A row without an owner would not be read with the other rows of the account.
		return []historyRow{{schema.History{AccountID: owner, LinkID: linkID, Source: source}, true}}, nil
	}), "delete imported clicks of link %d", linkID)
}

// historyRow is a row that replaces a history.
type historyRow struct {
	schema.History
	deleted bool
}

// changeHistories inserts the rows that change returns.
func (c *ClickStore) changeHistories(
	ctx context.Context, links []int64, change func(knownSources) ([]historyRow, error),
) error {
	ctx, cancel := context.WithTimeout(ctx, insertTimeout)
	defer cancel()
	select {
	case c.histories <- struct{}{}:
		defer func() { <-c.histories }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if len(links) == 0 {
		return nil
	}
	known, err := c.readSources(ctx, links)
	if err != nil {
		return err
	}
	rows, err := change(known)
	if err != nil || len(rows) == 0 {
		return err
	}
	return c.insertHistories(ctx, known.version+1, rows)
}

func (c *ClickStore) readSources(ctx context.Context, links []int64) (knownSources, error) {
	known := knownSources{owners: map[int64]map[string]int64{}}
	rows, err := c.conn.Query(c.readContext(ctx, ch.Settings{}), sources, links)
	err = forEachRow(rows, err, func() error {
		var link, account int64
		var source string
		var live uint8
		var version uint64
		err := rows.Scan(&link, &source, &account, &live, &version)
		known.version = max(known.version, version)
		if live == 0 {
			account = 0
		}
		if err == nil {
			_ = known.set(link, source, account) // a link that has too many keeps them
		}
		return err
	})
	return known, err
}

// insertHistories inserts rows as one block. After an error that is not the server's answer it kills the insert, which
// could otherwise replace what a later call has stored.
func (c *ClickStore) insertHistories(ctx context.Context, version uint64, rows []historyRow) error {
	id := "linkstream-" + rand.Text()
	settings := ch.Settings{"async_insert": 0, "insert_deduplicate": 0}
	if c.layout.Cluster != "" {
		settings["insert_quorum"], settings["load_balancing"] = "auto", "in_order"
	}
	to, err := c.conn.PrepareBatch(ch.Context(ctx, ch.WithQueryID(id), ch.WithSettings(settings)), addHistories)
	if err == nil {
		for i := 0; i < len(rows) && err == nil; i++ {
			err = appendHistory(to, version, &rows[i])
		}
		if err == nil {
			err = to.Send()
		}
		_ = to.Close() // has no effect after Send
	}
	if err == nil || exceptionCode(err) != 0 {
		return err
	}
	return c.kill(ctx, id, err)
}

func appendHistory(to driver.Batch, version uint64, row *historyRow) error {
	days, clicks := make([]time.Time, len(row.Days)), make([]uint64, len(row.Days))
	for i, day := range row.Days {
		at, err := time.Parse(time.DateOnly, day.Date)
		if err != nil {
			return err
		}
		days[i], clicks[i] = at, uint64(day.Total)
	}
	deleted := uint8(0)
	if row.deleted {
		deleted = 1
	}
	return to.Append(row.LinkID, row.Source, version, deleted, row.AccountID, uint64(row.Total()), days, clicks)
}

// History implements schema.HistoryStore.
func (c *ClickStore) History(ctx context.Context, linkID int64, source string) (h schema.History, err error) {
	ctx, cancel := context.WithTimeout(c.readContext(ctx, rowSettings()), readTimeout)
	defer cancel()
	h = schema.History{LinkID: linkID, Source: source}
	found := false
	rows, err := c.conn.Query(ctx, historyOf, linkID, source)
	err = forEachRow(rows, err, func() error {
		found = true
		return scanHistory(rows, &h, &h.AccountID)
	})
	if err == nil && !found {
		err = schema.ErrNoHistory
	}
	return h, wrap(err, "read imported clicks of link %d", linkID)
}

// scanHistory scans a row that ends with days and clicks.
func scanHistory(rows driver.Rows, h *schema.History, columns ...any) error {
	var days []time.Time
	var clicks []uint64
	if err := rows.Scan(append(columns, &days, &clicks)...); err != nil {
		return err
	}
	h.Days = nil
	for i, day := range days {
		h.Days = append(h.Days, schema.DayCount{Date: day.Format(time.DateOnly), Total: int64(clicks[i])})
	}
	return nil
}

// importHistories adds the imported clicks of another store, except of links and sources that the store knows: it has
// them from an earlier run, or they have changed since.
func (m *movement) importHistories(ctx context.Context) error {
	var batch []schema.History
	add := func(some []schema.History) error {
		return m.store.changeHistories(ctx, linksOf(some), func(known knownSources) (rows []historyRow, err error) {
			for _, h := range some {
				if _, found := known.owners[h.LinkID][h.Source]; !found {
					rows = append(rows, historyRow{History: h})
				}
			}
			return rows, nil
		})
	}
	err := m.from.Histories(ctx, func(h schema.History) error {
		if batch = append(batch, h); schema.CheckHistories(batch) == nil {
			return nil
		}
		full := batch[:len(batch)-1]
		batch = []schema.History{h}
		return add(full)
	})
	if err != nil {
		return err
	}
	return add(batch)
}

// ImportedSums implements schema.HistoryStore.
func (c *ClickStore) ImportedSums(ctx context.Context) (map[string]uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, lanesTimeout)
	defer cancel()
	var total, ofDays uint64
	err := c.conn.QueryRow(c.readContext(ctx, ch.Settings{}), importedSums).Scan(&total, &ofDays)
	return map[string]uint64{"imported_clicks": total, "imported_clicks by day": ofDays},
		wrap(err, "add up imported clicks")
}

// importedReport is the imported clicks of a report.
type importedReport struct {
	days    map[int64]int64  // by UTC day, also of the time before
	sources map[string]int64 // of the periods
	links   map[int64]int64  // of the periods; nil unless the report has links
}

// pinned returns the links, whose clicks are needed to rank them.
func (i *importedReport) pinned() (links []int64) { return slices.Sorted(maps.Keys(i.links)) }

// readImported reads the imported clicks of a report by one query.
func (c *ClickStore) readImported(ctx context.Context, q schema.ReportQuery) (i importedReport, err error) {
	i = importedReport{map[int64]int64{}, map[string]int64{}, map[int64]int64{}}
	if !q.CountsImported() {
		return i, nil
	}
	rows, err := c.conn.Query(c.readContext(ctx, importedSettings()), newReportBuilder(q, nil).imported())
	return i, forEachRow(rows, err, func() error {
		var kind uint8
		var day uint16
		var source string
		var link, clicks int64
		err := rows.Scan(&kind, &day, &source, &link, &clicks)
		switch {
		case clicks == 0:
		case kind == importedDay:
			i.days[int64(day)] = clicks
		case kind == importedSource:
			i.sources[source] = clicks
		default:
			i.links[link] = clicks
		}
		return err
	})
}

func importedSettings() ch.Settings {
	settings := rowSettings()
	settings["max_query_size"] = maxReportQuery
	return settings
}

// Kinds of rows of the query of a report's imported clicks.
const (
	importedDay = iota
	importedSource
	importedLink
)

// imported returns the query of the report's imported clicks by day, source and link.
func (b *reportBuilder) imported() string {
	where, sets, link := b.account, "(day), (source)", "toInt64(0)"
	if b.links != "" {
		where = b.links
	}
	if b.query.TopLinks {
		sets, link = sets+", (link_id)", linkColumn
	}
	return fmt.Sprintf(`SELECT toUInt8(multiIf(grouping(day) = 0, %d, grouping(source) = 0, %d, %d)) AS kind, day, source,
	%s, toInt64(if(grouping(day) = 0, sum(n), sumIf(n, inside)))
FROM (SELECT toUInt16(date) AS day, source, link_id, n, day >= %d AS inside
	FROM `+importedRows+` ARRAY JOIN days AS date, clicks AS n WHERE %s AND day >= %d AND day < %d)
GROUP BY GROUPING SETS (%s)`, importedDay, importedSource, importedLink, link, schema.ImportedSince(b.from), where,
		schema.ImportedSince(b.query.Previous), schema.ImportedSince(b.to), sets)
}

// addTo adds the imported clicks to a report, and to the clicks of its links.
func (i *importedReport) addTo(r *reportReader) {
	for day, clicks := range i.days {
		r.query.Count(&r.result, schema.ImportedAt(day), schema.Period{Imported: clicks})
	}
	r.result.Sources = schema.MostFrequent(i.sources, len(i.sources))
	for link, clicks := range i.links {
		if r.counts[linkColumn] == nil {
			r.counts[linkColumn] = map[string]schema.Period{}
		}
		name := strconv.FormatInt(link, 10)
		sum := r.counts[linkColumn][name]
		sum.Imported += clicks
		r.counts[linkColumn][name] = sum
	}
}
