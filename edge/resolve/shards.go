package resolve

import (
	"fmt"
	"math"
	"time"

	"github.com/dgraph-io/ristretto/v2"
)

// shards are ristretto caches that divide the keys by their first hash. All maps of a single cache would double at the
// same number of entries and be half empty afterwards. Shards of different sizes double one after the other.
type shards[V value] []shard[V]

type shard[V value] struct {
	cache *ristretto.Cache[[]byte, *entry[V]]
	last  uint64 // largest hash that belongs to this shard
}

// newShards returns count shards for maxBytes in total. Their sizes rise evenly from one to nearly two, on a logarithmic
// scale. A 32nd of the bytes holds ristretto's frequency counters, 3 to 4 bytes each, which is two or three per entry.
func newShards[V value](count int, maxBytes int64, hash hasher, evicted func(hash, check uint64)) (shards[V], error) {
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
		cache, err := ristretto.NewCache(&ristretto.Config[[]byte, *entry[V]]{
			NumCounters:        int64(bytes / 32 / 4),
			MaxCost:            int64(bytes / 32 * 31),
			BufferItems:        64,
			IgnoreInternalCost: true, // entryOverhead includes it
			KeyToHash:          hash,
			// Entries have no TTL of ristretto's, so that its search for those that are over can be rare.
			TtlTickerDurationInSec: int64(24 * time.Hour / time.Second),
			OnEvict:                func(item *ristretto.Item[*entry[V]]) { evicted(item.Key, item.Conflict) },
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
func (s shards[V]) of(hash uint64) *ristretto.Cache[[]byte, *entry[V]] {
	i := 0
	for hash > s[i].last {
		i++
	}
	return s[i].cache
}

// get returns the entry of a key. Ristretto counts the requests for a key, also for one that it does not have, to find out
// what is worth keeping. It must not hear of keys that do not exist: a flood of them would make it forget its counts.
func (s shards[V]) get(hash uint64, key []byte) (*entry[V], bool) {
	shard := s.of(hash)
	if _, ok := shard.GetTTL(key); !ok { // which does not count
		return nil, false
	}
	return shard.Get(key)
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

// count returns the number of entries.
func (s shards[V]) count() (n int) {
	s.each(func(*entry[V]) { n++ })
	return n
}

// close evicts all entries, and with them those of the hot table, and frees the memory. It is idempotent.
func (s shards[V]) close() {
	for _, shard := range s {
		shard.cache.Close()
	}
}
