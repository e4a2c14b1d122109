package redirect

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// front is a table of what was found in ristretto a moment ago. To look there takes one read; ristretto takes a lock, a
// map and a note of the request, from which it learns what is worth keeping. So it hears of an entry every few seconds,
// which tells the popular ones from the others as well, and all requests in between are answered from here.
type front[V value] struct {
	slots []atomic.Pointer[entry[V]] // by the first hash of the key; the last one found there has the slot
	drops atomic.Uint64              // how often an entry was dropped
}

const (
	frontBytes = 1 << 10 // of cache to a slot
	heardEvery = 4       // seconds
)

func newFront[V value](cacheBytes int64) *front[V] {
	return &front[V]{slots: make([]atomic.Pointer[entry[V]], cacheBytes/frontBytes)}
}

func (f *front[V]) slot(hash uint64) *atomic.Pointer[entry[V]] {
	i, _ := bits.Mul64(hash, uint64(len(f.slots)))
	return &f.slots[i]
}

// get returns the entry of a key, unless its time is over or ristretto is to hear of it.
func (f *front[V]) get(hash, check uint64, now time.Time) *entry[V] {
	e := f.slot(hash).Load()
	if e == nil || e.check != check || second(now) >= e.unheard.Load() || now.UnixNano() >= e.expires.Load() {
		return nil
	}
	return e
}

// put makes e what get returns, unless there was a drop since drops had the value before: it may have been of this entry
// when it was neither here nor in ristretto.
func (f *front[V]) put(hash uint64, e *entry[V], now time.Time, before uint64) {
	e.unheard.Store(second(now) + heardEvery)
	slot := f.slot(hash)
	if slot.Load() != e {
		slot.Store(e)
	}
	if f.drops.Load() != before {
		slot.CompareAndSwap(e, nil)
	}
}

// remove forgets the entry of a key and returns it, or nil.
func (f *front[V]) remove(hash, check uint64) *entry[V] {
	slot := f.slot(hash)
	if e := slot.Load(); e != nil && e.check == check && slot.CompareAndSwap(e, nil) {
		return e
	}
	return nil
}
