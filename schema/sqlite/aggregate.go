package sqlite

import (
	"cmp"
	"context"
	"slices"

	"linkstream/schema"
	"linkstream/schema/namebound"
)

// aggregate is a batch of clicks, added up: each row of a table that the batch changes has one entry. Its memory is
// used again for the next batch.
type aggregate struct {
	recent []recentCount // in the order of the table's key, so that rows of one page change together
	lanes  map[schema.Lane]laneMark
	// quarters are the clicks on all links of an account.
	quarters map[ownedKey]schema.Period

	row     map[recentKey]int32 // in recent
	names   []string            // by number: those that are written
	number  map[string]int32    // of names in the batch
	clients []int64             // of the clicks
	visits  []byte              // as the log has them
	bounded namebound.Memory
	ids     nameIDs
}

// recentKey is the primary key of table recent. Written names are the numbers that they have in the batch.
type recentKey struct {
	link, quarter, account, client int64
	written                        [writtenColumns]int32
}

// ownedKey is the primary key of table owned_quarters.
type ownedKey struct{ account, quarter int64 }

type recentCount struct {
	recentKey
	clicks int64
}

// laneMark is the lowest and the highest seq of a lane and the number of its clicks.
type laneMark struct {
	first, seq uint64
	clicks     int64
}

func newAggregate() *aggregate {
	return &aggregate{
		lanes: map[schema.Lane]laneMark{}, quarters: map[ownedKey]schema.Period{}, row: map[recentKey]int32{},
		number: map[string]int32{},
		ids:    nameIDs{known: map[string]int64{}},
	}
}

// fillClients numbers the names from lists. All names get a number.
func (a *aggregate) fillClients(ctx context.Context, db *database, b *schema.ClickBatch) (err error) {
	var unknown []string
	if a.clients, unknown = a.ids.clients(a.clients[:0], b); len(unknown) == 0 {
		return nil
	}
	if err := a.ids.learn(ctx, db, unknown); err != nil {
		return err
	}
	// learn may have forgotten other names of the batch.
	if a.clients, unknown = a.ids.clients(a.clients[:0], b); len(unknown) > 0 {
		err = a.ids.learn(ctx, db, unknown)
		a.clients, _ = a.ids.clients(a.clients[:0], b)
	}
	return err
}

// fill replaces the aggregate by that of a batch, whose clicks have the numbered clients.
func (a *aggregate) fill(b *schema.ClickBatch) {
	a.recent, a.names = a.recent[:0], append(a.names[:0], "")
	clear(a.row)
	clear(a.number)
	clear(a.lanes)
	clear(a.quarters)
	var names [writtenColumns][]string
	for at, by := range written {
		names[at] = *b.Names(by)
	}
	for i, link := range b.LinkID {
		key := recentKey{link: link, quarter: quarterOf(b.ClickedAt[i]), account: b.AccountID[i], client: a.clients[i]}
		for at, names := range names {
			key.written[at] = a.numberOf(names[i])
		}
		at, found := a.row[key]
		if !found {
			at = int32(len(a.recent))
			a.row[key], a.recent = at, append(a.recent, recentCount{recentKey: key})
		}
		a.recent[at].clicks++
	}
	for first := 0; first < b.Len(); { // clicks of a lane come in runs
		lane, end := b.Lane[first], first
		m, found := a.lanes[lane]
		if !found {
			m.first = b.Seq[first]
		}
		for ; end < b.Len() && b.Lane[end] == lane; end++ {
			m = laneMark{min(m.first, b.Seq[end]), max(m.seq, b.Seq[end]), m.clicks + 1}
		}
		a.lanes[lane], first = m, end
	}
	for _, row := range a.recent {
		clicks := schema.Period{People: row.clicks}
		if isBot(row.client) {
			clicks = schema.Period{Bots: row.clicks}
		}
		key := ownedKey{row.account, row.quarter}
		clicks.Add(a.quarters[key])
		a.quarters[key] = clicks
	}
	a.visits = appendVisits(a.visits[:0], b)
	slices.SortFunc(a.recent, func(x, y recentCount) int { return a.compare(&x.recentKey, &y.recentKey) })
}

// numberOf returns the number that a written name has in the batch: 0 for none, as most clicks have.
func (a *aggregate) numberOf(name string) int32 {
	if name == "" {
		return 0
	}
	number, found := a.number[name]
	if !found {
		number = int32(len(a.names))
		a.number[name], a.names = number, append(a.names, name)
	}
	return number
}

// Keys are compared field by field, and the first field usually decides. cmp.Or would evaluate all comparisons.

func (a *aggregate) compare(k, o *recentKey) int {
	if k.link != o.link {
		return cmp.Compare(k.link, o.link)
	}
	if k.client != o.client {
		return cmp.Compare(k.client, o.client)
	}
	for i := range k.written {
		if k.written[i] != o.written[i] {
			return cmp.Compare(a.names[k.written[i]], a.names[o.written[i]])
		}
	}
	if k.quarter != o.quarter {
		return cmp.Compare(k.quarter, o.quarter)
	}
	return cmp.Compare(k.account, o.account)
}
