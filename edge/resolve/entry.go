package resolve

import (
	"sync/atomic"
	"time"
	"unsafe"
)

// entryOverhead is what ristretto needs per entry: a slot of 64 bytes in its map of values and one of 18 bytes in its
// map of costs. Both maps grow in steps, so up to half of the slots are empty.
const entryOverhead = 176

// value is the fixed part of an entry. It holds no pointers, see newEntry.
type value interface{ domainID | linkIDs }

// entry is the answer to one key, and the key, which ristretto does not keep. There may be millions of entries.
type entry[V value] struct {
	state       state
	value       V
	lookUpAfter atomic.Uint32 // Unix seconds; the entry is not looked up again before, unless it is dropped
	lengths     uint32        // of the answer, shifted by keyBits, and of the key, which follow the entry in memory
	listed      atomic.Bool   // one of its locations leads to a host on the blocklist
	paths       paths         // of a link; unchanged once others can see the entry
}

const keyBits = 8 // of lengths: the longest key is a host

// newEntry returns an entry with copies of the key and the answer behind it in the same allocation. Made from []uint64,
// the allocation holds no pointers: the garbage collector does not scan it, which halves the work of a cycle. One
// allocation takes 16 bytes less than two.
func newEntry[V value](v V, key, answer []byte) *entry[V] {
	size := int(unsafe.Sizeof(entry[V]{})) + len(key) + len(answer)
	words := make([]uint64, (size+7)/8) // aligned for the entry's words
	e := (*entry[V])(unsafe.Pointer(unsafe.SliceData(words)))
	e.value, e.lengths = v, uint32(len(answer))<<keyBits|uint32(len(key))
	copy(e.key(), key)
	copy(e.answer(), answer)
	return e
}

// key returns the key that was given to newEntry. The caller must not modify it.
func (e *entry[V]) key() []byte { return e.behind(0, e.lengths&(1<<keyBits-1)) }

// answer returns the answer that was given to newEntry. The caller must not modify it.
func (e *entry[V]) answer() []byte { return e.behind(e.lengths&(1<<keyBits-1), e.lengths>>keyBits) }

// behind returns length bytes at an offset behind the entry.
func (e *entry[V]) behind(offset, length uint32) []byte {
	if length == 0 {
		return nil // a pointer past the end of the allocation would point to another object
	}
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(e), unsafe.Sizeof(*e)+uintptr(offset))), length)
}

// takeTurn reports whether a request at a time may look up the entry's key: no other one may before next.
func (e *entry[V]) takeTurn(now time.Time, next uint32) bool {
	after := e.lookUpAfter.Load()
	return second(now) >= after && e.lookUpAfter.CompareAndSwap(after, next)
}

// cost returns the memory that the entry takes, in bytes.
func (e *entry[V]) cost() int64 {
	return entryOverhead + int64(unsafe.Sizeof(*e)) + int64(len(e.key())+len(e.answer()))
}

// state says whether an entry is fresh, stale or dropped, in one word that requests read without a lock:
//
//	above 0        fresh until this Unix time in nanoseconds, then stale
//	-1             restored: treated as dropped until confirm makes it fresh
//	odd, below -1  dropped: the next request looks the key up
//	even, below 0  failed: dropped or restored, and a look-up has failed since
//
// Every change of an entry that was dropped makes the word smaller. So a word that is equal to an earlier one means
// that there was no drop in between, and a restored entry becomes fresh at most once.
type state struct{ word atomic.Int64 }

const restored = -1

// setFresh makes the entry fresh until a time. It is called once, before others can see the entry.
func (s *state) setFresh(until time.Time) { s.word.Store(until.UnixNano()) }

// setRestored makes the entry restored. It is called once, before others can see the entry.
func (s *state) setRestored() { s.word.Store(restored) }

// confirm makes a restored entry fresh until a time, unless it was dropped or looked up since.
func (s *state) confirm(until time.Time) { s.word.CompareAndSwap(restored, until.UnixNano()) }

// fresh reports whether the entry is fresh at a time.
func (s *state) fresh(now time.Time) bool { return now.UnixNano() < s.word.Load() }

// timed reports whether nothing but time makes the entry stale: it is neither restored nor was dropped.
func (s *state) timed() bool { return s.word.Load() > 0 }

// drop makes the entry dropped.
func (s *state) drop() {
	for {
		word := s.word.Load()
		below := min(word, restored)
		if s.word.CompareAndSwap(word, below-1-below&1) { // the next odd number below
			return
		}
	}
}

// wasDropped reports whether the entry was ever dropped.
func (s *state) wasDropped() bool { return s.word.Load() < restored-1 }

// mustLookUp reports whether the entry is dropped or restored, and returns a token of this state for setFailed.
func (s *state) mustLookUp() (token int64, yes bool) {
	word := s.word.Load()
	return word, word < 0 && word&1 != 0
}

// setFailed makes a dropped or restored entry failed, unless its state has changed since mustLookUp returned the token.
func (s *state) setFailed(token int64) { s.word.CompareAndSwap(token, token-1) }

func second(t time.Time) uint32 { return uint32(t.Unix()) }
