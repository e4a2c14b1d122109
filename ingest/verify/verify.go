// Package verify checks that every recorded click is accounted for, after an incident for example. For each lane
//
//	recorded = counted + pending + set aside + missing
//
// and missing must be 0. What is recorded is known from the spools of edges, the topic and the click store; without a spool, from
// the other two. Clicks that found no room in a spool are dropped: they have no number, and each spool says how many there are.
//
// Clicks are on their way meanwhile, from a spool to the topic and from there to the store. They are looked for in this order, so
// each one is found at least once: the spools are read first, then the position of each partition, then the records behind it,
// and the counts at last. A click that was acknowledged when the spool was read was in the topic by then. If its record is before
// the position, the counts that are read later include it. Therefore no click is missed by mistake, whatever runs at the time. A
// second look a moment later confirms what is missing nevertheless.
package verify

import (
	"context"
	"fmt"
	"slices"
	"time"

	"linkstream/schema"
	"linkstream/schema/stream"
)

// confirmAfter is the time until the second look.
const confirmAfter = 2 * time.Second

// maxLanes bounds the lanes in a report.
const maxLanes = 1000

// Sources is what is compared.
type Sources struct {
	// Spools returns reports about spools. It may return the same ones in each call: an older report holds no less.
	Spools func() ([]schema.SpoolReport, error)
	Topic  Topic
	Clicks schema.ClickStore
}

// Totals is the balance of all lanes together. Recorded is the sum of the other numbers, without Repeated.
type Totals struct {
	Lanes    uint64 `json:"lanes"`
	Recorded uint64 `json:"recorded"` // Dropped included
	Counted  uint64 `json:"counted"`
	Unknown  uint64 `json:"unknown"`
	Spool    uint64 `json:"in_spool"`
	Topic    uint64 `json:"in_topic"`
	Aside    uint64 `json:"set_aside"`
	Dropped  uint64 `json:"dropped"`
	Missing  uint64 `json:"missing"`
	Repeated uint64 `json:"repeated"`
}

// Report is the result of a look at all sources.
type Report struct {
	At          time.Time   `json:"at"`
	AddsUp      bool        `json:"adds_up"`
	Totals      Totals      `json:"totals"`
	Failing     int         `json:"failing_lanes"`
	Lanes       []Lane      `json:"lanes"`                // with clicks that are not counted, those that do not add up first
	MoreLanes   uint64      `json:"more_lanes,omitempty"` // that are left out
	DeadLetters uint64      `json:"dead_letters"`         // records in the dead letter topic
	Spools      []Spool     `json:"spools"`
	Partitions  []Partition `json:"partitions"`
	Notes       []string    `json:"notes,omitempty"`
}

// Spool is a spool that was read.
type Spool struct {
	Dir     string    `json:"dir"`
	At      time.Time `json:"at"`
	Lanes   int       `json:"lanes"`
	Dropped uint64    `json:"dropped"`
	Damaged []string  `json:"damaged,omitempty"`
}

// Run compares the sources. An error means that they could not be read.
func Run(ctx context.Context, sources Sources) (*Report, error) {
	first, err := look(ctx, sources, nil)
	if err != nil || first.report.AddsUp {
		return first.report, err
	}
	stream.Sleep(ctx, confirmAfter)
	second, err := look(ctx, sources, first.failing)
	return second.report, err
}

// pass is one look at all sources.
type pass struct {
	Sources
	lanes   map[schema.Lane]*laneState // that are in a spool, in the topic, or suspicious
	failing map[schema.Lane]bool       // that do not add up
	suspect map[schema.Lane]bool       // those of the look before; nil in the first one
	report  *Report
}

func look(ctx context.Context, sources Sources, suspect map[schema.Lane]bool) (*pass, error) {
	p := &pass{Sources: sources, lanes: make(map[schema.Lane]*laneState), failing: make(map[schema.Lane]bool), suspect: suspect,
		report: &Report{At: time.Now().UTC(), Lanes: []Lane{}, Spools: []Spool{}, Partitions: []Partition{}}}
	for _, step := range []func(context.Context) error{p.readSpools, p.readTopic, p.readCounts, p.readDead, p.balance} {
		if err := step(ctx); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (p *pass) lane(id schema.Lane) *laneState {
	if p.lanes[id] == nil {
		p.lanes[id] = new(laneState)
	}
	return p.lanes[id]
}

func (p *pass) readSpools(context.Context) error {
	reports, err := p.Spools()
	if err != nil {
		return err
	}
	for _, r := range reports {
		p.report.Spools = append(p.report.Spools, Spool{Dir: r.Dir, At: r.At, Lanes: len(r.Lanes), Dropped: r.Dropped, Damaged: r.Damaged})
		p.report.Totals.Dropped += r.Dropped
		p.report.Totals.Recorded += r.Dropped
		for _, s := range r.Lanes {
			l := p.lane(s.Lane)
			l.recorded = max(l.recorded, s.Recorded)
			l.spool = l.spool.withAll(s.Pending)
			l.aside = l.aside.withAll(s.Refused)
		}
	}
	return nil
}

// readCounts keeps the counts of lanes that are to be looked at, and adds up the others.
func (p *pass) readCounts(ctx context.Context) error {
	return p.Clicks.LaneCounts(ctx, func(c schema.LaneCount) error {
		if p.lanes[c.Lane] == nil && c.Missing() == 0 && c.Repeated() == 0 {
			counted := min(c.Clicks, c.Mark)
			p.add(&Lane{Recorded: c.Mark, Counted: counted, Unknown: c.Mark - counted})
			return nil
		}
		p.lane(c.Lane).count = c
		return nil
	})
}

func (p *pass) add(l *Lane) {
	t := &p.report.Totals
	t.Lanes++
	t.Recorded += l.Recorded
	t.Counted += l.Counted
	t.Unknown += l.Unknown
	t.Spool += l.Spool
	t.Topic += l.Topic
	t.Aside += l.Aside
	t.Missing += l.Missing
	t.Repeated += l.Repeated
}

// balance computes the lanes' balances and names what is missing.
func (p *pass) balance(ctx context.Context) error {
	for id, s := range p.lanes {
		l := s.balance(id)
		if p.suspect != nil && !p.suspect[id] { // it was on its way
			l.Topic, l.Missing, l.Repeated, l.gone = l.Topic+l.Missing, 0, 0, nil
		}
		p.add(&l)
		if !l.addsUp() {
			p.failing[id] = true
		}
		if l.notable() {
			p.report.Lanes = append(p.report.Lanes, l)
		}
	}
	slices.SortFunc(p.report.Lanes, func(a, b Lane) int {
		if a.addsUp() != b.addsUp() {
			if b.addsUp() {
				return -1
			}
			return 1
		}
		return a.Lane.Compare(b.Lane)
	})
	if n := len(p.report.Lanes); n > maxLanes {
		p.report.MoreLanes = uint64(n - maxLanes)
		p.report.Lanes = p.report.Lanes[:maxLanes]
	}
	p.report.AddsUp, p.report.Failing = len(p.failing) == 0, len(p.failing)
	for i := range p.report.Lanes {
		l := &p.report.Lanes[i]
		if l.Missing == 0 {
			continue
		}
		gaps, err := p.Clicks.LaneGaps(ctx, l.Lane)
		if err != nil {
			return err
		}
		l.name(gaps, p.lanes[l.Lane].aside)
	}
	return nil
}

// Err returns an error that says what does not add up, or nil.
func (r *Report) Err() error {
	if r.AddsUp {
		return nil
	}
	return fmt.Errorf("it does not add up: %d clicks are missing and %d are counted more than once, in %d lanes",
		r.Totals.Missing, r.Totals.Repeated, r.Failing)
}
