// Package groupcommit runs calls that arrive at the same time as one batch. While a batch runs, further calls queue up;
// they form the next batch. No call waits for others to arrive: if no batch is running, a call runs at once, alone.
// Only Limits.Pause, if it is set, spaces batches out.
//
//	calls   a  b c d      e          a arrives while nothing runs, e while b, c and d run
//	        │  └─┬─┘      │
//	batches [ a ][ b c d ][ e ]      one after the other
//
// Use it for work where many pieces cost little more than one, such as rows in a transaction: a batch costs one round
// trip and one sync of the disk. Databases call this group commit.
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

// ErrFull is returned by Submit if the queue is full. Its code is CodeUnavailable.
var ErrFull error = schema.Errorf(schema.CodeUnavailable, "too many calls are waiting")

// Limits bound the work of a Group.
type Limits struct {
	Batch   int           // calls per batch
	Queue   int           // calls that wait for the next batches
	Timeout time.Duration // of a batch
	// Parallel is how many batches run at the same time; 0: one.
	Parallel int
	// least time between the beginnings of two batches; calls that arrive in between join the second one
	Pause time.Duration
}

// Group batches calls. Its methods may be called concurrently. It has a goroutine only while a batch runs, so it needs
// no Close.
type Group[T any] struct {
	limits Limits
	commit func(ctx context.Context, batch []*Call[T]) error

	mu      sync.Mutex
	running int       // goroutines that run batches
	next    time.Time // when the next batch may begin
	queue   list.List // of *Call[T], the oldest in front
}

// Call is one call of a batch. It belongs to the commit function until that returns.
type Call[T any] struct {
	Value T     // the argument of Submit; the commit function may change it to the result
	Err   error // the outcome of this call alone, unless the commit function returns an error

	done  chan struct{} // closed when Value and Err are final
	place *list.Element // in the queue
	batch *batch        // nil while the call is in the queue
}

// batch counts the callers that wait for the outcome of a batch.
type batch struct {
	callers int
	cancel  context.CancelFunc
}

// New returns a Group that passes each batch to commit, limits.Parallel at a time. An error that commit returns is the
// outcome of all calls of the batch, and a panic is such an error, with CodeInternal. The context of a batch is
// canceled when the contexts of all its callers are done, or after limits.Timeout.
func New[T any](limits Limits, commit func(ctx context.Context, batch []*Call[T]) error) *Group[T] {
	return &Group[T]{limits: limits, commit: commit}
}

// Submit adds value to the next batch, waits until the batch is committed, and returns the call's Value and Err.
// ErrFull if the queue is full. If ctx is done first, Submit returns its error at once: a call that is still in the
// queue is removed from it; a call in a batch may still succeed or fail.
func (g *Group[T]) Submit(ctx context.Context, value T) (T, error) {
	call := &Call[T]{Value: value}
	if err := g.enqueue(call); err != nil {
		return value, err
	}
	select {
	case <-call.done:
		return call.Value, call.Err
	case <-ctx.Done():
		g.abandon(call)
		return value, ctx.Err()
	}
}

// enqueue adds the call to the queue and makes sure that a goroutine runs batches.
func (g *Group[T]) enqueue(call *Call[T]) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.queue.Len() >= g.limits.Queue {
		return ErrFull
	}
	call.done = make(chan struct{})
	call.place = g.queue.PushBack(call)
	if g.running < max(1, g.limits.Parallel) {
		g.running++
		go g.runBatches()
	}
	return nil
}

// abandon removes a call from the queue. If the call is in a batch, it cancels the batch unless other callers wait for
// it.
func (g *Group[T]) abandon(call *Call[T]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if call.batch == nil {
		g.queue.Remove(call.place)
		return
	}
	if call.batch.callers--; call.batch.callers == 0 {
		call.batch.cancel()
	}
}

// runBatches runs batches until the queue is empty.
func (g *Group[T]) runBatches() {
	for {
		runtime.Gosched() // lets callers that are ready to run join the batch
		ctx, calls, wait := g.nextBatch()
		if wait > 0 {
			time.Sleep(wait)
			continue
		}
		if len(calls) == 0 {
			return
		}
		g.runBatch(ctx, calls)
		calls[0].batch.cancel()
		for _, call := range calls {
			close(call.done)
		}
	}
}

// nextBatch takes the oldest calls from the queue, or returns how long they have to wait. If the queue is empty, the
// caller must end: the next call starts another goroutine.
func (g *Group[T]) nextBatch() (_ context.Context, calls []*Call[T], wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(g.queue.Len(), g.limits.Batch)
	if n == 0 {
		g.running--
		return nil, nil, 0
	}
	if wait := time.Until(g.next); wait > 0 {
		return nil, nil, wait
	}
	if g.limits.Pause > 0 {
		g.next = time.Now().Add(g.limits.Pause)
	}
	ctx, cancel := context.WithTimeout(context.Background(), g.limits.Timeout)
	common := &batch{callers: n, cancel: cancel}
	calls = make([]*Call[T], n)
	for i := range calls {
		calls[i] = g.queue.Remove(g.queue.Front()).(*Call[T])
		calls[i].batch = common
	}
	return ctx, calls, 0
}

// runBatch commits a batch. It turns a panic into an error of all calls, because a panic must end neither the program
// nor the goroutine that later calls depend on.
func (g *Group[T]) runBatch(ctx context.Context, calls []*Call[T]) {
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
	err = g.commit(ctx, calls)
}
