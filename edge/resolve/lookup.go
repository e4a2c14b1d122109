package resolve

import (
	"net/netip"
	"time"
)

// Lookups begins look-ups of links and does not wait for them.
type Lookups struct{ resolver *Resolver }

// Lookup is a look-up of a link.
type Lookup struct{ flight *flight[linkIDs] }

// Lookups returns the part of the resolver for those who cannot wait.
func (r *Resolver) Lookups() Lookups { return Lookups{r} }

// Begin begins the look-up of a link that Cached.Resolve has not found, or joins one that is under way. Unless ok is false, w.Done is
// called once when it has ended, perhaps before Begin returns; Result has its outcome then. Nothing happens, and Resolver.Resolve has
// to look it up, if ok is false: the host is not in memory. Begin does not ask whether the client is over its quota: see Cached.Wait.
func (l Lookups) Begin(host, hash []byte, client netip.Addr, now time.Time, w Waiter) (_ Lookup, ok bool) {
	c, r := &l.resolver.cached, l.resolver
	var domain domainID
	name, isDefault, err := c.domainName(host)
	if err != nil {
		return Lookup{}, false
	}
	if !isDefault {
		e, found := c.hosts.find(name, now)
		if found != fresh && found != stale {
			return Lookup{}, false
		}
		c.hosts.count(found)
		domain = e.value
	}
	key := c.keys.Get().(*linkKey)
	defer c.keys.Put(key)
	r.links.misses.Inc()
	f, joined := r.links.join(string(key.append(domain, hash)), client, c.quota.suspects(client, now), now, w)
	if !joined {
		r.links.begin(f)
	}
	return Lookup{f}, true
}

// Result returns what Resolver.Resolve would have, had it made the look-up, whose Done was called. It fails with ErrOutdated if
// Resolver.Resolve has to look the link up again.
func (l Lookups) Result(lookup Lookup, now time.Time) (Target, error) {
	f := lookup.flight
	if f.err != nil {
		return Target{}, f.err
	}
	v := l.resolver.review.judge(f.entry, now)
	if v == recalled {
		return Target{}, ErrOutdated
	}
	return target(f.entry, v, now), nil
}
