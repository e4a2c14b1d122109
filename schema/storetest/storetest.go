// Package storetest has the conformance suites of the store contracts in package schema: TestLinkStores for links
// and what belongs to them, TestRateStore for leases of the rate limit, TestClickStore for clicks. Every store passes
// them unchanged, so they ask for nothing that the contracts do not promise.
package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// Open returns a fresh, empty store that is closed when the test ends, and a function that closes it and opens it
// again, in this order, on the same data. After reopen the earlier store is not used again.
type Open[S any] func(t *testing.T) (store S, reopen func() S)

// behaviour is one subtest: what a store does, and the check that it does.
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

// epoch is the time at which everything in the suites begins. It has a zone of its own, because stores must keep
// moments, and no fraction of a second, because they need not keep those.
var epoch = time.Date(2026, time.November, 21, 9, 30, 15, 0, time.FixedZone("east", 5*3600+1800))

// nilOrEmpty lets a store return nil for an empty slice or map.
var nilOrEmpty = cmpopts.EquateEmpty()

// concurrently runs f n times at once and returns the errors, that of f(i) at i.
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

// onlyOne requires that one of errs is nil and all others have code, and returns the index of the one.
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
