package resolve

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// times holds a time for each of many keys, in memory of a fixed size. A full set loses the key with the earliest
// time. Reads take no lock; callers of put and clear hold one.
type times struct{ sets []timeSet }

const ways = 4

// timeSet fills a cache line.
type timeSet [ways]struct {
	check atomic.Uint64 // second hash of the key
	until atomic.Int64  // Unix nanoseconds; 0 if the slot is free
}

// newTimes returns a table of at least this many bytes.
func newTimes(bytes int64) *times {
	const setBytes = ways * 16
	return &times{sets: make([]timeSet, (bytes+setBytes-1)/setBytes)}
}

func (t *times) set(hash uint64) *timeSet {
	i, _ := bits.Mul64(hash, uint64(len(t.sets)))
	return &t.sets[i]
}

// get returns the time of a key, or false if the table does not hold it.
func (t *times) get(hash, check uint64) (until int64, ok bool) {
	set := t.set(hash)
	for i := range set {
		slot := &set[i]
		// put sets until to 0 before it changes check. So until belongs to check if it is the same before and after.
		until = slot.until.Load()
		if slot.check.Load() == check && until != 0 && slot.until.Load() == until {
			return until, true
		}
	}
	return 0, false
}

// after reports whether the time of a key is after now.
func (t *times) after(hash, check uint64, now time.Time) bool {
	until, ok := t.get(hash, check)
	return ok && now.UnixNano() < until
}

// put sets the time of a key.
func (t *times) put(hash, check uint64, until int64) {
	set := t.set(hash)
	slot := &set[0]
	for i := range set {
		if set[i].check.Load() == check {
			slot = &set[i]
			break
		}
		if set[i].until.Load() < slot.until.Load() {
			slot = &set[i]
		}
	}
	slot.until.Store(0)
	slot.check.Store(check)
	slot.until.Store(until)
}

// clear removes a key.
func (t *times) clear(hash, check uint64) {
	set := t.set(hash)
	for i := range set {
		if set[i].check.Load() == check {
			set[i].until.Store(0)
		}
	}
}

// clearAll removes all keys.
func (t *times) clearAll() {
	for i := range t.sets {
		for k := range t.sets[i] {
			t.sets[i][k].until.Store(0)
		}
	}
}
