package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"linkstream/schema"
)

// Report implements schema.ReportStore. The clicks of a link on UTC days are in counters and sources, those of an account in owned.
// All other questions read facts.
func (c *ClickStore) Report(ctx context.Context, q schema.ReportQuery) (schema.Report, error) {
	if err := q.Check(); err != nil {
		return schema.Report{}, err
	}
	report := schema.Report{Series: make([]schema.Period, len(q.Bounds)-1), Names: map[schema.Dimension][]schema.NameCount{}}
	if q.Links != nil && len(q.Links) == 0 || q.Links == nil && q.AccountID == 0 {
		return report, nil
	}
	ids, err := json.Marshal(q.Links)
	if err != nil {
		return report, wrap(err, "encode link IDs")
	}
	err = c.db.view(ctx, func(tx *snapshot) error {
		var since int64
		if err := tx.queryRow(ctx, factsSince).Scan(&since); err != nil {
			return err
		}
		r := &reportReader{ctx: ctx, tx: tx, query: q, report: &report, links: string(ids)}
		r.daily = len(q.Filter) == 0 && isDay(q.Previous) && !slices.ContainsFunc(q.Bounds, func(t time.Time) bool { return !isDay(t) })
		r.old = schema.DayNumber(q.Bounds[0]) < since
		return r.read()
	})
	return report, wrap(err, "read report of account %d", q.AccountID)
}

// ReportDetail implements schema.ReportStore.
func (c *ClickStore) ReportDetail(ctx context.Context) (detail schema.ReportDetail, err error) {
	var since int64
	if err := c.db.queryRow(ctx, factsSince).Scan(&since); err != nil {
		return detail, wrap(err, "read what is known about old clicks")
	}
	if since > 0 {
		detail.Hours = time.Unix(since*24*60*60, 0).UTC()
		detail.Filters = detail.Hours
	}
	return detail, nil
}

const factsSince = `SELECT day FROM facts_since`

func isDay(t time.Time) bool { return t.Truncate(24 * time.Hour).Equal(t) }

// reportReader reads one report.
type reportReader struct {
	ctx    context.Context
	tx     *snapshot
	query  schema.ReportQuery
	report *schema.Report
	links  string // JSON
	daily  bool   // all bounds are those of UTC days, and there is no filter
	old    bool   // some clicks are not in facts
}

func (r *reportReader) read() error {
	ofAccount := r.query.Links == nil
	series, names, links := r.fromFacts(), r.fromFacts(), r.fromFacts()
	if r.daily {
		if series = r.fromDays("counters"); ofAccount {
			series, links = r.fromDays("owned_days"), r.fromDays("owned")
		}
		if !ofAccount || r.old {
			names = r.fromDays("counters")
		}
	}
	if err := r.readSeries(series); err != nil {
		return err
	}
	if !r.query.OnlyLinks {
		for _, by := range schema.Dimensions() {
			if err := r.readNames(names, by); err != nil {
				return err
			}
		}
	}
	if r.query.TopLinks {
		return r.readLinks(links)
	}
	return nil
}

// clickRows are the rows of a table that a report adds up.
type clickRows struct {
	table        string // and joins
	where        string
	args         []any
	at           string // column of time, counted in units since 1970-01-01
	unit         time.Duration
	people, bots string // sums
	facts        bool
}

const isBot = `device_id IS (SELECT id FROM names WHERE name = 'bot')`

// fromFacts returns the rows of facts that match the filter.
func (r *reportReader) fromFacts() clickRows {
	rows := clickRows{
		table: "facts", at: "quarter", unit: schema.ReportResolution, facts: true,
		people: "coalesce(sum(total) FILTER (WHERE NOT " + isBot + "), 0)", bots: "coalesce(sum(total) FILTER (WHERE " + isBot + "), 0)",
		where: "link_id IN (SELECT value FROM json_each(?))", args: []any{r.links},
	}
	if r.query.Links == nil {
		// The days around the report: a day of another time zone is in two of UTC.
		end := r.query.Bounds[len(r.query.Bounds)-1]
		rows.where = `link_id IN (SELECT link_id FROM owned WHERE account_id = ? AND day >= ? AND day <= ?) AND account_id = ?`
		rows.args = []any{r.query.AccountID, schema.DayNumber(r.query.Previous), schema.DayNumber(end), r.query.AccountID}
	}
	for _, by := range slices.Sorted(maps.Keys(r.query.Filter)) {
		if by == schema.ByReferrer {
			rows.where += " AND referrer = ?"
		} else {
			rows.where += fmt.Sprintf(" AND %s_id = (SELECT id FROM names WHERE name = ?)", by)
		}
		rows.args = append(rows.args, r.query.Filter[by])
	}
	return rows
}

// fromDays returns the rows of counters, owned or owned_days.
func (r *reportReader) fromDays(table string) clickRows {
	rows := clickRows{
		table: table, at: "day", unit: 24 * time.Hour, people: "coalesce(sum(total) FILTER (WHERE device <> 'bot'), 0)",
		bots: "coalesce(sum(total) FILTER (WHERE device = 'bot'), 0)",
	}
	switch {
	case table == "owned" || table == "owned_days":
		rows.people, rows.bots, rows.where = "sum(people)", "sum(bots)", "account_id = ?"
		rows.args = []any{r.query.AccountID}
	case r.query.Links == nil:
		rows.where = `(link_id, day) IN (SELECT link_id, day FROM owned WHERE account_id = ?)`
		rows.args = []any{r.query.AccountID}
	default:
		rows.where, rows.args = "link_id IN (SELECT value FROM json_each(?))", []any{r.links}
	}
	return rows
}

// between returns a query of what over rows of a time.
func (rows clickRows) between(what string, from, to time.Time, and string) (query string, args []any) {
	query = fmt.Sprintf("SELECT %s FROM %s WHERE %s AND %s >= ? AND %[4]s < ? %[5]s", what, rows.table, rows.where, rows.at, and)
	return query, append(slices.Clone(rows.args), from.Unix()/int64(rows.unit/time.Second), to.Unix()/int64(rows.unit/time.Second))
}

func (r *reportReader) span() (from, to time.Time) {
	return r.query.Bounds[0], r.query.Bounds[len(r.query.Bounds)-1]
}

func (r *reportReader) readSeries(rows clickRows) error {
	_, end := r.span()
	query, args := rows.between(rows.at+", "+rows.people+", "+rows.bots, r.query.Previous, end, "GROUP BY "+rows.at)
	found, err := r.tx.QueryContext(r.ctx, query, args...)
	return forEachRow(found, err, func() error {
		var number int64
		var p schema.Period
		if err := found.Scan(&number, &p.People, &p.Bots); err != nil {
			return err
		}
		// The period is the last one that does not begin later.
		i, exact := slices.BinarySearchFunc(r.query.Bounds, time.Unix(number*int64(rows.unit/time.Second), 0), time.Time.Compare)
		if !exact {
			i--
		}
		sum := &r.report.Previous
		if i >= 0 {
			sum = &r.report.Series[i]
		}
		sum.People += p.People
		sum.Bots += p.Bots
		return nil
	})
}

func (r *reportReader) readNames(rows clickRows, by schema.Dimension) error {
	from, to := r.span()
	column, and, after := string(by), "AND device <> 'bot'", " ORDER BY 2 DESC, 1 LIMIT ?"
	switch kind, ofSources := sourceKinds[by]; {
	case rows.facts && by == schema.ByReferrer:
		and = "AND NOT " + isBot
	case rows.facts:
		and = "AND NOT " + isBot
		column = fmt.Sprintf("(SELECT name FROM names WHERE id = %s_id)", by)
	case ofSources:
		return r.readSources(rows, by, kind)
	}
	query, args := rows.between(column+", sum(total)", from, to, and+" GROUP BY 1"+after)
	found, err := r.tx.QueryContext(r.ctx, query, append(args, r.query.Limit)...)
	names, err := scanNames(found, err)
	if len(names) > 0 {
		r.report.Names[by] = names
	}
	return err
}

var sourceKinds = map[schema.Dimension]sourceKind{
	schema.ByReferrer: referrer, schema.ByCountry: country, schema.ByOS: system, schema.ByLanguage: language,
}

// readSources reads names from sources. People's clicks without a name are not in the table: their number is all clicks of people
// minus the rest.
func (r *reportReader) readSources(rows clickRows, by schema.Dimension, kind sourceKind) error {
	from, to := r.span()
	people, peopleArgs := rows.between(rows.people, from, to, "")
	rows.table = "sources"
	named, args := rows.between("name, sum(total) AS total", from, to, "AND kind = ? GROUP BY name")
	query := strings.Join([]string{
		"WITH named AS (" + named + ")",
		"SELECT name, total FROM (SELECT name, total FROM named UNION ALL",
		"SELECT '', (" + people + ") - (SELECT coalesce(sum(total), 0) FROM named))",
		"WHERE total > 0 ORDER BY total DESC, name LIMIT ?",
	}, "\n")
	args = append(append(args, kind), peopleArgs...)
	found, err := r.tx.QueryContext(r.ctx, query, append(args, r.query.Limit)...)
	names, err := scanNames(found, err)
	if len(names) > 0 {
		r.report.Names[by] = names
	}
	return err
}

func (r *reportReader) readLinks(rows clickRows) error {
	from, to := r.span()
	query, args := rows.between("link_id, "+rows.people+" + "+rows.bots+" AS clicks", from, to,
		"GROUP BY link_id ORDER BY clicks DESC, link_id LIMIT ?")
	found, err := r.tx.QueryContext(r.ctx, query, append(args, r.query.Limit)...)
	return forEachRow(found, err, func() error {
		var link schema.LinkCount
		err := found.Scan(&link.LinkID, &link.Total)
		r.report.Links = append(r.report.Links, link)
		return err
	})
}
