package resolve

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// hotTable holds the entries that were found in the shards a moment ago. A look-up here is one atomic read, whereas
// ristretto takes a lock, reads a map and records the request, from which it learns what is worth keeping. Ristretto
// therefore sees one request per entry every touchInterval, which still tells popular entries from others. The table
// answers all requests in between.
type hotTable[V value] struct {
	slots []atomic.Pointer[entry[V]] // by the first hash of the key; a slot holds the entry that was put there last
	drops atomic.Uint64              // counts Drops of any entry
}

const (
	bytesPerSlot  = 1 << 10 // of the cache
	touchInterval = 4       // seconds
)

func newHotTable[V value](cacheBytes int64) *hotTable[V] {
	return &hotTable[V]{slots: make([]atomic.Pointer[entry[V]], cacheBytes/bytesPerSlot)}
}

func (t *hotTable[V]) slot(hash uint64) *atomic.Pointer[entry[V]] {
	i, _ := bits.Mul64(hash, uint64(len(t.slots)))
	return &t.slots[i]
}

// get returns the entry of a key if it is fresh and ristretto need not see this request, otherwise nil.
func (t *hotTable[V]) get(hash, check uint64, now time.Time) *entry[V] {
	e := t.slot(hash).Load()
	if e == nil || e.check != check || second(now) >= e.touchAfter.Load() || !e.state.fresh(now) {
		return nil
	}
	return e
}

// put stores e, which was found in the shards after t.drops had the value drops. The table has it until it is to be renewed, in Unix
// nanoseconds, but not for longer than touchInterval. If any entry was dropped since, e is not
// kept: the Drop may have been for e, at a time when e was neither in the table nor in the shards.
func (t *hotTable[V]) put(hash uint64, e *entry[V], now time.Time, renewAt int64, drops uint64) {
	after := second(now) + touchInterval
	if renewal := uint32(renewAt/int64(time.Second)) + 1; renewal > second(now) {
		after = min(after, renewal)
	}
	e.touchAfter.Store(after)
	slot := t.slot(hash)
	if slot.Load() != e {
		slot.Store(e)
	}
	if t.drops.Load() != drops {
		slot.CompareAndSwap(e, nil)
	}
}

// each calls visit for all entries.
func (t *hotTable[V]) each(visit func(*entry[V])) {
	for i := range t.slots {
		if e := t.slots[i].Load(); e != nil {
			visit(e)
		}
	}
}

// remove removes the entry of a key and returns it, or nil if the table does not hold it.
func (t *hotTable[V]) remove(hash, check uint64) *entry[V] {
	slot := t.slot(hash)
	if e := slot.Load(); e != nil && e.check == check && slot.CompareAndSwap(e, nil) {
		return e
	}
	return nil
}
