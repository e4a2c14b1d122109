package redirect

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/VictoriaMetrics/metrics"
	"github.com/dgraph-io/ristretto/v2"

	"linkstream/schema"
)

// retryAfter is how long an entry that can be served leaves a store alone that failed.
const retryAfter = time.Second

// entryOverhead is what an entry takes besides its own bytes: a slot of 56 in ristretto's map of values and one of 16 in
// its map of costs, both half empty at worst, and what the allocator rounds up.
const entryOverhead = 160

// cache remembers what the store has at a key, or that it has nothing. A value is served past its time while one request
// renews it, and for as long as the store does not answer; that there is none is not, for it may have been created. A
// value that was dropped is served only if the store does not answer.
type cache[V any] struct {
	entries     *ristretto.Cache[[]byte, *entry[V]]
	store       *gate
	lookup      lookup[V]
	ttl         time.Duration
	negativeTTL time.Duration

	mu      sync.Mutex
	flights map[string]*flight[V] // look-ups under way, one to a key

	hits, misses, stale *metrics.Counter
}

// lookup returns what the store has at key, and how many bytes the value refers to. CodeNotFound if it has nothing.
type lookup[V any] func(ctx context.Context, key string) (value V, refers int, err error)

// entry is what ristretto keeps, which keeps hashes of the keys. There may be millions of entries.
type entry[V any] struct {
	found   bool
	expires atomic.Int64 // Unix nanoseconds; below zero: dropped, and each drop makes it less
	value   V
	renewal atomic.Int64 // Unix nanoseconds; nobody renews the entry before
}

type flight[V any] struct {
	done    chan struct{} // closed when entry, which then is set under mu as well, or err is final
	entry   *entry[V]
	err     error
	dropped bool // what the store answers may be older than a drop, so it is not fresh; under mu
}

// newCache returns a cache of maxBytes. A sixteenth of them goes to ristretto's counters, 3 to 4 bytes each, by which it
// knows what is worth keeping: about five to an entry.
func newCache[V any](
	name string, maxBytes int64, cfg *Config, store *gate, set *metrics.Set, lookup lookup[V],
) (*cache[V], error) {
	first, second := maphash.MakeSeed(), maphash.MakeSeed()
	entries, err := ristretto.NewCache(&ristretto.Config[[]byte, *entry[V]]{
		NumCounters:        maxBytes / 16 / 4,
		MaxCost:            maxBytes / 16 * 15,
		BufferItems:        64,
		IgnoreInternalCost: true, // entryOverhead has it
		// What ristretto compares must be hard to find two keys for: 128 bits that nobody outside can compute.
		KeyToHash: func(key []byte) (hash, conflict uint64) {
			return maphash.Bytes(first, key), maphash.Bytes(second, key)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make cache of %s: %w", name, err)
	}
	counter := func(outcome string) *metrics.Counter {
		return set.NewCounter(fmt.Sprintf("linkstream_edge_cache_%s_total{cache=%q}", outcome, name))
	}
	return &cache[V]{
		entries:     entries,
		store:       store,
		lookup:      lookup,
		ttl:         cfg.CacheTTL,
		negativeTTL: cfg.NegativeTTL,
		flights:     map[string]*flight[V]{},
		hits:        counter("hits"),
		misses:      counter("misses"),
		stale:       counter("stale"),
	}, nil
}

// get returns the value at key as of now, errNotFound or errUnavailable. It keeps no reference to key.
func (c *cache[V]) get(key []byte, now time.Time) (*V, error) {
	e, ok := c.entries.Get(key)
	var err error
	switch {
	case ok && now.UnixNano() < e.expires.Load():
		c.hits.Inc()
	case ok && e.found:
		e = c.renew(e, key, now)
	default:
		c.misses.Inc()
		e, err = c.fetch(string(key), now)
	}
	switch {
	case err != nil:
		return nil, err
	case !e.found:
		return nil, errNotFound
	}
	return &e.value, nil
}

// renew returns a new entry to the one request that gets to fetch it, and old to all others. If old was dropped all wait
// for what the store has, and get old only if it fails; from then on old is one whose time is over.
func (c *cache[V]) renew(old *entry[V], key []byte, now time.Time) *entry[V] {
	expires, claim := old.expires.Load(), old.renewal.Load()
	next := now.Add(c.store.timeout + retryAfter).UnixNano()
	dropped := expires < 0
	if dropped || now.UnixNano() >= claim && old.renewal.CompareAndSwap(claim, next) {
		if e, err := c.fetch(string(key), now); err == nil {
			c.misses.Inc()
			return e
		}
		if dropped {
			old.renewal.Store(next)
			old.expires.CompareAndSwap(expires, 0) // unless it was dropped once more
		}
	}
	c.stale.Inc()
	return old
}

// fetch asks the store for key, once for all who want it at the same time.
func (c *cache[V]) fetch(key string, now time.Time) (*entry[V], error) {
	c.mu.Lock()
	f, joined := c.flights[key]
	if !joined {
		f = &flight[V]{done: make(chan struct{})}
		c.flights[key] = f
	}
	c.mu.Unlock()
	if joined {
		<-f.done
		return f.entry, f.err
	}
	f.err = c.store.ask(func(ctx context.Context) error {
		value, refers, err := c.lookup(ctx, key)
		if err != nil && schema.ErrorCode(err) != schema.CodeNotFound {
			return err
		}
		c.keep(f, key, &entry[V]{value: value, found: err == nil}, refers, now)
		return nil
	})
	c.mu.Lock()
	if c.flights[key] == f { // and not one that began after a drop
		delete(c.flights, key)
	}
	c.mu.Unlock()
	close(f.done)
	return f.entry, f.err
}

// drop has the next request ask the store, and not be content with what a look-up under way is about to bring.
func (c *cache[V]) drop(key []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.flights[string(key)]; f != nil {
		f.dropped = true
		f.entry.drop()
		delete(c.flights, string(key))
	}
	e, ok := c.entries.Get(key)
	switch {
	case ok && e.found:
		e.drop()
	case ok:
		c.entries.Del(key)
	}
}

// drop is called under the cache's mu.
func (e *entry[V]) drop() {
	if e != nil {
		e.expires.Store(min(e.expires.Load(), 0) - 1)
	}
}

// keep makes e, which refers to so many bytes, the entry of a flight and offers it to ristretto, which may decline: those
// who wait for the entry get it all the same, and the next one asks the store again.
func (c *cache[V]) keep(f *flight[V], key string, e *entry[V], refers int, now time.Time) {
	ttl := c.ttl
	if !e.found {
		ttl = c.negativeTTL
	}
	e.expires.Store(now.Add(ttl).UnixNano())
	c.mu.Lock()
	f.entry = e // from here on a drop finds it
	dropped := f.dropped
	if dropped {
		e.drop()
	}
	c.mu.Unlock()
	if dropped && !e.found {
		return
	}
	c.entries.Set([]byte(key), e, int64(entryOverhead+int(unsafe.Sizeof(*e))+refers))
	c.entries.Wait() // until it can be found: the flight must not end before, or there would be a second one
}
