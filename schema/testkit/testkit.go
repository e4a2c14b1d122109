// Package testkit holds the assertions, the polling and the buffer that the tests of all packages share. Assertions
// end the test when they fail, so they are called from the test's own goroutine.
//
//	testkit.Must(t, store.CreateLink(ctx, &link))
//	testkit.WantCode(t, store.CreateLink(ctx, &link), schema.CodeConflict)
//	testkit.Equal(t, "links", got, want)
//	testkit.Eventually(t, "50 misses", func() bool { return misses() == 50 })
//	testkit.Succeeds(t, func() error { return client.Ping(ctx) })
package testkit

import (
	"fmt"
	"io"
	"net/netip"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"linkstream/schema"
)

// Must requires that err is nil.
func Must(tb testing.TB, err error) {
	if err != nil { // Helper is too slow for benchmarks
		tb.Helper()
		tb.Fatal(err)
	}
}

// Close closes c and reports an error without ending the test, so that it can be deferred and used in cleanups.
func Close(tb testing.TB, c io.Closer) {
	tb.Helper()
	if err := c.Close(); err != nil {
		tb.Errorf("close %T: %v", c, err)
	}
}

// WantCode requires that err carries the code.
func WantCode(tb testing.TB, err error, code schema.Code) {
	tb.Helper()
	if got := schema.ErrorCode(err); got != code {
		tb.Fatalf("got code %q (error %v), want %q", got, err, code)
	}
}

// WantError requires that err carries the code and that its text contains each of the texts.
func WantError(tb testing.TB, err error, code schema.Code, texts ...string) {
	tb.Helper()
	WantCode(tb, err, code)
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			tb.Fatalf("error %q does not contain %q", err, text)
		}
	}
}

// Equal requires that got equals want; what names the value in the failure. Values are compared as by go-cmp: times by
// moment, structs by field, and a nil slice differs from an empty one.
func Equal[T any](tb testing.TB, what string, got, want T, options ...cmp.Option) {
	if err := Mismatch(what, got, want, options...); err != nil {
		tb.Helper()
		tb.Fatal(err)
	}
}

// Mismatch returns an error with the difference of got and want, or nil if they are equal. It serves checks that do not
// end the test, and polling.
func Mismatch[T any](what string, got, want T, options ...cmp.Option) error {
	if diff := Diff(got, want, options...); diff != "" {
		return fmt.Errorf("%s: (-want +got)\n%s", what, diff)
	}
	return nil
}

// Diff returns how got differs from want as go-cmp prints it, or "" if they are equal.
func Diff(got, want any, options ...cmp.Option) string {
	// Most values are equal, which go-cmp takes several times as long to find out. Only cmpopts.EquateErrors is stricter.
	if _, ok := got.(error); !ok && reflect.DeepEqual(got, want) {
		return ""
	}
	return cmp.Diff(want, got, append(options, comparedByValue)...)
}

// comparedByValue names types that are compared with ==, because go-cmp does not read fields that are not exported.
var comparedByValue = cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}, netip.AddrPort{}, schema.BaseURL{})

var capital = regexp.MustCompile(`([a-z])([A-Z])`)

// SnakeCase returns the name of a Go field as JSON and forms have it: TimeZone is time_zone.
func SnakeCase(field string) string {
	return strings.ToLower(capital.ReplaceAllString(field, "${1}_$2"))
}
