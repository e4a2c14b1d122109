package clickhouse

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"linkstream/schema"
)

// The queries of a report. "Reports" in the package documentation says which projections they read.

const linkColumn = "link_id"

// reportPart is a query of a report, whose rows are reportRows. Names are arguments, everything else is numbers.
type reportPart struct {
	query    string
	args     []any
	settings ch.Settings
}

// reportGroup is what a query counts clicks by.
type reportGroup struct {
	series  bool     // by the periods of the report, and the time before
	columns []string // by their names
	ranked  bool     // the server returns only the names with the most clicks: see linkGroup.many
	// visitors says that visitors are counted, not names.
	visitors bool
}

// names returns the names of a row as an array.
func (g reportGroup) names() string {
	if len(g.columns) == 0 {
		return "[]::Array(String)"
	}
	return "[toString(" + strings.Join(g.columns, "), toString(") + ")]"
}

// rankedDays is the longest time in days whose names of links the server returns without ranking them. To plan a
// ranking takes the server half as long as to read the names of a month.
const rankedDays = 100

// reportGroups returns the groups of a report, the series first. Each column is in one group. A series of UTC days is
// counted together with the first names if both come from the same projection.
func reportGroups(q schema.ReportQuery) []reportGroup {
	groups := []reportGroup{{series: true}}
	ranked := q.Links == nil || q.End().Sub(q.Bounds[0]) > rankedDays*day
	for i, group := range linkGroups {
		switch {
		case q.NoNames:
		case i == 0 && q.OfUTCDays() && (q.Links != nil || len(q.Filter) > 0):
			groups[0].columns = group.columns
		case group.many && ranked:
			for _, column := range group.columns {
				groups = append(groups, reportGroup{columns: []string{column}, ranked: true})
			}
		default:
			groups = append(groups, reportGroup{columns: group.columns})
		}
	}
	if q.TopLinks {
		groups = append(groups, reportGroup{columns: []string{linkColumn}, ranked: ranked})
	}
	if q.CountsVisitors() {
		groups = append(groups, reportGroup{visitors: true})
	}
	return groups
}

// partsOf returns the queries of a report: one per group, and one of the edges of the groups that the server does not
// rank.
func partsOf(q schema.ReportQuery, pinned []int64) []reportPart {
	b := newReportBuilder(q, pinned)
	parts := []reportPart{b.series()}
	scanned := map[int]reportGroup{}
	for number, group := range b.groups {
		if number == 0 {
			continue
		}
		if group.visitors {
			parts = append(parts, b.visitors(number))
			continue
		}
		if !group.ranked {
			scanned[number] = group
		}
		if group.ranked || b.hasDays() {
			parts = append(parts, b.names(number, group))
		}
	}
	if edges := b.edges(); edges != "" && len(scanned) > 0 {
		parts = append(parts, b.scan(scanned, "("+edges+")"))
	}
	return parts
}

// scansOf returns one query that reads the clicks of a report, with those of the time before, as rows, and one of
// visitors.
func scansOf(q schema.ReportQuery, pinned []int64) (parts []reportPart) {
	b, all := newReportBuilder(q, pinned), map[int]reportGroup{}
	for number, group := range b.groups {
		if group.visitors {
			parts = append(parts, b.visitors(number))
		} else {
			all[number] = group
		}
	}
	return append(parts, b.scan(all, between(q.Previous, b.to)))
}

// maxReportQuery bounds the bytes of a query, which names the links several times.
const maxReportQuery = 16 << 20

// reportBuilder makes the queries of a report.
type reportBuilder struct {
	query           schema.ReportQuery
	groups          []reportGroup
	from, to        time.Time
	begins          string // of the time before and of the periods
	account, links  string // conditions; no links for all of the account
	filter          string // condition that begins with AND
	args            []any  // of the filter
	firstDay, after time.Time
	// pinned are links whose clicks are returned however few they are.
	pinned []int64
}

func newReportBuilder(q schema.ReportQuery, pinned []int64) *reportBuilder {
	b := &reportBuilder{query: q, groups: reportGroups(q), from: q.Bounds[0], to: q.End(),
		account: fmt.Sprintf("account_id = %d", q.AccountID), pinned: pinned}
	b.begins = unixTimes(append([]time.Time{q.Previous}, q.Bounds[:len(q.Bounds)-1]...))
	if q.Links != nil {
		b.links = "link_id IN " + listOf(q.Links)
	}
	for _, by := range dimensions {
		if name, ok := q.Filter[by]; ok {
			b.filter += " AND " + string(by) + " = ?"
			b.args = append(b.args, name)
		}
	}
	b.firstDay, b.after = b.from.Add(day-1).Truncate(day), b.to.Truncate(day)
	return b
}

// hasDays reports whether the report has whole UTC days.
func (b *reportBuilder) hasDays() bool { return b.firstDay.Before(b.after) }

// part returns a query of a projection, or of the table if it is "".
func (b *reportBuilder) part(projection, query string) reportPart {
	part := reportPart{query: query, settings: projectionSettings(projection)}
	part.settings["max_query_size"], part.settings["priority"] = maxReportQuery, reportPriority
	if b.query.Yields {
		part.settings["priority"] = yieldingPriority
	}
	if projection == "" {
		part.settings["optimize_use_projections"] = 0
	}
	if b.filter != "" {
		for range strings.Count(query, b.filter) {
			part.args = append(part.args, b.args...)
		}
	}
	return part
}

// ofDays returns the smallest projection that has a group by UTC day, and the condition for the clicks of the report in
// it.
func (b *reportBuilder) ofDays(group reportGroup) (projection, where string) {
	ofLinks := slices.Equal(group.columns, []string{linkColumn})
	switch {
	case b.filter == "" && b.links != "":
		for _, other := range linkGroups {
			if ofLinks || other.has(group.columns) {
				return other.projection, b.links
			}
		}
	case b.filter == "" && ofLinks:
		return "account_links", b.account
	case b.links != "":
		return "dimensions", b.account + " AND " + b.links
	}
	return "dimensions", b.account
}

// ofRows returns the projection that has rows in the order of the account, or none for links, and the condition for the
// clicks of the report among them.
func (b *reportBuilder) ofRows() (projection, where string) {
	if b.links != "" {
		return "", b.links
	}
	return "account_rows", b.account
}

const (
	quarter = "toStartOfFifteenMinutes(clicked_at)"
	noTotal = "toInt64(0) AS all_people, toInt64(0) AS all_bots, " + noVisitors
	// noVisitors is the column of queries that do not count visitors.
	noVisitors = "toInt64(0) AS visitors"
)

// series counts the clicks of each period and of the time before; those of UTC days by the day, which the store adds
// up.
func (b *reportBuilder) series() reportPart {
	group, key, begin := b.groups[0], "begin", b.beginOf(quarter)
	projection, where := "account_quarters", b.account
	if b.links != "" {
		projection, where = "link_quarters", b.links
	}
	window := quarters(b.query.Previous, b.to)
	switch {
	case len(group.columns) > 0 || b.filter != "" && b.query.OfUTCDays():
		projection, where = b.ofDays(group)
		key, begin, window = "toDate(clicked_at)", "toUnixTimestamp(toDateTime(toDate(clicked_at), 'UTC'))",
			days(b.query.Previous, b.to)
	case b.filter != "":
		projection, where = b.ofRows()
		window = between(b.query.Previous, b.to)
	}
	head := fmt.Sprintf("toUInt8(0) AS number, %s AS names, %s AS begin", group.names(), begin)
	return b.part(projection, b.counts(head, append([]string{key}, group.columns...), where+" AND "+window))
}

// beginOf returns the beginning of the period that has a time.
func (b *reportBuilder) beginOf(at string) string {
	return fmt.Sprintf("roundDown(toUnixTimestamp(%s), %s)", at, b.begins)
}

// counts counts clicks by keys.
func (b *reportBuilder) counts(head string, keys []string, where string) string {
	return fmt.Sprintf("SELECT %s, toInt64(%s) AS people, toInt64(%s) AS bots, %s FROM clicks WHERE %s%s GROUP BY %s",
		head, people, bots, noTotal, where, b.filter, strings.Join(keys, ", "))
}

// names counts the clicks of each name of a group on whole UTC days. If the server ranks the names, it has to count
// those of the edges, too.
func (b *reportBuilder) names(number int, group reportGroup) reportPart {
	projection, where := b.ofDays(group)
	where += " AND " + days(b.firstDay, b.after)
	head := fmt.Sprintf("toUInt8(%d) AS number, %s AS names, toUInt32(0) AS begin", number, group.names())
	if !group.ranked {
		return b.part(projection, b.counts(head, group.columns, where))
	}
	column, rank, limit := group.columns[0], "people", b.query.Limit
	if column == linkColumn {
		rank = "people + bots"
		if len(b.pinned) > 0 {
			rank, limit = fmt.Sprintf("link_id IN %s DESC, %s", listOf(b.pinned), rank), limit+len(b.pinned)
		}
	}
	var sums []string
	if b.hasDays() {
		sums = append(sums, b.counts(column, group.columns, where))
	}
	if edges := b.edges(); edges != "" {
		_, where = b.ofRows()
		sums = append(sums, b.counts(column, group.columns, where+" AND ("+edges+")"))
	}
	from := strings.Join(sums, "\nUNION ALL\n")
	if len(sums) > 1 {
		from = fmt.Sprintf("SELECT %s, sum(people) AS people, sum(bots) AS bots FROM (%s) GROUP BY %[1]s", column, from)
	}
	return b.part(projection, fmt.Sprintf(`SELECT %s, people, bots, all_people, all_bots, %[6]s
FROM (SELECT %[2]s, people, bots, sum(people) OVER () AS all_people, sum(bots) OVER () AS all_bots FROM (%s))
ORDER BY %s DESC, %[2]s LIMIT %[5]d`, head, column, from, rank, limit, noVisitors))
}

// edges is the condition for the report's clicks that are not of whole UTC days; "" if there are none.
func (b *reportBuilder) edges() string {
	if !b.hasDays() {
		return between(b.from, b.to)
	}
	var windows []string
	if b.from.Before(b.firstDay) {
		windows = append(windows, between(b.from, b.firstDay))
	}
	if b.after.Before(b.to) {
		windows = append(windows, between(b.after, b.to))
	}
	return strings.Join(windows, " OR ")
}

// scan counts the clicks of a time by several groups in one pass over rows. Sets of groups are not found in
// projections.
func (b *reportBuilder) scan(groups map[int]reportGroup, window string) reportPart {
	number, names := "0", "[]::Array(String)"
	columns, begin, sum := []string{"weight", "device"}, "toUInt32(0) AS begin",
		"toInt64(sumIf(weight, device %[1]s 'bot'))"
	if groups[0].series {
		columns = append(columns, b.beginOf(quarter)+" AS begin", fmt.Sprintf("begin >= %d AS inside", b.from.Unix()))
		begin, sum = "begin",
			"toInt64(if(grouping(begin) = 0, sumIf(weight, device %[1]s 'bot'), sumIf(weight, device %[1]s 'bot' AND inside)))"
	}
	var sets []string
	for _, i := range slices.Sorted(maps.Keys(groups)) {
		set := groups[i].columns
		for _, column := range set {
			if column != string(schema.ByDevice) {
				columns = append(columns, column)
			}
		}
		if groups[i].series {
			set = append([]string{"begin"}, set...)
		}
		sets = append(sets, "("+strings.Join(set, ", ")+")")
		number = fmt.Sprintf("if(grouping(%s) = 0, %d, %s)", set[0], i, number)
		names = fmt.Sprintf("if(grouping(%s) = 0, %s, %s)", set[0], groups[i].names(), names)
	}
	projection, where := b.ofRows()
	return b.part(projection, fmt.Sprintf(`SELECT toUInt8(%s) AS number, %s AS names, %s, %s AS people, %s AS bots, %s
FROM (SELECT %s FROM clicks WHERE %s AND %s%s)
GROUP BY GROUPING SETS (%s)%s`, number, names, begin, fmt.Sprintf(sum, "!="), fmt.Sprintf(sum, "="), noTotal,
		strings.Join(columns, ", "), where, window, b.filter, strings.Join(sets, ", "), b.first(groups)))
}

// first leaves the first names of each ranked group of a scan.
func (b *reportBuilder) first(groups map[int]reportGroup) string {
	ranked, ofLinks := []string{}, -1
	for i, group := range groups {
		if group.ranked {
			ranked = append(ranked, strconv.Itoa(i))
		}
		if slices.Equal(group.columns, []string{linkColumn}) {
			ofLinks = i
		}
	}
	if len(ranked) == 0 {
		return ""
	}
	pinned := ""
	if len(b.pinned) > 0 {
		pinned = fmt.Sprintf("number = %d AND toInt64OrZero(names[1]) IN %s DESC, ", ofLinks, listOf(b.pinned))
	}
	return fmt.Sprintf(`
ORDER BY number, %speople + if(number = %[2]d, bots, 0) DESC, if(number = %[2]d, toInt64OrZero(names[1]), 0), names
LIMIT %[3]d BY number, begin, if(number IN (%[4]s), [], names)`, pinned, ofLinks, b.query.Limit+len(b.pinned),
		strings.Join(ranked, ", "))
}

// listOf returns a list of IDs, of at least one.
func listOf(ids []int64) string {
	return "(" + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(ids)), ", "), "[]") + ")"
}

// days is the condition for the UTC days from one to before another.
func days(from, to time.Time) string {
	return fmt.Sprintf("toDate(clicked_at) >= '%s' AND toDate(clicked_at) < '%s'", from.Format(time.DateOnly),
		to.Format(time.DateOnly))
}

// quarters is the condition for the clicks from one time to before another, in terms of projections.
func quarters(from, to time.Time) string {
	return fmt.Sprintf("%s >= toDateTime(%d, 'UTC') AND %[1]s < toDateTime(%[3]d, 'UTC')", quarter, from.Unix(), to.Unix())
}

// between is the condition for the clicks from one time to before another, in terms of rows.
func between(from, to time.Time) string {
	return fmt.Sprintf("clicked_at >= fromUnixTimestamp64Milli(%d, 'UTC') AND clicked_at < fromUnixTimestamp64Milli(%d, "+
		"'UTC')",
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
