// Package storetest has the conformance suites of the store contracts in package schema: TestDatabase for links,
// accounts and all that belongs to them, TestClickStore for clicks. Every store passes them, so they require nothing
// that the contracts do not promise. Other tests check upgrades, frozen migrations and unreachable servers, which take
// a store's own catalogue or addresses. Traffic makes clicks for tests and benchmarks.
package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// Open returns an empty store, which is closed when the test ends, and a function that closes it and opens it again
// with the same data. After reopen the earlier store is not used.
type Open[S any] func(t *testing.T) (store S, reopen func() S)

// behaviour is a subtest: its name, and the check.
type behaviour[S any] struct {
	name  string
	check func(t *testing.T, store S)
}

func run[S any](t *testing.T, open Open[S], behaviours []behaviour[S]) {
	for _, b := range behaviours {
		t.Run(b.name, func(t *testing.T) {
			store, _ := open(t)
			b.check(t, store)
		})
	}
}

// epoch is the time at which everything in the suites begins. It has an unusual zone, because stores must keep moments
// in any zone, and no fraction of a second, which stores need not keep.
var epoch = time.Date(2026, time.November, 21, 9, 30, 15, 0, time.FixedZone("east", 5*3600+1800))

// nilOrEmpty lets a store return nil for an empty slice or map.
var nilOrEmpty = cmpopts.EquateEmpty()

// concurrently calls f(0) to f(n-1) concurrently and returns their errors in this order.
func concurrently(n int, f func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = f(i)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

// onlyOne requires that exactly one of errs is nil and all others have the code, and returns the index of nil.
func onlyOne(t *testing.T, errs []error, code schema.Code) (winner int) {
	t.Helper()
	winner = -1
	for i, err := range errs {
		switch {
		case err != nil:
			testkit.WantCode(t, err, code)
		case winner >= 0:
			t.Fatalf("calls %d and %d both succeeded", winner, i)
		default:
			winner = i
		}
	}
	if winner < 0 {
		t.Fatalf("none of %d calls succeeded", len(errs))
	}
	return winner
}
