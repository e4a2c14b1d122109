package sqlite

import (
	"cmp"
	"context"
	"slices"

	"linkstream/schema"
)

// aggregate is a batch of clicks, added up: each row of a table that the batch changes has one entry. Its memory is used
// again for the next batch.
type aggregate struct {
	recent []recentCount // in the order of the table's key, so that rows of one page change together
	owned  []ownedCount  // likewise; a key may have several entries
	lanes  map[schema.Lane]laneMark

	row       map[recentKey]int32 // in recent
	referrers []string            // by recentKey.referrer
	referrer  map[string]int32
	clients   []int64  // of the clicks
	names     []string // scratch
	ids       nameIDs
}

// recentKey is the primary key of table recent. The referrer is the number that it has in the batch.
type recentKey struct {
	link, quarter, account, client int64
	referrer                       int32
}

type recentCount struct {
	recentKey
	clicks int64
}

// ownedCount is a row of table owned.
type ownedCount struct {
	account, day, link int64
	people, bots       int64
}

// sourceKind is a value of the column sources.kind.
type sourceKind int64

const (
	referrer sourceKind = 1
	country  sourceKind = 2
	system   sourceKind = 3
	language sourceKind = 4
)

// laneMark is the highest seq of a lane and the number of its clicks.
type laneMark struct {
	seq    uint64
	clicks int64
}

func newAggregate() *aggregate {
	return &aggregate{
		lanes: map[schema.Lane]laneMark{}, row: map[recentKey]int32{}, referrer: map[string]int32{}, ids: newNameIDs(),
	}
}

// number fills clients. All names get a number.
func (a *aggregate) number(ctx context.Context, db *database, b *schema.ClickBatch) (err error) {
	var unknown []string
	if a.clients, unknown = a.ids.clients(a.clients[:0], b); len(unknown) == 0 {
		return nil
	}
	if err := a.ids.learn(ctx, db, unknown); err != nil {
		return err
	}
	// What was known may be forgotten.
	if a.clients, unknown = a.ids.clients(a.clients[:0], b); len(unknown) > 0 {
		err = a.ids.learn(ctx, db, unknown)
		a.clients, _ = a.ids.clients(a.clients[:0], b)
	}
	return err
}

// fill replaces the aggregate by that of a batch, whose clicks have these referrers and clients.
func (a *aggregate) fill(b *schema.ClickBatch, referrers []string) {
	a.recent, a.referrers = a.recent[:0], a.referrers[:0]
	clear(a.row)
	clear(a.referrer)
	clear(a.lanes)
	for i, link := range b.LinkID {
		key := recentKey{link, quarterOf(b.ClickedAt[i]), b.AccountID[i], a.clients[i], a.referrerNumber(referrers[i])}
		at, found := a.row[key]
		if !found {
			at = int32(len(a.recent))
			a.row[key], a.recent = at, append(a.recent, recentCount{recentKey: key})
		}
		a.recent[at].clicks++
	}
	for first := 0; first < b.Len(); { // clicks of a lane come in runs
		lane, end := b.Lane[first], first
		m := a.lanes[lane]
		for ; end < b.Len() && b.Lane[end] == lane; end++ {
			m = laneMark{max(m.seq, b.Seq[end]), m.clicks + 1}
		}
		a.lanes[lane], first = m, end
	}
	slices.SortFunc(a.recent, func(x, y recentCount) int { return a.compare(&x.recentKey, &y.recentKey) })
	a.fillOwned()
}

// referrerNumber returns the number that a referrer has in the batch.
func (a *aggregate) referrerNumber(name string) int32 {
	number, found := a.referrer[name]
	if !found {
		number = int32(len(a.referrers))
		a.referrer[name], a.referrers = number, append(a.referrers, name)
	}
	return number
}

// fillOwned adds up neighbours of recent.
func (a *aggregate) fillOwned() {
	a.owned = a.owned[:0]
	bot := a.ids.known[string(schema.Bot)]
	for _, row := range a.recent {
		if row.account == 0 {
			continue
		}
		day := row.quarter / quartersPerDay
		last := len(a.owned) - 1
		if last < 0 || a.owned[last].link != row.link || a.owned[last].day != day || a.owned[last].account != row.account {
			a.owned = append(a.owned, ownedCount{account: row.account, day: day, link: row.link})
			last++
		}
		if deviceOf(row.client) == bot {
			a.owned[last].bots += row.clicks
		} else {
			a.owned[last].people += row.clicks
		}
	}
	slices.SortFunc(a.owned, ownedCount.compare)
}

// Keys are compared field by field, and the first field usually decides. cmp.Or would evaluate all comparisons.

func (a *aggregate) compare(k, o *recentKey) int {
	if k.link != o.link {
		return cmp.Compare(k.link, o.link)
	}
	if k.quarter != o.quarter {
		return cmp.Compare(k.quarter, o.quarter)
	}
	if k.account != o.account {
		return cmp.Compare(k.account, o.account)
	}
	if k.client != o.client {
		return cmp.Compare(k.client, o.client)
	}
	return cmp.Compare(a.referrers[k.referrer], a.referrers[o.referrer])
}

func (c ownedCount) compare(o ownedCount) int {
	if c.account != o.account {
		return cmp.Compare(c.account, o.account)
	}
	if c.day != o.day {
		return cmp.Compare(c.day, o.day)
	}
	return cmp.Compare(c.link, o.link)
}
