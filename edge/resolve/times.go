package resolve

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// times holds a time and a small number for each of many keys, in memory of a fixed size. A full set loses the key with
// the earliest time. Reads take no lock; callers of put hold one.
type times struct{ sets []timeSet }

const (
	ways    = 4
	numbers = 15 // the bits of a number
)

// timeSet fills a cache line.
type timeSet [ways]struct {
	check atomic.Uint64 // second hash of the key, the number in its lowest bits
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

// after returns the number of a key whose time is after now, or false.
func (t *times) after(hash, check uint64, now time.Time) (number int, ok bool) {
	set := t.set(hash)
	for i := range set {
		slot := &set[i]
		// put sets until to 0 before it changes check. So until belongs to check if it is the same before and after.
		until, found := slot.until.Load(), slot.check.Load()
		if found|numbers == check|numbers && until != 0 && slot.until.Load() == until {
			return int(found & numbers), now.UnixNano() < until
		}
	}
	return 0, false
}

// put sets the time and the number of a key.
func (t *times) put(hash, check uint64, until time.Time, number int) {
	set := t.set(hash)
	slot := &set[0]
	for i := range set {
		if set[i].check.Load()|numbers == check|numbers {
			slot = &set[i]
			break
		}
		if set[i].until.Load() < slot.until.Load() {
			slot = &set[i]
		}
	}
	slot.until.Store(0)
	slot.check.Store(check&^numbers | uint64(number))
	slot.until.Store(until.UnixNano())
}
