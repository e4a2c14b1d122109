package resolve

import (
	"fmt"
	"hash/maphash"
	"math/bits"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema/service"
)

const (
	// retryAfter is the pause between a failed look-up and the next one, while there is an entry to serve.
	retryAfter = time.Second

	bytesPerNegative = 64 // of the cache, per byte of the table of keys that do not exist
	minNegativeBytes = 16 << 10
)

// cache holds what the store has at each key. The package documentation describes the states of its entries.
type cache[V value] struct {
	memory[V]
	limiter     *limiter
	begin       func(f *flight[V]) // begins the look-up of a flight, and may wait for it; end ends it
	renews      bool               // begin does not wait, and aging entries are looked up again
	saver       saver[V]
	negativeTTL time.Duration
	round       *atomic.Uint32 // of the review; entries carry the round in which their look-up began

	mu      sync.Mutex
	flights map[string]*flight[V] // look-ups under way, by key

	misses, renewals *metrics.Counter
}

// memory is the part of a cache that can be read without waiting. It has no way to the store.
type memory[V value] struct {
	hot      *hotTable[V]
	shards   shards[V]
	backlog  atomic.Pointer[backlog[V]] // nil: none
	negative *times                     // until when a key is known not to exist; written under cache.mu
	hash     hasher
	ttl      time.Duration
	proven   *atomic.Int64 // when the restored entries were proven to be true, in Unix nanoseconds; 0: not yet

	hits, stale *metrics.Counter
}

// hasher returns two independent hashes of a key.
type hasher func(key []byte) (hash, check uint64)

// flight is a look-up under way.
type flight[V value] struct {
	key     string
	client  netip.Addr // whose request began it
	suspect bool       // who has asked for keys that do not exist
	renewal bool       // it was begun ahead of time, by a request that did not need it
	now     time.Time  // the time of that request
	began   time.Time

	// Of the look-up.
	number   int       // in its query
	expired  bool      // its time is over, although its query is under way
	hash     uint64    // of what was published
	replaced *entry[V] // by what was published; may be nil

	entry   *entry[V] // set under cache.mu; nil without an entry
	err     error     // final once the flight has ended
	dropped bool      // the key was dropped during the look-up, whose result may be older; guarded by cache.mu

	// Who waits; guarded by cache.mu, and unchanged once the flight is not in cache.flights.
	done    chan struct{} // closed at the end; nil if no goroutine waits
	waiters []Waiter
}

// Waiter waits for a look-up without a goroutine. Done is called once, by another goroutine, when the look-up has ended; it must not
// block.
type Waiter interface{ Done() }

// newCache returns a cache of maxBytes that is divided into shardCount shards.
func newCache[V value](
	name string, shardCount int, maxBytes int64, cfg *Config, r *Resolver, set *metrics.Set, saver saver[V],
) (*cache[V], error) {
	// Two keys with equal hashes would be one to the cache. Nobody can construct such keys: the 128 bits depend on seeds
	// that never leave the process. Two keys of which only the first hash is equal take each other's place.
	first, second := maphash.MakeSeed(), maphash.MakeSeed()
	hash := func(key []byte) (hash, check uint64) { return maphash.Bytes(first, key), maphash.Bytes(second, key) }
	hot := newHotTable[V](maxBytes)
	shards, err := newShards(shardCount, maxBytes, func(hash uint64, e *entry[V]) { hot.remove(hash, e.check) })
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
		memory: memory[V]{hot: hot, shards: shards, negative: newTimes(max(maxBytes/bytesPerNegative, minNegativeBytes)), hash: hash,
			ttl: cfg.CacheTTL, proven: &r.proven, hits: hits, stale: stale},
		limiter:     r.limiter,
		saver:       saver,
		negativeTTL: cfg.NegativeTTL,
		round:       &r.review.round,
		flights:     map[string]*flight[V]{},
		misses:      counter("misses", "Look-ups that a cache could not answer, by cache."),
		renewals:    counter("renewals", "Entries that were looked up again before they expired, by cache."),
	}, nil
}

// finding says what memory has at a key.
type finding int

const (
	missing  finding = iota // nothing
	unknown                 // a negative entry: the key does not exist, or did not a moment ago
	fresh                   // an entry that answers the request
	aging                   // the same, and it is time to look the key up again: see cache.renew
	stale                   // the same, as others look the key up, or did a moment ago
	outdated                // an entry that answers the request only if a look-up fails
)

// find returns the entry at key at the time now, or nil. It does not wait, and does not retain key.
func (m *memory[V]) find(key []byte, now time.Time) (*entry[V], finding) {
	hash, check := m.hash(key)
	if e := m.hot.get(hash, check, now); e != nil {
		return e, fresh
	}
	drops := m.hot.drops.Load()
	e := m.at(hash, check)
	if e != nil && e.state.isUnproven() {
		m.prove(e, hash)
	}
	switch {
	case e == nil:
		if until, ok := m.negative.get(hash, check); ok && now.UnixNano() < until {
			return nil, unknown
		}
		return nil, missing
	case e.state.fresh(now):
		renewAt := m.renewAt(e, hash)
		m.hot.put(hash, e, now, renewAt, drops)
		if now.UnixNano() >= renewAt {
			return e, aging
		}
		return e, fresh
	}
	if _, dropped := e.state.dropped(); !dropped && second(now) < e.refreshAfter.Load() {
		return e, stale
	}
	return e, outdated
}

// at returns the entry of a key that is in the shards, or is to be moved there, or nil.
func (m *memory[V]) at(hash, check uint64) *entry[V] {
	b := m.backlog.Load() // before the shards: when it is nil, they have all its entries
	e := m.shards.get(hash, check)
	if e == nil {
		e = b.get(hash, check)
	}
	if e == nil || e.state.isRetired() {
		return nil
	}
	return e
}

// prove makes a restored entry fresh if it is known to be true: for the time that a look-up at the moment of the proof would
// have, or half of it, so that not all of them are looked up again at the same time.
func (m *memory[V]) prove(e *entry[V], hash uint64) {
	if at := m.proven.Load(); at != 0 {
		e.state.prove(at + int64(m.ttl/2) + share(uint32(hash), m.ttl/2))
	}
}

// share returns the share of a time that half of a key's hash determines.
func share(half uint32, of time.Duration) int64 {
	n, _ := bits.Mul64(uint64(half)<<32, uint64(of))
	return int64(n)
}

// renewAt returns from when on a fresh entry is looked up again, in Unix nanoseconds: after half to seven eighths of CacheTTL. So entries
// that came at the same time are not renewed at the same time. Restored entries are proven for different times, of which the other
// half of the hash decides: few of them are renewed soon after a start.
func (m *memory[V]) renewAt(e *entry[V], hash uint64) int64 {
	return e.state.until() - int64(m.ttl/2) + share(uint32(hash>>32), m.ttl*3/8)
}

// count counts a request that was answered with what find returned.
func (m *memory[V]) count(f finding) {
	if f == stale {
		m.stale.Inc()
	} else {
		m.hits.Inc()
	}
}

// get returns the entry at key at the time now, looked up for a client if need be. It fails with errNotFound,
// errUnavailable or ErrTooMany. It does not retain key.
func (c *cache[V]) get(key []byte, client netip.Addr, now time.Time) (*entry[V], error) {
	e, found := c.find(key, now)
	switch found {
	case missing:
		if c.limiter.quota.wait(client, now) > 0 {
			return nil, ErrTooMany
		}
		c.misses.Inc()
		return c.fetch(string(key), client, c.limiter.quota.suspects(client, now), now)
	case outdated:
		return c.refresh(e, key, client, now)
	case aging:
		c.renew(key, now)
	}
	c.count(found)
	if found == unknown {
		return nil, errNotFound
	}
	return e, nil
}

// refresh handles a request for an entry that is stale or dropped. If old is stale, one request looks the key up again and
// the others get old. If old is dropped, all wait for the look-up. Whoever waited for a look-up that failed gets old. The
// only error is errNotFound.
func (c *cache[V]) refresh(old *entry[V], key []byte, client netip.Addr, now time.Time) (*entry[V], error) {
	drop, next, ok := c.mayRefresh(old, now)
	if !ok {
		c.stale.Inc()
		return old, nil
	}
	e, err := c.fetch(string(key), client, false, now)
	if err == errUnavailable {
		c.keepOld(old, drop, next)
		return old, nil
	}
	c.misses.Inc()
	return e, err
}

// mayRefresh reports whether a request has to look up the key of an entry that is stale or dropped. If that fails, keepOld takes the
// other results.
func (c *cache[V]) mayRefresh(old *entry[V], now time.Time) (drop int64, next uint32, ok bool) {
	drop, dropped := old.state.dropped()
	after := old.refreshAfter.Load()
	next = second(now.Add(c.limiter.timeout + retryAfter))
	if dropped {
		return drop, next, true
	}
	return 0, next, second(now) >= after && old.refreshAfter.CompareAndSwap(after, next)
}

// keepOld makes an entry that was dropped stale, as its look-up has failed, and counts a request that is answered with it.
func (c *cache[V]) keepOld(old *entry[V], drop int64, next uint32) {
	if drop != 0 {
		old.refreshAfter.Store(next)
		old.state.setStale(drop)
	}
	c.stale.Inc()
}

// renew begins to look up the key of an aging entry, unless a look-up is under way. Nobody waits for it, and the request that begins it
// is answered with the entry, which stays fresh if the look-up fails. So a link that has visitors is never outdated. The hot table
// answers the next requests, so that one that fails is not repeated at once.
func (c *cache[V]) renew(key []byte, now time.Time) {
	if !c.renews {
		return
	}
	c.mu.Lock()
	if c.flights[string(key)] != nil {
		c.mu.Unlock()
		return
	}
	f := &flight[V]{key: string(key), renewal: true, now: now, began: time.Now()}
	c.flights[f.key] = f
	c.mu.Unlock()
	c.renewals.Inc()
	c.begin(f)
}

// fetch looks key up in the store for a client. Requests for the same key at the same time share one look-up.
func (c *cache[V]) fetch(key string, client netip.Addr, suspect bool, now time.Time) (*entry[V], error) {
	f, joined := c.join(key, client, suspect, now, nil)
	if !joined {
		c.begin(f)
	}
	<-f.done
	return f.entry, f.err
}

// join returns the flight of a key. If it was not joined, because there was none, the caller must begin it. w is told of its end;
// if w is nil, f.done is.
func (c *cache[V]) join(key string, client netip.Addr, suspect bool, now time.Time, w Waiter) (f *flight[V], joined bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, joined = c.flights[key]
	if !joined {
		f = &flight[V]{key: key, client: client, suspect: suspect, now: now, began: time.Now()}
		c.flights[key] = f
	}
	switch {
	case w != nil:
		f.waiters = append(f.waiters, w)
	case f.done == nil:
		f.done = make(chan struct{})
	}
	return f, joined
}

// end ends flights, whose outcomes were published or are errors, and wakes those who share them.
func (c *cache[V]) end(flights []*flight[V]) {
	c.awaitPublished(flights)
	c.mu.Lock()
	for _, f := range flights {
		if f.err == nil {
			c.saver.save(f.key, f.entry, f.replaced)
			if f.replaced != nil {
				f.replaced.state.retire()
			}
		}
		if c.flights[f.key] == f { // after a Drop another flight may have taken the place of f
			delete(c.flights, f.key)
		}
	}
	c.mu.Unlock()
	for _, f := range flights {
		if f.err == errNotFound {
			c.limiter.quota.charge(f.client, f.now)
		}
		if f.done != nil {
			close(f.done)
		}
		for _, w := range f.waiters {
			w.Done()
		}
	}
}

// awaitPublished waits until requests can find what was published: the flights must not end before, as the next request would
// begin a second flight.
func (c *cache[V]) awaitPublished(flights []*flight[V]) {
	for i := range c.shards {
		shard := c.shards[i].cache
		for _, f := range flights {
			if f.err == nil && c.shards.of(f.hash) == shard {
				shard.Wait()
				break
			}
		}
	}
}

// publish makes e the result of a flight and offers it to ristretto, which may decline it.
func (c *cache[V]) publish(f *flight[V], e *entry[V]) {
	hash, check := c.hash([]byte(f.key))
	f.hash = hash
	e.check = check
	e.state.setFresh(f.now.Add(c.ttl))
	c.mu.Lock()
	f.entry, f.err = e, nil // from here on drop finds e
	if f.dropped {
		e.state.drop()
	}
	c.negative.clear(hash, check)
	c.mu.Unlock()
	b := c.backlog.Load()
	if f.replaced = c.shards.request(hash, check); f.replaced == nil { // which counts the request that missed
		f.replaced = b.get(hash, check)
	}
	c.shards.set(hash, e)
}

// publishNegative makes the result of a flight that the key does not exist. It is remembered outside of ristretto, where
// any number of such keys would evict existing ones.
func (c *cache[V]) publishNegative(f *flight[V]) {
	hash, check := c.hash([]byte(f.key))
	f.err = errNotFound
	c.mu.Lock() // so that a Drop either finds the negative entry or prevents it
	dropped := f.dropped
	if !dropped {
		c.negative.put(hash, check, f.now.Add(c.negativeTTL).UnixNano())
		c.saver.forget(f.key)
	}
	c.mu.Unlock()
	if dropped {
		return
	}
	if e := c.at(hash, check); e != nil { // it existed before
		e.state.retire()
		c.shards.of(hash).Del(hash)
	}
}

// drop makes the entry at key dropped wherever it is: in the hot table, in the shards, or in a flight. It removes a negative
// entry. A flight under way ends for those who share it already; the next request begins another one.
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
	c.negative.clear(hash, check)
	if e := c.at(hash, check); e != nil {
		e.state.drop()
	}
	c.saver.forget(string(key))
}

// dropAll is drop for all keys.
func (c *cache[V]) dropAll() {
	c.mu.Lock()
	c.hot.drops.Add(1)
	for key, f := range c.flights {
		f.dropped = true
		if f.entry != nil {
			f.entry.state.drop()
		}
		delete(c.flights, key)
	}
	c.negative.clearAll()
	c.saver.forgetAll()
	c.mu.Unlock()
	// What is published from here on was looked up after the call.
	c.hot.each(func(e *entry[V]) { e.state.drop() })
	c.each(func(e *entry[V]) { e.state.drop() })
}

// each calls visit for all entries, among them some that are added or removed meanwhile, and for some twice. Visit must not wait.
func (c *cache[V]) each(visit func(*entry[V])) {
	c.backlog.Load().each(visit) // before the shards: when it is nil, they have all its entries
	c.shards.each(visit)
}

// close removes all entries and frees the memory. No look-up is under way, and none begins.
func (c *cache[V]) close() {
	c.negative.clearAll()
	c.backlog.Store(nil)
	c.shards.close()
}
