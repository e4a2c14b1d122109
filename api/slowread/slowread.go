// Package slowread keeps the last results of reads that take long, and reads them again in the background.
package slowread

import (
	"context"
	"sync"
	"time"
)

// Limits are those of Results.
type Limits struct {
	Timeout time.Duration // of a reading
	Pause   time.Duration // between two readings for a key, at least, unless the last result was useless
	Share   int           // the pause is also at least Share times the duration of the last reading
	Age     time.Duration // for which a result is kept
	Keys    int           // whose results are kept
	AtOnce  int           // readings at the same time
}

// Results are the last results of reads of one kind, by key. The methods may be called concurrently.
type Results[K comparable, V any] struct {
	limits Limits
	turns  chan struct{} // a semaphore

	mu       sync.Mutex
	keys     map[K]*entry[V]
	stopped  bool
	stop     context.Context
	end      context.CancelFunc
	readings sync.WaitGroup
}

// entry is guarded by the mu of Results.
type entry[V any] struct {
	last    *Result[V]    // nil until one was read
	err     error         // of the last reading
	reading chan struct{} // closed at the end of the reading under way, else nil
	next    time.Time     // no reading begins before
	used    time.Time
}

// Result is what was read.
type Result[V any] struct {
	Value V
	At    time.Time // when the reading began
}

// Use says whether a result may be returned, and whether it is read again.
type Use int

// The uses of a result.
const (
	Useless Use = iota // a caller waits for the next one
	Old                // a caller gets it while the next one is read
	Fresh              // nothing is read
)

// New returns Results. The caller must call Run.
func New[K comparable, V any](limits Limits) *Results[K, V] {
	r := &Results[K, V]{limits: limits, turns: make(chan struct{}, limits.AtOnce), keys: map[K]*entry[V]{}}
	r.stop, r.end = context.WithCancel(context.Background())
	return r
}

// Run returns when ctx is done and no reading is under way any more. Later calls get what is known.
func (r *Results[K, V]) Run(ctx context.Context) {
	<-ctx.Done()
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	r.end()
	r.readings.Wait()
}

// Of returns the last result for a key. If judge finds it useless, Of waits for the next result until ctx is done. Without a useful
// result it returns nil, and the error of the last reading if that failed. read outlives the call: it gets another context, which is
// canceled when Run ends.
func (r *Results[K, V]) Of(ctx context.Context, key K, judge func(Result[V]) Use, read func(context.Context) (V, error)) (*Result[V], error) {
	for {
		known, reading, err := r.look(key, judge, read)
		if known != nil || reading == nil || ctx.Err() != nil {
			return known, err
		}
		select {
		case <-reading:
		case <-ctx.Done():
		}
	}
}

// look returns what is known, and begins a reading if that is not fresh. reading is nil unless one is under way.
func (r *Results[K, V]) look(
	key K, judge func(Result[V]) Use, read func(context.Context) (V, error),
) (known *Result[V], reading chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	e := r.entry(key, now)
	use := Useless
	if e.last != nil && now.Sub(e.last.At) < r.limits.Age {
		use = judge(*e.last)
	}
	if use != Useless {
		known = e.last
	}
	pausing := now.Before(e.next) && (known != nil || e.err != nil)
	if use != Fresh && e.reading == nil && !r.stopped && !pausing {
		e.reading = make(chan struct{})
		r.readings.Go(func() { r.renew(e, read) })
	}
	return known, e.reading, e.err
}

// entry returns the entry of a key. If there are too many, it forgets the one that has not been used for the longest time.
func (r *Results[K, V]) entry(key K, now time.Time) *entry[V] {
	e := r.keys[key]
	if e == nil {
		if len(r.keys) >= r.limits.Keys {
			oldest := key
			for other, entry := range r.keys {
				if r.keys[oldest] == nil || entry.used.Before(r.keys[oldest].used) {
					oldest = other
				}
			}
			delete(r.keys, oldest)
		}
		e = &entry[V]{}
		r.keys[key] = e
	}
	e.used = now
	return e
}

// renew reads a result.
func (r *Results[K, V]) renew(e *entry[V], read func(context.Context) (V, error)) {
	ctx, cancel := context.WithTimeout(r.stop, r.limits.Timeout)
	defer cancel()
	began, value, err := time.Now(), *new(V), error(nil)
	select {
	case r.turns <- struct{}{}:
		began = time.Now()
		value, err = read(ctx)
		<-r.turns
	case <-ctx.Done():
		err = ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.err = err; err == nil {
		e.last = &Result[V]{value, began}
	}
	now := time.Now()
	e.next = now.Add(max(r.limits.Pause, time.Duration(r.limits.Share)*now.Sub(began)))
	close(e.reading)
	e.reading = nil
}
