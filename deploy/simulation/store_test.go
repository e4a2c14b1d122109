package simulation_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/storetest"
)

// store is a model of the click store. It keeps every click as a row, as ClickHouse does.
type store struct {
	blind    bool // only where the protocol is broken: counts any batch
	forgets  bool // only where the protocol is broken: does not know the marks
	fallsLow bool // Position.Next is one past the last counted click, as the contract allows

	mu         sync.Mutex
	partitions map[int]*counted
	rows       []row
}

// counted is how far a partition is counted.
type counted struct {
	clicks int64 // one past the last click
	next   int64 // one past the last record that a batch accounted for
	marks  map[schema.Lane]uint64
}

type row struct {
	link, account              int64
	day                        string
	device                     schema.Device
	browser, referrer, country string
}

var _ storetest.ClickStores = (*store)(nil)

func (s *store) partition(number int) *counted {
	if s.partitions == nil {
		s.partitions = make(map[int]*counted)
	}
	if s.partitions[number] == nil {
		s.partitions[number] = &counted{marks: make(map[schema.Lane]uint64)}
	}
	return s.partitions[number]
}

func (s *store) Position(_ context.Context, partition int) (schema.Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.partition(partition)
	position := schema.Position{Next: p.next, Marks: maps.Clone(p.marks)}
	if s.fallsLow {
		position.Next = p.clicks
	}
	if s.forgets {
		position.Marks = nil
	}
	return position, nil
}

func (s *store) InsertClicks(_ context.Context, b *schema.ClickBatch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.partition(b.Partition)
	if (b.Base < p.clicks || b.Base > p.next) && !s.blind {
		return schema.Errorf(schema.CodeConflict, "partition %d is at %d, not at %d", b.Partition, p.next, b.Base)
	}
	for i := range b.Len() {
		s.rows = append(s.rows, row{
			b.LinkID[i], b.AccountID[i], b.ClickedAt[i].Format(time.DateOnly), b.Device[i], b.Browser[i], b.Referrer[i],
			b.Country[i],
		})
		p.marks[b.Lane[i]] = max(p.marks[b.Lane[i]], b.Seq[i])
	}
	p.clicks, p.next = max(p.clicks, b.Offset[b.Len()-1]+1), max(p.next, b.Next)
	return nil
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

func (s *store) ClickCounts(_ context.Context, linkIDs []int64) (map[int64]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := make(map[int64]bool)
	for _, id := range linkIDs {
		asked[id] = true
	}
	counts := make(map[int64]int64)
	for _, r := range s.rows {
		if asked[r.link] {
			counts[r.link]++
		}
	}
	return counts, nil
}

// TestModelStore holds the model against the suite that every real store passes.
func TestModelStore(t *testing.T) {
	for name, fallsLow := range map[string]bool{"position as told": false, "position as low as allowed": true} {
		t.Run(name, func(t *testing.T) {
			storetest.TestClickStore(t, func(*testing.T) (storetest.ClickStores, func() storetest.ClickStores) {
				s := &store{fallsLow: fallsLow}
				return s, func() storetest.ClickStores { return s }
			})
		})
	}
}
