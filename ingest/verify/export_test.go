package verify

import (
	"context"

	"linkstream/schema"
)

// Numbers is numbers.
type Numbers = numbers

// With and the others are the methods of numbers.
func With(n Numbers, first, last uint64) Numbers    { return n.with(first, last) }
func Between(n Numbers, first, last uint64) Numbers { return n.between(first, last) }
func Without(n, other Numbers) Numbers              { return n.without(other) }

// LookOnce is Run without a second look.
func LookOnce(ctx context.Context, sources Sources) (*Report, error) {
	p, err := look(ctx, sources, nil)
	return p.report, err
}

// DecodeReports is decodeReports.
var DecodeReports = decodeReports

// Balance returns the balance of a lane without a name.
func Balance(recorded uint64, spool, topic, setAside Numbers, count schema.LaneCount) Lane {
	s := laneState{recorded: recorded, spool: spool, topic: topic, setAside: setAside, count: count}
	return s.balance(schema.Lane{})
}
