package testkit_test

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// recorder is a testing.TB that keeps the failure of an assertion instead of failing the test.
type recorder struct {
	testing.TB
	failure string
	ended   bool
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) { r.failure = fmt.Sprintf(format, args...) }

func (r *recorder) Logf(string, ...any) {}

func (r *recorder) Fatal(args ...any) { r.end(fmt.Sprint(args...)) }

func (r *recorder) Fatalf(format string, args ...any) { r.end(fmt.Sprintf(format, args...)) }

func (r *recorder) end(failure string) {
	r.failure, r.ended = failure, true
	panic(r) // what follows the assertion must not run
}

// failure returns what the assertion in check reports, and whether it ends the test.
func failure(check func(tb testing.TB)) (failure string, ended bool) {
	r := new(recorder)
	defer func() {
		if p := recover(); p != nil && p != any(r) {
			panic(p)
		}
		failure, ended = r.failure, r.ended
	}()
	check(r)
	return
}

type closer struct{ error }

func (c closer) Close() error { return c.error }

var _ io.Closer = closer{}

func TestAssertions(t *testing.T) {
	missing := fmt.Errorf("look up: %w", schema.Errorf(schema.CodeNotFound, "no link"))
	now := time.Now()
	elsewhere := now.In(time.FixedZone("east", 3600))
	for _, c := range []struct {
		name  string
		check func(tb testing.TB)
		want  string // part of the failure; "": none
		goes  bool   // the test goes on after the failure
	}{
		{"Must accepts nil", func(tb testing.TB) { testkit.Must(tb, nil) }, "", false},
		{"Must refuses an error", func(tb testing.TB) { testkit.Must(tb, missing) }, "look up: no link", false},
		{"Close accepts nil", func(tb testing.TB) { testkit.Close(tb, closer{}) }, "", false},
		{"Close reports an error", func(tb testing.TB) { testkit.Close(tb, closer{missing}) }, "no link", true},
		{"WantCode accepts the code of a wrapped error", func(tb testing.TB) {
			testkit.WantCode(tb, missing, schema.CodeNotFound)
		}, "", false},
		{"WantCode refuses another code", func(tb testing.TB) { testkit.WantCode(tb, missing, schema.CodeConflict) }, `want "conflict"`, false},
		{"WantCode refuses no error", func(tb testing.TB) { testkit.WantCode(tb, nil, schema.CodeConflict) }, `got code ""`, false},
		{"WantError accepts code and texts", func(tb testing.TB) {
			testkit.WantError(tb, missing, schema.CodeNotFound, "look up", "no link")
		}, "", false},
		{"WantError refuses another code", func(tb testing.TB) {
			testkit.WantError(tb, missing, schema.CodeConflict, "no link")
		}, `want "conflict"`, false},
		{"WantError refuses another text", func(tb testing.TB) {
			testkit.WantError(tb, missing, schema.CodeNotFound, "no link", "no domain")
		}, `"no domain"`, false},
		{"Equal accepts equal fields", func(tb testing.TB) {
			testkit.Equal(tb, "link", schema.Link{Hash: "a", CreatedAt: now}, schema.Link{Hash: "a", CreatedAt: elsewhere})
		}, "", false},
		{"Equal accepts equal addresses", func(tb testing.TB) {
			testkit.Equal(tb, "address", netip.MustParseAddr("::1"), netip.IPv6Loopback())
		}, "", false},
		{"Equal tells errors apart that have one text", func(tb testing.TB) {
			testkit.Equal(tb, "error", errors.New("one text"), errors.New("one text"), cmpopts.EquateErrors())
		}, "error: ", false},
		{"Equal names the value", func(tb testing.TB) { testkit.Equal(tb, "count", 1, 2) }, "count: ", false},
		{"Equal shows the difference", func(tb testing.TB) {
			testkit.Equal(tb, "link", schema.Link{Hash: "got"}, schema.Link{Hash: "want"})
		}, `"want"`, false},
		{"Equal tells a nil slice from an empty one", func(tb testing.TB) {
			testkit.Equal(tb, "links", nil, []schema.Link{})
		}, "links", false},
		{"Mismatch is nil for equal values", func(tb testing.TB) {
			testkit.Must(tb, testkit.Mismatch("values", []int{1}, []int{1}))
		}, "", false},
		{"Mismatch names the value and shows the difference", func(tb testing.TB) {
			testkit.Must(tb, testkit.Mismatch("values", "got", "want"))
		}, "values: (-want +got)", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ended := failure(c.check)
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("failure %q, want one with %q", got, c.want)
			}
			if got != "" && ended == c.goes {
				t.Errorf("the failure ends the test: %v", ended)
			}
		})
	}
}

func TestPolling(t *testing.T) {
	for name, test := range map[string]struct {
		poll  func(tb testing.TB, check func() error)
		bound time.Duration
	}{
		"Succeeds": {testkit.Succeeds, testkit.Patience},
		"SucceedsWithin": {func(tb testing.TB, check func() error) {
			testkit.SucceedsWithin(tb, time.Second, check)
		}, time.Second},
		"Eventually": {func(tb testing.TB, check func() error) {
			testkit.Eventually(tb, "a reason", func() bool { return check() == nil })
		}, testkit.Patience},
	} {
		// after polls a state that is reached after d, and returns how long that takes.
		after := func(d time.Duration) (took time.Duration, failed string) {
			began := time.Now()
			failed, _ = failure(func(tb testing.TB) {
				test.poll(tb, func() error {
					if time.Since(began) < d {
						return errors.New("a reason")
					}
					return nil
				})
			})
			return time.Since(began), failed
		}
		t.Run(name+" looks at once", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if took, failed := after(0); took != 0 || failed != "" {
					t.Errorf("took %v, failure %q", took, failed)
				}
			})
		})
		t.Run(name+" ends soon after the state is reached", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if took, failed := after(700 * time.Millisecond); took > 720*time.Millisecond || failed != "" {
					t.Errorf("took %v, failure %q", took, failed)
				}
			})
		})
		t.Run(name+" fails with the reason at the bound", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				took, failed := after(time.Hour)
				if took < test.bound || took > test.bound+20*time.Millisecond || !strings.Contains(failed, "a reason") {
					t.Errorf("took %v, failure %q", took, failed)
				}
			})
		})
	}
}

func TestBuffer(t *testing.T) {
	var log testkit.Buffer
	done := make(chan struct{})
	go func() {
		defer close(done)
		log.Logger().Info("joined", "member", 1)
	}()
	testkit.Eventually(t, "the line is read while it may be written", func() bool { return log.Contains("member=1") })
	<-done
	log.Logger().Info("joined", "member", 2)
	log.Logger().Debug("joined", "member", 3)
	testkit.Equal(t, "lines", log.Count("joined"), 2)
	testkit.Equal(t, "lines in the text", strings.Count(log.String(), "\n"), 2)
}

func TestSameTime(t *testing.T) {
	// taking returns a function that takes d, and longer for as many calls as the machine is busy.
	taking := func(d time.Duration, busy int) func() {
		return func() {
			if busy > 0 {
				busy--
				time.Sleep(time.Minute)
			}
			time.Sleep(d)
		}
	}
	for _, c := range []struct {
		name       string
		a, b       time.Duration
		busyA      int
		wantFailed bool
	}{
		{"accepts the same time", time.Second, time.Second, 0, false},
		{"accepts three times as long", time.Second, 3 * time.Second, 0, false},
		{"refuses more than three times as long", time.Second, 3*time.Second + 1, 0, true},
		{"refuses more than three times as short", 3*time.Second + 1, time.Second, 0, true},
		{"waits until the machine is less busy", time.Second, time.Second, 50, false},
		{"is not fooled by a machine that is busy at first", time.Microsecond, time.Minute, 4, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, _ := failure(func(tb testing.TB) { testkit.SameTime(tb, taking(c.a, c.busyA), taking(c.b, 0)) })
				if (got != "") != c.wantFailed {
					t.Errorf("failure %q", got)
				}
			})
		})
	}
}
