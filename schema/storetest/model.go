package storetest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// click is a click of a test; the model adds offset and seq.
type click struct {
	lane          schema.Lane
	link, account int64
	at            time.Time
	names         map[schema.Dimension]string
	visitor       uint64
}

// model computes the answers of a ClickStore by plain means.
type model struct {
	partitions map[int]*progress
	links      map[int64]*linkModel
	accounts   map[int64][]click
	histories  []schema.History
}

// progress is the counted part of a partition. The Position.Next of a PositionStore is between counted and next.
type progress struct {
	epoch   uint32
	counted int64 // one past the last counted click
	next    int64 // Next of the last batch
	last    schema.CountedRecord
	marks   map[schema.Lane]uint64
	clicks  map[schema.Lane]uint64
}

type linkModel struct {
	days     map[string]int64
	devices  map[schema.Device]int64
	browsers map[string]int64
	total    int64
	clicks   []click
}

func newModel() *model {
	return &model{
		partitions: map[int]*progress{}, links: map[int64]*linkModel{}, accounts: map[int64][]click{},
	}
}

func (m *model) partition(number int) *progress {
	if m.partitions[number] == nil {
		m.partitions[number] = &progress{marks: map[schema.Lane]uint64{}, clicks: map[schema.Lane]uint64{}}
	}
	return m.partitions[number]
}

// batch returns the next batch of a partition, with one record per click, without counting it. Lanes go on where any
// partition has left them.
func (m *model) batch(partition int, clicks ...click) *schema.ClickBatch {
	p := m.partition(partition)
	marks := map[schema.Lane]uint64{}
	b := new(schema.ClickBatch)
	b.Reset(partition, p.next)
	b.BaseEpoch, b.Epoch = p.epoch, p.epoch
	for _, c := range clicks {
		marks[c.lane] = max(marks[c.lane], m.mark(c.lane)) + 1
		appendClick(b, b.Next, marks[c.lane], c)
	}
	return b
}

func appendClick(b *schema.ClickBatch, offset int64, seq uint64, c click) {
	b.Offset, b.Lane, b.Seq = append(b.Offset, offset), append(b.Lane, c.lane), append(b.Seq, seq)
	b.LinkID, b.AccountID = append(b.LinkID, c.link), append(b.AccountID, c.account)
	b.ClickedAt = append(b.ClickedAt, c.at.UTC())
	for _, by := range schema.Dimensions() {
		column := b.Names(by)
		*column = append(*column, c.names[by])
	}
	b.Visitor = append(b.Visitor, c.visitor)
	b.Next = offset + 1
}

// insert counts the next batch of a partition in the store and in the model.
func (m *model) insert(t *testing.T, store schema.ClickStore, partition int, clicks ...click) {
	t.Helper()
	b := m.batch(partition, clicks...)
	testkit.Must(t, store.InsertClicks(t.Context(), b))
	m.count(b)
}

// count counts a batch in the model.
func (m *model) count(b *schema.ClickBatch) {
	p := m.partition(b.Partition)
	last := b.Len() - 1
	p.epoch, p.counted, p.next = b.Epoch, b.Offset[last]+1, b.Next
	p.last = schema.CountedRecord{Offset: b.Offset[last], Lane: b.Lane[last], Seq: b.Seq[last]}
	for i, link := range b.LinkID {
		p.marks[b.Lane[i]] = max(p.marks[b.Lane[i]], b.Seq[i])
		p.clicks[b.Lane[i]]++
		if m.links[link] == nil {
			m.links[link] = &linkModel{
				days: map[string]int64{}, devices: map[schema.Device]int64{}, browsers: map[string]int64{},
			}
		}
		sum := m.links[link]
		sum.days[b.ClickedAt[i].Format(time.DateOnly)]++
		sum.devices[b.Device[i]]++
		sum.browsers[b.Browser[i]]++
		sum.total++
		c := click{lane: b.Lane[i], link: link, account: b.AccountID[i], at: b.ClickedAt[i], visitor: b.Visitor[i],
			names: map[schema.Dimension]string{}}
		for _, by := range schema.Dimensions() {
			c.names[by] = (*b.Names(by))[i]
		}
		sum.clicks = append(sum.clicks, c)
		m.accounts[c.account] = append(m.accounts[c.account], c)
	}
}

// check compares all results of the store with the model, including reports if it has any.
func (m *model) check(t *testing.T, store schema.ClickStore) {
	t.Helper()
	m.checkCounts(t, store)
	for id := range m.links {
		m.checkStats(t, store, id)
	}
	for _, h := range m.histories {
		if m.links[h.LinkID] == nil {
			m.checkStats(t, store, h.LinkID)
		}
	}
	if reports, ok := store.(ClickStores); ok {
		m.checkReports(t, reports, time.Time{})
		m.checkSums(t, reports)
	}
}

func (m *model) checkStats(t *testing.T, store schema.ClickStore, link int64) {
	t.Helper()
	got, err := store.LinkStats(t.Context(), link)
	testkit.Must(t, err)
	testkit.Equal(t, fmt.Sprintf("stats of link %d", link), got, m.stats(link), nilOrEmpty)
}

// checkCounts compares positions, lanes and the number of clicks of each link. Clicks are only added, so a check at the
// end of the test finds any of these clicks that stats or reports count differently.
func (m *model) checkCounts(t *testing.T, store schema.ClickStore) {
	t.Helper()
	positions, _ := store.(schema.PositionStore)
	for number, want := range m.partitions {
		if positions != nil {
			checkPosition(t, positions, number, want)
		}
		m.checkMarks(t, store, want)
	}
	m.checkLanes(t, store)
	want := map[int64]int64{}
	for id, link := range m.links {
		want[id] = link.total
	}
	m.importedDays(func(h schema.History, _ time.Time, clicks int64) { want[h.LinkID] += clicks })
	ids := slices.Collect(maps.Keys(want))
	counts, err := store.ClickCounts(t.Context(), 1, append(ids, unknownLink))
	testkit.Must(t, err)
	testkit.Equal(t, "ClickCounts", counts, want)
	m.checkTotals(t, store, ids)
}

// checkTotals compares the clicks of people and bots of links and of all accounts, asked for together and alone.
func (m *model) checkTotals(t *testing.T, store schema.ClickStore, links []int64) {
	t.Helper()
	ofLinks, ofAccounts := map[int64]schema.Period{}, map[int64]schema.Period{}
	for account, clicks := range m.accounts {
		for _, c := range clicks {
			one := schema.Period{People: 1}
			if c.names[schema.ByDevice] == schema.Bot {
				one = schema.Period{Bots: 1}
			}
			for sums, key := range map[*map[int64]schema.Period]int64{&ofLinks: c.link, &ofAccounts: account} {
				sum := (*sums)[key]
				sum.Add(one)
				(*sums)[key] = sum
			}
		}
	}
	m.importedDays(func(h schema.History, _ time.Time, clicks int64) {
		for sums, key := range map[*map[int64]schema.Period]int64{&ofLinks: h.LinkID, &ofAccounts: h.AccountID} {
			sum := (*sums)[key]
			sum.Imported += clicks
			(*sums)[key] = sum
		}
	})
	accounts := append(slices.Collect(maps.Keys(ofAccounts)), unknownLink)
	links = append(links, unknownLink)
	none := map[int64]schema.Period{}
	for _, c := range []struct {
		links, accounts         []int64
		wantLinks, wantAccounts map[int64]schema.Period
	}{{links, accounts, ofLinks, ofAccounts}, {links, nil, ofLinks, none}, {nil, accounts, none, ofAccounts},
		{nil, nil, none, none}} {
		gotLinks, gotAccounts, err := store.ClickTotals(t.Context(), c.links, c.accounts)
		testkit.Must(t, err)
		testkit.Equal(t, "totals of links", gotLinks, c.wantLinks)
		testkit.Equal(t, "totals of accounts", gotAccounts, c.wantAccounts)
	}
}

// unknownLink has no clicks in any test.
const unknownLink = 987_654_321

func checkPosition(t *testing.T, store schema.PositionStore, number int, want *progress) {
	t.Helper()
	got, err := store.Position(t.Context(), number)
	testkit.Must(t, err)
	if got.Next < want.counted || got.Next > want.next {
		t.Fatalf("partition %d: got Next %d, want %d to %d", number, got.Next, want.counted, want.next)
	}
	testkit.Equal(t, fmt.Sprintf("epoch of partition %d", number), got.Epoch, want.epoch)
	if want.next > 0 {
		last := want.last
		if got.Last.Seq == want.marks[last.Lane] { // a test may count the numbers of a lane in another order than producers
			last.Seq = got.Last.Seq
		}
		testkit.Equal(t, fmt.Sprintf("last click of partition %d", number), got.Last, last)
	}
}

// checkMarks compares the marks of a few lanes of a partition. checkLanes compares them all, by other queries.
func (m *model) checkMarks(t *testing.T, store schema.ClickStore, of *progress) {
	t.Helper()
	var marks []uint64
	lanes := slices.Collect(maps.Keys(of.clicks))
	lanes = append(lanes[:min(len(lanes), 3)], schema.Lane{Number: 1 << 31})
	for _, lane := range lanes {
		marks = append(marks, m.mark(lane))
	}
	got, err := store.LaneMarks(t.Context(), lanes)
	testkit.Must(t, err)
	testkit.Equal(t, "marks", got, marks)
}

// mark returns the highest mark of a lane.
func (m *model) mark(lane schema.Lane) (seq uint64) {
	for _, p := range m.partitions {
		seq = max(seq, p.marks[lane])
	}
	return seq
}

// stats returns the statistics of a link.
func (m *model) stats(link int64) schema.Stats {
	l := linkModel{days: map[string]int64{}, devices: map[schema.Device]int64{}, browsers: map[string]int64{}}
	if counted := m.links[link]; counted != nil {
		l = linkModel{maps.Clone(counted.days), maps.Clone(counted.devices), maps.Clone(counted.browsers), counted.total, nil}
	}
	m.importedDays(func(h schema.History, at time.Time, clicks int64) {
		if h.LinkID == link {
			l.days[at.Format(time.DateOnly)] += clicks
			l.devices[schema.Other] += clicks
			l.browsers[schema.Imported] += clicks
			l.total += clicks
		}
	})
	stats := schema.Stats{TotalClicks: l.total, Devices: l.devices, Browsers: map[string]int64{}}
	for _, day := range slices.Sorted(maps.Keys(l.days)) {
		stats.ClicksByDay = append(stats.ClicksByDay, schema.DayCount{Date: day, Total: l.days[day]})
	}
	for _, name := range top(l.browsers, schema.TopBrowsers) {
		stats.Browsers[name] = l.browsers[name]
	}
	return stats
}

// top returns the n keys that are counted most, in this order, ties by key.
func top[K cmp.Ordered](counts map[K]int64, n int) []K {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b K) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	return keys[:min(len(keys), n)]
}

// NoNames gives the clicks of a batch the name "" in each dimension that has no names yet, and unknown visitors if it
// has none.
func NoNames(b *schema.ClickBatch) *schema.ClickBatch {
	for _, by := range schema.Dimensions() {
		if names := b.Names(by); len(*names) == 0 {
			*names = make([]string, b.Len())
		}
	}
	if len(b.Visitor) == 0 {
		b.Visitor = make([]uint64, b.Len())
	}
	return b
}
