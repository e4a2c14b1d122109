package storetest

import (
	"context"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"linkstream/schema"
	"linkstream/schema/linkstore"
)

// Fault is called by the methods of a faulty store, with the method's name. An error becomes the outcome of the
// method; after nil the real store goes on. A Fault may wait until ctx is done, or change the real store.
// A nil Fault lets every call through.
type Fault func(ctx context.Context, method string) error

// FaultOf returns a Fault that calls fail for the named methods and lets all others through.
func FaultOf(fail func(context.Context) error, methods ...string) Fault {
	return func(ctx context.Context, method string) error {
		if slices.Contains(methods, method) {
			return fail(ctx)
		}
		return nil
	}
}

// Faulty returns the store with a fault before each of its transactions, and before each statement outside of one.
func Faulty(store *linkstore.Store, fault Fault) *linkstore.Store {
	if fault == nil {
		return store
	}
	return Watched(store, func(ctx context.Context, step Step) error {
		if step.Nested {
			return nil
		}
		return fault(ctx, methodOf())
	})
}

// methodOf returns the name of the method of schema.Database that calls, or "".
func methodOf() (name string) {
	const store = "linkstream/schema/linkstore.(*Store)."
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	for more := true; more && name == ""; {
		var frame runtime.Frame
		frame, more = frames.Next()
		method, found := strings.CutPrefix(frame.Function, store)
		method, _, _ = strings.Cut(method, ".") // of a function in it
		switch {
		case !found:
		case method == "createTogether": // calls of CreateLink share a goroutine
			name = "CreateLink"
		case 'A' <= method[0] && method[0] <= 'Z':
			name = method
		}
	}
	return name
}

// Methods returns the names of the methods of the interface S, such as schema.Database, that may fail.
func Methods[S any]() (names []string) {
	for method := range reflect.TypeFor[S]().Methods() {
		if method.Type.NumIn() > 0 && method.Type.In(0) == reflect.TypeFor[context.Context]() {
			names = append(names, method.Name)
		}
	}
	return names
}

// FaultyClicks is a click store whose methods fail if Fault returns an error.
type FaultyClicks struct {
	schema.ClickStore
	schema.ReportStore
	schema.HistoryStore
	Fault Fault
}

// do calls f unless fault returns an error for the method; one does so for methods with a result.
func do(ctx context.Context, fault Fault, method string, f func() error) error {
	if fault != nil {
		if err := fault(ctx, method); err != nil {
			return err
		}
	}
	return f()
}

func one[A any](ctx context.Context, fault Fault, method string, f func() (A, error)) (a A, err error) {
	err = do(ctx, fault, method, func() (err error) { a, err = f(); return err })
	return a, err
}

func (f FaultyClicks) LaneMarks(ctx context.Context, lanes []schema.Lane) ([]uint64, error) {
	return one(ctx, f.Fault, "LaneMarks", func() ([]uint64, error) { return f.ClickStore.LaneMarks(ctx, lanes) })
}

func (f FaultyClicks) ClickSums(ctx context.Context) (map[string]uint64, error) {
	return one(ctx, f.Fault, "ClickSums", func() (map[string]uint64, error) { return f.ClickStore.ClickSums(ctx) })
}

func (f FaultyClicks) InsertClicks(ctx context.Context, batch *schema.ClickBatch) error {
	return do(ctx, f.Fault, "InsertClicks", func() error { return f.ClickStore.InsertClicks(ctx, batch) })
}

func (f FaultyClicks) LaneCounts(ctx context.Context, each func(schema.LaneCount) error) error {
	return do(ctx, f.Fault, "LaneCounts", func() error { return f.ClickStore.LaneCounts(ctx, each) })
}

func (f FaultyClicks) LaneGaps(ctx context.Context, lane schema.Lane) ([]schema.Gap, error) {
	return one(ctx, f.Fault, "LaneGaps", func() ([]schema.Gap, error) { return f.ClickStore.LaneGaps(ctx, lane) })
}

func (f FaultyClicks) LinkStats(ctx context.Context, linkID int64) (schema.Stats, error) {
	return one(ctx, f.Fault, "LinkStats", func() (schema.Stats, error) { return f.ClickStore.LinkStats(ctx, linkID) })
}

func (f FaultyClicks) ClickTotals(
	ctx context.Context, links, accounts []int64,
) (ofLinks, ofAccounts map[int64]schema.Period, err error) {
	err = do(ctx, f.Fault, "ClickTotals", func() (err error) {
		ofLinks, ofAccounts, err = f.ClickStore.ClickTotals(ctx, links, accounts)
		return err
	})
	return ofLinks, ofAccounts, err
}

func (f FaultyClicks) ClickCounts(ctx context.Context, accountID int64, linkIDs []int64) (map[int64]int64, error) {
	return one(ctx, f.Fault, "ClickCounts", func() (map[int64]int64, error) {
		return f.ClickStore.ClickCounts(ctx,
			accountID, linkIDs)
	})
}

func (f FaultyClicks) ClickSeries(
	ctx context.Context, accountID int64, linkIDs []int64, bounds []time.Time,
) (map[int64][]int64, error) {
	return one(ctx, f.Fault, "ClickSeries", func() (map[int64][]int64, error) {
		return f.ReportStore.ClickSeries(ctx,
			accountID, linkIDs, bounds)
	})
}

func (f FaultyClicks) Report(ctx context.Context, query schema.ReportQuery) (schema.Report, error) {
	return one(ctx, f.Fault, "Report", func() (schema.Report, error) { return f.ReportStore.Report(ctx, query) })
}

func (f FaultyClicks) SetHistories(ctx context.Context, histories ...schema.History) error {
	return do(ctx, f.Fault, "SetHistories", func() error { return f.HistoryStore.SetHistories(ctx, histories...) })
}

func (f FaultyClicks) DeleteHistory(ctx context.Context, linkID int64, source string) error {
	return do(ctx, f.Fault, "DeleteHistory", func() error { return f.HistoryStore.DeleteHistory(ctx, linkID, source) })
}

func (f FaultyClicks) History(ctx context.Context, linkID int64, source string) (schema.History, error) {
	return one(ctx, f.Fault, "History",
		func() (schema.History, error) { return f.HistoryStore.History(ctx, linkID, source) })
}

func (f FaultyClicks) ReportDetail(ctx context.Context) (schema.ReportDetail, error) {
	return one(ctx, f.Fault, "ReportDetail", func() (schema.ReportDetail,
		error) {
		return f.ReportStore.ReportDetail(ctx)
	})
}
