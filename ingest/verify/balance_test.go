package verify_test

import (
	"math/rand/v2"
	"testing"

	"linkstream/ingest/verify"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// highest is the highest number in the sets of tests.
const highest = 40

// ranges returns the set of the numbers for which has returns true.
func ranges(has func(n uint64) bool) (set verify.Numbers) {
	for n := uint64(1); n <= highest; n++ {
		switch {
		case !has(n):
		case len(set) > 0 && set[len(set)-1].Last == n-1:
			set[len(set)-1].Last = n
		default:
			set = append(set, schema.SeqRange{First: n, Last: n})
		}
	}
	return set
}

func TestNumbers(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 0))
		fill := func() (set verify.Numbers, has map[uint64]bool) {
			has = map[uint64]bool{}
			for range random.IntN(8) {
				first := 1 + random.Uint64N(highest)
				last := min(highest, first+random.Uint64N(6))
				set = verify.With(set, first, last)
				for n := first; n <= last; n++ {
					has[n] = true
				}
			}
			testkit.Equal(t, "with", set, ranges(func(n uint64) bool { return has[n] }))
			return set, has
		}
		a, inA := fill()
		b, inB := fill()
		testkit.Equal(t, "without", verify.Without(a, b), ranges(func(n uint64) bool { return inA[n] && !inB[n] }))
		first, last := 1+random.Uint64N(highest), 1+random.Uint64N(highest)
		testkit.Equal(t, "between", verify.Between(a, first, last),
			ranges(func(n uint64) bool { return inA[n] && n >= first && n <= last }))
	}
}

func TestBalance(t *testing.T) {
	set := func(pairs ...uint64) (n verify.Numbers) {
		for i := 0; i < len(pairs); i += 2 {
			n = verify.With(n, pairs[i], pairs[i+1])
		}
		return n
	}
	count := func(mark, clicks uint64) schema.LaneCount {
		return schema.LaneCount{Mark: mark, Clicks: clicks}
	}
	for name, c := range map[string]struct {
		recorded               uint64
		spool, topic, setAside verify.Numbers
		count                  schema.LaneCount
		want                   verify.Lane
	}{
		"all are counted":      {count: count(9, 9), want: verify.Lane{Recorded: 9, Counted: 9}},
		"a gap below the mark": {count: count(9, 7), want: verify.Lane{Recorded: 9, Counted: 7, Missing: 2}},
		"a gap that is set aside": {count: count(9, 7), setAside: set(4, 5),
			want: verify.Lane{Recorded: 9, Counted: 7, SetAside: 2}},
		"more set aside than uncounted": {count: count(9, 8), setAside: set(4, 6),
			want: verify.Lane{Recorded: 9, Counted: 8, SetAside: 1}},
		"counted twice": {count: count(9, 11), want: verify.Lane{Recorded: 9, Counted: 9, Repeated: 2}},
		"pending in the spool and the topic": {recorded: 20, spool: set(13, 20), topic: set(5, 15), count: count(9, 9),
			want: verify.Lane{Recorded: 20, Counted: 9, Topic: 6, Spool: 5}},
		"what was counted is not pending": {recorded: 9, spool: set(1, 9), topic: set(2, 8), count: count(9, 9),
			want: verify.Lane{Recorded: 9, Counted: 9}},
		"not in the store yet": {recorded: 5, topic: set(1, 5), want: verify.Lane{Recorded: 5, Topic: 5}},
		"the end is lost": {recorded: 20, topic: set(10, 15), count: count(9, 9),
			want: verify.Lane{Recorded: 20, Counted: 9, Topic: 6, Missing: 5}},
		"a hole above the mark": {recorded: 20, spool: set(18, 20), topic: set(10, 12), setAside: set(14, 14),
			count: count(9, 9),
			want:  verify.Lane{Recorded: 20, Counted: 9, Topic: 3, Spool: 3, SetAside: 1, Missing: 4}},
		"set aside at the end": {recorded: 10, setAside: set(10, 10), count: count(9, 9),
			want: verify.Lane{Recorded: 10, Counted: 9, SetAside: 1}},
		"dead letters do not make a lane longer": {setAside: set(1000, 1000), count: count(9, 9),
			want: verify.Lane{Recorded: 9, Counted: 9}},
	} {
		t.Run(name, func(t *testing.T) {
			got := verify.Balance(c.recorded, c.spool, c.topic, c.setAside, c.count)
			if sum := got.Counted + got.Spool + got.Topic + got.SetAside + got.Missing; sum != got.Recorded {
				t.Errorf("the sum is %d, recorded are %d", sum, got.Recorded)
			}
			testkit.Equal(t, "balance", got, c.want, visibleOnly)
		})
	}
}
