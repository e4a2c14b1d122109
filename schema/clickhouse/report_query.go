package clickhouse

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"linkstream/schema"
)

// A report is one query, so that all counts are of one moment. It adds up parts, each of which reads a projection:
//
//	series             link_quarters or account_quarters; with a filter dimensions, or rows if a period is no UTC day
//	names of a link    weighted_counts, link_systems and weighted_sources for UTC days
//	names of others    dimensions for UTC days
//	links              weighted_accounts, or dimensions with a filter, for UTC days
//
// A time that does not begin or end with a UTC day is counted as the UTC days nearest to it, plus or minus the clicks in between,
// which are read as rows. These are at most 24 hours, less for zones that are near UTC.

// Kinds of a report's rows. The kinds of dimensions follow in the order of schema.Dimensions.
const (
	kindSeries = iota
	kindPrevious
	kindLink
	kindName
)

const (
	quarter = "toStartOfFifteenMinutes(clicked_at)"
	people  = "sumIf(weight, device != 'bot')"
	bots    = "sumIf(weight, device = 'bot')"
)

// Report implements schema.ReportStore.
func (c *ClickStore) Report(ctx context.Context, q schema.ReportQuery) (schema.Report, error) {
	if err := q.Check(); err != nil {
		return schema.Report{}, err
	}
	report := schema.Report{Series: make([]schema.Period, len(q.Bounds)-1), Names: map[schema.Dimension][]schema.NameCount{}}
	if q.Links != nil && len(q.Links) == 0 || q.Links == nil && q.AccountID == 0 {
		return report, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	query, args := reportText(q, c.layout)
	begins := make(map[uint32]int, len(q.Bounds))
	for i, at := range q.Bounds[:len(q.Bounds)-1] {
		begins[uint32(at.Unix())] = i
	}
	// Each part names the links.
	rows, err := c.conn.Query(ch.Context(ctx, ch.WithSettings(ch.Settings{"max_query_size": 16 << 20})), query, args...)
	err = forEachRow(rows, err, func() error {
		var kind uint8
		var name string
		var at uint32
		var ofPeople, ofBots int64
		if err := rows.Scan(&kind, &name, &at, &ofPeople, &ofBots); err != nil {
			return err
		}
		switch kind {
		case kindSeries:
			report.Series[begins[at]] = schema.Period{People: ofPeople, Bots: ofBots}
		case kindPrevious:
			report.Previous = schema.Period{People: ofPeople, Bots: ofBots}
		case kindLink:
			link, err := strconv.ParseInt(name, 10, 64)
			report.Links = append(report.Links, schema.LinkCount{LinkID: link, Total: ofPeople + ofBots})
			return err
		default:
			by := schema.Dimensions()[kind-kindName]
			report.Names[by] = append(report.Names[by], schema.NameCount{Name: name, Total: ofPeople})
		}
		return nil
	})
	return report, wrap(err, "read report of account %d", q.AccountID)
}

// reportText returns the query of a report. Names are arguments, everything else is numbers.
func reportText(q schema.ReportQuery, l layout) (query string, args []any) {
	b := &reportBuilder{query: q, in: "IN"}
	if l.Cluster != "" {
		b.in = "GLOBAL IN"
	}
	for _, by := range schema.Dimensions() {
		if name, ok := q.Filter[by]; ok {
			b.filter += " AND " + string(by) + " = ?"
			b.names = append(b.names, name)
		}
	}
	if q.Links != nil {
		b.links = "link_id IN (" + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(q.Links)), ", "), "[]") + ")"
	}
	b.series()
	first, last := q.Bounds[0], q.Bounds[len(q.Bounds)-1]
	if b.filter != "" {
		b.sums(kindPrevious, "''", q.Previous, first, "")
	}
	b.ofNames(first, last)
	if q.TopLinks {
		b.ofLinks(first, last)
	}
	query = `SELECT kind, name, at, sum(p) AS of_people, sum(b) AS of_bots
FROM (
` + strings.Join(b.parts, "\nUNION ALL\n") + `
)
GROUP BY kind, name, at
HAVING of_people > 0 OR kind < ` + fmt.Sprint(kindName) + ` AND of_bots > 0
ORDER BY kind, of_people + if(kind = ` + fmt.Sprint(kindLink) + `, of_bots, 0) DESC, if(kind = ` + fmt.Sprint(kindLink) + `, toInt64OrZero(name), 0), name
LIMIT ` + fmt.Sprint(q.Limit) + ` BY kind, at
SETTINGS enable_shared_storage_snapshot_in_query = 1`
	return query, b.args
}

// reportBuilder collects the parts of a report's query.
type reportBuilder struct {
	query  schema.ReportQuery
	in     string // operator for subqueries
	links  string // condition of the links; "" for all of the account
	filter string // condition that begins with AND, with names as arguments
	names  []any
	parts  []string
	args   []any
}

// part adds a part. Each filter in it takes the names.
func (b *reportBuilder) part(text string) {
	b.parts = append(b.parts, text)
	if b.filter != "" {
		for range strings.Count(text, b.filter) {
			b.args = append(b.args, b.names...)
		}
	}
}

// ofAccount is the condition for the clicks that the query selects in tables that begin with the account.
func (b *reportBuilder) ofAccount() string {
	if b.links == "" {
		return fmt.Sprintf("account_id = %d", b.query.AccountID)
	}
	return fmt.Sprintf("account_id IN (%d, 0) AND %s", b.query.AccountID, b.links) // some clicks are without the account
}

// ofRows is the condition for the clicks that the query selects among rows, which are in the order of links: those that had
// clicks around a time.
func (b *reportBuilder) ofRows(from, to time.Time) string {
	if b.links != "" {
		return b.links
	}
	return fmt.Sprintf(`account_id = %d AND link_id %s (SELECT link_id FROM clicks WHERE account_id = %[1]d AND %[3]s GROUP BY link_id)`,
		b.query.AccountID, b.in, days(from.Add(-day), to.Add(day)))
}

// series adds the clicks of each period and, without a filter, of the time before.
func (b *reportBuilder) series() {
	q := b.query
	at, from, last := quarter, q.Bounds[0], q.Bounds[len(q.Bounds)-1]
	table, within, begins := b.links, "", q.Bounds[:len(q.Bounds)-1]
	switch {
	case b.filter == "":
		if table == "" {
			table = b.ofAccount()
		}
		from, begins = q.Previous, append([]time.Time{q.Previous}, begins...)
		within = fmt.Sprintf("%s >= toDateTime(%d, 'UTC') AND %[1]s < toDateTime(%[3]d, 'UTC')", quarter, from.Unix(), last.Unix())
	case allDays(q.Bounds):
		table, at, within = b.ofAccount(), "toDateTime(toDate(clicked_at), 'UTC')", days(from, last)
	default:
		table, within = b.ofRows(from, last), between(from, last)
	}
	unix := make([]string, len(begins))
	for i, begin := range begins {
		unix[i] = fmt.Sprint(begin.Unix())
	}
	kind := fmt.Sprint(kindSeries)
	if b.filter == "" {
		kind = fmt.Sprintf("if(begin < %d, %d, %d)", q.Bounds[0].Unix(), kindPrevious, kindSeries)
	}
	b.part(fmt.Sprintf(`SELECT %s AS kind, '' AS name, begin AS at, toInt64(sum(of_people)) AS p, toInt64(sum(of_bots)) AS b
FROM (
	SELECT roundDown(toUnixTimestamp(%s), [%s]::Array(UInt32)) AS begin, %s AS of_people, %s AS of_bots
	FROM clicks WHERE %s AND %s%s GROUP BY begin
) GROUP BY begin`, kind, at, strings.Join(unix, ", "), people, bots, table, within, b.filter))
}

// ofNames adds the names of all dimensions.
func (b *reportBuilder) ofNames(from, to time.Time) {
	for i, by := range schema.Dimensions() {
		if b.links == "" || b.filter != "" {
			b.sums(kindName+i, string(by), from, to, " AND device != 'bot'")
		} else {
			b.edges(kindName+i, string(by), from, to, " AND device != 'bot'")
		}
	}
	if b.links == "" || b.filter != "" {
		return
	}
	within := days(nearest(from), nearest(to))
	pair := func(first, second schema.Dimension, condition, sum string) {
		kinds := map[schema.Dimension]int{}
		for i, by := range schema.Dimensions() {
			kinds[by] = kindName + i
		}
		b.part(fmt.Sprintf(`SELECT kind, name, 0 AS at, toInt64(of_people) AS p, 0 AS b
FROM (SELECT %s, %s, %s AS of_people FROM clicks WHERE %s AND %s%s GROUP BY %[1]s, %[2]s)
ARRAY JOIN [%[7]d, %d] AS kind, [toString(%[1]s), toString(%[2]s)] AS name`,
			first, second, sum, b.links, within, condition, kinds[first], kinds[second]))
	}
	pair(schema.ByDevice, schema.ByBrowser, " AND device != 'bot'", "sum(weight)")
	pair(schema.ByOS, schema.ByLanguage, "", people)
	pair(schema.ByReferrer, schema.ByCountry, "", people)
}

// ofLinks adds the clicks of each link.
func (b *reportBuilder) ofLinks(from, to time.Time) {
	if b.filter != "" || b.links != "" {
		b.sums(kindLink, "link_id", from, to, "")
		return
	}
	b.edges(kindLink, "link_id", from, to, "")
	b.part(fmt.Sprintf(`SELECT %d AS kind, toString(link_id) AS name, 0 AS at, toInt64(%s) AS p, toInt64(%s) AS b
FROM clicks WHERE %s AND %s GROUP BY link_id`, kindLink, people, bots, b.ofAccount(), days(nearest(from), nearest(to))))
}

// sums adds the clicks of a time by a column, of UTC days from dimensions.
func (b *reportBuilder) sums(kind int, column string, from, to time.Time, condition string) {
	b.part(fmt.Sprintf(`SELECT %d AS kind, toString(%s) AS name, 0 AS at, toInt64(sumIf(n, NOT bot)) AS p, toInt64(sumIf(n, bot)) AS b
FROM (
	SELECT %[2]s, device = 'bot' AS bot, sum(weight) AS n
	FROM clicks WHERE %s AND %s%s%s GROUP BY %[2]s, bot
) GROUP BY name`, kind, column, b.ofAccount(), days(nearest(from), nearest(to)), condition, b.filter))
	b.edges(kind, column, from, to, condition)
}

// edges adds the clicks by a column between the UTC days nearest to a time and the time itself.
func (b *reportBuilder) edges(kind int, column string, from, to time.Time, condition string) {
	var within, signs []string
	edge := func(from, to time.Time, sign int) {
		if from.After(to) {
			from, to, sign = to, from, -sign
		}
		if from.Before(to) {
			within = append(within, between(from, to))
			signs = append(signs, fmt.Sprintf("%d * (%s)", sign, between(from, to)))
		}
	}
	edge(from, nearest(from), 1)
	edge(nearest(to), to, 1)
	if len(within) == 0 {
		return
	}
	b.part(fmt.Sprintf(`SELECT %d AS kind, toString(%s) AS name, 0 AS at, sumIf(n, NOT bot) AS p, sumIf(n, bot) AS b
FROM (
	SELECT %[2]s, device = 'bot' AS bot, sum(toInt64(weight) * (%s)) AS n
	FROM clicks WHERE %s AND (%s)%s%s GROUP BY %[2]s, bot
) GROUP BY name`, kind, column, strings.Join(signs, " + "), b.ofRows(from, to), strings.Join(within, " OR "), condition, b.filter))
}

// nearest returns the UTC midnight nearest to t.
func nearest(t time.Time) time.Time { return t.UTC().Add(day / 2).Truncate(day) }

func allDays(bounds []time.Time) bool {
	for _, t := range bounds {
		if !nearest(t).Equal(t) {
			return false
		}
	}
	return true
}

// days is the condition for the UTC days from one to before another.
func days(from, to time.Time) string {
	return fmt.Sprintf("toDate(clicked_at) >= '%s' AND toDate(clicked_at) < '%s'", dateOf(from), dateOf(to))
}

// between is the condition for the clicks from one time to before another.
func between(from, to time.Time) string {
	return fmt.Sprintf("clicked_at >= fromUnixTimestamp64Milli(%d, 'UTC') AND clicked_at < fromUnixTimestamp64Milli(%d, 'UTC')",
		from.UnixMilli(), to.UnixMilli())
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
