package sqlite

import (
	"cmp"
	"context"
	"slices"

	"linkstream/schema"
	"linkstream/schema/namebound"
)

// aggregate is a batch of clicks, added up: each row of a table that the batch changes has one entry. Its memory is used
// again for the next batch.
type aggregate struct {
	recent []recentCount // in the order of the table's key, so that rows of one page change together
	owned  []ownedCount  // likewise, by day
	// Those of all links of an account, by quarter.
	quarters []ownedCount
	lanes    map[schema.Lane]laneMark

	row     map[recentKey]int32 // in recent
	names   []string            // by number: referrers and routes
	number  map[string]int32    // of names in the batch
	clients []int64             // of the clicks
	bounded namebound.Memory
	ids     nameIDs
}

// recentKey is the primary key of table recent. Referrer and route are the numbers that they have in the batch.
type recentKey struct {
	link, quarter, account, client int64
	referrer, route                int32
}

type recentCount struct {
	recentKey
	clicks int64
}

// ownedCount is a row of table owned, or of owned_quarters without a link.
type ownedCount struct {
	account, at, link int64 // at is the day or the quarter
	people, bots      int64
}

// laneMark is the lowest and the highest seq of a lane and the number of its clicks.
type laneMark struct {
	first, seq uint64
	clicks     int64
}

func newAggregate() *aggregate {
	return &aggregate{
		lanes: map[schema.Lane]laneMark{}, row: map[recentKey]int32{}, number: map[string]int32{},
		ids: nameIDs{known: map[string]int64{}},
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
	// What was known may be forgotten.
	if a.clients, unknown = a.ids.clients(a.clients[:0], b); len(unknown) > 0 {
		err = a.ids.learn(ctx, db, unknown)
		a.clients, _ = a.ids.clients(a.clients[:0], b)
	}
	return err
}

// fill replaces the aggregate by that of a batch, whose clicks have the numbered clients.
func (a *aggregate) fill(b *schema.ClickBatch) {
	a.recent, a.names = a.recent[:0], a.names[:0]
	clear(a.row)
	clear(a.number)
	clear(a.lanes)
	for i, link := range b.LinkID {
		key := recentKey{link, quarterOf(b.ClickedAt[i]), b.AccountID[i], a.clients[i], a.numberOf(b.Referrer[i]), a.numberOf(b.Route[i])}
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
	slices.SortFunc(a.recent, func(x, y recentCount) int { return a.compare(&x.recentKey, &y.recentKey) })
	a.fillOwned()
}

// numberOf returns the number that a referrer or route has in the batch.
func (a *aggregate) numberOf(name string) int32 {
	number, found := a.number[name]
	if !found {
		number = int32(len(a.names))
		a.number[name], a.names = number, append(a.names, name)
	}
	return number
}

// fillOwned adds up recent.
func (a *aggregate) fillOwned() {
	a.owned, a.quarters = a.owned[:0], a.quarters[:0]
	for _, row := range a.recent {
		count := ownedCount{account: row.account, people: row.clicks}
		if isBot(row.client) {
			count.people, count.bots = 0, row.clicks
		}
		count.at = row.quarter
		a.quarters = appendCount(a.quarters, count)
		count.at, count.link = row.quarter/quartersPerDay, row.link
		a.owned = appendCount(a.owned, count)
	}
	a.owned, a.quarters = addedUp(a.owned), addedUp(a.quarters)
}

// appendCount adds to the last count if it has the same key.
func appendCount(counts []ownedCount, c ownedCount) []ownedCount {
	if last := len(counts) - 1; last >= 0 && counts[last].compare(c) == 0 {
		counts[last].people += c.people
		counts[last].bots += c.bots
		return counts
	}
	return append(counts, c)
}

// addedUp sorts counts and adds up those of a key, in the same memory.
func addedUp(counts []ownedCount) []ownedCount {
	slices.SortFunc(counts, ownedCount.compare)
	sums := counts[:0]
	for _, c := range counts {
		sums = appendCount(sums, c)
	}
	return sums
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
	if k.referrer != o.referrer {
		return cmp.Compare(a.names[k.referrer], a.names[o.referrer])
	}
	return cmp.Compare(a.names[k.route], a.names[o.route])
}

func (c ownedCount) compare(o ownedCount) int {
	if c.account != o.account {
		return cmp.Compare(c.account, o.account)
	}
	if c.at != o.at {
		return cmp.Compare(c.at, o.at)
	}
	return cmp.Compare(c.link, o.link)
}
