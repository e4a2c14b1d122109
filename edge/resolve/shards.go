package resolve

import (
	"fmt"
	"math"
	"time"

	"github.com/dgraph-io/ristretto/v2"
)

// shards are ristretto caches that divide the keys by their first hash, which is all that ristretto knows of a key. All maps of a
// single cache would double at the same number of entries and be half empty afterwards. Shards of different sizes double one
// after the other.
type shards[V value] []shard[V]

type shard[V value] struct {
	cache *ristretto.Cache[uint64, *entry[V]]
	last  uint64 // largest hash that belongs to this shard
}

// newShards returns count shards for maxBytes in total. Their sizes rise evenly from one to nearly two, on a logarithmic
// scale. A 32nd of the bytes holds ristretto's frequency counters, 3 to 4 bytes each, which is two or three per entry.
func newShards[V value](count int, maxBytes int64, evicted func(hash uint64, e *entry[V])) (shards[V], error) {
	weight := func(i int) float64 { return math.Exp2(float64(i) / float64(count)) }
	var sum, end float64
	for i := range count {
		sum += weight(i)
	}
	var s shards[V]
	for i := range count {
		share := weight(i) / sum
		bytes := share * float64(maxBytes)
		end += share
		cache, err := ristretto.NewCache(&ristretto.Config[uint64, *entry[V]]{
			NumCounters:        int64(bytes / 32 / 4),
			MaxCost:            int64(bytes / 32 * 31),
			BufferItems:        64,
			IgnoreInternalCost: true, // entryOverhead includes it
			KeyToHash:          func(hash uint64) (uint64, uint64) { return hash, 0 },
			// Entries have no TTL of ristretto's, so that its search for those that are over can be rare.
			TtlTickerDurationInSec: int64(24 * time.Hour / time.Second),
			OnEvict: func(item *ristretto.Item[*entry[V]]) {
				if item.Value != nil { // nil if it was deleted meanwhile
					evicted(item.Key, item.Value)
				}
			},
		})
		if err != nil {
			s.close()
			return nil, fmt.Errorf("create shard of %.0f bytes: %w", bytes, err)
		}
		last := uint64(math.MaxUint64)
		if i < count-1 {
			last = uint64(end * math.MaxUint64)
		}
		s = append(s, shard[V]{cache, last})
	}
	return s, nil
}

// of returns the shard of a hash.
func (s shards[V]) of(hash uint64) *ristretto.Cache[uint64, *entry[V]] {
	i := 0
	for hash > s[i].last {
		i++
	}
	return s[i].cache
}

// get returns the entry of a key, or nil. Ristretto counts the requests for a key, also for one that it does not have, to find out
// what is worth keeping. It must not hear of keys that do not exist: a flood of them would make it forget its counts.
func (s shards[V]) get(hash, check uint64) *entry[V] {
	if _, ok := s.of(hash).GetTTL(hash); !ok { // which does not count
		return nil
	}
	return s.request(hash, check)
}

// request is get for a key that exists, which ristretto counts in any case.
func (s shards[V]) request(hash, check uint64) *entry[V] {
	if e, ok := s.of(hash).Get(hash); ok && e.check == check {
		return e
	}
	return nil
}

// set offers the entry of a key to ristretto, which may decline it.
func (s shards[V]) set(hash uint64, e *entry[V]) { s.of(hash).Set(hash, e, e.cost()) }

// wait waits until get returns what was set before.
func (s shards[V]) wait() {
	for _, shard := range s {
		shard.cache.Wait()
	}
}

// capacity returns how many bytes of entries there is room for.
func (s shards[V]) capacity() (bytes int64) {
	for _, shard := range s {
		bytes += shard.cache.MaxCost()
	}
	return bytes
}

// each calls visit for all entries, among them some that are added or removed meanwhile. Visit must not wait.
func (s shards[V]) each(visit func(*entry[V])) {
	for _, shard := range s {
		shard.cache.IterValues(func(e *entry[V]) bool {
			visit(e)
			return false
		})
	}
}

// close evicts all entries, and with them those of the hot table, and frees the memory. It is idempotent.
func (s shards[V]) close() {
	for _, shard := range s {
		shard.cache.Close()
	}
}
