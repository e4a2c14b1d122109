package resolve

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema"
	"linkstream/schema/service"
)

// retryAfter is the pause between a failed look-up and the next one, while there is an entry to serve.
const retryAfter = time.Second

// cache holds what the store has at each key. The package documentation describes the states of its entries.
type cache[V value] struct {
	memory[V]
	limiter     *limiter
	lookup      lookup[V]
	ttl         time.Duration
	negativeTTL time.Duration

	mu      sync.Mutex
	flights map[string]*flight[V] // look-ups under way, by key

	misses *metrics.Counter
}

// memory is the part of a cache that can be read without waiting. It has no way to the store.
type memory[V value] struct {
	hot    *hotTable[V]
	shards shards[V]
	hash   hasher

	hits, stale *metrics.Counter
}

// hasher returns two independent hashes of a key.
type hasher func(key []byte) (hash, check uint64)

// lookup returns what the store has at key. CodeNotFound if it has nothing.
type lookup[V value] func(ctx context.Context, key string) (v V, bytes []byte, err error)

// flight is a look-up under way.
type flight[V value] struct {
	done    chan struct{} // closed when entry and err are final
	entry   *entry[V]     // set under cache.mu
	err     error
	dropped bool // the key was dropped during the look-up, whose result may be older; guarded by cache.mu
}

// newCache returns a cache of maxBytes that is divided into shardCount shards.
func newCache[V value](
	name string, shardCount int, maxBytes int64, cfg *Config, limiter *limiter, set *metrics.Set, lookup lookup[V],
) (*cache[V], error) {
	// Two keys with equal hashes would be one to the cache. Nobody can construct such keys: the 128 bits depend on seeds
	// that never leave the process.
	first, second := maphash.MakeSeed(), maphash.MakeSeed()
	hash := func(key []byte) (hash, check uint64) { return maphash.Bytes(first, key), maphash.Bytes(second, key) }
	hot := newHotTable[V](maxBytes)
	shards, err := newShards[V](shardCount, maxBytes, hash, func(hash, check uint64) { hot.remove(hash, check) })
	if err != nil {
		return nil, fmt.Errorf("create cache of %s: %w", name, err)
	}
	counter := func(outcome, help string) *metrics.Counter {
		service.Describe(set, fmt.Sprintf("linkstream_edge_cache_%s_total", outcome), help)
		return set.NewCounter(fmt.Sprintf("linkstream_edge_cache_%s_total{cache=%q}", outcome, name))
	}
	hits := counter("hits", "Look-ups that a cache answered, by cache.")
	stale := counter("stale", "Expired entries that were served while the link store failed, by cache.")
	return &cache[V]{
		memory:      memory[V]{hot, shards, hash, hits, stale},
		limiter:     limiter,
		lookup:      lookup,
		ttl:         cfg.CacheTTL,
		negativeTTL: cfg.NegativeTTL,
		flights:     map[string]*flight[V]{},
		misses:      counter("misses", "Look-ups that a cache could not answer, by cache."),
	}, nil
}

// finding says what memory has at a key.
type finding int

const (
	missing  finding = iota // nothing, or a negative entry that is not fresh
	fresh                   // an entry that answers the request
	stale                   // the same, as others look the key up, or did a moment ago
	outdated                // an entry that answers the request only if a look-up fails
)

// find returns the entry at key at the time now, unless it is missing. It does not wait, and does not retain key.
func (m *memory[V]) find(key []byte, now time.Time) (*entry[V], finding) {
	hash, check := m.hash(key)
	if e := m.hot.get(hash, check, now); e != nil {
		return e, fresh
	}
	drops := m.hot.drops.Load()
	e, ok := m.shards.of(hash).Get(key)
	switch {
	case ok && e.state.fresh(now):
		m.hot.put(hash, e, now, drops)
		return e, fresh
	case !ok || !e.found:
		return nil, missing
	}
	if _, dropped := e.state.dropped(); !dropped && second(now) < e.refreshAfter.Load() {
		return e, stale
	}
	return e, outdated
}

// count counts a request that was answered with what find returned.
func (m *memory[V]) count(f finding) {
	if f == fresh {
		m.hits.Inc()
	} else {
		m.stale.Inc()
	}
}

// get returns the entry at key at the time now. It fails with errNotFound or errUnavailable. It does not retain key.
func (c *cache[V]) get(key []byte, now time.Time) (*entry[V], error) {
	e, found := c.find(key, now)
	switch found {
	case missing:
		c.misses.Inc()
		var err error
		if e, err = c.fetch(string(key), now); err != nil {
			return nil, err
		}
	case outdated:
		e = c.refresh(e, key, now)
	default:
		c.count(found)
	}
	if !e.found {
		return nil, errNotFound
	}
	return e, nil
}

// refresh handles a request for an entry that is stale or dropped. If old is stale, one request looks the key up again and
// the others get old. If old is dropped, all wait for the look-up. Whoever waited for a look-up that failed gets old.
func (c *cache[V]) refresh(old *entry[V], key []byte, now time.Time) *entry[V] {
	drop, dropped := old.state.dropped()
	after := old.refreshAfter.Load()
	next := second(now.Add(c.limiter.timeout + retryAfter))
	if dropped || second(now) >= after && old.refreshAfter.CompareAndSwap(after, next) {
		if e, err := c.fetch(string(key), now); err == nil {
			c.misses.Inc()
			return e
		}
		if dropped {
			old.refreshAfter.Store(next)
			old.state.setStale(drop)
		}
	}
	c.stale.Inc()
	return old
}

// fetch looks key up in the store. Requests for the same key at the same time share one look-up.
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
	f.err = errUnavailable // in case the look-up panics
	defer c.finishFlight(key, f)
	f.err = c.limiter.do(func(ctx context.Context) error {
		v, bytes, err := c.lookup(ctx, key)
		if err != nil && schema.ErrorCode(err) != schema.CodeNotFound {
			return err
		}
		c.publish(f, key, newEntry(err == nil, v, bytes), now)
		return nil
	})
	return f.entry, f.err
}

// finishFlight ends a flight and wakes those who share it.
func (c *cache[V]) finishFlight(key string, f *flight[V]) {
	c.mu.Lock()
	if c.flights[key] == f { // after a Drop another flight may have taken the place of f
		delete(c.flights, key)
	}
	c.mu.Unlock()
	close(f.done)
}

// publish makes e the result of a flight and offers it to ristretto, which may decline it.
func (c *cache[V]) publish(f *flight[V], key string, e *entry[V], now time.Time) {
	ttl := c.ttl
	if !e.found {
		ttl = c.negativeTTL
	}
	hash, check := c.hash([]byte(key))
	e.check = check
	e.state.setFresh(now.Add(ttl))
	c.mu.Lock()
	f.entry = e // from here on drop finds e
	dropped := f.dropped
	if dropped {
		e.state.drop()
	}
	c.mu.Unlock()
	if dropped && !e.found {
		return
	}
	shard := c.shards.of(hash)
	shard.Set([]byte(key), e, e.cost())
	shard.Wait() // the flight must not end before requests can find e: the next one would begin a second flight
}

// drop makes the entry at key dropped wherever it is: in the hot table, in the shards, or in a flight. A flight under way
// ends for those who share it already; the next request begins another one.
func (c *cache[V]) drop(key []byte) {
	hash, check := c.hash(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hot.drops.Add(1) // before the entry is searched, see hotTable.put
	if e := c.hot.remove(hash, check); e != nil {
		e.state.drop()
	}
	if f := c.flights[string(key)]; f != nil {
		f.dropped = true
		if f.entry != nil {
			f.entry.state.drop()
		}
		delete(c.flights, string(key))
	}
	// Negative entries as well: a request that has found e may be about to put it into the hot table.
	if e, ok := c.shards.of(hash).Get(key); ok {
		e.state.drop()
	}
}
