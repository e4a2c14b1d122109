package redirect

import (
	"sync/atomic"
	"time"
	"unsafe"
)

// entryOverhead is what an entry takes besides its own bytes: a slot of 64 in ristretto's map of values and one of 18 in
// its map of costs, a third of them empty or, in a small cache, half of them.
const entryOverhead = 160

// value is what an entry has besides bytes. It has no pointers, see newEntry.
type value interface{ domainID | linkIDs }

// entry is what ristretto keeps, which keeps hashes of the keys. There may be millions of entries.
type entry[V value] struct {
	check   uint64       // the second hash of the key
	expires atomic.Int64 // Unix nanoseconds; below zero: dropped, and each drop makes it less
	value   V
	renewal atomic.Uint32 // Unix seconds; nobody renews the entry before
	unheard atomic.Uint32 // Unix seconds; ristretto is not told of it before
	length  uint32        // of the bytes that follow
	found   bool
}

// newEntry returns an entry with its bytes in the same piece of memory. The garbage collector need not look into it, so
// that a cycle has half as much to do, and it takes 16 bytes less than two pieces.
func newEntry[V value](found bool, v V, bytes []byte) *entry[V] {
	words := make([]uint64, (int(unsafe.Sizeof(entry[V]{}))+len(bytes)+7)/8) // for alignment
	e := (*entry[V])(unsafe.Pointer(unsafe.SliceData(words)))
	e.value, e.found, e.length = v, found, uint32(len(bytes))
	copy(e.bytes(), bytes)
	return e
}

// bytes returns the bytes that were given to newEntry. They must not be changed.
func (e *entry[V]) bytes() []byte {
	if e.length == 0 {
		return nil // a pointer behind the entry would be one to another piece of memory
	}
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(e), unsafe.Sizeof(*e))), e.length)
}

// cost is the memory that an entry takes.
func (e *entry[V]) cost() int64 { return entryOverhead + int64(unsafe.Sizeof(*e)) + int64(e.length) }

// drop is called under the cache's mu.
func (e *entry[V]) drop() {
	if e != nil {
		e.expires.Store(min(e.expires.Load(), 0) - 1)
	}
}

func second(t time.Time) uint32 { return uint32(t.Unix()) }
