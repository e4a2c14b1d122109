package reads

import (
	"context"
	"sync"
	"time"

	"linkstream/schema/turns"
)

// Limits are the limits of Results.
type Limits struct {
	Timeout time.Duration // of a reading
	Pause   time.Duration // between two readings for a key, at least, unless the last result was useless
	Share   int           // the pause is also at least Share times the duration of the last reading
	Age     time.Duration // for which a result is kept
	Keys    int           // whose results are kept
	AtOnce  int           // readings at the same time, one of each client; 0: any number
}

// Results are the last results of reads of one kind, by key. The methods may be called concurrently.
type Results[K comparable, V any] struct {
	limits Limits
	turns  *turns.Turns

	mu       sync.Mutex
	keys     map[K]*entry[V]
	stopped  bool
	stop     context.Context
	end      context.CancelFunc
	readings sync.WaitGroup
}

// entry is guarded by the mu of Results.
type entry[V any] struct {
	of      turns.Client
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

// NewResults returns Results. The caller must call Run.
func NewResults[K comparable, V any](limits Limits) *Results[K, V] {
	r := &Results[K, V]{limits: limits, keys: map[K]*entry[V]{}}
	if limits.AtOnce > 0 {
		r.turns = turns.New(turns.Limits{Places: limits.AtOnce, PlacesEach: 1})
	}
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

// Of returns the last result for a key. If judge finds it useless, Of waits for the next result until ctx is done.
// Without a useful result it returns nil, and the error of the last reading if that failed. Readings take the turns
// of a client. read outlives the call: it gets another context, which is canceled when Run ends.
func (r *Results[K, V]) Of(
	ctx context.Context, of turns.Client, key K, judge func(Result[V]) Use, read func(context.Context) (V, error),
) (*Result[V], error) {
	for {
		known, reading, err := r.look(of, key, judge, read)
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
	of turns.Client, key K, judge func(Result[V]) Use, read func(context.Context) (V, error),
) (known *Result[V], reading chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	e := r.entry(of, key, now)
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
		r.readings.Go(func() { r.renew(of, e, read) })
	}
	return known, e.reading, e.err
}

// entry returns the entry of a key.
func (r *Results[K, V]) entry(of turns.Client, key K, now time.Time) *entry[V] {
	e := r.keys[key]
	if e == nil {
		if len(r.keys) >= r.limits.Keys {
			r.makeRoom()
		}
		e = &entry[V]{of: of}
		r.keys[key] = e
	}
	e.used = now
	return e
}

// makeRoom forgets the entry that has not been used for the longest time, of the client that has the most entries.
func (r *Results[K, V]) makeRoom() {
	entries, most := map[turns.Client]int{}, 0
	for _, e := range r.keys {
		entries[e.of]++
		most = max(most, entries[e.of])
	}
	var oldest K
	var found *entry[V]
	for key, e := range r.keys {
		if entries[e.of] == most && (found == nil || e.used.Before(found.used)) {
			oldest, found = key, e
		}
	}
	delete(r.keys, oldest)
}

// renew reads a result.
func (r *Results[K, V]) renew(of turns.Client, e *entry[V], read func(context.Context) (V, error)) {
	ctx, cancel := context.WithTimeout(r.stop, r.limits.Timeout)
	defer cancel()
	began, value, err := r.read(ctx, of, read)
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

// read calls f when it is the client's turn, and returns when that was.
func (r *Results[K, V]) read(
	ctx context.Context, of turns.Client, f func(context.Context) (V, error),
) (began time.Time, value V, err error) {
	began = time.Now()
	if r.turns != nil {
		if err = r.turns.Take(ctx, of, 1); err != nil {
			return began, value, err
		}
		defer r.turns.Leave(of)
		began = time.Now()
	}
	value, err = f(ctx)
	return began, value, err
}
