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

var limits = groupcommit.Limits{Batch: 3, Waiting: 8, Time: 10 * time.Second}

var errOdd = errors.New("odd")

// held is a Group whose batches wait to be let go. It answers a number with its square, and an odd one with an error too.
type held struct {
	*groupcommit.Group[int]
	batches chan []int           // those that have begun
	letGo   chan func() error    // ends the batch under way; what it returns is the outcome of all
	ctx     chan context.Context // of the batch that has begun
}

func newHeld(limits groupcommit.Limits) *held {
	h := &held{batches: make(chan []int, 100), letGo: make(chan func() error), ctx: make(chan context.Context, 100)}
	h.Group = groupcommit.New(limits, func(ctx context.Context, batch []*groupcommit.Call[int]) error {
		var values []int
		for _, call := range batch {
			values = append(values, call.Value)
		}
		h.ctx <- ctx
		h.batches <- values
		select {
		case end := <-h.letGo:
			if err := end(); err != nil {
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
	return h
}

func succeed() error { return nil }

// outcome is what a call has returned.
type outcome struct {
	value int
	err   error
}

// call makes calls, each in a goroutine of its own, one after the other.
func (h *held) call(ctx context.Context, values ...int) []*outcome {
	outcomes := make([]*outcome, len(values))
	for i, value := range values {
		o := &outcome{}
		outcomes[i] = o
		go func() { o.value, o.err = h.Do(ctx, value) }()
		synctest.Wait()
	}
	return outcomes
}

func (h *held) end(f func() error) {
	h.letGo <- f
	synctest.Wait()
}

func wantBatch(t *testing.T, h *held, want ...int) {
	t.Helper()
	select {
	case got := <-h.batches:
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

func TestBatches(t *testing.T) {
	t.Run("a call that finds nothing under way goes at once and alone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h, began := newHeld(limits), time.Now()
			for value := range 3 {
				calls := h.call(t.Context(), value*2)
				wantBatch(t, h, value*2)
				h.end(succeed)
				wantOutcome(t, calls[0], value*value*4, nil)
			}
			if took := time.Since(began); took != 0 {
				t.Errorf("calls waited for %v", took)
			}
		})
	})
	t.Run("calls that come meanwhile go together, in their order, and each gets its own outcome", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := newHeld(limits)
			calls := h.call(t.Context(), 1, 2, 3, 4, 5, 6)
			for _, want := range [][]int{{1}, {2, 3, 4}, {5, 6}} {
				wantBatch(t, h, want...)
				h.end(succeed)
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
	t.Run("an error of a batch is that of its calls and of no others", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h, failure := newHeld(limits), errors.New("down")
			calls := h.call(t.Context(), 0, 2, 4, 6, 8)
			h.end(succeed)
			h.end(func() error { return failure })
			h.end(succeed)
			for i, want := range []error{nil, failure, failure, failure, nil} {
				if !errors.Is(calls[i].err, want) {
					t.Errorf("call %d: error %v, want %v", i, calls[i].err, want)
				}
			}
		})
	})
	t.Run("a panic is an error of the batch, and the next one goes on", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := newHeld(limits)
			calls := h.call(t.Context(), 0, 2, 4, 6, 8)
			h.end(func() error { panic("lost the thread") })
			h.end(func() error { panic("lost the thread") })
			h.end(succeed)
			for i, call := range calls[:4] {
				if call.err == nil || !strings.Contains(call.err.Error(), "lost the thread") {
					t.Errorf("call %d: error %v", i, call.err)
				}
			}
			wantOutcome(t, calls[4], 64, nil)
		})
	})
	t.Run("a call for which there is no room fails at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := newHeld(groupcommit.Limits{Batch: 2, Waiting: 2, Time: time.Second})
			calls := h.call(t.Context(), 2, 4, 6, 8)
			wantOutcome(t, calls[3], 8, groupcommit.ErrFull)
			h.end(succeed)
			h.end(succeed)
			wantOutcome(t, calls[2], 36, nil)
		})
	})
}

func TestContexts(t *testing.T) {
	t.Run("a call whose context ends while it waits returns, and is never made", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := newHeld(limits)
			ctx, cancel := context.WithCancel(t.Context())
			first := h.call(t.Context(), 2)
			left := h.call(ctx, 4)
			stayed := h.call(t.Context(), 6)
			cancel()
			synctest.Wait()
			wantOutcome(t, left[0], 4, context.Canceled)
			h.end(succeed)
			wantBatch(t, h, 2)
			wantBatch(t, h, 6)
			h.end(succeed)
			wantOutcome(t, first[0], 4, nil)
			wantOutcome(t, stayed[0], 36, nil)
		})
	})
	t.Run("a call whose context ends under way returns at once, and the others go on", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := newHeld(limits)
			ctx, cancel := context.WithCancel(t.Context())
			h.call(t.Context(), 2)
			left, stayed := h.call(ctx, 4), h.call(t.Context(), 6)
			h.end(succeed)
			cancel()
			synctest.Wait()
			wantOutcome(t, left[0], 4, context.Canceled)
			h.end(succeed)
			wantOutcome(t, stayed[0], 36, nil)
		})
	})
	t.Run("a batch for which nobody waits any more ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := newHeld(limits)
			h.call(t.Context(), 2)
			<-h.ctx
			one, leave := context.WithCancel(t.Context())
			other, leaveToo := context.WithCancel(t.Context())
			h.call(one, 4)
			h.call(other, 6)
			h.end(succeed)
			common := <-h.ctx
			leave()
			synctest.Wait()
			if common.Err() != nil {
				t.Fatal("the batch has ended although a caller waits for it")
			}
			leaveToo()
			synctest.Wait()
			if common.Err() == nil {
				t.Fatal("the batch goes on for nobody")
			}
			next := h.call(t.Context(), 8)
			h.end(succeed)
			wantOutcome(t, next[0], 64, nil)
		})
	})
	t.Run("a batch that hangs ends in time, also where its callers have time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h, began := newHeld(limits), time.Now()
			calls := h.call(t.Context(), 2, 4)
			time.Sleep(2*limits.Time + time.Second) // synctest's clock
			synctest.Wait()
			for _, call := range calls {
				wantOutcome(t, call, call.value, context.DeadlineExceeded)
			}
			if took := time.Since(began); took != 2*limits.Time+time.Second {
				t.Errorf("took %v", took)
			}
		})
	})
}

// TestCrowd has the guarantees of all the above hold at once: every call is made at most once and by one batch at a time,
// and gets the answer to its own value.
func TestCrowd(t *testing.T) {
	const callers, each = 32, 200
	var made [callers * each]atomic.Int32
	var running atomic.Int32
	var batches atomic.Int64
	group := groupcommit.New(groupcommit.Limits{Batch: 16, Waiting: callers, Time: time.Minute},
		func(_ context.Context, batch []*groupcommit.Call[int]) error {
			if running.Add(1) > 1 {
				t.Error("two batches are under way")
			}
			defer running.Add(-1)
			batches.Add(1)
			for _, call := range batch {
				made[call.Value].Add(1)
				call.Value = -call.Value
			}
			if batch[0].Value%7 == 0 {
				panic("unlucky")
			}
			return nil
		})
	var crowd sync.WaitGroup
	for caller := range callers {
		crowd.Go(func() {
			for n := range each {
				ctx, cancel := context.WithCancel(t.Context())
				if n%5 == 0 {
					go cancel()
				}
				value := caller*each + n
				got, err := group.Do(ctx, value)
				if err == nil && (got != -value || made[value].Load() != 1) {
					t.Errorf("call %d: got %d, made %d times", value, got, made[value].Load())
				}
				cancel()
			}
		})
	}
	crowd.Wait()
	for value := range made {
		if n := made[value].Load(); n > 1 {
			t.Errorf("call %d was made %d times", value, n)
		}
	}
	t.Logf("%d batches for %d calls", batches.Load(), callers*each)
}
