//go:build !race

package simulation_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"linkstream/edge/limit"
	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/stream"
)

const (
	limitedLinkID = 7
	leaseEvents   = 150
	leaseEdges    = 3
)

// leaseSimulation is one run: real spools and leases of several edges, and a model of the link store. Time is that of a
// bubble.
type leaseSimulation struct {
	t        *testing.T
	random   *rand.Rand
	store    *leaseStore
	edges    [leaseEdges]*leaseEdge
	recorded int64                  // marked clicks in all spools that ever were
	marks    map[schema.Lane]uint64 // of counted clicks
	counted  int64
	wrong    string // the first violation
}

const (
	leaseEdgeKilled   leaseFault = "an edge is killed"
	leaseEdgeMidClick leaseFault = "an edge is killed between taking, recording and redirecting"
	leaseEdgeStopped  leaseFault = "an edge is stopped"
	leaseEdgeCutOff   leaseFault = "an edge is suspended or cut off"
	leaseStoreAway    leaseFault = "the store is away"
	leaseLateArrival  leaseFault = "a call arrives late"
	leaseLimitRaised  leaseFault = "the limit is raised"
	leaseSegmentGone  leaseFault = "a segment with marked clicks is removed"
	leaseLeftClicks   leaseFault = "an edge starts with clicks of a dead one"
)

var leaseFaults = []leaseFault{leaseCallFails, leaseCallLost, leaseCallLate, leaseEdgeKilled, leaseEdgeMidClick,
	leaseEdgeStopped, leaseEdgeCutOff, leaseStoreAway, leaseLateArrival, leaseLimitRaised, leaseSegmentGone,
	leaseLeftClicks}

// leaseEdge is an edge. It is down for a while after it was killed.
type leaseEdge struct {
	*leaseSimulation
	root   string
	number int // of its directory
	spool  *spool.Spool
	limits *limit.Limits
	view   *leaseView
	stop   context.CancelFunc
	ended  chan struct{}
	asleep bool
}

func simulateLeases(t *testing.T, seed uint64, broken brokenLeases) (s *leaseSimulation) {
	root := newSpoolRoot(t)
	cryptotest.SetGlobalRandom(t, seed)
	synctest.Test(t, func(t *testing.T) {
		s = &leaseSimulation{t: t, random: rand.New(rand.NewPCG(seed, 2)), marks: map[schema.Lane]uint64{}}
		s.store = &leaseStore{broken: broken, limit: []int64{1, 3, 20, 100, 400}[s.random.IntN(5)],
			holders: map[schema.Incarnation]bool{},
			leases:  map[schema.Incarnation]schema.LimitLease{}, faults: true, random: rand.New(rand.NewPCG(seed, 3)),
			occurred: map[leaseFault]int{}}
		for i := range s.edges {
			s.edges[i] = &leaseEdge{leaseSimulation: s, root: filepath.Join(root, strconv.Itoa(i))}
			s.edges[i].open()
		}
		for range leaseEvents {
			if s.event(); s.wrong != "" {
				break
			}
		}
		s.useUpLimit()
		for _, e := range s.edges {
			e.close()
		}
	})
	return s
}

func (s *leaseSimulation) occur(f leaseFault) {
	s.change(func(store *leaseStore) { store.occurred[f]++ })
}

// change does something to the store, which edges use meanwhile.
func (s *leaseSimulation) change(work func(*leaseStore)) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	work(s.store)
}

func (s *leaseSimulation) limit() (most int64) {
	s.change(func(store *leaseStore) { most = store.limit })
	return most
}

// event runs one event and checks that the limit is kept.
func (s *leaseSimulation) event() {
	e := s.edges[s.random.IntN(leaseEdges)]
	time.Sleep(time.Duration(s.random.IntN(300)) * time.Millisecond)
	switch n := s.random.IntN(100); {
	case e.spool == nil && n < 40:
		e.open()
	case e.spool == nil:
	case n < 55 && !e.asleep:
		e.visitors(1 + s.random.IntN(4))
	case n < 75:
		e.ship()
	case n < 80:
		s.occur(leaseEdgeKilled)
		e.kill()
	case n < 84 && !e.asleep:
		e.killMidClick()
	case n < 86 && !e.asleep:
		s.occur(leaseEdgeStopped)
		e.close()
		e.open()
	case n < 90:
		s.occur(leaseEdgeCutOff)
		e.asleep = !e.asleep
		s.change(func(store *leaseStore) {
			e.view.cutOff = e.asleep
			if e.asleep && store.broken.endsOthers {
				store.end(e.spool.Incarnation(), 0)
				store.holders[e.spool.Incarnation()] = true
			}
		})
	case n < 94:
		s.occur(leaseStoreAway)
		s.change(func(store *leaseStore) { store.away = !store.away })
	case n < 98:
		s.change(func(store *leaseStore) {
			if len(store.late) > 0 {
				store.occurred[leaseLateArrival]++
				i := s.random.IntN(len(store.late))
				store.late[i]()
				store.late = slices.Delete(store.late, i, i+1)
			}
		})
	case n == 99:
		s.occur(leaseLimitRaised)
		s.change(func(store *leaseStore) { store.limit += 1 + s.random.Int64N(5) })
	}
	s.check()
}

func (s *leaseSimulation) check() {
	if most := s.limit(); s.recorded > most && s.wrong == "" {
		s.wrong = fmt.Sprintf("%d clicks of %d", s.recorded, most)
	}
}

// useUpLimit ends all faults, and requires that visitors use up the limit.
func (s *leaseSimulation) useUpLimit() {
	s.change(func(store *leaseStore) {
		store.faults, store.away = false, false
		for _, arrives := range store.late {
			arrives()
		}
		store.late = nil
	})
	for _, e := range s.edges {
		if e.spool == nil {
			e.open()
		}
		e.asleep = false
		s.change(func(*leaseStore) { e.view.cutOff = false })
	}
	for idle := 0; idle < 4 && s.wrong == ""; idle++ {
		time.Sleep(1500 * time.Millisecond) // so that unused clicks come back
		for _, e := range s.edges {
			for before := int64(-1); before != s.recorded && s.wrong == ""; {
				before = s.recorded
				e.visitors(1)
				s.check()
				if s.recorded > before {
					idle = 0
				}
			}
			e.ship()
		}
	}
	if most := s.limit(); s.wrong == "" && (s.recorded != most || s.counted != most) {
		s.wrong = fmt.Sprintf("the limit is %d, recorded are %d clicks, counted %d", most, s.recorded, s.counted)
	}
}

func (e *leaseEdge) dir() string { return filepath.Join(e.root, strconv.Itoa(e.number)) }

// open starts a process on the directory.
func (e *leaseEdge) open() {
	cfg := spool.Config{Dir: e.dir(), MaxBytes: 4 << 20, SegmentBytes: pageBytes, Lanes: 1 + e.random.IntN(2),
		Sync: time.Hour}
	var err error
	log := slog.New(slog.DiscardHandler)
	if e.spool, err = spool.Open(cfg, log); err != nil {
		e.t.Fatal(err)
	}
	for _, clicks := range e.spool.LeftLeases() {
		if clicks[limitedLinkID] > 0 {
			e.occur(leaseLeftClicks)
		}
	}
	e.view = &leaseView{leaseStore: e.store}
	e.limits = limit.New(e.view, e.spool, log)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	e.stop, e.ended, e.asleep = cancel, ended, false
	go func() { defer close(ended); e.limits.Run(ctx) }()
}

// visitors lets some visitors come at the same time: each step is taken by all before the next one.
func (e *leaseEdge) visitors(n int) {
	most, later := e.limit(), e.store.broken.takesLater
	var tickets []limit.Ticket
	for range n {
		if ticket, verdict := e.limits.Await(limitedLinkID, most, !later); verdict == limit.Open {
			tickets = append(tickets, ticket)
		}
	}
	for i := range tickets {
		e.append()
		if later {
			var verdict limit.Verdict
			if tickets[i], verdict = e.limits.Await(limitedLinkID, most, true); verdict != limit.Open {
				continue
			}
		}
		tickets[i].Recorded()
	}
}

// append records a click. Most are so large that a segment has room for a few.
func (e *leaseEdge) append() {
	click := schema.Click{LinkID: limitedLinkID, AccountID: 1, ClickedAt: time.UnixMilli(1_800_000_000_000), Limited: true,
		Referrer: bytes.Repeat([]byte("r"), e.random.IntN(schema.MaxReferrerLen))}
	if !e.spool.Append(e.random.Uint64(), &click) {
		e.t.Fatal("no room for a click")
	}
	e.recorded++
	if e.random.IntN(4) == 0 {
		click.LinkID, click.Limited = limitedLinkID+1, false
		e.spool.Append(e.random.Uint64(), &click)
	}
}

// ship counts the clicks of some lanes, and removes segments.
func (e *leaseEdge) ship() {
	before := e.segments()
	for _, lane := range e.spool.Lanes() {
		var batch stream.Batch
		lane.Read(&batch, 1<<20)
		for i := range batch.Len() {
			var click schema.Click
			if err := schema.DecodeClick(batch.Value(i), &click); err != nil {
				e.t.Fatal(err)
			}
			if click.Seq > e.marks[click.Lane] {
				e.marks[click.Lane] = click.Seq
				if click.Limited {
					e.counted++
				}
			}
		}
		if err := lane.Acknowledge(); err != nil {
			e.t.Fatal(err)
		}
		after := e.segments()
		if after < before {
			e.occur(leaseSegmentGone)
		}
		before = after
	}
}

func (e *leaseEdge) segments() int {
	paths, _ := filepath.Glob(filepath.Join(e.dir(), "*", "*.segment"))
	return len(paths)
}

// killMidClick kills the process while a visitor is being answered.
func (e *leaseEdge) killMidClick() {
	_, verdict := e.limits.Await(limitedLinkID, e.limit(), true)
	if verdict == limit.Open && e.random.IntN(2) == 0 {
		e.append()
	}
	e.occur(leaseEdgeMidClick)
	e.kill()
}

// kill ends the process as kill -9 does: the next one starts on a copy of the directory taken at this instant.
func (e *leaseEdge) kill() {
	previous := e.dir()
	e.number++
	if err := copyDir(e.dir(), previous); err != nil {
		e.t.Fatal(err)
	}
	e.forget()
	e.change(func(*leaseStore) { e.view.cutOff = true })
	e.end(previous)
}

// forget removes from the file about limits what a broken spool would not have written.
func (e *leaseEdge) forget() {
	path := filepath.Join(e.dir(), "limited")
	text, err := os.ReadFile(path)
	if err != nil {
		return
	}
	var kept []byte
	for line := range bytes.Lines(text) {
		var fields map[string]any
		isNote := json.Unmarshal(line, &fields) == nil && fields["clicks"] == nil
		if isNote && !e.store.broken.forgetsLeases || !isNote && !e.store.broken.forgetsClicks &&
			!e.store.broken.forgetsLeases {
			kept = append(kept, line...)
		}
	}
	if err := os.WriteFile(path, kept, 0o600); err != nil {
		e.t.Fatal(err)
	}
}

// end frees what the process has.
func (e *leaseEdge) end(remove string) {
	e.stop()
	<-e.ended
	synctest.Wait()
	if err := e.spool.Close(); err != nil {
		e.t.Fatal(err)
	}
	e.spool = nil
	if remove != "" {
		if err := os.RemoveAll(remove); err != nil {
			e.t.Fatal(err)
		}
	}
}

// close stops the process.
func (e *leaseEdge) close() {
	if e.spool == nil {
		return
	}
	e.stop()
	<-e.ended
	_ = e.limits.Close(context.Background()) // the store may be away
	e.end("")
}

// TestLimitsOfLinks requires that limits are kept at any time, and reached in the end.
func TestLimitsOfLinks(t *testing.T) {
	const part = 5
	occurred := map[leaseFault]int{}
	eachSeed(t, part, func(seed uint64) (wrong string) {
		s := simulateLeases(t, seed, brokenLeases{})
		for f, n := range s.store.occurred {
			occurred[f] += n
		}
		return s.wrong
	})
	wantOften(t, part, occurred, leaseFaults)
}

func TestSimulationCatchesBrokenLeases(t *testing.T) {
	wrong := func(t *testing.T, seed uint64, b brokenLeases) string { return simulateLeases(t, seed, b).wrong }
	wantCaught(t, 60, wrong, map[string]brokenLeases{
		"clicks that are taken after they are recorded": {takesLater: true},
		"segments that are removed without a note":      {forgetsClicks: true},
		"leases that are not noted":                     {forgetsLeases: true},
		"dead holders whose clicks are not asked for":   {endsBlindly: true},
		"leases that are ended twice":                   {endsTwice: true},
		"leases of suspended edges that are ended":      {endsOthers: true},
		"ended holders that do not count":               {ignoresEnded: true},
		"late calls that take effect":                   {takesLate: true},
		"late calls of ended holders":                   {resurrects: true},
		"clicks that are given back and kept":           {givesUsed: true},
	})
}
