package clickhouse

import (
	"context"
	"fmt"
	"time"

	"linkstream/schema"
)

// A store that keeps sums knows how many clicks each browser, each referrer and each country has, and not how many each
// combination has. Reports ask for one dimension at a time, so any rows with the same sums give the same reports. spread finds a
// few: it walks through all dimensions at once, and a row takes as many clicks as the current name of each has left.

// spreadRow stands for some clicks.
type spreadRow struct {
	device                     schema.Device
	browser, referrer, country string
	os, language               string
	account                    int64
	clicks                     int64
}

// share is the clicks of one name of a dimension.
type share struct {
	set    func(*spreadRow)
	clicks int64
}

// spread calls each for rows that have the sums of a link and day. CodeInternal if the sums contradict each other.
func spread(day *schema.DayCounts, each func(spreadRow) error) error {
	var people, bots []share // by device and browser
	var ofPeople, ofBots int64
	for _, c := range day.Clients {
		one := share{func(r *spreadRow) { r.device, r.browser = c.Device, c.Browser }, c.Total}
		if c.Device == schema.Bot {
			bots, ofBots = append(bots, one), ofBots+c.Total
		} else {
			people, ofPeople = append(people, one), ofPeople+c.Total
		}
	}
	var owners, botOwners []share
	for _, o := range day.Owners {
		set := func(r *spreadRow) { r.account = o.AccountID }
		owners, botOwners = append(owners, share{set, o.People}), append(botOwners, share{set, o.Bots})
	}
	err := walk(ofPeople, each, people, owners,
		names(day.Referrers, func(r *spreadRow, name string) { r.referrer = name }),
		names(day.Countries, func(r *spreadRow, name string) { r.country = name }),
		names(day.Systems, func(r *spreadRow, name string) { r.os = name }),
		names(day.Languages, func(r *spreadRow, name string) { r.language = name }))
	if err == nil {
		err = walk(ofBots, each, bots, botOwners)
	}
	if err != nil {
		return fmt.Errorf("counts of link %d on day %d: %w", day.LinkID, day.Day, err)
	}
	return nil
}

func names(counts []schema.NameCount, set func(*spreadRow, string)) (shares []share) {
	for _, c := range counts {
		shares = append(shares, share{func(r *spreadRow) { set(r, c.Name) }, c.Total})
	}
	return shares
}

// walk calls each for rows of total clicks. In each dimension, clicks that no name has come last.
func walk(total int64, each func(spreadRow) error, dimensions ...[]share) error {
	for _, d := range dimensions {
		sum := int64(0)
		for _, s := range d {
			sum += s.clicks
		}
		if sum > total {
			return schema.Errorf(schema.CodeInternal, "%d of %d clicks have a name", sum, total)
		}
	}
	at := make([]int, len(dimensions))     // the current name of each dimension
	used := make([]int64, len(dimensions)) // clicks that it has got
	for total > 0 {
		row := spreadRow{clicks: total}
		for i, d := range dimensions {
			for at[i] < len(d) && d[at[i]].clicks == used[i] {
				at[i], used[i] = at[i]+1, 0
			}
			if at[i] < len(d) {
				d[at[i]].set(&row)
				row.clicks = min(row.clicks, d[at[i]].clicks-used[i])
			}
		}
		for i := range used {
			used[i] += row.clicks
		}
		total -= row.clicks
		if err := each(row); err != nil {
			return err
		}
	}
	return nil
}

// sumKey is a name of a dimension of a link and day.
type sumKey struct {
	dimension byte // 'c'lient, 'r'eferrer, 'l'and, 's'ystem, 't'ongue, 'p'eople or 'b'ots of an account
	account   int64
	name      [2]string
}

// daySums is the counts of a link and day, by all dimensions.
type daySums struct {
	link, day int64
	sums      map[sumKey]int64
}

// sumsOf returns the counts that are not zero.
func sumsOf(day *schema.DayCounts) map[sumKey]int64 {
	sums := map[sumKey]int64{}
	add := func(key sumKey, n int64) {
		if n != 0 {
			sums[key] += n
		}
	}
	for _, c := range day.Clients {
		add(sumKey{'c', 0, [2]string{string(c.Device), c.Browser}}, c.Total)
	}
	for _, c := range day.Referrers {
		add(sumKey{'r', 0, [2]string{c.Name}}, c.Total)
	}
	for _, c := range day.Countries {
		add(sumKey{'l', 0, [2]string{c.Name}}, c.Total)
	}
	for _, c := range day.Systems {
		add(sumKey{'s', 0, [2]string{c.Name}}, c.Total)
	}
	for _, c := range day.Languages {
		add(sumKey{'t', 0, [2]string{c.Name}}, c.Total)
	}
	for _, o := range day.Owners {
		add(sumKey{'p', o.AccountID, [2]string{}}, o.People)
		add(sumKey{'b', o.AccountID, [2]string{}}, o.Bots)
	}
	return sums
}

// readDays returns a function that returns the sums of the next link and day in a table, nil after the last one.
func (m *movement) readDays(ctx context.Context, table string) (next func() (*daySums, error), stop func(), err error) {
	rows, err := m.store.conn.Query(m.context(ctx), fmt.Sprintf(movedRows, table), movedMonth)
	if err != nil {
		return nil, nil, err
	}
	var ahead *daySums // of the row that was read last
	read := func() (*daySums, error) {
		if !rows.Next() {
			return nil, rows.Err()
		}
		var r spreadRow
		var link int64
		var day time.Time
		var device string
		var weight uint64
		if err := rows.Scan(&link, &r.account, &day, &device, &r.browser, &r.referrer, &r.country, &r.os, &r.language, &weight); err != nil {
			return nil, err
		}
		r.device, r.clicks = schema.Device(device), int64(weight)
		return &daySums{link, schema.DayNumber(day), sumsOf(r.counts())}, nil
	}
	return func() (*daySums, error) {
		current := ahead
		for ahead = nil; ; {
			row, err := read()
			if err != nil {
				return nil, err
			}
			switch {
			case row == nil:
				return current, nil
			case current == nil:
				current = row
			case row.link != current.link || row.day != current.day:
				ahead = row
				return current, nil
			default:
				for key, n := range row.sums {
					current.sums[key] += n
				}
			}
		}
	}, func() { _ = rows.Close() }, nil // a query that was read to its end, or one that failed
}

// counts returns the row as counts of its link and day.
func (r *spreadRow) counts() *schema.DayCounts {
	day := &schema.DayCounts{Clients: []schema.ClientCount{{Device: r.device, Browser: r.browser, Total: r.clicks}}}
	bot := r.device == schema.Bot
	if r.account != 0 {
		owner := schema.OwnerCount{AccountID: r.account, People: r.clicks}
		if bot {
			owner.People, owner.Bots = 0, r.clicks
		}
		day.Owners = []schema.OwnerCount{owner}
	}
	if r.referrer != "" && !bot {
		day.Referrers = []schema.NameCount{{Name: r.referrer, Total: r.clicks}}
	}
	if r.country != "" && !bot {
		day.Countries = []schema.NameCount{{Name: r.country, Total: r.clicks}}
	}
	if r.os != "" && !bot {
		day.Systems = []schema.NameCount{{Name: r.os, Total: r.clicks}}
	}
	if r.language != "" && !bot {
		day.Languages = []schema.NameCount{{Name: r.language, Total: r.clicks}}
	}
	return day
}
