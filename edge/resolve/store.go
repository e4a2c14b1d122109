package resolve

import (
	"fmt"
	"hash/maphash"
	"time"

	"github.com/dgraph-io/ristretto/v2"
)

// store holds entries by the hashes of their keys. Ristretto decides which of them are worth keeping.
//
// Two keys with equal hashes would be one key here. Nobody can construct such keys: the 128 bits depend on seeds that never leave the
// process. Of two keys with the same first hash, the store has the one that was set last.
type store[V value] struct {
	entries       *ristretto.Cache[uint64, *entry[V]]
	first, second maphash.Seed
}

// newStore returns a store of maxBytes. A 32nd of them holds ristretto's frequency counters, 3 to 4 bytes each, which is two or three
// per entry.
func newStore[V value](maxBytes int64) (store[V], error) {
	entries, err := ristretto.NewCache(&ristretto.Config[uint64, *entry[V]]{
		NumCounters:        maxBytes / 32 / 4,
		MaxCost:            maxBytes / 32 * 31,
		BufferItems:        256,  // requests of a P until its buffer is full, which wakes up a goroutine; fuller ones arrive too late to keep popular links
		IgnoreInternalCost: true, // entryOverhead includes it
		KeyToHash:          func(hash uint64) (uint64, uint64) { return hash, 0 },
		// Entries have no TTL of ristretto's, so that its search for expired ones can be rare.
		TtlTickerDurationInSec: int64(24 * time.Hour / time.Second),
	})
	if err != nil {
		return store[V]{}, fmt.Errorf("create cache of %d bytes: %w", maxBytes, err)
	}
	return store[V]{entries, maphash.MakeSeed(), maphash.MakeSeed()}, nil
}

// hash returns two independent hashes of a key.
func (s *store[V]) hash(key []byte) (hash, check uint64) {
	return maphash.Bytes(s.first, key), maphash.Bytes(s.second, key)
}

// get returns the entry of a key, or nil. Ristretto counts requests to find out what is worth keeping. It must not hear of keys that do
// not exist: a flood of them would age the counts of popular links.
func (s *store[V]) get(hash, check uint64) *entry[V] {
	if _, ok := s.entries.GetTTL(hash); !ok { // which does not count
		return nil
	}
	return s.request(hash, check)
}

// request is get for a key that exists, which ristretto counts in any case.
func (s *store[V]) request(hash, check uint64) *entry[V] {
	if e, ok := s.entries.Get(hash); ok && e.check == check {
		return e
	}
	return nil
}

// set offers an entry to ristretto, which may decline it. Get finds it once wait has returned.
func (s *store[V]) set(hash uint64, e *entry[V]) { s.entries.Set(hash, e, e.cost()) }

// wait waits until ristretto has dealt with what was set before.
func (s *store[V]) wait() { s.entries.Wait() }

// remove removes the entry of a key.
func (s *store[V]) remove(hash uint64) { s.entries.Del(hash) }

// each calls visit for all entries, among them some that are set or removed meanwhile. Visit must not wait.
func (s *store[V]) each(visit func(*entry[V])) {
	s.entries.IterValues(func(e *entry[V]) bool {
		visit(e)
		return false
	})
}

// close removes all entries and frees the memory. It is idempotent.
func (s *store[V]) close() { s.entries.Close() }
