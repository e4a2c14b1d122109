package sqlite

import (
	"cmp"
	"slices"
	"time"

	"linkstream/schema"
)

// sums is a batch added up: one row for each that it changes in a table, instead of one for each click. Its memory is
// used again for the next batch.
type sums struct {
	counters tally[counter]
	sources  tally[source]
	owned    tally[owned]
	marks    map[schema.Lane]uint64
}

// counter is the key of a row in counters.
type counter struct {
	link, day int64
	device    schema.Device
	browser   string
}

// source is the key of a row in sources.
type source struct {
	link int64
	kind kind
	day  int64
	name string
}

// kind is what a source is.
type kind int64

const (
	referrer kind = 1
	country  kind = 2
)

// owned is the key of a row in owned, which holds the clicks of people and those of bots.
type owned struct {
	account, day, link int64
	bot                bool
}

func newSums() *sums {
	return &sums{
		counters: tally[counter]{clicks: map[counter]int64{}}, sources: tally[source]{clicks: map[source]int64{}},
		owned: tally[owned]{clicks: map[owned]int64{}}, marks: map[schema.Lane]uint64{},
	}
}

const oneDay = 24 * time.Hour

// dayOf returns the UTC day, counted from 1970-01-01.
func dayOf(t time.Time) int64 { return t.Truncate(oneDay).Unix() / int64(oneDay/time.Second) }

// dateOf undoes dayOf.
func dateOf(day int64) string {
	return time.Unix(0, 0).UTC().AddDate(0, 0, int(day)).Format(time.DateOnly)
}

// add replaces what there was by the sums of a batch.
func (s *sums) add(b *schema.ClickBatch) {
	clear(s.counters.clicks)
	clear(s.sources.clicks)
	clear(s.owned.clicks)
	clear(s.marks)
	for i, link := range b.LinkID {
		day, bot := dayOf(b.ClickedAt[i]), b.Device[i] == schema.Bot
		s.counters.clicks[counter{link, day, b.Device[i], b.Browser[i]}]++
		if b.Referrer[i] != "" && !bot {
			s.sources.clicks[source{link, referrer, day, b.Referrer[i]}]++
		}
		if b.Country[i] != "" && !bot {
			s.sources.clicks[source{link, country, day, b.Country[i]}]++
		}
		if b.AccountID[i] != 0 {
			s.owned.clicks[owned{b.AccountID[i], day, link, bot}]++
		}
		s.marks[b.Lane[i]] = max(s.marks[b.Lane[i]], b.Seq[i])
	}
	s.counters.sort(counter.compare)
	s.sources.sort(source.compare)
	s.owned.sort(owned.compare)
}

// The keys are compared field by field, and most often the first tells: cmp.Or would compare all.

func (k counter) compare(o counter) int {
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

func (k source) compare(o source) int {
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

// compare takes the clicks of people and of bots as one row.
func (k owned) compare(o owned) int {
	if k.account != o.account {
		return cmp.Compare(k.account, o.account)
	}
	if k.day != o.day {
		return cmp.Compare(k.day, o.day)
	}
	return cmp.Compare(k.link, o.link)
}

// tally counts the clicks of each key of a table.
type tally[K comparable] struct {
	clicks map[K]int64
	sorted []sum[K] // in the order of the table's key, so that the rows of a page change together
}

type sum[K comparable] struct {
	key    K
	clicks int64
}

func (t *tally[K]) sort(compare func(a, b K) int) {
	t.sorted = t.sorted[:0]
	for key, clicks := range t.clicks {
		t.sorted = append(t.sorted, sum[K]{key, clicks})
	}
	slices.SortFunc(t.sorted, func(a, b sum[K]) int { return compare(a.key, b.key) })
}
