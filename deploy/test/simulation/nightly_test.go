//go:build nightly && !race

package simulation_test

import (
	"maps"
	"testing"

	"linkstream/schema/storetest"
)

func TestSeedsAreReproducible(t *testing.T) {
	simulations := map[string]func(*testing.T, uint64, broken) *simulation{
		"services": simulate, "one machine": simulateMachine,
	}
	for name, simulate := range simulations {
		for seed := range uint64(10) {
			a, b := simulate(t, seed, broken{}), simulate(t, seed, broken{})
			if a.trace.Sum64() != b.trace.Sum64() || !maps.Equal(a.occurred, b.occurred) {
				t.Errorf("%s: two runs of seed %d differ", name, seed)
			}
		}
	}
}

// The model passes the suite of the real stores, but that of reports, which it does not have.
func TestModelStore(t *testing.T) {
	for name, lowPosition := range map[string]bool{"highest position": false, "lowest position": true} {
		t.Run(name, func(t *testing.T) {
			open := func(*testing.T) (*store, func() *store) {
				s := &store{lowPosition: lowPosition}
				return s, func() *store { return s }
			}
			storetest.TestCounting(t, open)
			storetest.TestPositions(t, open)
		})
	}
}
