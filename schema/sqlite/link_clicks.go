package sqlite

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"linkstream/schema"
)

// Reports and statistics of a link read its settled and its recent rows apart, and add them up: the views of both cost twice as much
// for each settled row, and are read anew for each dimension.
const (
	// Rows come in the order of the key, so nothing is sorted.
	linkDays = `SELECT day, coalesce(sum(total) FILTER (WHERE device <> 'bot'), 0), coalesce(sum(total) FILTER (WHERE device = 'bot'), 0)
	FROM settled_counters WHERE link_id = ? AND day >= ? GROUP BY day ORDER BY day`
	linkClients = `SELECT device, browser, sum(total) FROM settled_counters WHERE link_id = ? AND day >= ? GROUP BY device, browser`
	linkRecent  = `SELECT quarter / 96, client, referrer, total FROM recent WHERE link_id = ? AND quarter >= ? * 96`
	allNames    = `SELECT id, name FROM names`
)

// linkSources reads each kind by a range of the key. A kind that is an argument would make SQLite plan anew for kind 1.
var linkSources = strings.Join([]string{sourcesOf("1"), sourcesOf("2"), sourcesOf("3"), sourcesOf("4")}, " UNION ALL ")

func sourcesOf(kind string) string {
	return `SELECT ` + kind + `, name, sum(total) FROM settled_sources WHERE link_id = ?1 AND kind = ` + kind + ` AND day >= ?2 GROUP BY name`
}

// linkClicks are the clicks of a link from a day on.
type linkClicks struct {
	days    []dayClicks // that have clicks, ascending
	clients map[client]int64
	sources map[sourceKind]map[string]int64 // people's clicks by name, without those that have none
}

type dayClicks struct{ number, people, bots int64 }

type client struct{ device, browser string }

// readLink reads the clicks of a link from a day on. Their sources are read if needed.
func (c *ClickStore) readLink(ctx context.Context, tx *snapshot, linkID, since int64, withSources bool) (*linkClicks, error) {
	l := &linkClicks{clients: map[client]int64{}, sources: map[sourceKind]map[string]int64{referrer: {}, country: {}, system: {}, language: {}}}
	rows, err := tx.query(ctx, linkDays, linkID, since)
	err = forEachRow(rows, err, func() error {
		var day dayClicks
		err := rows.Scan(&day.number, &day.people, &day.bots)
		l.days = append(l.days, day)
		return err
	})
	if err != nil {
		return nil, err
	}
	rows, err = tx.query(ctx, linkClients, linkID, since)
	err = forEachRow(rows, err, func() error {
		var key client
		var total int64
		err := rows.Scan(&key.device, &key.browser, &total)
		l.clients[key] = total
		return err
	})
	if err != nil {
		return nil, err
	}
	if withSources {
		rows, err = tx.query(ctx, linkSources, linkID, since)
		err = forEachRow(rows, err, func() error {
			var kind sourceKind
			var name string
			var total int64
			err := rows.Scan(&kind, &name, &total)
			l.sources[kind][name] = total
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return l, c.addRecent(ctx, tx, l, linkID, since)
}

// addRecent adds the clicks that have not settled.
func (c *ClickStore) addRecent(ctx context.Context, tx *snapshot, l *linkClicks, linkID, since int64) error {
	type row struct {
		day, client, total int64
		referrer           string
	}
	var recent []row
	rows, err := tx.query(ctx, linkRecent, linkID, since)
	err = forEachRow(rows, err, func() error {
		var r row
		err := rows.Scan(&r.day, &r.client, &r.referrer, &r.total)
		recent = append(recent, r)
		return err
	})
	if err != nil {
		return err
	}
	for _, r := range recent {
		var names [5]string
		for i := range names {
			id := r.client >> (clientBits * (len(names) - 1 - i)) & maxNameID
			if names[i], err = c.nameByID(ctx, tx, id); err != nil {
				return err
			}
		}
		l.add(r.day, names, r.referrer, r.total)
	}
	return nil
}

// add adds clicks of a day. The names are those of recent.client.
func (l *linkClicks) add(day int64, names [5]string, from string, total int64) {
	i, found := slices.BinarySearchFunc(l.days, day, func(d dayClicks, number int64) int { return cmp.Compare(d.number, number) })
	if !found {
		l.days = slices.Insert(l.days, i, dayClicks{number: day})
	}
	l.clients[client{names[0], names[1]}] += total
	if names[0] == string(schema.Bot) {
		l.days[i].bots += total
		return
	}
	l.days[i].people += total
	for kind, name := range map[sourceKind]string{system: names[2], language: names[3], country: names[4], referrer: from} {
		if name != "" {
			l.sources[kind][name] += total
		}
	}
}

// nameByID returns the name with a number. The names in memory are renewed when one is missing: numbers keep their names.
func (c *ClickStore) nameByID(ctx context.Context, tx *snapshot, id int64) (string, error) {
	if known := c.names.Load(); known != nil {
		if name, ok := (*known)[id]; ok {
			return name, nil
		}
	}
	known := map[int64]string{}
	rows, err := tx.query(ctx, allNames)
	err = forEachRow(rows, err, func() error {
		var id int64
		var name string
		err := rows.Scan(&id, &name)
		known[id] = name
		return err
	})
	c.names.Store(&known)
	return known[id], err
}

// devices returns the clicks by device.
func (l *linkClicks) devices() map[schema.Device]int64 {
	counts := map[schema.Device]int64{}
	for key, total := range l.clients {
		counts[schema.Device(key.device)] += total
	}
	return counts
}

// browsers returns the clicks by browser, with or without those of bots.
func (l *linkClicks) browsers(bots bool) map[string]int64 {
	counts := map[string]int64{}
	for key, total := range l.clients {
		if bots || key.device != string(schema.Bot) {
			counts[key.browser] += total
		}
	}
	return counts
}

// sourcesOf returns people's clicks by name, of which "" stands for none.
func (l *linkClicks) sourcesOf(kind sourceKind) map[string]int64 {
	counts, nameless := maps.Clone(l.sources[kind]), int64(0)
	for _, day := range l.days {
		nameless += day.people
	}
	for _, total := range counts {
		nameless -= total
	}
	if nameless > 0 {
		counts[""] = nameless
	}
	return counts
}

// mostFrequent returns the n names with the most clicks, ties in order of the names.
func mostFrequent(counts map[string]int64, n int) []schema.NameCount {
	var names []schema.NameCount
	for name, total := range counts {
		names = append(names, schema.NameCount{Name: name, Total: total})
	}
	slices.SortFunc(names, func(a, b schema.NameCount) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), strings.Compare(a.Name, b.Name))
	})
	return names[:min(n, len(names))]
}
