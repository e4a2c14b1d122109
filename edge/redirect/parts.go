package redirect

import (
	"fmt"
	"math"

	"github.com/dgraph-io/ristretto/v2"
)

// parts are ristretto caches that share the entries by the first hash of their keys. One alone would have all its maps
// double at the same number of entries, and half empty from there on; parts of different sizes do so one after the other.
type parts[V value] []part[V]

type part[V value] struct {
	cache *ristretto.Cache[[]byte, *entry[V]]
	last  uint64 // hash that it has
}

// newParts returns count parts for maxBytes altogether, evenly spread between a size and its double. A thirty-second of the
// bytes goes to ristretto's counters, 3 to 4 bytes each, by which it knows what is worth keeping: two or three to an entry.
func newParts[V value](count int, maxBytes int64, hash hasher, evicted func(hash, check uint64)) (parts[V], error) {
	weight := func(i int) float64 { return math.Exp2(float64(i) / float64(count)) }
	var sum, end float64
	for i := range count {
		sum += weight(i)
	}
	var p parts[V]
	for i := range count {
		share := weight(i) / sum
		bytes := share * float64(maxBytes)
		end += share
		cache, err := ristretto.NewCache(&ristretto.Config[[]byte, *entry[V]]{
			NumCounters:        int64(bytes / 32 / 4),
			MaxCost:            int64(bytes / 32 * 31),
			BufferItems:        64,
			IgnoreInternalCost: true, // entryOverhead has it
			KeyToHash:          hash,
			OnEvict:            func(item *ristretto.Item[*entry[V]]) { evicted(item.Key, item.Conflict) },
		})
		if err != nil {
			p.close()
			return nil, fmt.Errorf("part of %.0f bytes: %w", bytes, err)
		}
		last := uint64(math.MaxUint64)
		if i < count-1 {
			last = uint64(end * math.MaxUint64)
		}
		p = append(p, part[V]{cache, last})
	}
	return p, nil
}

// of returns the part that has a hash.
func (p parts[V]) of(hash uint64) *ristretto.Cache[[]byte, *entry[V]] {
	i := 0
	for hash > p[i].last {
		i++
	}
	return p[i].cache
}

// close frees the memory. A second close does nothing.
func (p parts[V]) close() {
	for _, part := range p {
		part.cache.Close()
	}
}
