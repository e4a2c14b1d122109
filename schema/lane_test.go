package schema_test

import (
	"slices"
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestLaneCompare(t *testing.T) {
	ordered := []schema.Lane{
		{Incarnation: schema.Incarnation{0: 1}, Number: 2},
		{Incarnation: schema.Incarnation{0: 1}, Number: 10},
		{Incarnation: schema.Incarnation{0: 1, 15: 1}},
		{Incarnation: schema.Incarnation{0: 0x80}, Number: 1},
	}
	shuffled := []schema.Lane{ordered[2], ordered[1], ordered[3], ordered[0]}
	slices.SortFunc(shuffled, schema.Lane.Compare)
	testkit.Equal(t, "order", shuffled, ordered)
	testkit.Equal(t, "a lane compared with itself", ordered[1].Compare(ordered[1]), 0)
}
