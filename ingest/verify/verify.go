// Package verify checks that every recorded click is accounted for, after an incident for example. For each lane
//
//	recorded = counted + pending + set aside + missing
//
// and missing must be 0. Recorded clicks are known from the spools of edges, the topic and the click store; without a
// spool, from the other two. Clicks that found no room in a spool are dropped: they have no number, and each spool says
// how many there are.
//
// Clicks may move while verify reads, from a spool to the topic and from there to the store. It reads in this order, so
// it finds each click at least once: the spools, the position of each partition, the records behind it, and then the
// counts. A click that was acknowledged when the spool was read was in the topic by then. If its record is before the
// position, the counts that are read later include it. Therefore no click is reported missing because it moved. A
// second pass a moment later confirms the clicks that are still missing.
//
// Users see aggregates and not lanes. Each aggregate must have as many clicks as the lanes have counted: at least the
// lanes' sum before the aggregate was read, and at most their sum afterwards.
//
// Imported clicks are in no lane. The report has their number apart, which must be the same in each form in which the
// click store keeps them.
//
// On a machine without a broker there is no topic, and an acknowledged click is counted: the spools are compared with
// the marks.
package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"linkstream/schema"
	"linkstream/schema/stream"
)

// confirmAfter is the time until the second look.
const confirmAfter = 2 * time.Second

// maxLanes bounds the lanes in a report.
const maxLanes = 1000

// Sources are compared with each other.
type Sources struct {
	// Spools returns reports about spools. It may return the same reports in each call: an older report has at least as
	// many pending clicks.
	Spools func() ([]schema.SpoolReport, error)
	Clicks schema.ClickStore
	// Imported has the clicks that other services have counted; nil if they are not read.
	Imported schema.HistoryStore
	// Topic, and Positions of the store in it, are nil on a machine without a broker.
	Topic     Topic
	Positions schema.PositionStore
}

// Totals is the balance of all lanes together. Recorded is the sum of the other numbers, without Repeated.
type Totals struct {
	Lanes    uint64 `json:"lanes"`
	Recorded uint64 `json:"recorded"` // Dropped included
	Counted  uint64 `json:"counted"`
	Spool    uint64 `json:"in_spool"`
	Topic    uint64 `json:"in_topic"`
	SetAside uint64 `json:"set_aside"`
	Dropped  uint64 `json:"dropped"`
	Missing  uint64 `json:"missing"`
	Repeated uint64 `json:"repeated"`
}

// Report is the result of a look at all sources.
type Report struct {
	At      time.Time `json:"at"`
	AddsUp  bool      `json:"adds_up"`
	Totals  Totals    `json:"totals"`
	Failing int       `json:"failing_lanes"`
	// with uncounted clicks; lanes that do not add up come first
	Lanes       []Lane      `json:"lanes"`
	MoreLanes   uint64      `json:"more_lanes,omitempty"` // that are left out
	DeadLetters uint64      `json:"dead_letters"`         // records in the dead letter topic
	Spools      []Spool     `json:"spools"`
	Partitions  []Partition `json:"partitions"`
	Sums        []Sum       `json:"wrong_sums,omitempty"`
	Imported    uint64      `json:"imported"` // clicks that other services have counted; not in Totals
	Notes       []string    `json:"notes,omitempty"`

	counted uint64 // by the lanes, also more than once
}

// Sum is the number of clicks in an aggregate of the click store that differs from the number that lanes have counted,
// or that another table of imported clicks has.
type Sum struct {
	Name   string `json:"name"`
	Clicks uint64 `json:"clicks"`
	Least  uint64 `json:"least"`
	Most   uint64 `json:"most"`
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
	suspect map[schema.Lane]bool       // lanes of the previous pass; nil in the first one
	report  *Report
}

func look(ctx context.Context, sources Sources, suspect map[schema.Lane]bool) (*pass, error) {
	p := &pass{Sources: sources, lanes: make(map[schema.Lane]*laneState), failing: make(map[schema.Lane]bool),
		suspect: suspect,
		report:  &Report{At: time.Now().UTC(), Lanes: []Lane{}, Spools: []Spool{}, Partitions: []Partition{}}}
	steps := []func(context.Context) error{p.readSpools, p.readTopic, p.readCounts, p.readSums, p.readImported,
		p.readDead, p.balance}
	if sources.Topic == nil {
		steps = []func(context.Context) error{p.readSpools, p.readCounts, p.readSums, p.readImported, p.balance}
	}
	for _, step := range steps {
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
		p.report.Spools = append(p.report.Spools,
			Spool{Dir: r.Dir, At: r.At, Lanes: len(r.Lanes), Dropped: r.Dropped, Damaged: r.Damaged})
		p.report.Totals.Dropped += r.Dropped
		p.report.Totals.Recorded += r.Dropped
		for _, s := range r.Lanes {
			l := p.lane(s.Lane)
			l.recorded = max(l.recorded, s.Recorded)
			l.spool = l.spool.withAll(s.Pending)
			l.setAside = l.setAside.withAll(s.Refused)
		}
	}
	return nil
}

// readCounts keeps the counts of lanes that are to be looked at, and adds up the others.
func (p *pass) readCounts(ctx context.Context) error {
	return p.Clicks.LaneCounts(ctx, func(c schema.LaneCount) error {
		p.report.counted += c.Clicks
		if p.lanes[c.Lane] == nil && c.Missing() == 0 && c.Repeated() == 0 {
			p.add(&Lane{Recorded: c.Mark, Counted: c.Clicks})
			return nil
		}
		p.lane(c.Lane).count = c
		return nil
	})
}

// readSums compares the aggregates of statistics and reports with the lanes' counts before and afterwards: counts only
// grow.
func (p *pass) readSums(ctx context.Context) error {
	sums, err := p.Clicks.ClickSums(ctx)
	if err != nil {
		return err
	}
	most := uint64(0)
	if err := p.Clicks.LaneCounts(ctx, func(c schema.LaneCount) error { most += c.Clicks; return nil }); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		if n := sums[name]; n < p.report.counted || n > most {
			p.report.Sums = append(p.report.Sums, Sum{Name: name, Clicks: n, Least: p.report.counted, Most: most})
		}
	}
	return nil
}

// readImported compares the sums of imported clicks with each other.
func (p *pass) readImported(ctx context.Context) error {
	if p.Sources.Imported == nil {
		return nil
	}
	sums, err := p.Sources.Imported.ImportedSums(ctx)
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(sums))
	for _, name := range names {
		if p.report.Imported = sums[names[0]]; sums[name] != p.report.Imported {
			p.report.Sums = append(p.report.Sums,
				Sum{Name: name, Clicks: sums[name], Least: p.report.Imported, Most: p.report.Imported})
		}
	}
	return nil
}

func (p *pass) add(l *Lane) {
	t := &p.report.Totals
	t.Lanes++
	t.Recorded += l.Recorded
	t.Counted += l.Counted
	t.Spool += l.Spool
	t.Topic += l.Topic
	t.SetAside += l.SetAside
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
	p.report.AddsUp, p.report.Failing = len(p.failing) == 0 && p.report.damaged() == 0 && len(p.report.Sums) == 0,
		len(p.failing)
	for i := range p.report.Lanes {
		l := &p.report.Lanes[i]
		if l.Missing == 0 {
			continue
		}
		gaps, err := p.Clicks.LaneGaps(ctx, l.Lane)
		if err != nil {
			return err
		}
		l.name(gaps, p.lanes[l.Lane].setAside)
	}
	return nil
}

// Err returns an error that names the sums that do not add up, or nil.
func (r *Report) Err() error {
	if r.AddsUp {
		return nil
	}
	var errs []error
	if r.Failing > 0 {
		errs = append(errs, fmt.Errorf("%d clicks are missing and %d are counted more than once, in %d lanes",
			r.Totals.Missing, r.Totals.Repeated, r.Failing))
	}
	if n := r.damaged(); n > 0 {
		errs = append(errs, fmt.Errorf("%d files of spools have clicks that cannot be read", n))
	}
	for _, s := range r.Sums {
		errs = append(errs, fmt.Errorf("%s in the click store has %d clicks instead of %d", s.Name, s.Clicks,
			s.Most))
	}
	return fmt.Errorf("it does not add up: %w", errors.Join(errs...))
}

// damaged returns the number of files of spools with clicks that cannot be read. Such clicks at the end of a lane are
// not in the count of missing ones.
func (r *Report) damaged() (files int) {
	for _, s := range r.Spools {
		files += len(s.Damaged)
	}
	return files
}
