package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"linkstream/schema"
)

// A report adds up the rows of a few tables:
//
//	                   without a filter                  with a filter
//	series             settled_quarters                  settled_facts
//	  of an account    owned_quarters alone              settled_facts
//	names              settled_names, edges              settled_facts
//	  of an account    settled_owned_names, edges        settled_facts
//	links              settled_names, edges              settled_facts
//	  of an account    settled_owned, edges              settled_facts
//
// and recent. Visitors are in table visitors. Edges are the parts of UTC days where the time begins and ends, from
// settled_facts.
//
// The arguments of all queries are:
//
//	?1        the links as JSON; in a report of an account those with clicks in recent
//	?2        the account
//	?3, ?4    the quarters of an hour where the time begins and ends
//	?5        the number of names
//	?6, ?7    the quarters of an hour where whole UTC days begin and end; both are ?4 if there is none
//	?8, …     the names of the filter

const (
	ofQueryLinks = "link_id IN (SELECT value FROM json_each(?1))"
	ofAccount    = "account_id = ?2"
	// Every click on a link is of the link's owner. Links without settled clicks at the time are not looked up.
	ofOwned = "link_id IN (SELECT link_id FROM settled_owned WHERE account_id = ?2 AND day >= ?3 / 96 AND day <= ?4 / 96)"
	ofFront = "link_id IN (SELECT link_id FROM settled_owned WHERE account_id = ?2 AND day >= ?3 / 96 AND day <= ?6 / 96)"
	ofBack  = "link_id IN (SELECT link_id FROM settled_owned WHERE account_id = ?2 AND day >= ?7 / 96 AND day <= ?4 / 96)"

	inDays     = " AND day >= ?6 / 96 AND day < ?7 / 96"
	inQuarters = " AND quarter >= ?3 AND quarter < ?4"
	inFront    = " AND quarter >= ?3 AND quarter < ?6"
	inBack     = " AND quarter >= ?7 AND quarter < ?4"
)

// recentLinks are the links of an account that have clicks in recent, which has the rows of a quarter of an hour and is
// read as a whole.
const recentLinks = "SELECT json_group_array(DISTINCT link_id) FROM recent WHERE account_id = ?2" + inQuarters

// clickTable is a table of clicks with the expressions of what is counted.
type clickTable struct {
	name, where  string
	key          string // what the clicks are counted by
	people, bots string
}

// clickKey is what the clicks of a table are counted by.
type clickKey struct {
	sum, fact string // the expression in tables of sums, and in those with all dimensions
	dimension schema.Dimension
}

var (
	byDay     = clickKey{"day", "quarter / 96", schema.ByDevice}
	byQuarter = clickKey{"quarter", "quarter", schema.ByDevice}
	byAccount = clickKey{"account_id", "account_id", schema.ByDevice}
	byLink    = clickKey{"link_id", "link_id", schema.ByDevice}
	// byDayOfQuarter counts by the UTC day in tables of quarters.
	byDayOfQuarter = clickKey{"quarter / 96", "quarter / 96", schema.ByDevice}
)

func byName(dimension schema.Dimension) clickKey {
	return clickKey{"name", nameOf(dimension), dimension}
}

func sumTable(name, where string, key clickKey) clickTable {
	return clickTable{name, where, key.sum, "people", "bots"}
}

func factTable(name, where string, key clickKey) clickTable {
	return clickTable{name, where, key.fact, peopleOf, botsOf}
}

// factTables returns the tables that have all dimensions by quarter of an hour. links says which links settled_facts is
// read of.
func factTables(links, filter string, key clickKey) []clickTable {
	return []clickTable{
		factTable("settled_facts", links+filter+inQuarters, key), factTable("recent", ofQueryLinks+filter+inQuarters, key),
	}
}

// dayTables returns the tables of some links that have the names of each dimension by UTC day, and recent.
func dayTables(where string, key clickKey) []clickTable {
	return append(nameTables("settled_names", where, key), factTable("recent", where+inQuarters, key))
}

// nameTables returns a table of settled names: of a sparse dimension, the clicks without a name are all clicks, which
// every other dimension has, less those with a name.
func nameTables(table, where string, key clickKey) []clickTable {
	of := func(by schema.Dimension) string {
		return fmt.Sprintf("%s AND dimension = %d", where, dimensionNumber(by)) + inDays
	}
	named := sumTable(table, of(key.dimension), key)
	if !slices.Contains(sparse, key.dimension) {
		return []clickTable{named}
	}
	return []clickTable{named, {table, of(schema.ByDevice), "''", "people", "bots"},
		{table, of(key.dimension), "''", "-people", "-bots"}}
}

// linkTables says which tables a report of some links without a filter reads.
func linkTables(key clickKey, edges bool) []clickTable {
	tables := dayTables(ofQueryLinks, key)
	if edges {
		tables = append(tables, factTable("settled_facts", ofQueryLinks+inFront, key),
			factTable("settled_facts", ofQueryLinks+inBack, key))
	}
	return tables
}

// ownedNames says which tables the names of an account's report without a filter are in.
func ownedNames(key clickKey, edges bool) []clickTable {
	tables := append(nameTables("settled_owned_names", ofAccount, key), factTable("recent", ofQueryLinks+inQuarters, key))
	if edges {
		tables = append(tables, factTable("settled_facts", ofFront+inFront, key),
			factTable("settled_facts", ofBack+inBack, key))
	}
	return tables
}

// ownedLinks says which tables the links of an account's report without a filter are in.
func ownedLinks(edges bool) []clickTable {
	tables := []clickTable{sumTable("settled_owned", ofAccount+inDays, byLink),
		factTable("recent", ofQueryLinks+inQuarters, byLink)}
	if edges {
		tables = append(tables, factTable("settled_facts", ofFront+inFront, byLink),
			factTable("settled_facts", ofBack+inBack, byLink))
	}
	return tables
}

// seriesTables says which tables the series of a report without a filter is in.
func seriesTables(ofLinks bool, key clickKey) []clickTable {
	if !ofLinks {
		return []clickTable{sumTable("owned_quarters", ofAccount+inQuarters, key)}
	}
	return []clickTable{sumTable("settled_quarters", ofQueryLinks+inQuarters, key),
		factTable("recent", ofQueryLinks+inQuarters, key)}
}

// sums returns a query of the clicks of people and of bots by key. A key has a row for each table.
func sums(tables []clickTable) string {
	var all []string
	for _, t := range tables {
		all = append(all, fmt.Sprintf("SELECT %s AS key, sum(%s) AS people, sum(%s) AS bots FROM %s WHERE %s GROUP BY 1",
			t.key, t.people, t.bots, t.name, t.where))
	}
	return strings.Join(all, "\nUNION ALL\n")
}

// topSums returns a query of the ?5 first keys, ordered by their clicks, and these clicks. The key is selected as an
// expression.
func topSums(tables []clickTable, key, clicks string) string {
	return fmt.Sprintf("SELECT %s AS shown, sum(%s) AS clicks FROM (\n%s\n) GROUP BY key HAVING clicks > 0 ORDER BY "+
		"clicks DESC, shown LIMIT ?5",
		key, clicks, sums(tables))
}

// shownName is the name that a key of byName stands for.
func shownName(by schema.Dimension) string {
	if slices.Contains(written[:], by) {
		return "key"
	}
	return "coalesce((SELECT name FROM names WHERE id = key), '')"
}

// Report implements schema.ReportStore.
func (c *ClickStore) Report(ctx context.Context, q schema.ReportQuery) (schema.Report, error) {
	if err := q.Check(); err != nil {
		return schema.Report{}, err
	}
	r := &reportReader{ctx: ctx, query: q, report: schema.NewReport(q)}
	if q.Links != nil && len(q.Links) == 0 {
		return r.report, nil
	}
	links, err := json.Marshal(q.Links)
	if err != nil {
		return r.report, wrap(err, "encode link IDs")
	}
	r.args = []any{string(links), q.AccountID, quarterOf(q.Previous), quarterOf(q.End()), q.Limit, 0, 0}
	err = c.db.view(ctx, func(tx *snapshot) error {
		r.tx = tx
		return r.read()
	})
	return r.report, wrap(err, "read report of account %d", q.AccountID)
}

// ReportDetail implements schema.ReportStore: all clicks are known.
func (c *ClickStore) ReportDetail(context.Context) (schema.ReportDetail, error) {
	return schema.ReportDetail{}, nil
}

// reportReader reads one report.
type reportReader struct {
	ctx    context.Context
	tx     *snapshot
	query  schema.ReportQuery
	args   []any
	report schema.Report
}

func (r *reportReader) read() error {
	ofLinks, filter := r.query.Links != nil, r.filter()
	at, unit := byQuarter, secondsPerQuarter
	if r.query.OfUTCDays() {
		at, unit = byDayOfQuarter, quartersPerDay*secondsPerQuarter
	}
	facts := ofQueryLinks
	if !ofLinks {
		facts = ofOwned
		if err := r.tx.queryRow(r.ctx, recentLinks, r.args...).Scan(&r.args[0]); err != nil {
			return err
		}
	}
	series, edges := seriesTables(ofLinks, at), r.setDays()
	names := func(key clickKey) []clickTable { return linkTables(key, edges) }
	links := names(byLink)
	switch {
	case filter != "":
		names = func(key clickKey) []clickTable { return factTables(facts, filter, key) }
		series, links = names(at), names(byLink)
	case !ofLinks:
		names = func(key clickKey) []clickTable { return ownedNames(key, edges) }
		links = ownedLinks(edges)
	}
	if err := r.readSeries(series, unit); err != nil {
		return err
	}
	if r.query.CountsImported() {
		links = append(links, importedTable(ofLinks, "link_id"))
		if err := r.readImported(ofLinks); err != nil {
			return err
		}
	}
	if err := r.readVisitors(); err != nil {
		return err
	}
	r.args[2] = quarterOf(r.query.Bounds[0])
	if err := r.readSources(ofLinks); err != nil {
		return err
	}
	if r.query.TopLinks {
		if err := r.readLinks(links); err != nil {
			return err
		}
	}
	if r.query.NoNames {
		return nil
	}
	if filter != "" {
		return r.readCombinations(factTables(facts, filter, byLink))
	}
	for _, by := range schema.Dimensions() {
		if err := r.readNames(names(byName(by)), by); err != nil {
			return err
		}
	}
	return nil
}

// setDays sets the arguments for the whole UTC days of a report. It reports whether the report has edges.
func (r *reportReader) setDays() (edges bool) {
	from, to := quarterOf(r.query.Bounds[0]), quarterOf(r.query.End())
	first, after := (from+quartersPerDay-1)/quartersPerDay*quartersPerDay, to/quartersPerDay*quartersPerDay
	if first >= after {
		first, after = to, to
	}
	r.args[5], r.args[6] = first, after
	return from != first || after != to
}

// filter returns the condition of the filter and adds its names to the arguments.
func (r *reportReader) filter() (where string) {
	for _, by := range schema.Dimensions() {
		name, ok := r.query.Filter[by]
		if !ok {
			continue
		}
		r.args = append(r.args, name)
		if slices.Contains(written[:], by) {
			where += fmt.Sprintf(" AND %s = ?%d", nameOf(by), len(r.args))
		} else {
			where += fmt.Sprintf(" AND %s = (SELECT id FROM names WHERE name = ?%d)", nameOf(by), len(r.args))
		}
	}
	return where
}

// rows executes a query. There are few without a filter.
func (r *reportReader) rows(query string) (*sql.Rows, error) {
	if len(r.query.Filter) == 0 {
		return r.tx.query(r.ctx, query, r.args...)
	}
	return r.tx.QueryContext(r.ctx, query, r.args...)
}

func (r *reportReader) readSeries(tables []clickTable, unit int64) error {
	rows, err := r.rows(sums(tables))
	return forEachRow(rows, err, func() error {
		var at int64
		var clicks schema.Period
		err := rows.Scan(&at, &clicks.People, &clicks.Bots)
		r.query.Count(&r.report, time.Unix(at*unit, 0), clicks)
		return err
	})
}

func (r *reportReader) readNames(tables []clickTable, by schema.Dimension) error {
	rows, err := r.rows(topSums(tables, shownName(by), "people"))
	return forEachRow(rows, err, func() error {
		var name schema.NameCount
		err := rows.Scan(&name.Name, &name.Total)
		r.report.Names[by] = append(r.report.Names[by], name)
		return err
	})
}

// readCombinations reads the names of a report with a filter: all dimensions in one pass over the facts.
func (r *reportReader) readCombinations(tables []clickTable) error {
	names, err := readNames(r.tx.query(r.ctx, allNames))
	if err != nil {
		return err
	}
	counts := map[schema.Dimension]map[string]int64{}
	for _, by := range schema.Dimensions() {
		counts[by] = map[string]int64{}
	}
	var all []string
	for _, t := range tables {
		all = append(all, fmt.Sprintf("SELECT sum(total), %s FROM %s WHERE %s GROUP BY %[1]s", nameColumns, t.name, t.where))
	}
	rows, err := r.rows(strings.Join(all, "\nUNION ALL\n"))
	err = forEachRow(rows, err, func() error {
		var row factNames
		var total int64
		err := rows.Scan(append([]any{&total}, row.into()...)...)
		if !isBot(row.client) {
			for by, sums := range counts {
				sums[names.name(by, &row)] += total
			}
		}
		return err
	})
	for by, sums := range counts {
		if top := schema.MostFrequent(sums, r.query.Limit); len(top) > 0 {
			r.report.Names[by] = top
		}
	}
	return err
}

func (r *reportReader) readLinks(tables []clickTable) error {
	rows, err := r.rows(topSums(tables, "key", "people + bots"))
	return forEachRow(rows, err, func() error {
		var link schema.LinkCount
		err := rows.Scan(&link.LinkID, &link.Total)
		r.report.Links = append(r.report.Links, link)
		return err
	})
}
