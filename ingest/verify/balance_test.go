package verify_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/ingest/verify"
	"linkstream/schema"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// oneLane is all sources of one lane: a spool, a topic with one partition and dead letters, and a click store that has
// no position.
type oneLane struct {
	schema.PositionStore
	recorded         uint64
	pending, refused []schema.SeqRange // in the spool
	topic, dead      []schema.SeqRange
	count            schema.LaneCount
}

func (l *oneLane) sources() verify.Sources {
	report := schema.SpoolReport{Dir: "spool", At: noon}
	if l.recorded > 0 || len(l.pending)+len(l.refused) > 0 {
		report.Lanes = []schema.SpoolLane{{Lane: lane(1), Recorded: l.recorded, Pending: l.pending, Refused: l.refused}}
	}
	spools := func() ([]schema.SpoolReport, error) { return []schema.SpoolReport{report}, nil }
	return verify.Sources{Spools: spools, Clicks: l, Topic: l, Positions: l}
}

func (l *oneLane) LaneCounts(_ context.Context, each func(schema.LaneCount) error) error {
	if l.count == (schema.LaneCount{}) {
		return nil
	}
	count := l.count
	count.Lane = lane(1)
	return each(count)
}

func (*oneLane) ClickSums(context.Context) (map[string]uint64, error)          { return nil, nil }
func (*oneLane) LaneGaps(context.Context, schema.Lane) ([]schema.Gap, error)   { return nil, nil }
func (*oneLane) Position(context.Context, int) (at schema.Position, err error) { return at, nil }
func (*oneLane) Partitions(context.Context) (int, error)                       { return 1, nil }
func (l *oneLane) Offsets(context.Context, int) (start, end int64, err error) {
	return 0, sizeOf(l.topic), nil
}
func (l *oneLane) DeadOffsets(context.Context) (start, end int64, err error) {
	return 0, sizeOf(l.dead), nil
}

func (l *oneLane) Fetch(_ context.Context, _ int, offset int64, _ time.Duration, each func(stream.Record) error) (
	lag int64, err error,
) {
	return 0, fetch(l.topic, offset, each)
}

func (l *oneLane) FetchDead(_ context.Context, offset int64, _ time.Duration, each func(stream.Record) error) (
	lag int64, err error,
) {
	return 0, fetch(l.dead, offset, each)
}

// fetch calls each for the records from an offset on: the clicks of the ranges.
func fetch(ranges []schema.SeqRange, offset int64, each func(stream.Record) error) error {
	at := int64(0)
	for _, r := range ranges {
		for _, value := range clicks(lane(1), r.First, r.Last) {
			if at >= offset {
				if err := each(stream.Record{Offset: at, Value: value}); err != nil {
					return err
				}
			}
			at++
		}
	}
	return nil
}

func sizeOf(ranges []schema.SeqRange) (n int64) {
	for _, r := range ranges {
		n += int64(r.Len())
	}
	return n
}

// balance returns the totals of the lane, and the numbers in its gaps.
func (l *oneLane) balance(t *testing.T) (totals verify.Totals, gaps map[uint64]bool) {
	t.Helper()
	report, err := verify.Run(t.Context(), l.sources())
	testkit.Must(t, err)
	gaps = map[uint64]bool{}
	for _, lane := range report.Lanes {
		for _, gap := range lane.Gaps {
			for n := gap.First; n <= gap.Last; n++ {
				gaps[n] = true
			}
		}
	}
	return report.Totals, gaps
}

// TestRandomBalance compares the balances of random lanes with balances computed number by number.
func TestRandomBalance(t *testing.T) {
	const highest = 40
	synctest.Test(t, func(t *testing.T) { // a second look comes later
		for seed := range uint64(500) {
			random := rand.New(rand.NewPCG(seed, 0))
			fill := func() (ranges []schema.SeqRange, has map[uint64]bool) {
				has = map[uint64]bool{}
				for range random.IntN(8) {
					first := 1 + random.Uint64N(highest)
					r := schema.SeqRange{First: first, Last: min(highest, first+random.Uint64N(6))}
					ranges = append(ranges, r)
					for n := r.First; n <= r.Last; n++ {
						has[n] = true
					}
				}
				return ranges, has
			}
			var l oneLane
			var inSpool, inTopic, refused, dead map[uint64]bool
			l.pending, inSpool = fill()
			l.topic, inTopic = fill()
			l.refused, refused = fill()
			l.dead, dead = fill()
			l.recorded = 1 + random.Uint64N(highest)
			l.count.Mark = random.Uint64N(highest)
			l.count.Clicks = random.Uint64N(l.count.Mark + 5)
			want, gone, aside := verify.Totals{Lanes: 1, Recorded: max(l.count.Mark, l.recorded)}, map[uint64]bool{}, uint64(0)
			want.Counted = min(l.count.Clicks, l.count.Mark)
			want.Repeated = l.count.Clicks - want.Counted
			for n := uint64(1); n <= highest; n++ {
				if inTopic[n] {
					want.Recorded = max(want.Recorded, n)
				}
			}
			for n := uint64(1); n <= want.Recorded; n++ {
				switch {
				case n <= l.count.Mark && (refused[n] || dead[n]):
					aside++
				case n <= l.count.Mark:
				case refused[n] || dead[n]:
					want.SetAside++
				case inTopic[n]:
					want.Topic++
				case inSpool[n]:
					want.Spool++
				default:
					want.Missing++
					gone[n] = true
				}
			}
			uncounted := l.count.Mark - want.Counted
			want.SetAside += min(uncounted, aside)
			want.Missing += uncounted - min(uncounted, aside)
			got, gaps := l.balance(t)
			testkit.Equal(t, "totals", got, want)
			testkit.Equal(t, "gaps above the mark", gaps, gone)
		}
	})
}

func TestBalance(t *testing.T) {
	set := func(pairs ...uint64) (ranges []schema.SeqRange) {
		for i := 0; i < len(pairs); i += 2 {
			ranges = append(ranges, schema.SeqRange{First: pairs[i], Last: pairs[i+1]})
		}
		return ranges
	}
	count := func(mark, clicks uint64) schema.LaneCount {
		return schema.LaneCount{Mark: mark, Clicks: clicks}
	}
	for name, c := range map[string]struct {
		lane oneLane
		want verify.Totals
	}{
		"all are counted":      {oneLane{count: count(9, 9)}, verify.Totals{Recorded: 9, Counted: 9}},
		"a gap below the mark": {oneLane{count: count(9, 7)}, verify.Totals{Recorded: 9, Counted: 7, Missing: 2}},
		"a gap that is set aside": {oneLane{count: count(9, 7), refused: set(4, 5)},
			verify.Totals{Recorded: 9, Counted: 7, SetAside: 2}},
		"more set aside than uncounted": {oneLane{count: count(9, 8), dead: set(4, 6)},
			verify.Totals{Recorded: 9, Counted: 8, SetAside: 1}},
		"counted twice": {oneLane{count: count(9, 11)}, verify.Totals{Recorded: 9, Counted: 9, Repeated: 2}},
		"pending in the spool and the topic": {
			oneLane{recorded: 20, pending: set(13, 20), topic: set(5, 15), count: count(9, 9)},
			verify.Totals{Recorded: 20, Counted: 9, Topic: 6, Spool: 5}},
		"counted clicks are not pending": {
			oneLane{recorded: 9, pending: set(1, 9), topic: set(2, 8), count: count(9, 9)},
			verify.Totals{Recorded: 9, Counted: 9}},
		"not in the store yet": {oneLane{recorded: 5, topic: set(1, 5)}, verify.Totals{Recorded: 5, Topic: 5}},
		"the end is lost": {oneLane{recorded: 20, topic: set(10, 15), count: count(9, 9)},
			verify.Totals{Recorded: 20, Counted: 9, Topic: 6, Missing: 5}},
		"a hole above the mark": {
			oneLane{recorded: 20, pending: set(18, 20), topic: set(10, 12), refused: set(14, 14), count: count(9, 9)},
			verify.Totals{Recorded: 20, Counted: 9, Topic: 3, Spool: 3, SetAside: 1, Missing: 4}},
		"set aside at the end": {oneLane{recorded: 10, refused: set(10, 10), count: count(9, 9)},
			verify.Totals{Recorded: 10, Counted: 9, SetAside: 1}},
		"dead letters do not make a lane longer": {oneLane{recorded: 9, dead: set(1000, 1000), count: count(9, 9)},
			verify.Totals{Recorded: 9, Counted: 9}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.want.Lanes = 1
				got, _ := c.lane.balance(t)
				if sum := got.Counted + got.Spool + got.Topic + got.SetAside + got.Missing; sum != got.Recorded {
					t.Errorf("the sum is %d, recorded are %d", sum, got.Recorded)
				}
				testkit.Equal(t, "balance", got, c.want)
			})
		})
	}
}
