package verify

import (
	"time"

	"linkstream/schema"
)

// laneState has the findings about a lane that may have uncounted clicks.
type laneState struct {
	recorded uint64           // the highest number in a spool
	spool    numbers          // not acknowledged
	topic    numbers          // behind the position
	setAside numbers          // refused by the topic, or in the dead letter topic
	count    schema.LaneCount // zero if the store does not have the lane
}

// Lane is the balance of a lane: Recorded is the sum of the other numbers, without Repeated.
type Lane struct {
	Lane     schema.Lane `json:"lane"`
	Recorded uint64      `json:"recorded"`
	Counted  uint64      `json:"counted"`  // once
	Spool    uint64      `json:"in_spool"` // wait for the broker
	Topic    uint64      `json:"in_topic"` // wait to be counted
	SetAside uint64      `json:"set_aside"`
	Missing  uint64      `json:"missing"`
	Repeated uint64      `json:"repeated"` // counted more than once

	Gaps    []Gap  `json:"gaps,omitempty"`    // the numbers that are missing, as far as known
	Unnamed uint64 `json:"unnamed,omitempty"` // how many more are missing

	gone numbers // the part of the missing numbers that is above the mark
}

// Gap is numbers that are missing.
type Gap struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	// A worker found the gap when it counted the click after it. Without a time, no worker has passed it.
	Partition int       `json:"partition"`
	Offset    int64     `json:"offset"`
	Found     time.Time `json:"found,omitzero"`
}

// addsUp reports whether no click is missing or counted twice.
func (l *Lane) addsUp() bool { return l.Missing == 0 && l.Repeated == 0 }

// notable reports whether there is anything to say beyond "all are counted".
func (l *Lane) notable() bool { return l.Counted != l.Recorded || l.Repeated > 0 }

// balance computes the lane's balance. Numbers up to the mark are counted by the store, those above it must be
// elsewhere.
func (s *laneState) balance(id schema.Lane) Lane {
	mark := s.count.Mark
	topic := s.topic.between(1, mark+schema.MaxLead) // clicks further ahead are forged
	l := Lane{Lane: id, Recorded: max(mark, s.recorded, topic.highest()), Counted: min(s.count.Clicks, mark)}
	l.Repeated = s.count.Repeated()
	uncounted := s.count.Missing()
	l.SetAside = min(uncounted, s.setAside.between(1, mark).size())
	l.Missing = uncounted - l.SetAside

	if mark == l.Recorded {
		return l
	}
	rest := numbers{{First: mark + 1, Last: l.Recorded}}
	take := func(set numbers) (taken uint64) {
		before := rest.size()
		rest = rest.without(set)
		return before - rest.size()
	}
	l.SetAside += take(s.setAside) // the position does not move past a dead letter alone, so the topic has it, too
	l.Topic = take(topic)
	l.Spool = take(s.spool)
	l.Missing += rest.size()
	l.gone = rest
	return l
}

// name sets the gaps: gaps that workers found, without clicks that were set aside, and gaps that no worker has passed.
func (l *Lane) name(found []schema.Gap, setAside numbers) {
	named := uint64(0)
	for _, gap := range found {
		for _, r := range (numbers{gap.SeqRange}).without(setAside) {
			l.Gaps = append(l.Gaps, Gap{First: r.First, Last: r.Last, Partition: gap.Partition, Offset: gap.Offset,
				Found: gap.Found})
			named += r.Len()
		}
	}
	for _, r := range l.gone[:min(len(l.gone), schema.MaxGaps)] {
		l.Gaps = append(l.Gaps, Gap{First: r.First, Last: r.Last})
		named += r.Len()
	}
	l.Unnamed = l.Missing - min(named, l.Missing)
}
