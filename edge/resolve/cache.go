package resolve

import (
	"bytes"
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

	bytesPerAnswer  = 64 // of the cache, per byte of the table of answers
	minAnswersBytes = 16 << 10
)

// cache holds the link store's answer for each key. The package documentation describes the states of its entries.
type cache[V value] struct {
	store   store[V]
	answers *times       // to questions that no entry answers by itself, see answered; written under mu
	second  maphash.Seed // of the hash by which answers distinguishes questions
	changes changes
	limiter *limiter
	begin   func(f *flight[V]) // begins the look-up of a flight, and does not wait for it; end ends it
	judge   func(e *entry[V])  // sets what an entry has from the blocklist
	ttl     time.Duration
	unknown time.Duration // for which a key is known not to exist

	mu        sync.Mutex
	flights   map[string]*flight[V] // look-ups under way, by question
	published map[string]*entry[V]  // of flights that have not ended, by key

	hits, stale, misses *metrics.Counter
}

// flight is a look-up under way, which all requests with its question share. The question of a host is its key.
type flight[V value] struct {
	question string
	change   uint64     // of the question when the flight began
	client   netip.Addr // whose request began it
	suspect  bool       // the client has asked for keys that do not exist
	now      time.Time  // the time of that request
	began    time.Time

	// Of the look-up.
	number  int  // of its first name in its query
	expired bool // its time is over, although its query is under way

	entry   *entry[V] // nil without an entry
	name    int       // that was found
	err     error     // final once the flight has ended
	waiters []Waiter  // guarded by cache.mu, and unchanged once the flight is not in cache.flights
}

// Waiter waits for a look-up. Done is called once, by any goroutine, when the look-up has ended; it must not block.
type Waiter interface{ Done() }

// pending is a request's part in a flight.
type pending[V value] struct {
	flight *flight[V]
	old    *entry[V] // answers the request if the look-up fails; nil: none
	name   int       // that old answers
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
		store:     store,
		answers:   newTimes(max(maxBytes/bytesPerAnswer, minAnswersBytes)),
		second:    maphash.MakeSeed(),
		limiter:   l,
		judge:     func(*entry[V]) {},
		ttl:       cfg.CacheTTL,
		unknown:   cfg.CacheTTL / 60,
		changes:   newChanges(),
		flights:   map[string]*flight[V]{},
		published: map[string]*entry[V]{},
		hits:      counter("hits", "Look-ups that a cache answered, by cache."),
		stale:     counter("stale", "Expired entries that were served while the link store failed, by cache."),
		misses:    counter("misses", "Look-ups that a cache could not answer, by cache."),
	}, nil
}

// notFound is the answer that there is none of the names of a question.
const notFound = numbers

// answered returns which of the names of a question was found a moment ago, or notFound. ok is false if that is not
// known, or a change may have made it wrong.
func (c *cache[V]) answered(question []byte, now time.Time) (name int, ok bool) {
	return c.answers.after(c.store.hash(question), c.check(question, c.changes.of(question)), now)
}

// remember makes the answer to a flight's question known until a time, unless something has changed. The caller holds
// mu.
func (c *cache[V]) remember(f *flight[V], name int, until time.Time) {
	question := []byte(f.question)
	c.answers.put(c.store.hash(question), c.check(question, f.change), until, name)
}

// check returns the hash that distinguishes questions in answers: another one after each change.
func (c *cache[V]) check(question []byte, change uint64) uint64 {
	return maphash.Bytes(c.second, question) + change*0x9e3779b97f4a7c15 // an odd number: 2^64 by the golden ratio
}

// cached returns the entry of a key if nothing but time makes it stale, and begins its renewal if that is due. It
// returns nil without such an entry.
func (c *cache[V]) cached(key []byte, now time.Time) *entry[V] {
	e := c.store.get(c.store.hash(key), key)
	if e == nil || !e.state.timed() {
		return nil
	}
	c.serve(e, now)
	return e
}

// serve begins the renewal of an entry that answers a request, if that is due.
func (c *cache[V]) serve(e *entry[V], now time.Time) {
	renews := c.renews(e, now)
	if renews {
		c.join(string(e.key()), netip.Addr{}, false, now, nil)
	}
	if renews || e.state.fresh(now) {
		c.hits.Inc()
	} else {
		c.stale.Inc()
	}
}

// find returns the entry of a key that is a question of its own. If the key has to be looked up, find returns a flight
// instead, which calls w at its end; outcome then has the entry. It fails with errNotFound or ErrTooMany. It neither
// waits nor retains key.
func (c *cache[V]) find(key []byte, client netip.Addr, now time.Time, w Waiter) (e *entry[V], p pending[V], err error) {
	e = c.store.get(c.store.hash(key), key)
	if e == nil {
		if _, ok := c.answered(key, now); ok {
			c.hits.Inc()
			return nil, p, errNotFound
		}
	}
	return c.get(key, e, 0, e != nil, client, now, w)
}

// get is find for any question. Old, which may be nil, is the cached entry of a name of the question. It answers the
// question if sure is true, and otherwise if the look-up fails.
func (c *cache[V]) get(
	question []byte, old *entry[V], name int, sure bool, client netip.Addr, now time.Time, w Waiter,
) (e *entry[V], p pending[V], err error) {
	if sure && old.state.timed() {
		c.serve(old, now)
		return old, p, nil
	}
	if sure {
		var must bool
		if p, must = c.refresh(old, now); !must {
			c.stale.Inc()
			return old, p, nil
		}
		p.name = name
		p.flight = c.join(string(question), client, false, now, w)
		return nil, p, nil
	}
	if c.limiter.quota.wait(client, now) > 0 {
		return nil, p, ErrTooMany
	}
	if old == nil {
		c.misses.Inc()
	} else {
		p = pending[V]{old: old, name: name, next: c.afterFailure(now)}
		if token, ok := old.state.mustLookUp(); ok {
			p.token = token
		}
	}
	p.flight = c.join(string(question), client, c.limiter.quota.suspects(client, now), now, w)
	return nil, p, nil
}

// afterFailure returns when a key is looked up again if a look-up that begins now fails, in Unix seconds.
func (c *cache[V]) afterFailure(now time.Time) uint32 {
	return second(now.Add(c.limiter.timeout + retryAfter))
}

// renews reports whether a request, which does not wait, has to look up the key of an entry that was not dropped: one
// per LookupTimeout and retryAfter, from the last quarter of its time on. So a link that has visitors does not expire.
func (c *cache[V]) renews(e *entry[V], now time.Time) bool {
	return !e.state.fresh(now.Add(c.ttl/4)) && e.takeTurn(now, c.afterFailure(now))
}

// refresh reports whether a request has to look up the key of an entry that was dropped, and wait: every request, or
// one per LookupTimeout and retryAfter after a look-up has failed. If the look-up fails, the entry answers.
func (c *cache[V]) refresh(old *entry[V], now time.Time) (p pending[V], ok bool) {
	p = pending[V]{old: old, next: c.afterFailure(now)}
	if token, ok := old.state.mustLookUp(); ok {
		p.token = token
		return p, true
	}
	return p, old.takeTurn(now, p.next)
}

// outcome returns what a flight that has ended has found, or the entry that was there before if it failed, and which
// name that is. It fails with errNotFound or errUnavailable.
func (c *cache[V]) outcome(p *pending[V]) (e *entry[V], name int, err error) {
	f := p.flight
	switch {
	case p.old == nil:
		return f.entry, f.name, f.err
	case f.err != errUnavailable:
		c.misses.Inc()
		return f.entry, f.name, f.err
	}
	c.stale.Inc()
	if p.token < 0 {
		p.old.lookUpAfter.Store(p.next)
		p.old.state.setFailed(p.token)
	}
	if p.name > 0 {
		c.mu.Lock()
		c.remember(f, p.name, time.Unix(int64(p.next), 0)) // so that not every request waits
		c.mu.Unlock()
	}
	return p.old, p.name, nil
}

// join adds a waiter, which may be nil, to the flight of a question. It begins a flight if there is none, or a change
// has come since it began.
func (c *cache[V]) join(question string, client netip.Addr, suspect bool, now time.Time, w Waiter) *flight[V] {
	c.mu.Lock()
	change := c.changes.of([]byte(question))
	f, joined := c.flights[question]
	if joined = joined && f.change == change; !joined {
		f = &flight[V]{question: question, change: change, client: client, suspect: suspect, now: now, began: time.Now()}
		c.flights[question] = f
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

// publish makes e, the entry of one of the names, the result of a flight and offers it to ristretto, which may decline
// it. absent are the keys of names that do not exist.
func (c *cache[V]) publish(f *flight[V], e *entry[V], name int, absent ...[]byte) {
	e.state.setFresh(f.now.Add(c.ttl))
	c.mu.Lock()
	defer c.mu.Unlock()
	if other := c.published[string(e.key())]; other != nil && !other.state.wasDropped() {
		e = other // of another question: there is one entry for changes to drop
	} else {
		c.judge(e)
		c.published[string(e.key())] = e                // from here on drops and sweeps find it
		c.store.request(c.store.hash(e.key()), e.key()) // which counts the request that missed
		c.store.set(e)
	}
	f.entry, f.name = e, name
	if f.change != c.changes.of([]byte(f.question)) {
		e.state.drop() // it may be older than the change
	} else if c.remove(absent); name > 0 {
		c.remember(f, name, f.now.Add(c.ttl))
	}
}

// publishNone makes the result of a flight that none of its names exists, whose keys are absent.
func (c *cache[V]) publishNone(f *flight[V], absent ...[]byte) {
	f.err = errNotFound
	c.mu.Lock() // so that a change either finds the answer or prevents it
	defer c.mu.Unlock()
	if f.change == c.changes.of([]byte(f.question)) {
		c.remember(f, notFound, f.now.Add(c.unknown))
		c.remove(absent)
	}
}

// remove removes entries whose keys do not exist any more. The caller holds mu.
func (c *cache[V]) remove(keys [][]byte) {
	for _, key := range keys {
		if hash := c.store.hash(key); c.store.get(hash, key) != nil {
			c.store.remove(hash)
		}
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
		if c.flights[f.question] == f { // after a change another flight may have taken the place of f
			delete(c.flights, f.question)
		}
		if f.err == nil && c.published[string(f.entry.key())] == f.entry {
			delete(c.published, string(f.entry.key()))
		}
	}
	c.mu.Unlock()
	for _, f := range flights {
		if f.err == errNotFound || f.name > 0 {
			c.limiter.quota.charge(f.client, f.now)
		}
		for _, w := range f.waiters {
			w.Done()
		}
	}
}

// drop makes the entry at key dropped, in ristretto or of a flight, and the entries of names in front of it, which say
// whether there are names beneath. It forgets the answers to questions with this name. A flight under way ends for the
// requests that share it already; the next request begins another one.
func (c *cache[V]) drop(key []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes.note(key)
	for end := len(key); end > 0; end = bytes.LastIndexByte(key[:end], '/') {
		name := key[:end]
		if e := c.published[string(name)]; e != nil {
			e.state.drop()
		}
		if e := c.store.get(c.store.hash(name), name); e != nil {
			e.state.drop()
		}
	}
}

// dropEach drops the entries for which is returns true, and the results of flights under way. It forgets all answers.
func (c *cache[V]) dropEach(is func(*entry[V]) bool) {
	c.mu.Lock()
	c.changes.noteAll()
	for _, e := range c.published {
		e.state.drop()
	}
	c.mu.Unlock()
	// Entries that are published from here on were looked up after the call.
	c.store.each(func(e *entry[V]) {
		if is(e) {
			e.state.drop()
		}
	})
}

// judgeAll judges all entries again, as the blocklist has changed.
func (c *cache[V]) judgeAll() {
	c.mu.Lock()
	for _, e := range c.published {
		c.judge(e)
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
	c.changes.noteAll()
	c.store.close()
}
