package redirect

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema"
)

// retryAfter is how long an entry that can be served leaves a store alone that failed.
const retryAfter = time.Second

// cache remembers what the store has at a key, or that it has nothing. A value is served past its time while one request
// renews it, and for as long as the store does not answer; that there is none is not, for it may have been created. A
// value that was dropped is served only if the store does not answer.
type cache[V value] struct {
	front       *front[V]
	entries     parts[V]
	hash        hasher
	store       *gate
	lookup      lookup[V]
	ttl         time.Duration
	negativeTTL time.Duration

	mu      sync.Mutex
	flights map[string]*flight[V] // look-ups under way, one to a key

	hits, misses, stale *metrics.Counter
}

// hasher returns the two hashes of a key.
type hasher func(key []byte) (hash, check uint64)

// lookup returns what the store has at key. CodeNotFound if it has nothing.
type lookup[V value] func(ctx context.Context, key string) (v V, bytes []byte, err error)

type flight[V value] struct {
	done    chan struct{} // closed when entry, which then is set under mu as well, or err is final
	entry   *entry[V]
	err     error
	dropped bool // what the store answers may be older than a drop, so it is not fresh; under mu
}

// newCache returns a cache of maxBytes in parts.
func newCache[V value](
	name string, parts int, maxBytes int64, cfg *Config, store *gate, set *metrics.Set, lookup lookup[V],
) (*cache[V], error) {
	// Keys are known by their hashes alone, so two that share them must be hard to find: 128 bits nobody outside can compute.
	first, second := maphash.MakeSeed(), maphash.MakeSeed()
	hash := func(key []byte) (hash, check uint64) { return maphash.Bytes(first, key), maphash.Bytes(second, key) }
	front := newFront[V](maxBytes)
	entries, err := newParts[V](parts, maxBytes, hash, func(hash, check uint64) { front.remove(hash, check) })
	if err != nil {
		return nil, fmt.Errorf("make cache of %s: %w", name, err)
	}
	counter := func(outcome string) *metrics.Counter {
		return set.NewCounter(fmt.Sprintf("linkstream_edge_cache_%s_total{cache=%q}", outcome, name))
	}
	return &cache[V]{
		front:       front,
		entries:     entries,
		hash:        hash,
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

// get returns the entry at key as of now, errNotFound or errUnavailable. It keeps no reference to key.
func (c *cache[V]) get(key []byte, now time.Time) (*entry[V], error) {
	hash, check := c.hash(key)
	e, err := c.front.get(hash, check, now), error(nil)
	if e != nil {
		c.hits.Inc()
	} else {
		e, err = c.find(key, hash, now)
	}
	switch {
	case err != nil:
		return nil, err
	case !e.found:
		return nil, errNotFound
	}
	return e, nil
}

// find returns the entry that ristretto or else the store has at key.
func (c *cache[V]) find(key []byte, hash uint64, now time.Time) (*entry[V], error) {
	drops := c.front.drops.Load()
	e, ok := c.entries.of(hash).Get(key)
	switch {
	case ok && now.UnixNano() < e.expires.Load():
		c.hits.Inc()
		c.front.put(hash, e, now, drops)
		return e, nil
	case ok && e.found:
		return c.renew(e, key, now), nil
	default:
		c.misses.Inc()
		return c.fetch(string(key), now)
	}
}

// renew returns a new entry to the one request that gets to fetch it, and old to all others. If old was dropped all wait
// for what the store has, and get old only if it fails; from then on old is one whose time is over.
func (c *cache[V]) renew(old *entry[V], key []byte, now time.Time) *entry[V] {
	expires, claim := old.expires.Load(), old.renewal.Load()
	next := second(now.Add(c.store.timeout + retryAfter))
	dropped := expires < 0
	if dropped || second(now) >= claim && old.renewal.CompareAndSwap(claim, next) {
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
	f.err = errUnavailable // if the look-up panics
	defer c.land(key, f)
	f.err = c.store.ask(func(ctx context.Context) error {
		v, bytes, err := c.lookup(ctx, key)
		if err != nil && schema.ErrorCode(err) != schema.CodeNotFound {
			return err
		}
		c.keep(f, key, newEntry(err == nil, v, bytes), now)
		return nil
	})
	return f.entry, f.err
}

// land ends a flight.
func (c *cache[V]) land(key string, f *flight[V]) {
	c.mu.Lock()
	if c.flights[key] == f { // and not one that began after a drop
		delete(c.flights, key)
	}
	c.mu.Unlock()
	close(f.done)
}

// drop has the next request ask the store, and not be content with what a look-up under way is about to bring.
func (c *cache[V]) drop(key []byte) {
	hash, check := c.hash(key)
	entries := c.entries.of(hash)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.front.drops.Add(1) // before anything is looked at, see put
	c.front.remove(hash, check).drop()
	if f := c.flights[string(key)]; f != nil {
		f.dropped = true
		f.entry.drop()
		delete(c.flights, string(key))
	}
	// Also if it says that there is nothing: a look-up may be about to put it into the front.
	if e, ok := entries.Get(key); ok {
		e.drop()
	}
}

// keep makes e the entry of a flight and offers it to ristretto, which may decline: those who wait for the entry get it
// all the same, and the next one asks the store again.
func (c *cache[V]) keep(f *flight[V], key string, e *entry[V], now time.Time) {
	ttl := c.ttl
	if !e.found {
		ttl = c.negativeTTL
	}
	hash, check := c.hash([]byte(key))
	e.check = check
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
	entries := c.entries.of(hash)
	entries.Set([]byte(key), e, e.cost())
	entries.Wait() // until it can be found: the flight must not end before, or there would be a second one
}
