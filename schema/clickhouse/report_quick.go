package clickhouse

import (
	"cmp"
	"context"
	"fmt"
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

// quickDays bounds a report whose names are all sent to the store: a link has up to schema.MaxNames referrers per day.
const quickDays = 100

// isQuick reports whether each part of a report is read from a projection of few rows. Planning takes most of the time of such a
// report: a server plans queries of one table, which name the projection to use, several times faster than a query that joins them.
func isQuick(q schema.ReportQuery) bool {
	from, to := q.Bounds[0], q.Bounds[len(q.Bounds)-1]
	return q.Links != nil && len(q.Filter) == 0 && nearest(from).Equal(from) && nearest(to).Equal(to) && to.Sub(from) <= quickDays*day
}

// quickPart is a query of a part. It has a row per group, which counts for all its kinds and names.
type quickPart struct{ projection, query string }

func quickParts(q schema.ReportQuery) (parts []quickPart) {
	b := newReportBuilder(q, layout{})
	part := func(projection, kinds, names, at, sums, where, keys string) {
		parts = append(parts, quickPart{projection, fmt.Sprintf(`SELECT [%s]::Array(UInt8) AS kinds, [%s] AS names, toUInt32(%s) AS at, %s
FROM clicks WHERE %s AND %s GROUP BY %s`, kinds, names, at, sums, b.links, where, keys)})
	}
	const both, onlyPeople = "toInt64(" + people + ") AS p, toInt64(" + bots + ") AS b", "toInt64(" + people + ") AS p, toInt64(0) AS b"
	begins := append([]time.Time{q.Previous}, q.Bounds[:len(q.Bounds)-1]...)
	part("link_quarters", fmt.Sprint(kindSeries), "''", fmt.Sprintf("roundDown(toUnixTimestamp(%s), %s)", quarter, unixTimes(begins)), both,
		quarters(q.Previous, b.to), "at")
	names := func(projection, sums, where string, dimensions ...schema.Dimension) {
		var kinds, names, keys []string
		for _, by := range dimensions {
			kinds = append(kinds, fmt.Sprint(kindName+slices.Index(schema.Dimensions(), by)))
			names, keys = append(names, "toString("+string(by)+")"), append(keys, string(by))
		}
		part(projection, strings.Join(kinds, ", "), strings.Join(names, ", "), "0", sums, where, strings.Join(keys, ", "))
	}
	within := days(b.from, b.to)
	names("link_referrers", onlyPeople, within, schema.ByReferrer)
	names("link_places", onlyPeople, within, schema.ByOS, schema.ByLanguage, schema.ByCountry)
	names("weighted_counts", "toInt64(sum(weight)) AS p, toInt64(0) AS b", within+" AND device != 'bot'", schema.ByDevice, schema.ByBrowser)
	if q.TopLinks {
		part("link_quarters", fmt.Sprint(kindLink), "toString(link_id)", "0", both, quarters(b.from, b.to), "link_id")
	}
	return parts
}

// quickReport reads the parts of a report by queries of their own, at the same time.
func (c *ClickStore) quickReport(ctx context.Context, q schema.ReportQuery) (*reportReader, error) {
	r := newReportReader(q)
	var mu sync.Mutex
	groups := map[uint8]map[string]schema.Period{}
	reading, ctx := errgroup.WithContext(ctx)
	for _, part := range quickParts(q) {
		reading.Go(func() error {
			settings := lookupSettings(part.projection)
			settings["max_query_size"] = maxReportQuery
			rows, err := c.conn.Query(ch.Context(ctx, ch.WithSettings(settings)), part.query)
			return forEachRow(rows, err, func() error {
				var kinds []uint8
				var names []string
				var at uint32
				var sum schema.Period
				if err := rows.Scan(&kinds, &names, &at, &sum.People, &sum.Bots); err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				for i, kind := range kinds {
					if kind == kindSeries {
						r.count(r.bounds, time.Unix(int64(at), 0), sum.People, sum.Bots)
						continue
					}
					if groups[kind] == nil {
						groups[kind] = map[string]schema.Period{}
					}
					of := groups[kind][names[i]]
					groups[kind][names[i]] = schema.Period{People: of.People + sum.People, Bots: of.Bots + sum.Bots}
				}
				return nil
			})
		})
	}
	err := reading.Wait()
	if err == nil {
		err = r.rank(groups)
	}
	r.finish()
	return r, err
}

// rank adds the groups with the most clicks, in the order of the other queries.
func (r *reportReader) rank(groups map[uint8]map[string]schema.Period) error {
	for _, kind := range slices.Sorted(maps.Keys(groups)) {
		var rows []reportRow
		var total schema.Period
		for name, of := range groups[kind] {
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
			if err := r.add(&row); err != nil {
				return err
			}
		}
	}
	return nil
}
