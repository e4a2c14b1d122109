package clickhouse

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"golang.org/x/sync/errgroup"

	"linkstream/schema"
)

// maxReads is how often a report is read until its parts are of one moment.
const maxReads = 3

// Report implements schema.ReportStore.
//
// A report is read by several queries at the same time, one per projection, because a server plans a query of one
// projection several times faster than a query that joins them. The store adds up what they return. All counts are of
// one moment if each query has counted as many clicks, because counts only grow. If clicks of the report are counted
// during each of maxReads reads, one server answers all queries from one snapshot; the nodes of a cluster have no
// common one and scan the rows. Imported clicks do not depend on the others; they are read first, by one query.
func (c *ClickStore) Report(ctx context.Context, q schema.ReportQuery) (schema.Report, error) {
	if err := q.Check(); err != nil {
		return schema.Report{}, err
	}
	if q.Links != nil && len(q.Links) == 0 {
		return schema.NewReport(q), nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	report, err := c.readReport(ctx, q)
	return report, wrap(err, "read report of account %d", q.AccountID)
}

func (c *ClickStore) readReport(ctx context.Context, q schema.ReportQuery) (schema.Report, error) {
	imported, err := c.readImported(ctx, q)
	if err != nil {
		return schema.Report{}, err
	}
	parts := partsOf(q, imported.pinned())
	for range maxReads {
		r, err := c.readParts(ctx, q, parts...)
		if err != nil {
			return schema.Report{}, err
		}
		if r.consistent() {
			imported.addTo(r)
			return c.withKept(ctx, r)
		}
	}
	last := []reportPart{joined(parts)}
	if c.layout.Cluster != "" {
		last = scansOf(q, imported.pinned())
	}
	r, err := c.readParts(ctx, q, last...)
	if err != nil {
		return schema.Report{}, err
	}
	imported.addTo(r)
	return c.withKept(ctx, r)
}

// readParts reads the queries of a report at the same time.
func (c *ClickStore) readParts(ctx context.Context, q schema.ReportQuery, parts ...reportPart) (*reportReader, error) {
	r := newReportReader(q)
	reading, ctx := errgroup.WithContext(ctx)
	reading.SetLimit(reportConns)
	for _, part := range parts {
		if c.options.Settings["max_threads"] == nil { // otherwise the driver adds it
			part.settings["max_threads"] = reportThreads
		}
		reading.Go(func() error {
			rows, err := c.conn.Query(ch.Context(ctx, ch.WithSettings(part.settings)), part.query, part.args...)
			var row reportRow
			return forEachRow(rows, err, func() error {
				err := rows.Scan(&row.group, &row.names, &row.at, &row.clicks.People, &row.clicks.Bots, &row.all.People,
					&row.all.Bots,
					&row.visitors)
				r.mu.Lock()
				defer r.mu.Unlock()
				r.add(&row)
				return err
			})
		})
	}
	return r, reading.Wait()
}

// reportRow is a row of any query of a report.
type reportRow struct {
	group  uint8         // its number in the report
	names  []string      // of the group's columns
	at     uint32        // the beginning of a period, of the series
	clicks schema.Period // with these names, or of the period
	all    schema.Period // of the group, if it is ranked by the server
	// visitors of the period, or with a name those of the report or the time before, on a UTC day; in the group of
	// visitors
	visitors int64
}

func (r *reportRow) begin() time.Time { return time.Unix(int64(r.at), 0) }

// reportReader adds up the rows of a report.
type reportReader struct {
	query  schema.ReportQuery
	groups []reportGroup

	mu     sync.Mutex
	result schema.Report
	counts map[string]map[string]schema.Period // by column and name
	totals map[uint8]schema.Period             // by group
}

func newReportReader(q schema.ReportQuery) *reportReader {
	return &reportReader{query: q, groups: reportGroups(q), result: schema.NewReport(q),
		counts: map[string]map[string]schema.Period{},
		totals: map[uint8]schema.Period{}}
}

func (r *reportReader) add(row *reportRow) {
	group := r.groups[row.group]
	if group.visitors {
		r.addVisitors(row)
		return
	}
	if group.series {
		r.query.Count(&r.result, row.begin(), row.clicks)
		if row.begin().Before(r.query.Bounds[0]) {
			return
		}
	}
	if group.ranked {
		r.totals[row.group] = row.all
	} else {
		r.addTotal(row)
	}
	for i, column := range group.columns {
		if r.counts[column] == nil {
			r.counts[column] = map[string]schema.Period{}
		}
		sum := r.counts[column][row.names[i]]
		sum.Add(row.clicks)
		r.counts[column][row.names[i]] = sum
	}
}

func (r *reportReader) addTotal(row *reportRow) {
	total := r.totals[row.group]
	total.Add(row.clicks)
	r.totals[row.group] = total
}

// consistent reports whether each query has counted as many clicks as the series has.
func (r *reportReader) consistent() bool {
	var all schema.Period
	for _, p := range r.result.Series {
		all.Add(p)
	}
	for number := 1; number < len(r.groups); number++ {
		if r.totals[uint8(number)] != all {
			return false
		}
	}
	return true
}

// report ranks what was counted.
func (r *reportReader) report() schema.Report {
	for column, names := range r.counts {
		if column == linkColumn {
			r.result.Links = topLinks(names, r.query.Limit)
			continue
		}
		counts := map[string]int64{}
		for name, clicks := range names {
			counts[name] = clicks.People
		}
		if top := schema.MostFrequent(counts, r.query.Limit); len(top) > 0 {
			r.result.Names[schema.Dimension(column)] = top
		}
	}
	return r.result
}

// topLinks returns the n links with the most clicks, ties in order of their IDs.
func topLinks(clicks map[string]schema.Period, n int) (top []schema.LinkCount) {
	for name, sum := range clicks {
		if id, err := strconv.ParseInt(name, 10, 64); err == nil { // it was made by toString
			top = append(top, schema.LinkCount{LinkID: id, Total: sum.Total()})
		}
	}
	slices.SortFunc(top, func(a, b schema.LinkCount) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.LinkID, b.LinkID))
	})
	return top[:min(n, len(top))]
}

// joined returns one query of all parts, which one server reads from one snapshot.
func joined(parts []reportPart) reportPart {
	all := reportPart{settings: ch.Settings{}}
	var queries []string
	for _, part := range parts {
		queries, all.args = append(queries, "SELECT * FROM (\n"+part.query+"\n)"), append(all.args, part.args...)
		maps.Copy(all.settings, part.settings)
	}
	delete(all.settings, preferredProjection)
	delete(all.settings, "optimize_use_projections")
	all.settings["enable_shared_storage_snapshot_in_query"] = 1 // the default of newer servers only
	all.query = strings.Join(queries, "\nUNION ALL\n")
	return all
}

const reportDetail = `SELECT max(hours_since) FROM compacted_months`

// ReportDetail implements schema.ReportStore. Late clicks are compacted by the month of their insert, and are older
// than it.
func (c *ClickStore) ReportDetail(ctx context.Context) (detail schema.ReportDetail, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var hours time.Time
	err = c.conn.QueryRow(ctx, reportDetail).Scan(&hours)
	if hours.Unix() > 0 {
		detail.Hours = hours
	}
	return detail, wrap(err, "read what is known about old clicks")
}
