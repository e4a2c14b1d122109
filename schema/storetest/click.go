package storetest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// ClickStores is implemented by stores of clicks.
type ClickStores interface {
	schema.ClickStore
	schema.ReportStore
	schema.HistoryStore
}

// TestClickStore checks every outcome that ClickStore, ReportStore and HistoryStore document, and accepts what the
// contracts leave open. TestPositions is for stores that count a topic.
func TestClickStore[S ClickStores](t *testing.T, opens Open[S]) {
	open := asClickStores(opens)
	t.Run("counting", func(t *testing.T) { TestCounting(t, open) })
	t.Run("names", func(t *testing.T) { run(t, open, nameBehaviours) })
	t.Run("stats", func(t *testing.T) { run(t, open, statsBehaviours) })
	t.Run("reports", func(t *testing.T) { run(t, open, reportBehaviours) })
	t.Run("queries of reports", func(t *testing.T) { TestReportQueries(t, open) })
	t.Run("visitors", func(t *testing.T) { run(t, open, visitorBehaviours) })
	t.Run("imported clicks", func(t *testing.T) { run(t, open, historyBehaviours) })
	t.Run("imported clicks survive reopening", func(t *testing.T) { keepsHistories(t, open) })
	t.Run("the names of referrers stay bounded after reopening", func(t *testing.T) { boundsReferrersAgain(t, open) })
}

func asClickStores[S ClickStores](open Open[S]) Open[ClickStores] {
	return func(t *testing.T) (ClickStores, func() ClickStores) {
		store, reopen := open(t)
		return store, func() ClickStores { return reopen() }
	}
}

// TestCounting is the part of TestClickStore on counting: clicks are counted once, and marks and gaps are right.
// Reports and positions are compared as well if the store has any.
func TestCounting[S schema.ClickStore](t *testing.T, open Open[S]) {
	counting := func(t *testing.T) (schema.ClickStore, func() schema.ClickStore) {
		store, reopen := open(t)
		return store, func() schema.ClickStore { return reopen() }
	}
	run(t, counting, clickBehaviours)
	t.Run("everything survives reopening", func(t *testing.T) { keepsClicks(t, counting) })
}

var clickBehaviours = []behaviour[schema.ClickStore]{
	{"InsertClicks moves counts and marks", movesMarks},
	{"InsertClicks does not keep the batch's memory", copiesBatch},
	{"InsertClicks keeps the highest seq of each lane, in any order within a batch", keepsHighestMarks},
	{"marks of many lanes are read at once, each once and in their order", findsManyMarks},
	{"LaneCounts has each lane once, all partitions together", countsLanes},
	{"LaneGaps returns the gaps of a lane in order, each once", keepsGaps},
	{"InsertClicks accepts many lanes and extreme numbers", takesManyLanes},
	{"InsertClicks accepts a batch of 50,000 clicks", takesBigBatch},
	{"InsertClicks rejects a batch that is already counted", refusesRepeatedBatch},
	{"InsertClicks counts a batch as a whole or not at all when its context ends", countsWholeBatches},
	{"InsertClicks succeeds for exactly one of concurrent callers", countsOneOfConcurrentBatches},
}

// lane returns lane n of an incarnation with zero bytes.
func lane(incarnation byte, n uint32) schema.Lane {
	return schema.Lane{Incarnation: schema.Incarnation{0, incarnation, 15: 0xff}, Number: n}
}

// clicksOf returns n clicks on a link, in a lane of its own.
func clicksOf(link int64, n int) []click {
	clicks := make([]click, n)
	for i := range clicks {
		clicks[i] = click{lane: lane(byte(link), 0), link: link, account: 1, at: epoch, names: map[schema.Dimension]string{
			schema.ByDevice: schema.Desktop, schema.ByBrowser: "Firefox", schema.ByOS: "Linux", schema.ByLanguage: "de",
			schema.ByReferrer: "news.example.org", schema.ByCountry: "DE"}}
	}
	return clicks
}

// hashOf returns the hash of a visitor. Hashes are spread over all numbers.
func hashOf(account int64, visitor int) uint64 {
	return rand.New(rand.NewPCG(uint64(account), uint64(visitor))).Uint64()
}

// randomLink is the first link of randomClicks.
const randomLink = 101

// randomClicks returns n clicks with popular and rare links, browsers, referrers, countries and days.
func randomClicks(random *rand.Rand, n, links int) []click {
	popular := rand.NewZipf(random, 1.2, 2, uint64(links-1))
	clicks := make([]click, n)
	for i := range clicks {
		clicks[i] = click{
			lane:  lane(byte(random.IntN(3)), uint32(random.IntN(4))),
			link:  int64(popular.Uint64()) + randomLink,
			at:    epoch.Add(time.Duration(random.IntN(20*24*60)) * time.Minute),
			names: randomNames(random),
		}
		clicks[i].account = 2 + clicks[i].link%5
		if visitor := random.IntN(60); visitor < 40 && clicks[i].names[schema.ByDevice] != schema.Bot {
			// the others are unknown
			clicks[i].visitor = hashOf(clicks[i].account, visitor)
		}
	}
	return clicks
}

// nameLists have the names of randomNames, the popular ones first.
var nameLists = map[schema.Dimension][]string{
	schema.ByBrowser: names(30, func(i int) string { return fmt.Sprintf("Browser %d", i) }),
	schema.ByReferrer: append([]string{"", ""},
		names(20, func(i int) string { return fmt.Sprintf("host-%d.example", i) })...),
	schema.ByCountry:  {"", "AT", "CH", "DE", "FR", "JP", "US"},
	schema.ByOS:       {"", "Android", "iOS", "Windows", "macOS"},
	schema.ByLanguage: {"", "de", "en", "fr", schema.OtherName},
	schema.ByRoute:    {"", "phones", "red", "de"},
	schema.ByCampaign: {"", "mail / - / spring", "ads"},
	schema.ByPath:     {"", "", "docs/install", "docs"},
}

func randomNames(random *rand.Rand) map[schema.Dimension]string {
	all := map[schema.Dimension]string{}
	for _, by := range schema.Dimensions() {
		list := nameLists[by]
		if list == nil {
			list = []string{"", "one", "two", "three"}
		}
		all[by] = list[min(random.IntN(len(list)), random.IntN(len(list)))]
	}
	devices := []schema.Device{schema.Desktop, schema.Mobile, schema.Tablet, schema.Bot, schema.Other}
	all[schema.ByDevice] = devices[random.IntN(len(devices))]
	return all
}

func movesMarks(t *testing.T, store schema.ClickStore) {
	model := newModel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		model.insert(t, store, 3, randomClicks(random, 50, 10)...)
		model.checkCounts(t, store)
	}
	model.check(t, store)
}

func copiesBatch(t *testing.T, store schema.ClickStore) {
	model := newModel()
	reused := new(schema.ClickBatch)
	for round := range int64(3) {
		reused.Reset(0, model.partition(0).next)
		for i, c := range clicksOf(round+1, 4) {
			appendClick(reused, reused.Next, uint64(i+1), c)
		}
		testkit.Must(t, store.InsertClicks(t.Context(), reused))
		model.count(reused)
		for i := range reused.Len() {
			reused.LinkID[i], reused.Seq[i], reused.Browser[i] = unknownLink, 99, "none"
			reused.AccountID[i], reused.Referrer[i], reused.Country[i] = 2, "none", "XX"
		}
	}
	model.check(t, store)
}

func keepsHighestMarks(t *testing.T, store schema.ClickStore) {
	model := newModel()
	a, b := clicksOf(1, 1)[0], clicksOf(2, 1)[0]
	batch := new(schema.ClickBatch)
	for _, seqs := range [][]uint64{{5, 9, 7}, {12, 10}, {13}} {
		batch.Reset(0, model.partition(0).next)
		for _, seq := range seqs {
			appendClick(batch, batch.Next, seq, a)
			appendClick(batch, batch.Next, seq*1000, b)
		}
		testkit.Must(t, store.InsertClicks(t.Context(), batch))
		model.count(batch)
		model.checkCounts(t, store)
	}
	model.check(t, store)
}

func findsManyMarks(t *testing.T, store schema.ClickStore) {
	var lanes []schema.Lane
	var want []uint64
	batch := new(schema.ClickBatch)
	batch.Reset(0, 0)
	for i := range 3000 { // more than a store asks for in one query; of a third there are no clicks
		c := clicksOf(1, 1)[0]
		c.lane = schema.Lane{Incarnation: schema.Incarnation{byte(i / 3), byte(i / 3 >> 8), 15: 0xee}, Number: uint32(i % 3)}
		if i%3 != 1 {
			appendClick(batch, batch.Next, uint64(i)+1, c)
		}
		lanes, want = append(lanes, c.lane), append(want, uint64(i)+1)
		if i%3 == 1 {
			want[i] = 0
		}
	}
	testkit.Must(t, store.InsertClicks(t.Context(), batch))
	lanes, want = append(lanes, lanes[0]), append(want, want[0])
	slices.Reverse(lanes)
	slices.Reverse(want)
	got, err := store.LaneMarks(t.Context(), lanes)
	testkit.Must(t, err)
	testkit.Equal(t, "marks", got, want)
	none, err := store.LaneMarks(t.Context(), nil)
	testkit.Must(t, err)
	testkit.Equal(t, "marks of no lanes", len(none), 0)
}

func takesManyLanes(t *testing.T, store schema.ClickStore) {
	model := newModel()
	var clicks []click
	for i := range uint32(3000) {
		c := clicksOf(1, 1)[0]
		c.lane = lane(byte(i%30), i/30)
		clicks = append(clicks, c)
	}
	model.insert(t, store, 0, clicks...)
	model.checkCounts(t, store)

	for i, extreme := range []schema.Lane{
		{}, {Number: math.MaxUint32}, {Incarnation: schema.Incarnation{0: 0xff, 15: 0}, Number: 1 << 31},
	} {
		model.partition(0).marks[extreme] = 1<<62 + uint64(i)
		clicks[i].lane, clicks[i].link = extreme, math.MaxInt64-int64(i)
	}
	model.insert(t, store, 0, clicks...)
	model.check(t, store)
}

func takesBigBatch(t *testing.T, store schema.ClickStore) {
	model := newModel()
	random := rand.New(rand.NewPCG(3, 4))
	model.insert(t, store, 0, slices.Repeat(randomClicks(random, 2_000, 20), 25)...)
	model.check(t, store)
}

// refusesRepeatedBatch requires an error even if the engine drops the repeated batch silently.
func refusesRepeatedBatch(t *testing.T, store schema.ClickStore) {
	model := newModel()
	first := model.batch(0, clicksOf(1, 10)...)
	testkit.Must(t, store.InsertClicks(t.Context(), first))
	model.count(first)
	testkit.WantCode(t, store.InsertClicks(t.Context(), first), schema.CodeConflict)
	model.checkCounts(t, store)
	model.insert(t, store, 0, clicksOf(2, 5)...)
	testkit.WantCode(t, store.InsertClicks(t.Context(), first), schema.CodeConflict)
	model.check(t, store)
}

// countsWholeBatches ends the context of inserts at any moment. A batch that is not counted when an insert returns must
// not be counted later: the mark, which is read at once, says what the model counts.
func countsWholeBatches(t *testing.T, store schema.ClickStore) {
	model := newModel()
	random := rand.New(rand.NewPCG(11, 12))
	for round := range 15 {
		batch := model.batch(0, randomClicks(random, 5_000+round, 10)...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(round)*4*time.Millisecond)
		err := store.InsertClicks(ctx, batch)
		cancel()
		last := batch.Last()
		marks, marksErr := store.LaneMarks(t.Context(), []schema.Lane{last.Lane})
		testkit.Must(t, marksErr)
		switch {
		case marks[0] == last.Seq:
			model.count(batch)
		case err == nil || marks[0] != model.mark(last.Lane):
			t.Fatalf("the mark of lane %s is %d after a batch up to %d, error %v", last.Lane, marks[0], last.Seq, err)
		}
	}
	model.check(t, store)
}

func keepsClicks(t *testing.T, open Open[schema.ClickStore]) {
	store, reopen := open(t)
	model := newModel()
	random := rand.New(rand.NewPCG(5, 6))
	for range 3 {
		old := model.batch(1, clicksOf(1, 7)...)
		testkit.Must(t, store.InsertClicks(t.Context(), old))
		model.count(old)
		model.insert(t, store, 0, randomClicks(random, 200, 10)...)
		store = reopen()
		model.checkCounts(t, store)
		testkit.WantCode(t, store.InsertClicks(t.Context(), old), schema.CodeConflict)
	}
	model.check(t, store)
}
