package storetest

import (
	"cmp"
	"maps"
	"slices"
	"testing"
	"time"

	"linkstream/schema"
)

// click is what a test says about a click; the ledger knows the rest.
type click struct {
	lane              schema.Lane
	link, account     int64
	at                time.Time
	device            schema.Device
	browser           string
	referrer, country string
}

// ledger keeps by plain means what a ClickStore should answer.
type ledger struct {
	partitions map[int]*progress
	links      map[int64]*tally
	accounts   map[int64][]click // of those that are no account's there are none
}

// progress is how far a partition is counted. Position.Next lies between counted and next.
type progress struct {
	counted int64 // one past the last counted click
	next    int64 // the last batch's Next
	marks   map[schema.Lane]uint64
}

type tally struct {
	days     map[string]int64
	devices  map[schema.Device]int64
	browsers map[string]int64
	total    int64
	clicks   []click
}

func newLedger() *ledger {
	return &ledger{
		partitions: map[int]*progress{}, links: map[int64]*tally{}, accounts: map[int64][]click{},
	}
}

func (l *ledger) partition(number int) *progress {
	if l.partitions[number] == nil {
		l.partitions[number] = &progress{marks: map[schema.Lane]uint64{}}
	}
	return l.partitions[number]
}

// batch returns the next batch of a partition, one record for each click, without counting it.
func (l *ledger) batch(partition int, clicks ...click) *schema.ClickBatch {
	p := l.partition(partition)
	marks := maps.Clone(p.marks)
	b := new(schema.ClickBatch)
	b.Reset(partition, p.next)
	for _, c := range clicks {
		marks[c.lane]++
		appendClick(b, b.Next, marks[c.lane], c)
	}
	return b
}

func appendClick(b *schema.ClickBatch, offset int64, seq uint64, c click) {
	b.Offset, b.Lane, b.Seq = append(b.Offset, offset), append(b.Lane, c.lane), append(b.Seq, seq)
	b.LinkID, b.AccountID = append(b.LinkID, c.link), append(b.AccountID, c.account)
	b.ClickedAt = append(b.ClickedAt, c.at.UTC())
	b.Device, b.Browser = append(b.Device, c.device), append(b.Browser, c.browser)
	b.Referrer, b.Country = append(b.Referrer, c.referrer), append(b.Country, c.country)
	b.Next = offset + 1
}

// insert counts the clicks of the next batch of a partition in the store and in the ledger.
func (l *ledger) insert(t *testing.T, store ClickStores, partition int, clicks ...click) {
	t.Helper()
	b := l.batch(partition, clicks...)
	must(t, store.InsertClicks(t.Context(), b))
	l.count(b)
}

// count takes a batch into the ledger.
func (l *ledger) count(b *schema.ClickBatch) {
	p := l.partition(b.Partition)
	p.counted, p.next = b.Offset[b.Len()-1]+1, b.Next
	for i, link := range b.LinkID {
		p.marks[b.Lane[i]] = max(p.marks[b.Lane[i]], b.Seq[i])
		if l.links[link] == nil {
			l.links[link] = &tally{
				days: map[string]int64{}, devices: map[schema.Device]int64{}, browsers: map[string]int64{},
			}
		}
		sum := l.links[link]
		sum.days[b.ClickedAt[i].Format(time.DateOnly)]++
		sum.devices[b.Device[i]]++
		sum.browsers[b.Browser[i]]++
		sum.total++
		c := click{
			b.Lane[i], link, b.AccountID[i], b.ClickedAt[i], b.Device[i], b.Browser[i], b.Referrer[i], b.Country[i],
		}
		sum.clicks = append(sum.clicks, c)
		if c.account != 0 {
			l.accounts[c.account] = append(l.accounts[c.account], c)
		}
	}
}

// check compares everything that the store answers with the ledger.
func (l *ledger) check(t *testing.T, store ClickStores) {
	t.Helper()
	for number, want := range l.partitions {
		l.checkPosition(t, store, number, want)
	}
	ids := slices.Collect(maps.Keys(l.links))
	counts, err := store.ClickCounts(t.Context(), append(ids, unknownLink))
	must(t, err)
	equal(t, "links with counts", len(counts), len(l.links))
	for id, want := range l.links {
		got, err := store.LinkStats(t.Context(), id)
		must(t, err)
		sameStats(t, id, got, want.stats())
		equal(t, "ClickCounts", counts[id], want.total)
	}
	l.checkReports(t, store, time.Time{})
}

// unknownLink has no clicks in any test.
const unknownLink = 987_654_321

func (l *ledger) checkPosition(t *testing.T, store ClickStores, number int, want *progress) {
	t.Helper()
	got, err := store.Position(t.Context(), number)
	must(t, err)
	if got.Next < want.counted || got.Next > want.next {
		t.Fatalf("partition %d: got Next %d, want %d to %d", number, got.Next, want.counted, want.next)
	}
	equal(t, "lanes with marks", len(got.Marks), len(want.marks))
	for lane, mark := range want.marks {
		if got.Marks[lane] != mark {
			t.Fatalf("partition %d, lane %v: got mark %d, want %d", number, lane, got.Marks[lane], mark)
		}
	}
}

func (s *tally) stats() schema.Stats {
	stats := schema.Stats{TotalClicks: s.total, Devices: s.devices, Browsers: map[string]int64{}}
	for _, day := range slices.Sorted(maps.Keys(s.days)) {
		stats.ClicksByDay = append(stats.ClicksByDay, schema.DayCount{Date: day, Total: s.days[day]})
	}
	for _, name := range top(s.browsers, schema.TopBrowsers) {
		stats.Browsers[name] = s.browsers[name]
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

func sameStats(t *testing.T, link int64, got, want schema.Stats) {
	t.Helper()
	if got.TotalClicks != want.TotalClicks || !slices.Equal(got.ClicksByDay, want.ClicksByDay) ||
		!maps.Equal(got.Devices, want.Devices) || !maps.Equal(got.Browsers, want.Browsers) {
		t.Fatalf("stats of link %d:\n got %+v\nwant %+v", link, got, want)
	}
}
