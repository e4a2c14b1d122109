package storetest

import (
	"fmt"
	"math"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var visitorBehaviours = []behaviour[ClickStores]{
	{"Report counts visitors once, however often they come", countsVisitorsOnce},
	{"Report counts visitors of an account once on all its links", unitesVisitors},
	{"Report counts visitors by UTC day, in any zone", countsVisitorsByDay},
	{"Report estimates many visitors", estimatesVisitors},
	{"Report has no visitors of filtered clicks, or if it is not asked for them", leavesVisitorsOut},
}

// visit returns the clicks of visitors, numbered from one to before another, on a link of account 1. They are spread
// over an hour.
func visit(link int64, at time.Time, from, to int) []click {
	clicks := clicksOf(link, to-from)
	for i := range clicks {
		clicks[i].visitor, clicks[i].at = hashOf(1, from+i),
			at.Add(time.Duration(i)*time.Hour/time.Duration(to-from)).Truncate(time.Millisecond)
	}
	return clicks
}

// visitorsOf returns the visitors in a report of links, nil for all, and UTC days.
func visitorsOf(t *testing.T, store ClickStores, links []int64, first time.Time, days int) schema.Visitors {
	t.Helper()
	q := Days(1, links, first, days)
	q.NoNames = true
	report, err := store.Report(t.Context(), q)
	testkit.Must(t, err)
	return *report.Visitors
}

func countsVisitorsOnce(t *testing.T, store ClickStores) {
	const visitors = schema.MaxExactVisitors - 1
	model, day := newModel(), epoch.Truncate(24*time.Hour)
	for round := range 3 {
		model.insert(t, store, round%2, visit(1, day.Add(time.Duration(round)*time.Hour), 0, visitors)...)
		want := schema.Visitors{Series: []int64{visitors}, Total: visitors}
		testkit.Equal(t, "visitors of a link", visitorsOf(t, store, []int64{1}, day, 1), want)
		testkit.Equal(t, "visitors of an account", visitorsOf(t, store, nil, day, 1), want)
	}
	hours := Days(1, []int64{1}, day, 1)
	for hour := range 23 {
		hours.Bounds = append(hours.Bounds[:hour+1], day.Add(time.Duration(hour+1)*time.Hour), day.AddDate(0, 0, 1))
	}
	model.checkQuery(t, store, hours)
}

func unitesVisitors(t *testing.T, store ClickStores) {
	model, day := newModel(), epoch.Truncate(24*time.Hour)
	model.insert(t, store, 0, visit(1, day, 0, 300)...)
	model.insert(t, store, 0, visit(2, day, 200, 500)...)
	model.insert(t, store, 1, visit(3, day, 0, 100)...)
	for total, links := range map[int64][]int64{300: {1}, 301: {2}, 500: {1, 2}, 400: {2, 3}, 501: nil} {
		want := total / 100 * 100
		testkit.Equal(t, fmt.Sprintf("visitors of links %v", links), visitorsOf(t, store, links, day, 1).Total, want)
		model.checkQuery(t, store, Days(1, links, day, 2))
	}
}

func countsVisitorsByDay(t *testing.T, store ClickStores) {
	model, day := newModel(), epoch.Truncate(24*time.Hour)
	for n := range 4 {
		for _, hour := range []int{1, 4, 5, 12, 22} {
			model.insert(t, store, 0, visit(int64(1+hour%2), day.AddDate(0, 0, n).Add(time.Duration(hour)*time.Hour), 10*n, 10*n+
				5*hour)...)
		}
	}
	for _, links := range [][]int64{nil, {1}, {1, 2}} {
		for _, zone := range zones(t) {
			q := Days(1, links, day, 3)
			local := time.Date(day.Year(), day.Month(), day.Day()+1, 0, 0, 0, 0, zone)
			q.Bounds, q.Previous = daysFrom(local, 2)
			model.checkQuery(t, store, q)
			q.Bounds = q.Bounds[:1]
			for at := local; at.Before(local.AddDate(0, 0, 2)); at = at.Add(time.Hour) {
				q.Bounds = append(q.Bounds, at.Add(time.Hour).UTC())
			}
			model.checkQuery(t, store, q)
		}
	}
}

// ManyVisitors is more than a store counts exactly. So is half of it.
const ManyVisitors = 100_000

// near returns an error unless an estimate is within 2 %.
func near(t *testing.T, what string, got int64, want int) {
	t.Helper()
	if off := math.Abs(float64(got)/float64(want) - 1); off > 0.02 {
		t.Errorf("%s: %d instead of %d, off by %.2f %%", what, got, want, 100*off)
	}
}

func estimatesVisitors(t *testing.T, store ClickStores) {
	const many = ManyVisitors / 2
	model, day := newModel(), epoch.Truncate(24*time.Hour)
	insert := func(link int64, at time.Time, from, to int) {
		for ; from < to; from += 25_000 {
			model.insert(t, store, 0, visit(link, at, from, min(to, from+25_000))...)
		}
	}
	insert(1, day, 0, many)
	insert(2, day.Add(20*time.Hour), many/2, many*3/2)
	insert(2, day.AddDate(0, 0, 1), 0, 100)
	for round := range 2 {
		for _, c := range []struct {
			links []int64
			want  int
		}{{[]int64{1}, many}, {[]int64{1, 2}, many * 3 / 2}, {nil, many * 3 / 2}} {
			got := visitorsOf(t, store, c.links, day, 1)
			near(t, fmt.Sprintf("visitors of links %v", c.links), got.Total, c.want)
			q := Days(1, c.links, day, 1)
			q.NoNames, q.Bounds = true, []time.Time{day, day.Add(12 * time.Hour), day.AddDate(0, 0, 1)}
			report, err := store.Report(t.Context(), q)
			testkit.Must(t, err)
			near(t, fmt.Sprintf("visitors of links %v in the morning", c.links), report.Visitors.Series[0], many)
		}
		testkit.Equal(t, "visitors of the next day", visitorsOf(t, store, []int64{2}, day.AddDate(0, 0, 1), 1).Total, 100)
		if round == 0 {
			insert(1, day, 0, many) // they come again
		}
	}
}

func leavesVisitorsOut(t *testing.T, store ClickStores) {
	model := newModel()
	model.insert(t, store, 0, visit(1, epoch, 0, 10)...)
	q := Days(1, []int64{1}, epoch, 1)
	q.Filter = map[schema.Dimension]string{schema.ByDevice: schema.Desktop}
	model.checkQuery(t, store, q)
	q.Filter, q.Visitors = nil, false
	model.checkQuery(t, store, q)
}

// TestVisitors checks that change does not alter any count of visitors, and that visitors who come again afterwards do
// not count again. change settles, compacts, copies or moves the clicks of a store that was empty. It returns the
// store, and may be called again.
func TestVisitors(t *testing.T, store ClickStores, many int, change func() ClickStores) {
	const few = schema.MaxExactVisitors - 1
	day := epoch.Truncate(24 * time.Hour)
	insert := func(model *model) {
		t.Helper()
		model.insert(t, store, 0, visit(1, day, 0, few)...)
		model.insert(t, store, 0, visit(2, day.AddDate(0, 0, 1), 0, few)...)
		for from := 0; from < many; from += 25_000 {
			model.insert(t, store, 0, visit(3, day.AddDate(0, 0, 2), from, min(many, from+25_000))...)
		}
	}
	read := func() (all []schema.Visitors) {
		t.Helper()
		for _, links := range [][]int64{{1}, {2}, {3}, {1, 2, 3}, nil} {
			all = append(all, visitorsOf(t, store, links, day, 3))
		}
		return all
	}
	model := newModel()
	insert(model)
	before := read()
	for i, want := range [][]int64{{few, 0, 0}, {0, few, 0}, {0, 0, -1}, {few, few, -1}, {few, few, -1}} {
		got := before[i]
		if want[2] < 0 {
			near(t, "many visitors", got.Series[2], many)
			want[2] = got.Series[2]
		}
		testkit.Equal(t, "visitors", got, schema.Visitors{Series: want, Total: want[0] + want[1] + want[2]})
	}
	compare := func(when string) {
		t.Helper()
		for i, got := range read() {
			testkit.Equal(t, fmt.Sprintf("%s: visitors of few", when), got.Series[:2], before[i].Series[:2])
			if before[i].Series[2] > 0 {
				near(t, when+": many visitors", got.Series[2], many)
			}
		}
	}
	for range 2 {
		store = change()
		if positions, ok := store.(schema.PositionStore); ok { // the store may be another one, without positions
			at, err := positions.Position(t.Context(), 0)
			testkit.Must(t, err)
			model.partition(0).next = at.Next
		}
		compare("after the change")
	}
	insert(model)
	compare("after they have come again")
	store = change()
	compare("after another change")
}
