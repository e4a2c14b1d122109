package sqlite

import (
	"cmp"
	"slices"

	"linkstream/schema"
)

// aggregate is a batch of clicks, added up: each row of a table that the batch changes has one entry. Its memory is used
// again for the next batch.
type aggregate struct {
	counters counts[counterKey]
	sources  counts[sourceKey]
	owned    counts[ownedKey]
	facts    counts[factKey]
	lanes    map[schema.Lane]laneMark
	names    []string // scratch
	ids      nameIDs
}

// counterKey is the primary key of table counters.
type counterKey struct {
	link, day int64
	device    schema.Device
	browser   string
}

// sourceKey is the primary key of table sources.
type sourceKey struct {
	link int64
	kind sourceKind
	day  int64
	name string
}

// sourceKind is a value of the column sources.kind.
type sourceKind int64

const (
	referrer sourceKind = 1
	country  sourceKind = 2
	system   sourceKind = 3
	language sourceKind = 4
)

// ownedKey is the primary key of table owned, and which of the row's two counters is meant.
type ownedKey struct {
	account, day, link int64
	bot                bool
}

// laneMark is the highest seq of a lane and the number of its clicks.
type laneMark struct {
	seq    uint64
	clicks int64
}

func newAggregate() *aggregate {
	return &aggregate{
		counters: newCounts[counterKey](), sources: newCounts[sourceKey](), owned: newCounts[ownedKey](),
		lanes: map[schema.Lane]laneMark{}, facts: newCounts[factKey](), ids: newNameIDs(),
	}
}

// fill replaces the aggregate by that of a batch, whose clicks have these referrers.
func (a *aggregate) fill(b *schema.ClickBatch, referrers []string) {
	a.counters.clear()
	a.sources.clear()
	a.owned.clear()
	a.facts.clear()
	clear(a.lanes)
	for i, link := range b.LinkID {
		day, bot := schema.DayNumber(b.ClickedAt[i]), b.Device[i] == schema.Bot
		a.counters.clicks[counterKey{link, day, b.Device[i], b.Browser[i]}]++
		for kind, name := range [...]string{referrer: referrers[i], country: b.Country[i], system: b.OS[i], language: b.Language[i]} {
			if name != "" && !bot {
				a.sources.clicks[sourceKey{link, sourceKind(kind), day, name}]++
			}
		}
		a.facts.clicks[factKey{
			link, quarterOf(b.ClickedAt[i]), b.AccountID[i], string(b.Device[i]), b.Browser[i], b.OS[i], b.Language[i], b.Country[i],
			referrers[i],
		}]++
		if b.AccountID[i] != 0 {
			a.owned.clicks[ownedKey{b.AccountID[i], day, link, bot}]++
		}
		m := a.lanes[b.Lane[i]]
		a.lanes[b.Lane[i]] = laneMark{max(m.seq, b.Seq[i]), m.clicks + 1}
	}
	a.counters.sort(counterKey.compare)
	a.sources.sort(sourceKey.compare)
	a.owned.sort(ownedKey.compare)
	a.facts.sort(factKey.compare)
}

// Keys are compared field by field, and the first field usually decides. cmp.Or would evaluate all comparisons.

func (k counterKey) compare(o counterKey) int {
	if k.link != o.link {
		return cmp.Compare(k.link, o.link)
	}
	if k.day != o.day {
		return cmp.Compare(k.day, o.day)
	}
	if k.device != o.device {
		return cmp.Compare(k.device, o.device)
	}
	return cmp.Compare(k.browser, o.browser)
}

func (k sourceKey) compare(o sourceKey) int {
	if k.link != o.link {
		return cmp.Compare(k.link, o.link)
	}
	if k.kind != o.kind {
		return cmp.Compare(k.kind, o.kind)
	}
	if k.day != o.day {
		return cmp.Compare(k.day, o.day)
	}
	return cmp.Compare(k.name, o.name)
}

// compare returns 0 for the keys of one row, whose clicks of people and of bots are counted separately.
func (k ownedKey) compare(o ownedKey) int {
	if k.account != o.account {
		return cmp.Compare(k.account, o.account)
	}
	if k.day != o.day {
		return cmp.Compare(k.day, o.day)
	}
	return cmp.Compare(k.link, o.link)
}

// counts counts the clicks of a batch per key.
type counts[K comparable] struct {
	clicks map[K]int64
	sorted []count[K] // in the order of the table's key, so that rows of one page change together
}

type count[K comparable] struct {
	key    K
	clicks int64
}

func newCounts[K comparable]() counts[K] { return counts[K]{clicks: map[K]int64{}} }

func (c *counts[K]) clear() { clear(c.clicks) }

func (c *counts[K]) sort(compare func(a, b K) int) {
	c.sorted = c.sorted[:0]
	for key, clicks := range c.clicks {
		c.sorted = append(c.sorted, count[K]{key, clicks})
	}
	slices.SortFunc(c.sorted, func(a, b count[K]) int { return compare(a.key, b.key) })
}
