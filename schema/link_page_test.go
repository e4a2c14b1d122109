package schema_test

import (
	"math/rand/v2"
	"testing"

	"linkstream/schema"
)

// TestPageRange compares its pages with pages of a list of the remaining ordinals.
func TestPageRange(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		last := random.Int64N(6 * schema.OrdinalBlock)
		missing := map[int64]bool{}
		for range random.IntN(4) { // ranges, some of them longer than a block
			from := 1 + random.Int64N(last+1)
			for ordinal := from; ordinal <= min(last, from+random.Int64N(2500)); ordinal++ {
				missing[ordinal] = true
			}
		}
		if round == 0 {
			last = 0
		}
		counts := map[int64]int64{}
		var left []int64
		for ordinal := last; ordinal > 0; ordinal-- {
			if missing[ordinal] {
				counts[ordinal/schema.OrdinalBlock]++
			} else {
				left = append(left, ordinal)
			}
		}
		var gaps []schema.OrdinalGap
		for block := last / schema.OrdinalBlock; block >= 0; block-- {
			if counts[block] > 0 {
				gaps = append(gaps, schema.OrdinalGap{Block: block, Missing: counts[block]})
			}
		}
		for offset := 0; offset < len(left)+2*schema.PageSize; offset += schema.PageSize {
			checkRange(t, last, gaps, left, offset)
		}
	}
}

func checkRange(t *testing.T, last int64, gaps []schema.OrdinalGap, left []int64, offset int) {
	t.Helper()
	newest, oldest, skip := schema.PageRange(last, gaps, int64(offset), schema.PageSize)
	var got []int64
	between := 0
	for _, ordinal := range left {
		if oldest <= ordinal && ordinal <= newest {
			if between++; int64(between) > skip && len(got) < schema.PageSize {
				got = append(got, ordinal)
			}
		}
	}
	want := left[min(offset, len(left)):min(offset+schema.PageSize, len(left))]
	if len(got) != len(want) || len(want) > 0 && (got[0] != want[0] || got[len(got)-1] != want[len(want)-1]) {
		t.Fatalf("%d links, gaps %v, offset %d: got %v, want %v", last, gaps, offset, got, want)
	}
	if between > 2*schema.OrdinalBlock+schema.PageSize {
		t.Fatalf("%d links, gaps %v, offset %d: a page needs %d rows", last, gaps, offset, between)
	}
}
