//go:build !race

// Sequential tests of large files: the race detector could find nothing in them, and slows parsers down twentyfold.

package transfer_test

import (
	"runtime"
	"strings"
	"testing"

	"linkstream/api/transfer"
	"linkstream/schema/testkit"
)

// TestLargeObjects has an object that would take many times its size.
func TestLargeObjects(t *testing.T) {
	f := newFixture(t)
	file := `[{"slug":"a","url":"https://example.com/a"},{"slug":"b","url":"https://example.com/b","x":[` +
		strings.Repeat("{},", 8<<20) + `{}]},{"slug":"c","url":"https://example.com/c"}]`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	report, err := f.Preview(t.Context(), f.account, strings.NewReader(file), transfer.Options{})
	testkit.Must(t, err)
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 20*uint64(len(file)) { // not 50 times
		t.Errorf("%d bytes were allocated", allocated)
	}
	counts(t, report, 2, 0, 1)
	testkit.Equal(t, "problem", report.Errors[0].Reason, "The link is no object of at most 64 KiB.")
}
