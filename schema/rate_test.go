package schema_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"linkstream/schema"
)

func TestLease(t *testing.T) {
	t.Run("the leases of a window add up to its limit and never grow", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			limit := rapid.IntRange(0, 10_000).Draw(t, "limit")
			sum, last := 0, limit
			for n := int64(1); sum < limit; n++ {
				granted, left := schema.Lease(limit, n)
				sum += granted
				if granted < 1 || granted > last || left != limit-sum {
					t.Fatalf("lease %d grants %d after one of %d, and leaves %d of %d", n, granted, last, left, limit-sum)
				}
				last = granted
			}
		})
	})
	t.Run("2000 requests are 81 leases", func(t *testing.T) {
		for n, want := range map[int64][2]int{
			1: {40, 1960}, 2: {40, 1920}, 42: {40, 320}, 43: {40, 280}, 44: {35, 245}, 80: {1, 1}, 81: {1, 0},
			82: {0, 0}, math.MaxInt64: {0, 0},
		} {
			if granted, left := schema.Lease(2000, n); [2]int{granted, left} != want {
				t.Errorf("lease %d grants %d and leaves %d, want %v", n, granted, left, want)
			}
		}
	})
}
