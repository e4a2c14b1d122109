package resolve

import (
	"fmt"
	"hash/maphash"
	"math/bits"
	"net/netip"
	"sync"
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

// cache holds the link store's answer for each key. The package documentation describes the states of its entries.
type cache[V value] struct {
	store    store[V]
	negative *times       // until when a key is known not to exist; written under mu
	second   maphash.Seed // of the hash by which negative distinguishes keys
	limiter  *limiter
	begin    func(f *flight[V]) // begins the look-up of a flight, and does not wait for it; end ends it
	judge    func(e *entry[V])  // sets what an entry has from the blocklist
	ttl      time.Duration
	unknown  time.Duration // for which a key is known not to exist

	mu      sync.Mutex
	flights map[string]*flight[V] // look-ups under way, by key

	hits, stale, misses *metrics.Counter
}

// flight is a look-up under way, which all requests for its key share.
type flight[V value] struct {
	key     string
	client  netip.Addr // whose request began it
	suspect bool       // the client has asked for keys that do not exist
	now     time.Time  // the time of that request
	began   time.Time

	// Of the look-up.
	number  int  // in its query
	expired bool // its time is over, although its query is under way

	entry   *entry[V] // set under cache.mu; nil without an entry
	err     error     // final once the flight has ended
	dropped bool      // the key was dropped during the look-up, whose result may be older; guarded by cache.mu
	waiters []Waiter  // guarded by cache.mu, and unchanged once the flight is not in cache.flights
}

// Waiter waits for a look-up. Done is called once, by any goroutine, when the look-up has ended; it must not block.
type Waiter interface{ Done() }

// pending is a request's part in a flight.
type pending[V value] struct {
	flight *flight[V]
	old    *entry[V] // answers the request if the look-up fails; nil: none
	token  int64     // of old's state
	next   uint32    // Unix seconds; if the look-up fails, old is not looked up again before
}

// newCache returns a cache of maxBytes.
func newCache[V value](name string, maxBytes int64, cfg *Config, l *limiter, set *metrics.Set) (*cache[V], error) {
	store, err := newStore[V](maxBytes)
	if err != nil {
		return nil, fmt.Errorf("cache of %s: %w", name, err)
	}
	counter := func(outcome, help string) *metrics.Counter {
		return service.NewCounter(set, fmt.Sprintf("linkstream_edge_cache_%s_total{cache=%q}", outcome, name), help)
	}
	return &cache[V]{
		store:    store,
		negative: newTimes(max(maxBytes/bytesPerNegative, minNegativeBytes)),
		second:   maphash.MakeSeed(),
		limiter:  l,
		judge:    func(*entry[V]) {},
		ttl:      cfg.CacheTTL,
		unknown:  cfg.CacheTTL / 60,
		flights:  map[string]*flight[V]{},
		hits:     counter("hits", "Look-ups that a cache answered, by cache."),
		stale:    counter("stale", "Expired entries that were served while the link store failed, by cache."),
		misses:   counter("misses", "Look-ups that a cache could not answer, by cache."),
	}, nil
}

func (c *cache[V]) secondHash(key []byte) uint64 { return maphash.Bytes(c.second, key) }

// get returns the entry at key at the time now. If the key has to be looked up, get returns a flight instead, which
// calls w at its end; outcome then has the entry. It fails with errNotFound or ErrTooMany. It neither waits nor
// retains key.
func (c *cache[V]) get(key []byte, client netip.Addr, now time.Time, w Waiter) (e *entry[V], p pending[V], err error) {
	hash := c.store.hash(key)
	e = c.store.get(hash, key)
	switch {
	case e == nil && c.negative.after(hash, c.secondHash(key), now):
		c.hits.Inc()
		return nil, p, errNotFound
	case e == nil && c.limiter.quota.wait(client, now) > 0:
		return nil, p, ErrTooMany
	case e == nil:
		c.misses.Inc()
		return nil, pending[V]{flight: c.join(string(key), client, c.limiter.quota.suspects(client, now), now, w)}, nil
	case e.state.timed():
		renews := c.renews(e, now)
		if renews {
			c.join(string(key), netip.Addr{}, false, now, nil)
		}
		if renews || e.state.fresh(now) {
			c.hits.Inc()
		} else {
			c.stale.Inc()
		}
		return e, p, nil
	}
	p, ok := c.refresh(e, now)
	if !ok {
		c.stale.Inc()
		return e, p, nil
	}
	p.flight = c.join(string(key), client, false, now, w)
	return nil, p, nil
}

// renews reports whether a request, which does not wait, has to look up the key of an entry that was not dropped: one
// per LookupTimeout and retryAfter, from the last quarter of its time on. So a link that has visitors does not expire.
func (c *cache[V]) renews(e *entry[V], now time.Time) bool {
	return !e.state.fresh(now.Add(c.ttl/4)) && e.takeTurn(now, second(now.Add(c.limiter.timeout+retryAfter)))
}

// refresh reports whether a request has to look up the key of an entry that was dropped, and wait: every request, or
// one per LookupTimeout and retryAfter after a look-up has failed. If the look-up fails, the entry answers.
func (c *cache[V]) refresh(old *entry[V], now time.Time) (p pending[V], ok bool) {
	p = pending[V]{old: old, next: second(now.Add(c.limiter.timeout + retryAfter))}
	if p.token, ok = old.state.mustLookUp(); ok {
		return p, true
	}
	return p, old.takeTurn(now, p.next)
}

// outcome returns what a flight that has ended has found, or the entry that was there before if it failed. It fails
// with errNotFound or errUnavailable.
func (c *cache[V]) outcome(p *pending[V]) (*entry[V], error) {
	e, err := p.flight.entry, p.flight.err
	switch {
	case p.old == nil:
		return e, err
	case err != errUnavailable:
		c.misses.Inc()
		return e, err
	}
	c.stale.Inc()
	if p.token < 0 {
		p.old.lookUpAfter.Store(p.next)
		p.old.state.setFailed(p.token)
	}
	return p.old, nil
}

// join adds a waiter, which may be nil, to the flight of a key. It begins the flight if the key has no flight.
func (c *cache[V]) join(key string, client netip.Addr, suspect bool, now time.Time, w Waiter) *flight[V] {
	c.mu.Lock()
	f, joined := c.flights[key]
	if !joined {
		f = &flight[V]{key: key, client: client, suspect: suspect, now: now, began: time.Now()}
		c.flights[key] = f
	}
	if w != nil {
		f.waiters = append(f.waiters, w)
	}
	c.mu.Unlock()
	if !joined {
		c.begin(f)
	}
	return f
}

// publish makes e the result of a flight and offers it to ristretto, which may decline it.
func (c *cache[V]) publish(f *flight[V], e *entry[V]) {
	e.state.setFresh(f.now.Add(c.ttl))
	c.mu.Lock()
	c.judge(e)
	f.entry, f.err = e, nil // from here on drops and sweeps find e
	if f.dropped {
		e.state.drop()
	}
	c.mu.Unlock()
	c.store.request(c.store.hash(e.key()), e.key()) // which counts the request that missed
	c.store.set(e)
}

// publishNegative makes the result of a flight that the key does not exist.
func (c *cache[V]) publishNegative(f *flight[V]) {
	key := []byte(f.key)
	hash := c.store.hash(key)
	f.err = errNotFound
	c.mu.Lock() // so that a Drop either finds the negative entry or prevents it
	defer c.mu.Unlock()
	if f.dropped {
		return
	}
	c.negative.put(hash, c.secondHash(key), f.now.Add(c.unknown).UnixNano())
	if c.store.get(hash, key) != nil { // it existed before
		c.store.remove(hash)
	}
}

// end ends flights whose outcomes were published or are errors, and calls their waiters. Requests can find published
// entries before the flights end: otherwise the next request would begin another flight.
func (c *cache[V]) end(flights []*flight[V]) {
	for _, f := range flights {
		if f.err == nil {
			c.store.wait()
			break
		}
	}
	c.mu.Lock()
	for _, f := range flights {
		if c.flights[f.key] == f { // after a Drop another flight may have taken the place of f
			delete(c.flights, f.key)
		}
	}
	c.mu.Unlock()
	for _, f := range flights {
		if f.err == errNotFound {
			c.limiter.quota.charge(f.client, f.now)
		}
		for _, w := range f.waiters {
			w.Done()
		}
	}
}

// drop makes the entry at key dropped, in ristretto or in a flight, and removes a negative entry. A flight under way
// ends for the requests that share it already; the next request begins another one.
func (c *cache[V]) drop(key []byte) {
	hash := c.store.hash(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.flights[string(key)]; f != nil {
		c.leave(f)
	}
	c.negative.clear(hash, c.secondHash(key))
	if e := c.store.get(hash, key); e != nil {
		e.state.drop()
	}
}

// dropEach drops the entries for which is returns true, and the results of flights under way.
func (c *cache[V]) dropEach(is func(*entry[V]) bool) {
	c.mu.Lock()
	for _, f := range c.flights {
		c.leave(f)
	}
	c.negative.clearAll()
	c.mu.Unlock()
	// Entries that are published from here on were looked up after the call.
	c.store.each(func(e *entry[V]) {
		if is(e) {
			e.state.drop()
		}
	})
}

// leave keeps further requests from sharing a flight, whose result may be older than a change. The caller holds mu.
func (c *cache[V]) leave(f *flight[V]) {
	f.dropped = true
	if f.entry != nil {
		f.entry.state.drop()
	}
	delete(c.flights, f.key)
}

// judgeAll judges all entries again, as the blocklist has changed.
func (c *cache[V]) judgeAll() {
	c.mu.Lock()
	for _, f := range c.flights {
		if f.entry != nil {
			c.judge(f.entry)
		}
	}
	c.mu.Unlock()
	c.store.each(c.judge) // later entries are judged when they are published
}

// confirm makes the restored entries fresh for half of the TTL to all of it, as their hashes say, so that they do not
// expire together.
func (c *cache[V]) confirm(now time.Time) {
	c.store.each(func(e *entry[V]) {
		spread, _ := bits.Mul64(c.store.hash(e.key()), uint64(c.ttl/2))
		e.state.confirm(now.Add(c.ttl/2 + time.Duration(spread)))
	})
}

// close removes all entries and frees the memory. No look-up is under way, and none begins.
func (c *cache[V]) close() {
	c.negative.clearAll()
	c.store.close()
}
