package resolve

import (
	"bytes"
	"math"
	"sync/atomic"
	"time"
	"unsafe"
)

// entryOverhead is what ristretto needs per entry: a slot of 64 bytes in its map of values and one of 18 bytes in its map
// of costs. A third of the slots is empty, in a small cache half of them.
const entryOverhead = 160

// value is the fixed part of an entry. It holds no pointers, see newEntry.
type value interface{ domainID | linkIDs }

// entry is the answer to one key. Ristretto keeps only hashes of keys, so the key itself is not stored. There may be
// millions of entries.
type entry[V value] struct {
	check        uint64 // second hash of the key
	state        state
	value        V
	refreshAfter atomic.Uint32 // Unix seconds; a stale entry is not looked up again before
	touchAfter   atomic.Uint32 // Unix seconds; requests for a hot entry do not reach ristretto before
	length       uint32        // of the bytes that follow the entry in memory
	reviewed     atomic.Uint32 // see review
	saved        atomic.Uint64 // number of the record in the snapshot that has the same; 0: none
}

// newEntry returns an entry with a copy of bytes behind it in the same allocation. Made from []uint64, the allocation
// holds no pointers: the garbage collector does not scan it, which halves the work of a cycle. One allocation takes 16
// bytes less than two.
func newEntry[V value](v V, bytes []byte) *entry[V] {
	words := make([]uint64, (int(unsafe.Sizeof(entry[V]{}))+len(bytes)+7)/8) // aligned for the entry's words
	e := (*entry[V])(unsafe.Pointer(unsafe.SliceData(words)))
	e.value, e.length = v, uint32(len(bytes))
	copy(e.bytes(), bytes)
	return e
}

// bytes returns the bytes that were given to newEntry. The caller must not modify them.
func (e *entry[V]) bytes() []byte {
	if e.length == 0 {
		return nil // a pointer past the end of the allocation would point to another object
	}
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(e), unsafe.Sizeof(*e))), e.length)
}

// equals reports whether two entries give the same answer.
func (e *entry[V]) equals(other *entry[V]) bool {
	return e.value == other.value && bytes.Equal(e.bytes(), other.bytes())
}

// cost returns the memory that the entry takes, in bytes.
func (e *entry[V]) cost() int64 { return entryOverhead + int64(unsafe.Sizeof(*e)) + int64(e.length) }

// state says whether an entry is fresh, stale or dropped, in one word that requests read without a lock:
//
//	> 1           fresh until this Unix time in nanoseconds, then stale
//	1             unproven: restored, and treated as if it was dropped until it is proven to be true
//	<= 0 and even stale
//	< 0 and odd   dropped
//	the smallest  retired: dropped for good, and not found any more, since a later look-up has replaced it
//
// After the entry has been fresh, every change makes the word smaller, and an unproven entry becomes fresh at most once. So a
// word that is equal to an earlier one means that there was no Drop in between.
type state struct{ word atomic.Int64 }

// setFresh makes the entry fresh until a time. It is called once, before others can see the entry.
func (s *state) setFresh(until time.Time) { s.word.Store(until.UnixNano()) }

const (
	unproven = 1
	retired  = math.MinInt64 + 1
)

// setUnproven makes the entry unproven. It is called once, before others can see the entry.
func (s *state) setUnproven() { s.word.Store(unproven) }

// isUnproven reports whether the entry is unproven.
func (s *state) isUnproven() bool { return s.word.Load() == unproven }

// prove makes an unproven entry fresh until a time.
func (s *state) prove(until int64) { s.word.CompareAndSwap(unproven, max(until, unproven+1)) }

// everDropped reports whether the entry was ever dropped.
func (s *state) everDropped() bool { return s.word.Load() < 0 }

// until returns until when a fresh entry is fresh, in Unix nanoseconds.
func (s *state) until() int64 { return s.word.Load() }

// fresh reports whether the entry is fresh at a time.
func (s *state) fresh(now time.Time) bool { return now.UnixNano() < s.word.Load() }

// drop makes the entry dropped.
func (s *state) drop() {
	for {
		word := s.word.Load()
		if word == retired {
			return
		}
		below := min(word, 0)
		if s.word.CompareAndSwap(word, below-1-below&1) { // the next odd number below
			return
		}
	}
}

// retire makes the entry retired.
func (s *state) retire() { s.word.Store(retired) }

// isRetired reports whether the entry is retired.
func (s *state) isRetired() bool { return s.word.Load() == retired }

// dropped reports whether the entry is dropped, retired or unproven, and returns a token of this state for setStale.
func (s *state) dropped() (token int64, ok bool) {
	word := s.word.Load()
	return word, word == unproven || word < 0 && word&1 != 0
}

// setStale makes a dropped or unproven entry stale, unless it is retired or its state has changed since dropped returned the token.
func (s *state) setStale(token int64) {
	if token != retired {
		s.word.CompareAndSwap(token, token-1)
	}
}

func second(t time.Time) uint32 { return uint32(t.Unix()) }
