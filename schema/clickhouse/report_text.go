package clickhouse

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"linkstream/schema"
)

// A report adds up parts. Each part reads a projection:
//
//	series             link_quarters or account_quarters; with a filter dimensions, or weighted_counts if it has the filter's names
//	names of links     weighted_counts, link_places and link_referrers for UTC days
//	other names        dimensions for UTC days, referrers apart from the others; weighted_counts as for the series
//	links              link_quarters, weighted_accounts, or with a filter dimensions
//
// A time that does not begin or end with a UTC day is counted as the UTC days nearest to it, plus or minus the clicks in between,
// which are read as rows: those of the table for links, those of account_rows for an account. No part needs a subquery of other
// rows, which a cluster would have to send to its nodes.

// Kinds of a report's rows. The kinds of dimensions follow in the order of schema.Dimensions.
const (
	kindSeries = iota // clicks of the period that at is in
	kindDay           // clicks of a UTC day
	kindShift         // clicks that are not in the period that the nearest UTC days give them to
	kindLink
	kindName
)

// kindOf returns the kind of rows with the names of a dimension.
func kindOf(by schema.Dimension) uint8 {
	return uint8(kindName + slices.Index(schema.Dimensions(), by))
}

const (
	quarter = "toStartOfFifteenMinutes(clicked_at)"
	people  = "sumIf(weight, device != 'bot')"
	bots    = "sumIf(weight, device = 'bot')"
	unixOf  = "toUInt32(toUnixTimestamp(%s))"
)

// maxShifts bounds the periods of a filtered report that are corrected one by one. The server compares each granule of rows with each
// of them.
const maxShifts = 100

// reportText is a query of a report and its arguments. Names are arguments, everything else is numbers.
type reportText struct {
	query string
	args  []any
}

// wholeReport returns one query.
func wholeReport(q schema.ReportQuery, l layout) reportText {
	b := newReportBuilder(q, l)
	for _, add := range b.pieces() {
		add(b)
	}
	return b.sum()
}

// splitReport returns a query for each piece, whose totals show whether all are of one moment.
func splitReport(q schema.ReportQuery, l layout) (texts []reportText) {
	for _, add := range newReportBuilder(q, l).pieces() {
		b := newReportBuilder(q, l)
		add(b)
		texts = append(texts, b.sum())
	}
	return texts
}

// pieces are the periods, the names and the links of a report. Referrers are read apart from other names: a link with 300 of them has
// hundreds of times as many groups with them as without, and adding these up takes twice as long as reading the rows twice. Where a
// filter leaves few rows, it does not.
func (b *reportBuilder) pieces() []func(*reportBuilder) {
	all := []func(*reportBuilder){(*reportBuilder).series}
	switch {
	case b.query.OnlyLinks:
	case b.links != "" && b.filter == "":
		all = append(all, (*reportBuilder).ofNarrowNames)
	case b.ofCounts():
		all = append(all, (*reportBuilder).ofCountedNames, func(b *reportBuilder) {
			b.ofNames(schema.ByOS, schema.ByLanguage, schema.ByCountry)
		}, func(b *reportBuilder) { b.ofNames(schema.ByReferrer) })
	case b.leavesFew():
		all = append(all, func(b *reportBuilder) { b.ofNames(schema.Dimensions()...) })
	default:
		all = append(all, func(b *reportBuilder) {
			b.ofNames(schema.ByDevice, schema.ByBrowser, schema.ByOS, schema.ByLanguage, schema.ByCountry)
		}, func(b *reportBuilder) { b.ofNames(schema.ByReferrer) })
	}
	if b.query.TopLinks {
		all = append(all, (*reportBuilder).ofLinks)
	}
	return all
}

// reportScan returns the query of a report that reads all clicks as rows, in one part.
func reportScan(q schema.ReportQuery, l layout) reportText {
	b := newReportBuilder(q, l)
	b.ranked = true
	begins, links, all := []time.Time{q.Previous}, q.TopLinks, namesOf(q)
	since := fmt.Sprintf("clicked_at >= fromUnixTimestamp64Milli(%d, 'UTC')", b.from.UnixMilli())
	b.part(fmt.Sprintf(`SELECT if(grouping(begin) = 0, %d, %s) AS kind, %s AS name, begin AS at,
	toInt64(if(grouping(begin) = 0, sumIf(weight, device != 'bot'), sumIf(weight, device != 'bot' AND %s))) AS p,
	toInt64(if(grouping(begin) = 0, sumIf(weight, device = 'bot'), sumIf(weight, device = 'bot' AND %[4]s))) AS b
FROM clicks WHERE %[5]s AND %[6]s%[7]s GROUP BY GROUPING SETS ((roundDown(toUnixTimestamp(%[8]s), %[9]s) AS begin), %[10]s)`,
		kindSeries, kindOfSet(links, all...), nameOfSet(links, all...), since, b.ofRows(), between(q.Previous, b.to), b.filter, quarter,
		unixTimes(append(begins, q.Bounds[:len(q.Bounds)-1]...)), sets(links, all...)))
	return b.sum()
}

// namesOf returns the dimensions whose names a query asks for.
func namesOf(q schema.ReportQuery) []schema.Dimension {
	if q.OnlyLinks {
		return nil
	}
	return schema.Dimensions()
}

// reportBuilder collects the parts of a report's query.
type reportBuilder struct {
	query    schema.ReportQuery
	layout   layout
	from, to time.Time
	links    string // condition of the links; "" for all of the account
	filter   string // condition that begins with AND, with names as arguments
	names    []any
	parts    []string
	args     []any
	ranked   bool // whether parts have names or links
}

func newReportBuilder(q schema.ReportQuery, l layout) *reportBuilder {
	b := &reportBuilder{query: q, layout: l, from: q.Bounds[0], to: q.Bounds[len(q.Bounds)-1]}
	for _, by := range schema.Dimensions() {
		if name, ok := q.Filter[by]; ok {
			b.filter += " AND " + string(by) + " = ?"
			b.names = append(b.names, name)
		}
	}
	if q.Links != nil {
		b.links = linkCondition(q.Links)
	}
	return b
}

// leavesFew reports whether the filter names one of many.
func (b *reportBuilder) leavesFew() bool {
	for _, by := range []schema.Dimension{schema.ByLanguage, schema.ByReferrer, schema.ByCountry} {
		if _, ok := b.query.Filter[by]; ok {
			return true
		}
	}
	return false
}

// ofCounts reports whether weighted_counts has all names of the filter. Such a filter leaves many clicks, of which dimensions has thousands
// of times as many rows.
func (b *reportBuilder) ofCounts() bool {
	for by := range b.query.Filter {
		if by != schema.ByDevice && by != schema.ByBrowser {
			return false
		}
	}
	return b.links != "" && b.filter != ""
}

func linkCondition(links []int64) string {
	return "link_id IN (" + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(links)), ", "), "[]") + ")"
}

// sum returns the query that adds up the parts. Names and links have the totals of each kind, see consistent, and only the first ones are
// returned.
func (b *reportBuilder) sum() reportText {
	query := fmt.Sprintf(`SELECT kind, name, at, sum(p) AS of_people, sum(b) AS of_bots%s
FROM (
%s
)
GROUP BY kind, name, at
HAVING of_people > 0 OR kind < %d AND of_bots > 0`, b.totals(), strings.Join(b.parts, "\nUNION ALL\n"), kindName)
	if !b.ranked {
		return reportText{query, b.args}
	}
	return reportText{fmt.Sprintf(`SELECT *
FROM (
SELECT *, sum(of_people) OVER (PARTITION BY kind), sum(of_bots) OVER (PARTITION BY kind)
FROM (
%s
)
)
ORDER BY kind, of_people + if(kind = %d, of_bots, 0) DESC, if(kind = %[2]d, toInt64OrZero(name), 0), name
LIMIT %[3]d BY kind, at`, query, kindLink, b.query.Limit), b.args}
}

// totals returns the columns of totals where there are none.
func (b *reportBuilder) totals() string {
	if b.ranked {
		return ""
	}
	return ", toInt64(0), toInt64(0)"
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

// ofAccount is the condition for the clicks that the query selects in projections that begin with the account.
func (b *reportBuilder) ofAccount() string {
	if b.links == "" {
		return fmt.Sprintf("account_id = %d", b.query.AccountID)
	}
	return fmt.Sprintf("account_id IN (%d, 0) AND %s", b.query.AccountID, b.links) // some clicks are without the account
}

// ofDays is the condition for the filtered clicks that the query selects in the projection which has them by day, device and filter.
func (b *reportBuilder) ofDays() string {
	if b.ofCounts() {
		return b.links
	}
	return b.ofAccount()
}

// ofRows is the condition for the clicks that the query selects among rows.
func (b *reportBuilder) ofRows() string {
	if b.links == "" {
		return b.ofAccount()
	}
	return b.links
}

// series adds the clicks of each period and of the time before.
func (b *reportBuilder) series() {
	bounds := append([]time.Time{b.query.Previous}, b.query.Bounds...)
	rows, within := b.ofRows(), ""
	switch shifts := windowsOf(bounds); {
	case b.filter == "":
		within = quarters(bounds[0], b.to)
	case len(shifts) > 0 && b.layout.Cluster != "": // no total shows that corrections are of another moment
		within = between(bounds[0], b.to)
	case len(shifts) > maxShifts || len(bounds) > 2+int(b.to.Sub(bounds[0])/(20*time.Hour)): // by hour
		within = between(bounds[0], b.to)
	default:
		b.part(fmt.Sprintf(`SELECT %d AS kind, '' AS name, `+unixOf+` AS at, toInt64(sumIf(n, device != 'bot')) AS p,
	toInt64(sumIf(n, device = 'bot')) AS b
FROM (SELECT toDate(clicked_at) AS date, device, sum(weight) AS n FROM clicks WHERE %s AND %s%s GROUP BY date, device) GROUP BY date`,
			kindDay, "toDateTime(date, 'UTC')", b.ofDays(), days(nearest(bounds[0]), nearest(b.to)), b.filter))
		if len(shifts) > 0 {
			b.part(fmt.Sprintf(`SELECT %d AS kind, '' AS name, `+unixOf+` AS at, toInt64(%s) AS p, toInt64(%s) AS b
FROM clicks WHERE %s AND (%s)%s GROUP BY at`, kindShift, quarter, people, bots, rows, strings.Join(shifts, " OR "), b.filter))
		}
		return
	}
	b.part(fmt.Sprintf(`SELECT %d AS kind, '' AS name, begin AS at, toInt64(sum(of_people)) AS p, toInt64(sum(of_bots)) AS b
FROM (
	SELECT roundDown(toUnixTimestamp(%s), %s) AS begin, %s AS of_people, %s AS of_bots
	FROM clicks WHERE %s AND %s%s GROUP BY begin
) GROUP BY begin`, kindSeries, quarter, unixTimes(bounds[:len(bounds)-1]), people, bots, rows, within, b.filter))
}

// ofNarrowNames adds the names of all dimensions from the projections of links.
func (b *reportBuilder) ofNarrowNames() {
	b.ranked = true
	within := days(nearest(b.from), nearest(b.to))
	b.narrow(within, people, schema.ByReferrer)
	b.narrow(within, people, schema.ByOS, schema.ByLanguage, schema.ByCountry)
	b.narrow(within+" AND device != 'bot'", "sum(weight)", schema.ByDevice, schema.ByBrowser)
	b.edges(false, schema.Dimensions()...)
}

// ofCountedNames adds the names that weighted_counts has.
func (b *reportBuilder) ofCountedNames() {
	b.ranked = true
	b.narrow(days(nearest(b.from), nearest(b.to))+" AND device != 'bot'", "sum(weight)", schema.ByDevice, schema.ByBrowser)
	b.edges(false, schema.ByDevice, schema.ByBrowser)
}

// ofNames adds the names of dimensions from the projection that has all of them. It is read once for these dimensions together. Sets of
// groups are not found in projections.
func (b *reportBuilder) ofNames(dimensions ...schema.Dimension) {
	b.ranked = true
	b.part(fmt.Sprintf(`SELECT %s AS kind, %s AS name, toUInt32(0) AS at, toInt64(sum(n)) AS p, toInt64(0) AS b
FROM (SELECT %s, sum(weight) AS n FROM clicks WHERE %s AND %s AND device != 'bot'%s GROUP BY %[3]s)
GROUP BY GROUPING SETS (%[7]s)`, kindOfSet(false, dimensions...), nameOfSet(false, dimensions...), columnsOf(dimensions), b.ofAccount(),
		days(nearest(b.from), nearest(b.to)), b.filter, sets(false, dimensions...)))
	b.edges(false, dimensions...)
}

// narrow adds the names of dimensions that one projection has.
func (b *reportBuilder) narrow(within, sum string, dimensions ...schema.Dimension) {
	var columns, names, kinds []string
	for _, by := range dimensions {
		columns, names = append(columns, string(by)), append(names, "toString("+string(by)+")")
		kinds = append(kinds, fmt.Sprint(kindOf(by)))
	}
	b.part(fmt.Sprintf(`SELECT kind, name, toUInt32(0) AS at, toInt64(n) AS p, toInt64(0) AS b
FROM (SELECT %s, %s AS n FROM clicks WHERE %s AND %s%s GROUP BY %[1]s)
ARRAY JOIN [%[6]s] AS kind, [%[7]s] AS name`,
		strings.Join(columns, ", "), sum, b.links, within, b.filter, strings.Join(kinds, ", "), strings.Join(names, ", ")))
}

// ofLinks adds the clicks of each link.
func (b *reportBuilder) ofLinks() {
	b.ranked = true
	const part = `SELECT %d AS kind, toString(link_id) AS name, toUInt32(0) AS at, toInt64(%s) AS p, toInt64(%s) AS b
FROM %s GROUP BY link_id`
	switch {
	case b.filter != "":
		b.part(fmt.Sprintf(part, kindLink, "sumIf(n, device != 'bot')", "sumIf(n, device = 'bot')", fmt.Sprintf(
			"(SELECT link_id, device, sum(weight) AS n FROM clicks WHERE %s AND %s%s GROUP BY link_id, device)",
			b.ofDays(), days(nearest(b.from), nearest(b.to)), b.filter)))
	case b.links != "":
		b.part(fmt.Sprintf(part, kindLink, people, bots, "clicks WHERE "+b.links+" AND "+quarters(b.from, b.to)))
		return
	default:
		b.part(fmt.Sprintf(part, kindLink, people, bots, "clicks WHERE "+b.ofAccount()+" AND "+days(nearest(b.from), nearest(b.to))))
	}
	b.edges(true)
}

// edges adds the clicks between the UTC days nearest to the report's time and the time itself, negative for those outside of it: those of
// links, or of the names of dimensions.
func (b *reportBuilder) edges(links bool, dimensions ...schema.Dimension) {
	within := windowsOf([]time.Time{b.from, b.to})
	if len(within) == 0 {
		return
	}
	b.part(fmt.Sprintf(`SELECT %s AS kind, %s AS name, toUInt32(0) AS at, sumIf(n, device != 'bot') AS p, sumIf(n, device = 'bot') AS b
FROM (
	SELECT %s, toInt64(weight) * (toInt64(%s) - toInt64(%s)) AS n
	FROM clicks WHERE %s AND (%s)%s
) GROUP BY GROUPING SETS (%s)`, kindOfSet(links, dimensions...), nameOfSet(links, dimensions...),
		columnsOf(append([]schema.Dimension{"link_id", schema.ByDevice}, dimensions...)), between(b.from, b.to),
		days(nearest(b.from), nearest(b.to)), b.ofRows(), strings.Join(within, " OR "), b.filter, sets(links, dimensions...)))
}

// columnsOf returns the columns of dimensions, each once.
func columnsOf(dimensions []schema.Dimension) string {
	var columns []string
	for _, by := range dimensions {
		if !slices.Contains(columns, string(by)) {
			columns = append(columns, string(by))
		}
	}
	return strings.Join(columns, ", ")
}

// sets returns a set of groups for each dimension, and one for links.
func sets(links bool, dimensions ...schema.Dimension) string {
	var all []string
	for _, by := range dimensions {
		all = append(all, "("+string(by)+")")
	}
	if links {
		all = append(all, "(link_id)")
	}
	return strings.Join(all, ", ")
}

// kindOfSet returns the kind of a row of such a set.
func kindOfSet(links bool, dimensions ...schema.Dimension) string {
	cases, kind := "", kindLink // of the last set
	if !links {
		last := len(dimensions) - 1
		dimensions, kind = dimensions[:last], int(kindOf(dimensions[last]))
	}
	for _, by := range dimensions {
		cases += fmt.Sprintf("grouping(%s) = 0, %d, ", by, kindOf(by))
	}
	if cases == "" {
		return fmt.Sprint(kind)
	}
	return fmt.Sprintf("multiIf(%s%d)", cases, kind)
}

// nameOfSet returns the name of a row of such a set: all columns but one have their default.
func nameOfSet(links bool, dimensions ...schema.Dimension) string {
	if len(dimensions) == 0 {
		return "toString(link_id)"
	}
	name := "concat(" + columnsOf(dimensions) + ", '')"
	if links {
		name = "if(grouping(link_id) = 0, toString(link_id), " + name + ")"
	}
	return name
}

// windowsOf returns the conditions for the clicks between times and the UTC midnights nearest to them.
func windowsOf(times []time.Time) (conditions []string) {
	for _, at := range times {
		if from, to := at, nearest(at); from.Before(to) {
			conditions = append(conditions, between(from, to))
		} else if to.Before(from) {
			conditions = append(conditions, between(to, from))
		}
	}
	return conditions
}

// nearest returns the UTC midnight nearest to t.
func nearest(t time.Time) time.Time { return t.UTC().Add(day / 2).Truncate(day) }

// days is the condition for the UTC days from one to before another.
func days(from, to time.Time) string {
	return fmt.Sprintf("toDate(clicked_at) >= '%s' AND toDate(clicked_at) < '%s'", dateOf(from), dateOf(to))
}

// quarters is the condition for the clicks from one time to before another, in terms of projections.
func quarters(from, to time.Time) string {
	return fmt.Sprintf("%s >= toDateTime(%d, 'UTC') AND %[1]s < toDateTime(%[3]d, 'UTC')", quarter, from.Unix(), to.Unix())
}

// between is the condition for the clicks from one time to before another, in terms of rows.
func between(from, to time.Time) string {
	return fmt.Sprintf("clicked_at >= fromUnixTimestamp64Milli(%d, 'UTC') AND clicked_at < fromUnixTimestamp64Milli(%d, 'UTC')",
		from.UnixMilli(), to.UnixMilli())
}

// unixTimes returns an array of times.
func unixTimes(times []time.Time) string {
	unix := make([]string, len(times))
	for i, at := range times {
		unix[i] = fmt.Sprint(at.Unix())
	}
	return "[" + strings.Join(unix, ", ") + "]::Array(UInt32)"
}
