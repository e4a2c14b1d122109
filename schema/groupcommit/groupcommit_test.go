package groupcommit_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/schema/groupcommit"
)

var limits = groupcommit.Limits{Batch: 3, Queue: 8, Timeout: 10 * time.Second}

var errOdd = errors.New("odd")

// gated is a Group whose batches wait until the test finishes them. The result of a number is its square; an odd number
// also gets errOdd.
type gated struct {
	*groupcommit.Group[int]
	batches  chan []int           // the values of each batch that began
	contexts chan context.Context // the context of each batch that began
	finishes chan func() error    // finishes the running batch, with the function's error as its outcome
}

func newGated(limits groupcommit.Limits) *gated {
	g := &gated{batches: make(chan []int, 100), finishes: make(chan func() error),
		contexts: make(chan context.Context, 100)}
	g.Group = groupcommit.New(limits, func(ctx context.Context, batch []*groupcommit.Call[int]) error {
		var values []int
		for _, call := range batch {
			values = append(values, call.Value)
		}
		g.contexts <- ctx
		g.batches <- values
		select {
		case finish := <-g.finishes:
			if err := finish(); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		for _, call := range batch {
			if call.Value%2 == 1 {
				call.Err = errOdd
			}
			call.Value *= call.Value
		}
		return nil
	})
	return g
}

func succeed() error { return nil }

// outcome is the result of Submit.
type outcome struct {
	value int
	err   error
}

// submit submits values in this order, each from its own goroutine.
func (g *gated) submit(ctx context.Context, values ...int) []*outcome {
	outcomes := make([]*outcome, len(values))
	for i, value := range values {
		o := &outcome{}
		outcomes[i] = o
		go func() { o.value, o.err = g.Submit(ctx, value) }()
		synctest.Wait()
	}
	return outcomes
}

func (g *gated) finish(with func() error) {
	g.finishes <- with
	synctest.Wait()
}

func wantBatch(t *testing.T, g *gated, want ...int) {
	t.Helper()
	select {
	case got := <-g.batches:
		if !slices.Equal(got, want) {
			t.Fatalf("batch %v, want %v", got, want)
		}
	default:
		t.Fatalf("no batch has begun, want %v", want)
	}
}

func wantOutcome(t *testing.T, got *outcome, value int, err error) {
	t.Helper()
	if got.value != value || !errors.Is(got.err, err) {
		t.Fatalf("got %d and error %v, want %d and %v", got.value, got.err, value, err)
	}
}

func TestSubmit(t *testing.T) {
	t.Run("a call runs at once and alone if no batch is running", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g, began := newGated(limits), time.Now()
			for value := range 3 {
				calls := g.submit(t.Context(), value*2)
				wantBatch(t, g, value*2)
				g.finish(succeed)
				wantOutcome(t, calls[0], value*value*4, nil)
			}
			if took := time.Since(began); took != 0 {
				t.Errorf("calls waited for %v", took)
			}
		})
	})
	t.Run("Parallel batches run at the same time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			parallel := limits
			parallel.Parallel = 2
			g := newGated(parallel)
			calls := g.submit(t.Context(), 2, 4, 6, 8)
			wantBatch(t, g, 2)
			wantBatch(t, g, 4)
			if len(g.batches) > 0 {
				t.Error("a third batch runs")
			}
			g.finish(succeed)
			wantBatch(t, g, 6, 8)
			g.finish(succeed)
			g.finish(succeed)
			for i, call := range calls {
				wantOutcome(t, call, (2*i+2)*(2*i+2), nil)
			}
		})
	})
	t.Run("calls during a batch form the next ones in order and each gets its own outcome",
		func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGated(limits)
				calls := g.submit(t.Context(), 1, 2, 3, 4, 5, 6)
				for _, want := range [][]int{{1}, {2, 3, 4}, {5, 6}} {
					wantBatch(t, g, want...)
					g.finish(succeed)
				}
				for i, call := range calls {
					want := error(nil)
					if i%2 == 0 {
						want = errOdd
					}
					wantOutcome(t, call, (i+1)*(i+1), want)
				}
			})
		})
	t.Run("an error of a batch is the outcome of its calls only", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g, failure := newGated(limits), errors.New("down")
			calls := g.submit(t.Context(), 0, 2, 4, 6, 8)
			g.finish(succeed)
			g.finish(func() error { return failure })
			g.finish(succeed)
			for i, want := range []error{nil, failure, failure, failure, nil} {
				if !errors.Is(calls[i].err, want) {
					t.Errorf("call %d: error %v, want %v", i, calls[i].err, want)
				}
			}
		})
	})
	t.Run("a panic is an error of the batch and later batches run", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := newGated(limits)
			calls := g.submit(t.Context(), 0, 2, 4, 6, 8)
			g.finish(func() error { panic("out of range") })
			g.finish(func() error { panic("out of range") })
			g.finish(succeed)
			for i, call := range calls[:4] {
				if call.err == nil || !strings.Contains(call.err.Error(), "out of range") {
					t.Errorf("call %d: error %v", i, call.err)
				}
			}
			wantOutcome(t, calls[4], 64, nil)
		})
	})
	t.Run("batches begin a pause apart and the first at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			paused, began := limits, time.Now()
			paused.Pause = 20 * time.Millisecond
			g := newGated(paused)
			calls := g.submit(t.Context(), 0)
			wantBatch(t, g, 0)
			time.Sleep(5 * time.Millisecond)
			g.finish(succeed)
			wantOutcome(t, calls[0], 0, nil)
			calls = g.submit(t.Context(), 2)
			time.Sleep(14 * time.Millisecond)
			calls = append(calls, g.submit(t.Context(), 4)...)
			if len(g.batches) > 0 {
				t.Fatalf("a batch began after %v", time.Since(began))
			}
			time.Sleep(time.Millisecond)
			synctest.Wait()
			wantBatch(t, g, 2, 4)
			g.finish(succeed)
			wantOutcome(t, calls[1], 16, nil)
			time.Sleep(time.Minute)
			began = time.Now()
			g.submit(t.Context(), 6)
			wantBatch(t, g, 6)
			if took := time.Since(began); took > 0 {
				t.Errorf("after a minute, a call waited for %v", took)
			}
			g.finish(succeed)
		})
	})
	t.Run("a call fails at once if the queue is full", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := newGated(groupcommit.Limits{Batch: 2, Queue: 2, Timeout: time.Second})
			calls := g.submit(t.Context(), 2, 4, 6, 8)
			wantOutcome(t, calls[3], 8, groupcommit.ErrFull)
			g.finish(succeed)
			g.finish(succeed)
			wantOutcome(t, calls[2], 36, nil)
		})
	})
}

func TestContextDone(t *testing.T) {
	t.Run("a call whose context is done in the queue returns and never runs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := newGated(limits)
			ctx, cancel := context.WithCancel(t.Context())
			first := g.submit(t.Context(), 2)
			canceled := g.submit(ctx, 4)
			other := g.submit(t.Context(), 6)
			cancel()
			synctest.Wait()
			wantOutcome(t, canceled[0], 4, context.Canceled)
			g.finish(succeed)
			wantBatch(t, g, 2)
			wantBatch(t, g, 6)
			g.finish(succeed)
			wantOutcome(t, first[0], 4, nil)
			wantOutcome(t, other[0], 36, nil)
		})
	})
	t.Run("a call whose context is done returns at once and the others finish", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := newGated(limits)
			ctx, cancel := context.WithCancel(t.Context())
			g.submit(t.Context(), 2)
			canceled, other := g.submit(ctx, 4), g.submit(t.Context(), 6)
			g.finish(succeed)
			cancel()
			synctest.Wait()
			wantOutcome(t, canceled[0], 4, context.Canceled)
			g.finish(succeed)
			wantOutcome(t, other[0], 36, nil)
		})
	})
	t.Run("a batch is canceled when its last caller is gone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := newGated(limits)
			g.submit(t.Context(), 2)
			<-g.contexts
			one, cancelOne := context.WithCancel(t.Context())
			other, cancelOther := context.WithCancel(t.Context())
			g.submit(one, 4)
			g.submit(other, 6)
			g.finish(succeed)
			common := <-g.contexts
			cancelOne()
			synctest.Wait()
			if common.Err() != nil {
				t.Fatal("the batch was canceled while a caller waited for it")
			}
			cancelOther()
			synctest.Wait()
			if common.Err() == nil {
				t.Fatal("the batch was not canceled")
			}
			next := g.submit(t.Context(), 8)
			g.finish(succeed)
			wantOutcome(t, next[0], 64, nil)
		})
	})
	t.Run("a batch that hangs is canceled after the timeout", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g, began := newGated(limits), time.Now()
			calls := g.submit(t.Context(), 2, 4)
			time.Sleep(2*limits.Timeout + time.Second) // synctest's clock
			synctest.Wait()
			for _, call := range calls {
				wantOutcome(t, call, call.value, context.DeadlineExceeded)
			}
			if took := time.Since(began); took != 2*limits.Timeout+time.Second {
				t.Errorf("took %v", took)
			}
		})
	})
}

// Invariants: each call runs at most once and gets the result of its own value, and batches do not overlap.
func TestSubmitConcurrently(t *testing.T) {
	const callers, each = 32, 200
	var runs [callers * each]atomic.Int32 // by value
	var running atomic.Int32
	var batches atomic.Int64
	group := groupcommit.New(groupcommit.Limits{Batch: 16, Queue: callers, Timeout: time.Minute},
		func(_ context.Context, batch []*groupcommit.Call[int]) error {
			if running.Add(1) > 1 {
				t.Error("two batches run at the same time")
			}
			defer running.Add(-1)
			batches.Add(1)
			for _, call := range batch {
				runs[call.Value].Add(1)
				call.Value = -call.Value
			}
			if batch[0].Value%7 == 0 {
				panic("every seventh")
			}
			return nil
		})
	var submitters sync.WaitGroup
	for caller := range callers {
		submitters.Go(func() {
			for n := range each {
				ctx, cancel := context.WithCancel(t.Context())
				if n%5 == 0 {
					go cancel()
				}
				value := caller*each + n
				got, err := group.Submit(ctx, value)
				if err == nil && (got != -value || runs[value].Load() != 1) {
					t.Errorf("call %d: got %d, ran %d times", value, got, runs[value].Load())
				}
				cancel()
			}
		})
	}
	submitters.Wait()
	for value := range runs {
		if n := runs[value].Load(); n > 1 {
			t.Errorf("call %d ran %d times", value, n)
		}
	}
	t.Logf("%d batches for %d calls", batches.Load(), callers*each)
}
