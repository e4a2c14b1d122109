package sqlite

import (
	"cmp"
	"slices"
	"time"

	"linkstream/schema"
)

// sums is a batch added up: one row for each counter that it changes, instead of one for each click. Its memory is
// used again for the next batch.
type sums struct {
	byCounter map[counter]int64
	sorted    []sum // in the order of the table's key, so that the rows of a page change together
	marks     map[schema.Lane]uint64
}

// counter is the key of a row in counters.
type counter struct {
	link, day int64
	device    schema.Device
	browser   string
}

type sum struct {
	counter
	clicks int64
}

func newSums() *sums {
	return &sums{byCounter: map[counter]int64{}, marks: map[schema.Lane]uint64{}}
}

const oneDay = 24 * time.Hour

// add replaces what there was by the sums of a batch.
func (s *sums) add(batch *schema.ClickBatch) {
	clear(s.byCounter)
	clear(s.marks)
	s.sorted = s.sorted[:0]
	for i, link := range batch.LinkID {
		day := batch.ClickedAt[i].Truncate(oneDay).Unix() / int64(oneDay/time.Second)
		s.byCounter[counter{link, day, batch.Device[i], batch.Browser[i]}]++
		s.marks[batch.Lane[i]] = max(s.marks[batch.Lane[i]], batch.Seq[i])
	}
	for key, clicks := range s.byCounter {
		s.sorted = append(s.sorted, sum{key, clicks})
	}
	slices.SortFunc(s.sorted, func(a, b sum) int {
		return cmp.Or(cmp.Compare(a.link, b.link), cmp.Compare(a.day, b.day), cmp.Compare(a.device, b.device),
			cmp.Compare(a.browser, b.browser))
	})
}
