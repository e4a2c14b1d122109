package clickhouse

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/errgroup"

	"linkstream/schema"
)

// quickDays bounds a report whose names are all sent to the store: a link has up to schema.MaxNames referrers per day.
const quickDays = 100

// isQuick reports whether a report is read by quickReport. Planning takes most of the time of such a report: a server plans queries of
// one table, which name the projection to use, several times faster than a query that joins them.
func isQuick(q schema.ReportQuery) bool {
	return q.Links != nil && len(q.Filter) == 0 && q.Bounds[len(q.Bounds)-1].Sub(q.Bounds[0]) <= quickDays*day
}

// quickReport reads the clicks of links by queries of their own, at the same time: the periods, and the names of the UTC days nearest to the
// report's time with corrections. Each query counts clicks of times that the first one counts, too. So totals show whether all
// are of one moment.
type quickReport struct {
	query    schema.ReportQuery
	from, to time.Time
	within   string // condition of the nearest UTC days

	mu      sync.Mutex
	periods map[time.Time]schema.Period        // from each begin on
	counted map[uint8]int64                    // people on the nearest UTC days, by dimension
	outside [2]int64                           // people within the report but not on these days, and the other way around
	groups  map[uint8]map[string]schema.Period // by dimension
}

// quickPart is a query of one projection, or of rows if it has none. scan adds a row to the report.
type quickPart struct {
	projection, query string
	scan              func(driver.Rows) error
}

func newQuickReport(q schema.ReportQuery) *quickReport {
	r := &quickReport{query: q, from: q.Bounds[0], to: q.Bounds[len(q.Bounds)-1], periods: map[time.Time]schema.Period{},
		counted: map[uint8]int64{}, groups: map[uint8]map[string]schema.Period{}}
	r.within = days(nearest(r.from), nearest(r.to))
	return r
}

// begins returns the times between which clicks are counted: those of the periods, and of the nearest UTC days.
func (r *quickReport) begins() []time.Time {
	begins := append([]time.Time{r.query.Previous, nearest(r.from), nearest(r.to)}, r.query.Bounds...)
	slices.SortFunc(begins, time.Time.Compare)
	return slices.Compact(begins)
}

// parts returns the queries. If all periods are of UTC days, they are read together with devices and browsers.
func (r *quickReport) parts() (parts []quickPart) {
	begins := r.begins()
	if r.query.OnlyLinks {
		return []quickPart{r.ofQuarters(begins), r.links()}
	}
	if slices.IndexFunc(begins, func(at time.Time) bool { return !nearest(at).Equal(at) }) < 0 {
		parts = append(parts, r.ofDays(begins[0], begins[len(begins)-1]))
	} else {
		parts = append(parts, r.ofQuarters(begins))
		if nearest(r.from).Before(nearest(r.to)) {
			parts = append(parts, r.names("weighted_counts", schema.ByDevice, schema.ByBrowser))
		}
		if windows := windowsOf([]time.Time{r.from, r.to}); len(windows) > 0 {
			parts = append(parts, r.edges(windows))
		}
	}
	if nearest(r.from).Before(nearest(r.to)) {
		parts = append(parts, r.names("link_referrers", schema.ByReferrer), r.names("link_places", schema.ByOS, schema.ByLanguage, schema.ByCountry))
	}
	if r.query.TopLinks {
		parts = append(parts, r.links())
	}
	return parts
}

const bothSums = "toInt64(" + people + "), toInt64(" + bots + ")"

// ofLinks is the condition for the links.
func (r *quickReport) ofLinks() string { return linkCondition(r.query.Links) }

func (r *quickReport) ofQuarters(begins []time.Time) quickPart {
	last := len(begins) - 1
	query := fmt.Sprintf("SELECT roundDown(toUnixTimestamp(%s), %s) AS at, %s FROM clicks WHERE %s AND %s GROUP BY at",
		quarter, unixTimes(begins[:last]), bothSums, r.ofLinks(), quarters(begins[0], begins[last]))
	return quickPart{"link_quarters", query, func(rows driver.Rows) error {
		var at uint32
		var sum schema.Period
		err := rows.Scan(&at, &sum.People, &sum.Bots)
		r.addPeriod(time.Unix(int64(at), 0), sum)
		return err
	}}
}

// ofDays reads the periods together with devices and browsers, which are those of the report only since its begin.
func (r *quickReport) ofDays(from, to time.Time) quickPart {
	query := fmt.Sprintf("SELECT toUInt16(toDate(clicked_at) AS date), device, browser, toInt64(sum(weight)) FROM clicks WHERE %s AND %s "+
		"GROUP BY date, device, browser", r.ofLinks(), days(from, to))
	return quickPart{"weighted_counts", query, func(rows driver.Rows) error {
		var date uint16
		var device, browser string
		var n int64
		if err := rows.Scan(&date, &device, &browser, &n); err != nil {
			return err
		}
		at := time.Unix(int64(date)*int64(day/time.Second), 0)
		if device == string(schema.Bot) {
			r.addPeriod(at, schema.Period{Bots: n})
			return nil
		}
		r.addPeriod(at, schema.Period{People: n})
		if !at.Before(r.from) {
			r.addName(kindOf(schema.ByDevice), device, n)
			r.addName(kindOf(schema.ByBrowser), browser, n)
		}
		return nil
	}}
}

// names reads the names of dimensions that one projection has.
func (r *quickReport) names(projection string, dimensions ...schema.Dimension) quickPart {
	var columns []string
	names, kinds := make([]string, len(dimensions)), make([]uint8, len(dimensions))
	var n int64
	var into []any
	for i, by := range dimensions {
		columns, into, kinds[i] = append(columns, string(by)), append(into, &names[i]), kindOf(by)
	}
	sum, within, keys := people, r.within, strings.Join(columns, ", ")
	if slices.Contains(dimensions, schema.ByDevice) { // this projection has all clicks by device
		sum, within = "sum(weight)", within+" AND device != 'bot'"
	}
	query := fmt.Sprintf("SELECT %s, toInt64(%s) FROM clicks WHERE %s AND %s GROUP BY %[1]s", keys, sum, r.ofLinks(), within)
	into = append(into, &n)
	return quickPart{projection, query, func(rows driver.Rows) error {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		for i, kind := range kinds {
			r.addName(kind, names[i], n)
		}
		return nil
	}}
}

// edges reads what names of UTC days lack of the report, or have beside it. Clicks that are in both windows are in neither.
func (r *quickReport) edges(windows []string) quickPart {
	var sets []string
	all := schema.Dimensions()
	for _, by := range all {
		sets = append(sets, "(inside, "+string(by)+")")
	}
	query := fmt.Sprintf(`SELECT toUInt8(%s) AS kind, %s AS name, inside, toInt64(sum(weight))
FROM (
	SELECT %s, weight, %s AS inside
	FROM clicks WHERE %s AND (%s) AND device != 'bot' AND (%[4]s) != (%[7]s)
) GROUP BY GROUPING SETS (%[8]s)`, kindOfSet(false, all...), nameOfSet(false, all...), columnsOf(all), between(r.from, r.to), r.ofLinks(),
		strings.Join(windows, " OR "), r.within, strings.Join(sets, ", "))
	return quickPart{"", query, func(rows driver.Rows) error {
		var kind, inside uint8
		var name string
		var n int64
		if err := rows.Scan(&kind, &name, &inside, &n); err != nil {
			return err
		}
		if kind == kindName { // each kind counts the same clicks
			r.outside[1-inside] += n
		}
		r.addGroup(kind, name, schema.Period{People: n * (2*int64(inside) - 1)})
		return nil
	}}
}

func (r *quickReport) links() quickPart {
	query := fmt.Sprintf("SELECT link_id, %s FROM clicks WHERE %s AND %s GROUP BY link_id", bothSums, r.ofLinks(), quarters(r.from, r.to))
	return quickPart{"link_quarters", query, func(rows driver.Rows) error {
		var link int64
		var sum schema.Period
		err := rows.Scan(&link, &sum.People, &sum.Bots)
		r.addGroup(kindLink, strconv.FormatInt(link, 10), sum)
		return err
	}}
}

func (r *quickReport) addPeriod(at time.Time, sum schema.Period) {
	of := r.periods[at]
	r.periods[at] = schema.Period{People: of.People + sum.People, Bots: of.Bots + sum.Bots}
}

// addName adds clicks on the nearest UTC days.
func (r *quickReport) addName(kind uint8, name string, n int64) {
	r.counted[kind] += n
	r.addGroup(kind, name, schema.Period{People: n})
}

func (r *quickReport) addGroup(kind uint8, name string, sum schema.Period) {
	if r.groups[kind] == nil {
		r.groups[kind] = map[string]schema.Period{}
	}
	of := r.groups[kind][name]
	r.groups[kind][name] = schema.Period{People: of.People + sum.People, Bots: of.Bots + sum.Bots}
}

// consistent reports whether each query has counted as many clicks as that of the periods has at the same times. Counts only grow, so
// these are the same clicks then.
func (r *quickReport) consistent() bool {
	var onDays int64
	var outside [2]int64
	for at, sum := range r.periods {
		in, counted := !at.Before(r.from) && at.Before(r.to), !at.Before(nearest(r.from)) && at.Before(nearest(r.to))
		if counted {
			onDays += sum.People
		}
		if in && !counted {
			outside[0] += sum.People
		}
		if counted && !in {
			outside[1] += sum.People
		}
	}
	for _, by := range namesOf(r.query) {
		if r.counted[kindOf(by)] != onDays {
			return false
		}
	}
	return r.query.OnlyLinks || r.outside == outside
}

// readQuickReport reports whether all counts are of one moment.
func (c *ClickStore) readQuickReport(ctx context.Context, q schema.ReportQuery) (*reportReader, bool, error) {
	r := newQuickReport(q)
	reading, ctx := errgroup.WithContext(ctx)
	for _, part := range r.parts() {
		reading.Go(func() error {
			rows, err := c.conn.Query(ch.Context(ctx, ch.WithSettings(part.settings())), part.query)
			return forEachRow(rows, err, func() error {
				r.mu.Lock()
				defer r.mu.Unlock()
				return part.scan(rows)
			})
		})
	}
	into := newReportReader(q)
	if err := reading.Wait(); err != nil {
		return into, false, err
	}
	for at, sum := range r.periods {
		into.count(into.bounds, at, sum.People, sum.Bots)
	}
	into.finish()
	err := r.rank(into)
	return into, r.consistent() && into.consistent(), err
}

func (p *quickPart) settings() ch.Settings {
	settings := lookupSettings(p.projection)
	if p.projection == "" {
		settings = rowSettings()
	}
	settings["max_query_size"] = maxReportQuery
	return settings
}

// rank adds the groups with the most clicks, in the order of the other queries.
func (r *quickReport) rank(into *reportReader) error {
	for kind, groups := range r.groups {
		var rows []reportRow
		var total schema.Period
		for name, of := range groups {
			total.People += of.People
			total.Bots += of.Bots
			if of.People > 0 || kind == kindLink && of.Bots > 0 {
				rows = append(rows, reportRow{kind: kind, name: name, people: of.People, bots: of.Bots})
			}
		}
		slices.SortFunc(rows, func(a, b reportRow) int {
			if kind == kindLink {
				first, _ := strconv.ParseInt(a.name, 10, 64) // add reports an error
				second, _ := strconv.ParseInt(b.name, 10, 64)
				return cmp.Or(cmp.Compare(b.people+b.bots, a.people+a.bots), cmp.Compare(first, second))
			}
			return cmp.Or(cmp.Compare(b.people, a.people), cmp.Compare(a.name, b.name))
		})
		for _, row := range rows[:min(len(rows), r.query.Limit)] {
			row.ofKind = total
			if err := into.add(&row); err != nil {
				return err
			}
		}
	}
	return nil
}
