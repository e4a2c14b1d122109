package verify

import (
	"cmp"
	"slices"

	"linkstream/schema"
)

// numbers is a set of a lane's numbers: ranges in ascending order that neither overlap nor touch.
type numbers []schema.SeqRange

// with returns the set with first to last. Numbers mostly come in order.
func (n numbers) with(first, last uint64) numbers {
	if k := len(n); k == 0 || first > n[k-1].Last+1 {
		return append(n, schema.SeqRange{First: first, Last: last})
	}
	// The ranges from i to before j overlap or touch the new one.
	i, _ := slices.BinarySearchFunc(n, first,
		func(r schema.SeqRange, first uint64) int { return cmp.Compare(r.Last+1, first) })
	j := i
	for ; j < len(n) && n[j].First <= last+1; j++ {
		first, last = min(first, n[j].First), max(last, n[j].Last)
	}
	return slices.Replace(n, i, j, schema.SeqRange{First: first, Last: last})
}

// withAll returns the set with all numbers of ranges.
func (n numbers) withAll(ranges []schema.SeqRange) numbers {
	for _, r := range ranges {
		n = n.with(r.First, r.Last)
	}
	return n
}

// between returns the numbers of the set from first to last.
func (n numbers) between(first, last uint64) (part numbers) {
	for _, r := range n {
		if r.First, r.Last = max(r.First, first), min(r.Last, last); r.First <= r.Last {
			part = append(part, r)
		}
	}
	return part
}

// without returns the numbers of the set that are not in other.
func (n numbers) without(other numbers) (rest numbers) {
	for _, r := range n {
		for len(other) > 0 && other[0].Last < r.First {
			other = other[1:]
		}
		for _, o := range other {
			if o.First > r.Last || r.First > r.Last {
				break
			}
			if o.First > r.First {
				rest = append(rest, schema.SeqRange{First: r.First, Last: o.First - 1})
			}
			r.First = o.Last + 1
		}
		if r.First <= r.Last {
			rest = append(rest, r)
		}
	}
	return rest
}

// size returns how many numbers the set has.
func (n numbers) size() (sum uint64) {
	for _, r := range n {
		sum += r.Len()
	}
	return sum
}

// highest returns the highest number, 0 without numbers.
func (n numbers) highest() uint64 {
	if len(n) == 0 {
		return 0
	}
	return n[len(n)-1].Last
}
