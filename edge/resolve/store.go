package resolve

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/dgraph-io/ristretto/v2"
)

// store holds entries by the hashes of their keys. Ristretto decides which of them are worth keeping.
//
// Of two keys with the same hash, the store has the one that was set last. Nobody can construct such keys: hashes
// depend on a seed that never leaves the process.
type store[V value] struct {
	entries *ristretto.Cache[uint64, *entry[V]]
	seed    maphash.Seed
}

// newStore returns a store of maxBytes. A 32nd of them holds ristretto's frequency counters, 3 to 4 bytes each, which
// is two or three per entry.
func newStore[V value](maxBytes int64) (store[V], error) {
	entries, err := ristretto.NewCache(&ristretto.Config[uint64, *entry[V]]{
		NumCounters: maxBytes / 32 / 4,
		MaxCost:     maxBytes / 32 * 31,
		// Requests of a P until its buffer is full, which wakes up a goroutine. Larger buffers arrive too late to keep
		// popular links.
		BufferItems:        256,
		IgnoreInternalCost: true, // entryOverhead includes it
		KeyToHash:          func(hash uint64) (uint64, uint64) { return hash, 0 },
		// Entries have no TTL of ristretto's, so that its search for expired ones can be rare.
		TtlTickerDurationInSec: int64(24 * time.Hour / time.Second),
	})
	if err != nil {
		return store[V]{}, fmt.Errorf("create cache of %d bytes: %w", maxBytes, err)
	}
	return store[V]{entries, maphash.MakeSeed()}, nil
}

func (s *store[V]) hash(key []byte) uint64 { return maphash.Bytes(s.seed, key) }

// get returns the entry of a key with its hash, or nil. Ristretto counts requests to find out what is worth keeping. It
// must not count requests for keys that do not exist: a flood of them would age the counts of popular links.
func (s *store[V]) get(hash uint64, key []byte) *entry[V] {
	if _, ok := s.entries.GetTTL(hash); !ok { // which does not count
		return nil
	}
	return s.request(hash, key)
}

// request is get for a key that exists, which ristretto counts in any case.
func (s *store[V]) request(hash uint64, key []byte) *entry[V] {
	if e, ok := s.entries.Get(hash); ok && bytes.Equal(e.key(), key) {
		return e
	}
	return nil
}

// set offers an entry to ristretto, which may decline it. Get finds it once wait has returned.
func (s *store[V]) set(e *entry[V]) { s.entries.Set(s.hash(e.key()), e, e.cost()) }

// wait waits until ristretto has dealt with what was set before.
func (s *store[V]) wait() { s.entries.Wait() }

// remove removes the entry of a key.
func (s *store[V]) remove(hash uint64) { s.entries.Del(hash) }

// each calls visit for all entries. It may miss entries that are set or removed while it runs. Visit must not wait.
func (s *store[V]) each(visit func(*entry[V])) {
	s.entries.IterValues(func(e *entry[V]) bool {
		visit(e)
		return false
	})
}

// entriesPerChunk bounds how long collect holds a lock of ristretto's to make room for entries.
const entriesPerChunk = 4 << 10

// collect returns all entries, as each does.
func (s *store[V]) collect() (chunks [][]*entry[V]) {
	var chunk []*entry[V]
	s.each(func(e *entry[V]) {
		if len(chunk) == cap(chunk) {
			chunks = append(chunks, chunk)
			chunk = make([]*entry[V], 0, entriesPerChunk)
		}
		chunk = append(chunk, e)
	})
	return append(chunks, chunk)
}

// close removes all entries and frees the memory. It is idempotent.
func (s *store[V]) close() { s.entries.Close() }
