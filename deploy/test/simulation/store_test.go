//go:build !race

package simulation_test

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"linkstream/schema"
)

// store is a model of the click store. Like ClickHouse it keeps a row per click.
type store struct {
	lowPosition bool // Position.Next is one past the last counted click, the lowest that the contract allows
	ignoresBase bool // broken: inserts a batch at any Base
	losesMarks  bool // broken: there are no marks
	unfenced    bool // broken: begins an epoch at any Base
	twoSteps    bool // inserts are fenced by tokens, and a check of the position before; there is one position
	window      int  // number of tokens that are remembered

	mu         sync.Mutex
	partitions map[int]*partition
	rows       []row
	tokens     []string
	gaps       map[schema.Lane][]schema.Gap
}

// partition is the state of a partition.
type partition struct {
	lastClick int64 // offset after the last counted click
	next      int64 // Next of the last batch
	epoch     uint32
	last      schema.CountedRecord
	marks     map[schema.Lane]uint64
	clicks    map[schema.Lane]uint64
	earlier   []schema.Position // the last few, before the current one
}

type row struct {
	link, account int64
	day           string
	device        schema.Device
	browser       string
}

func (s *store) Readers() int { return 1 }

func (s *store) partition(number int) *partition {
	if s.partitions == nil {
		s.partitions = make(map[int]*partition)
	}
	if s.partitions[number] == nil {
		s.partitions[number] = &partition{marks: make(map[schema.Lane]uint64), clicks: make(map[schema.Lane]uint64)}
	}
	return s.partitions[number]
}

func (s *store) Position(_ context.Context, number int) (schema.Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.position(number), nil
}

func (s *store) position(number int) schema.Position {
	p := s.partition(number)
	position := schema.Position{Epoch: p.epoch, Next: p.next, Last: p.last}
	if s.lowPosition && !s.twoSteps {
		position.Next = p.lastClick
	}
	return position
}

func (s *store) LaneMarks(_ context.Context, lanes []schema.Lane) ([]uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	marks := make([]uint64, len(lanes))
	for _, p := range s.partitions {
		for i, lane := range lanes {
			if !s.losesMarks {
				marks[i] = max(marks[i], p.marks[lane])
			}
		}
	}
	return marks, nil
}

func (s *store) ClickSums(context.Context) (map[string]uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return map[string]uint64{"rows": uint64(len(s.rows))}, nil
}

func (s *store) LaneCounts(_ context.Context, each func(schema.LaneCount) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[schema.Lane]schema.LaneCount)
	for _, p := range s.partitions {
		for lane, clicks := range p.clicks {
			sum := all[lane]
			all[lane] = schema.LaneCount{Lane: lane, Mark: max(sum.Mark, p.marks[lane]), Clicks: sum.Clicks + clicks}
		}
	}
	for _, lane := range all {
		if err := each(lane); err != nil {
			return err
		}
	}
	return nil
}

func (s *store) LaneGaps(_ context.Context, lane schema.Lane) ([]schema.Gap, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gaps := slices.SortedFunc(slices.Values(s.gaps[lane]),
		func(a, b schema.Gap) int { return cmp.Compare(a.First, b.First) })
	return gaps[:min(len(gaps), schema.MaxGaps)], nil
}

func (s *store) InsertClicks(_ context.Context, b *schema.ClickBatch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(b, false); err != nil {
		return err
	}
	s.apply(b)
	return nil
}

// check returns CodeConflict if the partition is not where the batch begins, or was not a moment ago if stale. Callers
// hold mu where there is more than one goroutine.
func (s *store) check(b *schema.ClickBatch, stale bool) error {
	p := s.partition(b.Partition)
	if err := b.CheckEpoch(); err != nil {
		return err
	}
	moved := b.BaseEpoch != p.epoch || b.Base < p.lastClick || b.Base > p.next || s.twoSteps && b.Base != p.next
	for _, e := range p.earlier {
		if stale && e.Epoch == b.BaseEpoch && e.Next == b.Base {
			moved = false
		}
	}
	if moved && !s.ignoresBase && !(s.unfenced && b.Epoch > b.BaseEpoch) {
		return schema.Errorf(schema.CodeConflict, "partition %d is at %d of epoch %d, not at %d of %d", b.Partition, p.next,
			p.epoch, b.Base, b.BaseEpoch)
	}
	return nil
}

// apply counts a batch, whatever the position. Callers hold mu where there is more than one goroutine.
func (s *store) apply(b *schema.ClickBatch) {
	p := s.partition(b.Partition)
	p.earlier = append(p.earlier, s.position(b.Partition))
	p.earlier = p.earlier[max(0, len(p.earlier)-maxEarlier):]
	for i := range b.Len() {
		s.rows = append(s.rows, row{b.LinkID[i], b.AccountID[i], b.ClickedAt[i].Format(time.DateOnly), b.Device[i],
			b.Browser[i]})
		p.marks[b.Lane[i]] = max(p.marks[b.Lane[i]], b.Seq[i])
		p.clicks[b.Lane[i]]++
	}
	for _, gap := range b.Gaps {
		if s.gaps == nil {
			s.gaps = make(map[schema.Lane][]schema.Gap)
		}
		if !slices.Contains(s.gaps[gap.Lane], gap) {
			s.gaps[gap.Lane] = append(s.gaps[gap.Lane], gap)
		}
	}
	last := b.Len() - 1
	if b.Epoch > p.epoch {
		p.epoch, p.lastClick, p.next = b.Epoch, 0, 0
	}
	if offset := b.Offset[last]; offset >= p.lastClick {
		p.lastClick, p.last = offset+1, schema.CountedRecord{Offset: offset, Lane: b.Lane[last], Seq: b.Seq[last]}
	}
	p.next = max(p.next, b.Next)
}

func (s *store) LinkStats(_ context.Context, linkID int64) (schema.Stats, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var stats schema.Stats
	days, browsers := make(map[string]int64), make(map[string]int64)
	for _, r := range s.rows {
		if r.link != linkID {
			continue
		}
		if stats.TotalClicks++; stats.Devices == nil {
			stats.Devices = make(map[schema.Device]int64)
		}
		stats.Devices[r.device]++
		days[r.day]++
		browsers[r.browser]++
	}
	for _, day := range slices.Sorted(maps.Keys(days)) {
		stats.ClicksByDay = append(stats.ClicksByDay, schema.DayCount{Date: day, Total: days[day]})
	}
	stats.Browsers = make(map[string]int64)
	for _, name := range top(browsers, schema.TopBrowsers) {
		stats.Browsers[name] = browsers[name]
	}
	return stats, nil
}

func (s *store) ClickCounts(_ context.Context, _ int64, linkIDs []int64) (map[int64]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := make(map[int64]bool)
	for _, id := range linkIDs {
		wanted[id] = true
	}
	counts := make(map[int64]int64)
	for _, r := range s.rows {
		if wanted[r.link] {
			counts[r.link]++
		}
	}
	return counts, nil
}

func (s *store) ClickTotals(
	_ context.Context, links, accounts []int64,
) (ofLinks, ofAccounts map[int64]schema.Period, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ofLinks, ofAccounts = map[int64]schema.Period{}, map[int64]schema.Period{}
	for _, r := range s.rows {
		one := schema.Period{People: 1}
		if r.device == schema.Bot {
			one = schema.Period{Bots: 1}
		}
		if slices.Contains(links, r.link) {
			sum := ofLinks[r.link]
			sum.Add(one)
			ofLinks[r.link] = sum
		}
		if slices.Contains(accounts, r.account) {
			sum := ofAccounts[r.account]
			sum.Add(one)
			ofAccounts[r.account] = sum
		}
	}
	return ofLinks, ofAccounts, nil
}

// top returns the keys with the highest counts, ties in order of the key.
func top[K cmp.Ordered](counts map[K]int64, limit int) []K {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b K) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	return keys[:min(len(keys), limit)]
}
