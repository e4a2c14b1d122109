package clickhouse

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"golang.org/x/sync/errgroup"

	"linkstream/schema"
)

// maxReads is how often a report is read until its parts are of one moment.
const maxReads = 3

// maxReportQuery bounds the bytes of a query: each part names the links.
const maxReportQuery = 16 << 20

// Report implements schema.ReportStore.
//
// One server reads all parts of a query from one snapshot, the nodes of a cluster do not. A report is read by several queries at the same
// time, and the store compares their totals: counts only grow, so parts with the same total are of one moment. If clicks of the report
// are counted during each read, the last one takes longer: it is one query, on a cluster one part.
func (c *ClickStore) Report(ctx context.Context, q schema.ReportQuery) (schema.Report, error) {
	if err := q.Check(); err != nil {
		return schema.Report{}, err
	}
	if q.Links != nil && len(q.Links) == 0 || q.Links == nil && q.AccountID == 0 {
		return newReportReader(q).report, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	r, err := c.readConsistently(ctx, q)
	return r.report, wrap(err, "read report of account %d", q.AccountID)
}

func (c *ClickStore) readConsistently(ctx context.Context, q schema.ReportQuery) (r *reportReader, err error) {
	consistent := false
	for range maxReads {
		if isQuick(q) {
			r, consistent, err = c.readQuickReport(ctx, q)
		} else if r, err = c.readReport(ctx, q, splitReport(q, c.layout)...); err == nil {
			consistent = r.consistent()
		}
		if err != nil || consistent {
			return r, err
		}
	}
	last := wholeReport
	if c.layout.Cluster != "" {
		last = reportScan
	}
	return c.readReport(ctx, q, last(q, c.layout))
}

// reportSettings are those of lookupSettings. A filter may match as many rows as several threads are worth.
func reportSettings(q schema.ReportQuery) ch.Settings {
	settings := ch.Settings{
		"optimize_use_implicit_projections": 0, "enable_analyzer": 0,
		"enable_shared_storage_snapshot_in_query": 1, // the default of newer servers only
		"max_query_size": maxReportQuery,
	}
	if len(q.Links) == 1 && len(q.Filter) == 0 {
		settings["max_threads"] = 1
	}
	return settings
}

// readReport reads the queries of a report at the same time.
func (c *ClickStore) readReport(ctx context.Context, q schema.ReportQuery, texts ...reportText) (*reportReader, error) {
	r, mu := newReportReader(q), sync.Mutex{}
	reading, ctx := errgroup.WithContext(ctx)
	for _, text := range texts {
		reading.Go(func() error {
			var row reportRow
			rows, err := c.conn.Query(ch.Context(ctx, ch.WithSettings(reportSettings(q))), text.query, text.args...)
			return forEachRow(rows, err, func() error {
				if err := rows.Scan(&row.kind, &row.name, &row.at, &row.people, &row.bots, &row.ofKind.People, &row.ofKind.Bots); err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				return r.add(&row)
			})
		})
	}
	err := reading.Wait()
	r.finish()
	return r, err
}

// finish puts the periods into the report.
func (r *reportReader) finish() {
	copy(r.report.Series, r.periods[1:])
	r.report.Previous = r.periods[0]
}

// reportReader adds up the rows of a report.
type reportReader struct {
	query   schema.ReportQuery
	report  schema.Report
	bounds  []time.Time             // of periods, the first of which is the time before
	nearest []time.Time             // UTC midnights
	periods []schema.Period         // one less than bounds
	totals  map[uint8]schema.Period // of names and links
}

type reportRow struct {
	kind         uint8
	name         string
	at           uint32
	people, bots int64
	ofKind       schema.Period
}

func newReportReader(q schema.ReportQuery) *reportReader {
	r := &reportReader{query: q, bounds: append([]time.Time{q.Previous}, q.Bounds...), totals: map[uint8]schema.Period{}}
	for _, at := range r.bounds {
		r.nearest = append(r.nearest, nearest(at))
	}
	r.periods = make([]schema.Period, len(q.Bounds))
	r.report = schema.Report{Series: make([]schema.Period, len(q.Bounds)-1), Names: map[schema.Dimension][]schema.NameCount{}}
	return r
}

func (r *reportReader) add(row *reportRow) error {
	at := time.Unix(int64(row.at), 0)
	switch row.kind {
	case kindSeries:
		r.count(r.bounds, at, row.people, row.bots)
	case kindDay:
		r.count(r.nearest, at, row.people, row.bots)
	case kindShift:
		r.count(r.bounds, at, row.people, row.bots)
		r.count(r.nearest, at, -row.people, -row.bots)
	case kindLink:
		link, err := strconv.ParseInt(row.name, 10, 64)
		if err != nil {
			return err
		}
		r.report.Links = append(r.report.Links, schema.LinkCount{LinkID: link, Total: row.people + row.bots})
		r.totals[row.kind] = row.ofKind
	default:
		by := schema.Dimensions()[row.kind-kindName]
		r.report.Names[by] = append(r.report.Names[by], schema.NameCount{Name: row.name, Total: row.people})
		r.totals[row.kind] = row.ofKind
	}
	return nil
}

// count adds clicks to the last period that does not begin later. Clicks outside of all periods do not count.
func (r *reportReader) count(begins []time.Time, at time.Time, people, bots int64) {
	i, _ := slices.BinarySearchFunc(begins, at, func(begin, at time.Time) int {
		if begin.After(at) {
			return 1
		}
		return -1
	})
	if i > 0 && i <= len(r.periods) {
		r.periods[i-1].People += people
		r.periods[i-1].Bots += bots
	}
}

// consistent reports whether all names, and all links, have as many clicks as the series.
func (r *reportReader) consistent() bool {
	var all schema.Period
	for _, p := range r.report.Series {
		all.People += p.People
		all.Bots += p.Bots
	}
	for i := range namesOf(r.query) {
		if r.totals[uint8(kindName+i)].People != all.People {
			return false
		}
	}
	return !r.query.TopLinks || r.totals[kindLink] == all
}

const reportDetail = `SELECT max(hours_since), max(filters_since) FROM compacted_months`

// ReportDetail implements schema.ReportStore. Late clicks are compacted by the month of their insert, and are older than it.
func (c *ClickStore) ReportDetail(ctx context.Context) (detail schema.ReportDetail, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var hours, filters time.Time
	err = c.conn.QueryRow(ctx, reportDetail).Scan(&hours, &filters)
	if hours.Unix() > 0 {
		detail.Hours = hours
	}
	if filters.Unix() > 0 {
		detail.Filters = filters
	}
	return detail, wrap(err, "read what is known about old clicks")
}
