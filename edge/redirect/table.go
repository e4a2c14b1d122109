package redirect

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"
)

const (
	bucketLen = 8
	// bytesPerBucket is about what an entry takes, so that there are as many buckets as entries.
	bytesPerBucket = 256
	// maxUses is how many visits of the hand an entry can outlast without being found in between.
	maxUses = 3
	// maxSpared bounds the work of one eviction: the hand spares no more entries than that.
	maxSpared = 64
)

// table is a hash table of a bounded number of bytes. Who looks for an entry takes no lock, waits for nothing and
// writes nothing to memory that others read, but for the few times that an entry's uses are counted.
//
// What does not fit any more is evicted by a clock with counters (GCLOCK; A. J. Smith, 1978): a hand goes around the
// buckets, takes a use off every entry and removes the first one that has none left. A new entry has none, so that a
// flood of links that are asked for once drives each other out and not the popular ones.
type table[V any] struct {
	seed    maphash.Seed
	buckets []atomic.Pointer[entry[V]] // heads of lists
	mask    uint64
	budget  int64 // of bytes, for entries

	mu   sync.Mutex // held by whoever changes buckets or lists
	used int64      // bytes of all entries
	hand uint64     // a bucket
}

func newTable[V any](maxBytes int64) *table[V] {
	n := uint64(1) << bits.Len64(uint64(max(maxBytes/bytesPerBucket-1, 0)))
	return &table[V]{
		seed:    maphash.MakeSeed(),
		buckets: make([]atomic.Pointer[entry[V]], n),
		mask:    n - 1,
		budget:  max(maxBytes-int64(n)*bucketLen, 0),
	}
}

// get returns the entry at key. It keeps no reference to key.
func (t *table[V]) get(key []byte) *entry[V] {
	hash := maphash.Bytes(t.seed, key)
	// Lists are changed while they are followed. A removed entry still leads on to those that followed it, so that one
	// that stays in the table is always found.
	for e := t.buckets[hash&t.mask].Load(); e != nil; e = e.next.Load() {
		if e.tag == tag(hash) && e.key == string(key) {
			if n := e.uses.Load(); n < maxUses {
				e.uses.Store(n + 1) // one of two at the same time may be lost
			}
			return e
		}
	}
	return nil
}

// set puts a new entry at its key, in the place of what was there. The table may evict it at any time.
func (t *table[V]) set(e *entry[V]) {
	hash := maphash.String(t.seed, e.key)
	e.tag = tag(hash)
	t.mu.Lock()
	defer t.mu.Unlock()
	place, old := t.find(e.key, hash)
	if old != nil {
		e.next.Store(old.next.Load())
		e.uses.Store(old.uses.Load())
		t.used -= old.bytes()
	}
	place.Store(e)
	for t.used += e.bytes(); t.used > t.budget; {
		t.evict()
	}
}

// tag is what an entry keeps of a hash: bits of which its bucket says nothing.
func tag(hash uint64) uint32 { return uint32(hash >> 32) }

// delete removes the entry at key.
func (t *table[V]) delete(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if place, e := t.find(key, maphash.String(t.seed, key)); e != nil {
		t.remove(place, e)
	}
}

// find returns the entry at key and the pointer to it or, if there is none, the last pointer of its list. Callers hold
// mu.
func (t *table[V]) find(key string, hash uint64) (place *atomic.Pointer[entry[V]], e *entry[V]) {
	place = &t.buckets[hash&t.mask]
	for e = place.Load(); e != nil && (e.tag != tag(hash) || e.key != key); e = place.Load() {
		place = &e.next
	}
	return place, e
}

func (t *table[V]) remove(place *atomic.Pointer[entry[V]], e *entry[V]) {
	place.Store(e.next.Load()) // e itself leads on: it may be where a get is
	t.used -= e.bytes()
}

// evict removes an entry, at most one at each place the hand comes to, lest others there are visited twice. There is an
// entry. Callers hold mu.
func (t *table[V]) evict() {
	for spared := 0; ; {
		place := &t.buckets[t.hand]
		t.hand = (t.hand + 1) & t.mask
		for e := place.Load(); e != nil; e = place.Load() {
			n := e.uses.Load()
			if n == 0 || spared == maxSpared {
				t.remove(place, e)
				return
			}
			e.uses.Store(n - 1)
			spared++
			place = &e.next
		}
	}
}

// bytes returns what the entry takes, with all it refers to.
func (e *entry[V]) bytes() int64 { return allocated(int(unsafe.Sizeof(*e))) + allocated(int(e.refers)) }

// allocated returns how many bytes the allocator takes for n at most: it has sizes in steps of 16 and, from 256 on, of
// an eighth.
func allocated(n int) int64 {
	if n > 256 {
		n += n / 8
	}
	return int64(n+15) &^ 15
}
