package resolve

import (
	"net/netip"
	"time"
)

// Lookups begins look-ups of links and does not wait for them.
type Lookups struct{ resolver *Resolver }

// Lookup is a look-up of a link.
type Lookup struct {
	flight *flight[linkIDs]
	old    *entry[linkIDs] // answers the request if the look-up fails; nil: none
	drop   int64           // the token of old's state, if it was dropped
	next   uint32          // Unix seconds; what is old then is not looked up before
}

// Lookups returns the part of the resolver for those who cannot wait.
func (r *Resolver) Lookups() Lookups { return Lookups{r} }

// Begin begins the look-up of a link that Cached.Resolve has not found, or joins one that is under way. Unless ok is false, w.Done is
// called once when it has ended, perhaps before Begin returns; Result has its outcome then. Nothing happens, and Resolver.Resolve has
// to look it up, if ok is false: the host is not in memory. Begin does not ask whether the client is over its quota: see Cached.Wait.
func (l Lookups) Begin(host, hash []byte, client netip.Addr, now time.Time, w Waiter) (_ Lookup, ok bool) {
	c, links := &l.resolver.cached, l.resolver.links
	domain, ok := c.domain(host, now)
	if !ok {
		return Lookup{}, false
	}
	key := c.keys.Get().(*linkKey)
	defer c.keys.Put(key)
	links.misses.Inc()
	return Lookup{flight: links.beginFor(key.append(domain, hash), client, c.quota.suspects(client, now), now, w)}, true
}

// Refresh is Begin for a link with which Cached.Resolve has failed with ErrOutdated. If the look-up fails, Result has what was cached
// before. ok is also false if the link needs no look-up any more.
func (l Lookups) Refresh(host, hash []byte, client netip.Addr, now time.Time, w Waiter) (_ Lookup, ok bool) {
	c, links := &l.resolver.cached, l.resolver.links
	domain, ok := c.domain(host, now)
	if !ok {
		return Lookup{}, false
	}
	buffer := c.keys.Get().(*linkKey)
	defer c.keys.Put(buffer)
	key := buffer.append(domain, hash)
	old, found := links.find(key, now)
	if found != outdated {
		return Lookup{}, false
	}
	drop, next, ok := links.mayRefresh(old, now)
	if !ok {
		return Lookup{}, false
	}
	return Lookup{links.beginFor(key, client, false, now, w), old, drop, next}, true
}

// domain returns the ID of the domain that a host stands for, if it is in memory.
func (c *Cached) domain(host []byte, now time.Time) (_ domainID, ok bool) {
	name, isDefault, err := c.domainName(host)
	if err != nil || isDefault {
		return 0, err == nil
	}
	e, found := c.hosts.find(name, now)
	if found != fresh && found != stale && found != aging {
		return 0, false
	}
	c.hosts.count(found)
	return e.value, true
}

// beginFor begins the look-up of a key, or joins one that is under way.
func (c *cache[V]) beginFor(key []byte, client netip.Addr, suspect bool, now time.Time, w Waiter) *flight[V] {
	f, joined := c.join(string(key), client, suspect, now, w)
	if !joined {
		c.begin(f)
	}
	return f
}

// Result returns what Resolver.Resolve would have, had it made the look-up, whose Done was called. It fails with ErrOutdated if
// Resolver.Resolve has to look the link up again.
func (l Lookups) Result(lookup Lookup, now time.Time) (Target, error) {
	links, e, err := l.resolver.links, lookup.flight.entry, lookup.flight.err
	switch {
	case err == errUnavailable && lookup.old != nil:
		e = lookup.old
		links.keepOld(e, lookup.drop, lookup.next)
	case lookup.old != nil:
		links.misses.Inc()
	}
	if err != nil && e == nil {
		return Target{}, err
	}
	v := l.resolver.review.judge(e, now)
	if v == recalled {
		return Target{}, ErrOutdated
	}
	return target(e, v, now), nil
}
