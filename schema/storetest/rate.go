package storetest

import (
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var rateBehaviours = []behaviour[schema.Database]{
	{"LeaseRequests grants the limit in leases and then nothing", leasesLimit},
	{"LeaseRequests treats one moment in several zones as one window", leasesByMoment},
	{"LeaseRequests counts each token separately", leasesByToken},
	{"LeaseRequests starts over with a later window", leasesLaterWindow},
	{"LeaseRequests grants nothing of an earlier window", refusesEarlierWindow},
	{"LeaseRequests drops a window that is too far ahead", forgetsWindowFarAhead},
	{"LeaseRequests grants each lease to one of concurrent calls", leasesConcurrently},
	{"LeaseRequests grants each lease once while windows change", leasesWhileWindowsChange},
}

const rateLimit = 2000

// window returns the nth window, one minute after the one before it.
func window(n int) time.Time { return epoch.Truncate(time.Minute).Add(time.Duration(n) * time.Minute) }

// addCaller returns the ID of a new account's token.
func addCaller(t *testing.T, store schema.Database, name string) (tokenID int64) {
	t.Helper()
	return addToken(t, store, addAccount(t, store, name+"@example.org").ID, name).ID
}

// wantLeases requires that the next leases of a window are the from-th to the to-th.
func wantLeases(t *testing.T, store schema.Database, tokenID int64, window time.Time, from, to int64) {
	t.Helper()
	for n := from; n <= to; n++ {
		wantGranted, wantLeft := schema.Lease(rateLimit, n)
		granted, left, err := store.LeaseRequests(t.Context(), tokenID, window, rateLimit)
		testkit.Must(t, err)
		testkit.Equal(t, "granted, left", [2]int{granted, left}, [2]int{wantGranted, wantLeft})
	}
}

func wantNoLease(t *testing.T, store schema.Database, tokenID int64, window time.Time) {
	t.Helper()
	granted, left, err := store.LeaseRequests(t.Context(), tokenID, window, rateLimit)
	testkit.Must(t, err)
	testkit.Equal(t, "granted, left", [2]int{granted, left}, [2]int{})
}

func leasesLimit(t *testing.T, store schema.Database) {
	caller := addCaller(t, store, "a")
	sum, left := 0, rateLimit
	for left > 0 {
		var granted int
		var err error
		granted, left, err = store.LeaseRequests(t.Context(), caller, window(0), rateLimit)
		testkit.Must(t, err)
		sum += granted
		testkit.Equal(t, "left", left, rateLimit-sum)
	}
	for range 3 {
		wantNoLease(t, store, caller, window(0))
	}
}

func leasesByMoment(t *testing.T, store schema.Database) {
	caller := addCaller(t, store, "a")
	wantLeases(t, store, caller, window(0), 1, 1)
	wantLeases(t, store, caller, window(0).UTC(), 2, 2)
	wantLeases(t, store, caller, window(0).In(time.FixedZone("west", -7*3600)), 3, 3)
}

func leasesByToken(t *testing.T, store schema.Database) {
	a, b := addCaller(t, store, "a"), addCaller(t, store, "b")
	wantLeases(t, store, a, window(0), 1, 100)
	wantLeases(t, store, b, window(0), 1, 2)
	wantLeases(t, store, a, window(1), 1, 1)
	wantLeases(t, store, b, window(0), 3, 3)
}

func leasesLaterWindow(t *testing.T, store schema.Database) {
	caller := addCaller(t, store, "a")
	wantLeases(t, store, caller, window(0), 1, 100)
	for _, n := range []int{1, 2, 60, 100_000} {
		wantLeases(t, store, caller, window(n), 1, 3)
	}
}

func refusesEarlierWindow(t *testing.T, store schema.Database) {
	caller := addCaller(t, store, "a")
	begun := int(schema.RateSkew / time.Minute)
	wantLeases(t, store, caller, window(begun), 1, 3)
	for _, earlier := range []int{begun - 1, 0} {
		wantNoLease(t, store, caller, window(earlier))
	}
	wantLeases(t, store, caller, window(begun), 4, 6) // nothing of it was lost
}

func forgetsWindowFarAhead(t *testing.T, store schema.Database) {
	caller := addCaller(t, store, "a")
	for _, ahead := range []int{int(schema.RateSkew/time.Minute) + 1, 10_000_000} {
		wantLeases(t, store, caller, window(ahead), 1, 100)
		wantLeases(t, store, caller, window(0), 1, 3)
		wantLeases(t, store, caller, window(1), 1, 3)
	}
}

func leasesConcurrently(t *testing.T, store schema.Database) {
	caller := addCaller(t, store, "a")
	got := leaseConcurrently(t, store, caller, 128, func(int) time.Time { return window(0) })
	leases := wantDistinct(t, got, window(0))
	testkit.Equal(t, "granted", leases, rateLimit)
}

func leasesWhileWindowsChange(t *testing.T, store schema.Database) {
	caller := addCaller(t, store, "a")
	got := leaseConcurrently(t, store, caller, 300, func(i int) time.Time { return window(i % 3) })
	for n := range 3 {
		granted := wantDistinct(t, got, window(n))
		if n == 2 { // the last window is never replaced
			testkit.Equal(t, "granted", granted, rateLimit)
		}
	}
	wantNoLease(t, store, caller, window(2))
}

// leased is the result of a call.
type leased struct {
	window        time.Time
	granted, left int
}

func leaseConcurrently(
	t *testing.T, store schema.Database, tokenID int64, n int, window func(i int) time.Time,
) []leased {
	t.Helper()
	got := make([]leased, n)
	for _, err := range concurrently(n, func(i int) (err error) {
		got[i].window = window(i)
		got[i].granted, got[i].left, err = store.LeaseRequests(t.Context(), tokenID, window(i), rateLimit)
		return err
	}) {
		testkit.Must(t, err)
	}
	return got
}

// wantDistinct requires that each lease of a window was granted at most once, and returns their sum.
func wantDistinct(t *testing.T, got []leased, window time.Time) (sum int) {
	t.Helper()
	seen := map[int]bool{}
	for _, l := range got {
		if !l.window.Equal(window) || l.granted == 0 {
			continue
		}
		if seen[l.left] {
			t.Fatalf("the lease that leaves %d was granted twice", l.left)
		}
		seen[l.left] = true
		sum += l.granted
	}
	return sum
}

func keepsLeases(t *testing.T, open Open[schema.Database]) {
	store, reopen := open(t)
	caller := addCaller(t, store, "a")
	wantLeases(t, store, caller, window(0), 1, 10)
	wantLeases(t, reopen(), caller, window(0), 11, 100)
}
