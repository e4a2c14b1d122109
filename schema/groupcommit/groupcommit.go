// Package gather has calls that come at the same time done together. While a batch of calls is under way the next one
// gathers, and goes when the first is done. No call waits for company: one that finds nothing under way goes at once.
//
// It is for work of which many pieces cost little more than one, such as rows in one transaction: one round trip, one
// sync of the disk. Databases know it as group commit.
package groupcommit

import (
	"container/list"
	"context"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"linkstream/schema"
)

// ErrFull is the outcome of a call for which there is no room among those that wait.
var ErrFull error = schema.Errorf(schema.CodeUnavailable, "too many calls are waiting")

// Limits bound what a Group takes on.
type Limits struct {
	Batch   int           // calls in a batch
	Waiting int           // calls that wait for their batch
	Time    time.Duration // that a batch may take
}

// Group gathers calls. Its methods may be called concurrently. While no call is under way it holds no goroutine, so that
// there is nothing to close.
type Group[T any] struct {
	limits Limits
	run    func(ctx context.Context, batch []*Call[T]) error

	mu      sync.Mutex
	busy    bool      // a batch is under way
	waiting list.List // of *Call[T], the first to come in front
}

// Call is one call of a batch. It belongs to run until run returns.
type Call[T any] struct {
	Value T     // what the call was made with, and what its caller gets back: run may change it
	Err   error // what becomes of this call alone; nil: it succeeded, if run did

	done  chan struct{}
	place *list.Element // among those that wait
	batch *batch        // nil while it waits
}

// batch is what the callers of a batch have in common.
type batch struct {
	callers int // that wait for its end
	cancel  context.CancelFunc
}

// New returns a Group whose batches are done by run, one after the other. An error that run returns is the outcome of all
// calls of the batch; a panic is such an error, with CodeInternal. The context of a batch ends when its callers' contexts
// have all ended, or when Limits.Time is over.
func New[T any](limits Limits, run func(ctx context.Context, batch []*Call[T]) error) *Group[T] {
	return &Group[T]{limits: limits, run: run}
}

// Do has value done with those of other calls, and returns what run has made of it. ErrFull if there is no room. Where ctx
// ends first, its error is returned at once: the call never will be made, or it is under way and may succeed or fail unseen.
func (g *Group[T]) Do(ctx context.Context, value T) (T, error) {
	call := &Call[T]{Value: value}
	if err := g.join(call); err != nil {
		return value, err
	}
	select {
	case <-call.done:
		return call.Value, call.Err
	case <-ctx.Done():
		g.leave(call)
		return value, ctx.Err()
	}
}

// join makes the call wait for its batch.
func (g *Group[T]) join(call *Call[T]) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting.Len() >= g.limits.Waiting {
		return ErrFull
	}
	call.done = make(chan struct{})
	call.place = g.waiting.PushBack(call)
	if !g.busy {
		g.busy = true
		go g.work()
	}
	return nil
}

// leave is called where a call's context has ended.
func (g *Group[T]) leave(call *Call[T]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if call.batch == nil {
		g.waiting.Remove(call.place)
		return
	}
	if call.batch.callers--; call.batch.callers == 0 {
		call.batch.cancel()
	}
}

// work does batches until no call waits.
func (g *Group[T]) work() {
	for {
		runtime.Gosched() // callers that are ready to run come along
		ctx, calls := g.take()
		if len(calls) == 0 {
			return
		}
		g.do(ctx, calls)
		calls[0].batch.cancel()
		for _, call := range calls {
			close(call.done)
		}
	}
}

// take returns the next batch. An empty one means that nothing is under way any more.
func (g *Group[T]) take() (context.Context, []*Call[T]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(g.waiting.Len(), g.limits.Batch)
	if g.busy = n > 0; !g.busy {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), g.limits.Time)
	common := &batch{callers: n, cancel: cancel}
	calls := make([]*Call[T], n)
	for i := range calls {
		calls[i] = g.waiting.Remove(g.waiting.Front()).(*Call[T])
		calls[i].batch = common
	}
	return ctx, calls
}

// do runs a batch. A panic is an error of all its calls, since it must end neither the program nor the goroutine that
// others wait for.
func (g *Group[T]) do(ctx context.Context, calls []*Call[T]) {
	err := error(nil)
	defer func() {
		if cause := recover(); cause != nil {
			err = schema.Errorf(schema.CodeInternal, "panic: %v\n%s", cause, debug.Stack())
		}
		if err == nil {
			return
		}
		for _, call := range calls {
			call.Err = err
		}
	}()
	err = g.run(ctx, calls)
}
