package resolve

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/edge/snapshot"
	"linkstream/schema"
	"linkstream/schema/service"
)

// Resolver finds links. It is safe for concurrent use.
type Resolver struct {
	cached  Cached
	review  *review
	limiter *limiter
	hosts   *cache[domainID] // by hostname
	links   *cache[linkIDs]  // by linkKey
	queries *linkQuery
	store   linkStore
	preview chan struct{} // has an element while a page about a link is read

	log      *snapshot.Log // nil: none
	proven   atomic.Int64  // see memory
	isProven chan struct{} // closed when proven is set
	missed   *metrics.Counter
	restored int
	reaching sync.Mutex            // guards position, and orders it in the log
	position schema.ChangePosition // up to which changes have been dropped
}

// linkStore is the part of schema.LinkStore that a resolver uses.
type linkStore interface {
	Link(ctx context.Context, domainID int64, hash string) (schema.Link, error)
	Destinations(ctx context.Context, keys []schema.LinkKey) ([]schema.Destination, error)
}

// domainStore is the part of schema.DomainStore that a resolver uses.
type domainStore interface {
	VerifiedDomain(ctx context.Context, host string) (schema.Domain, error)
}

// Cached finds links in memory and does not wait: all that it can ask of the store is to renew what it has found. It is safe for
// concurrent use.
type Cached struct {
	defaultHost string
	hosts       *memory[domainID]
	links       *memory[linkIDs]
	quota       *quota
	pages       *quota
	review      *review
	renew       func(key []byte, now time.Time) // cache.renew
	keys        sync.Pool                       // of *linkKey
}

// What Cached cannot answer.
var (
	// ErrNotCached means that Resolver.Resolve has to look the link up, which it may refuse: see Cached.Wait.
	ErrNotCached = errors.New("the link is not cached")
	// ErrOutdated means that the link is cached, and that Resolver.Resolve has to look it up again.
	ErrOutdated = errors.New("the link is cached, and has to be looked up again")
)

// Target is where a link leads.
type Target struct {
	LinkID    int64
	AccountID int64 // of the link's owner
	// Location is the long URL as a Location header carries it; empty if the link does not redirect. It belongs to the
	// cache and stays valid; the caller must not modify it.
	Location []byte
	Forward  bool // the visitor's query string is appended to Location
	Stop     Stop // why Location is empty
}

// Stop says why a link does not redirect.
type Stop uint8

// The reasons.
const (
	NotStopped Stop = iota
	Inactive        // switched off by its owner
	TakenDown       // by the operator, or its owner's account is suspended
	Unsafe          // it leads to a host on the blocklist
	Deleted         // by its owner
	Expired         // and its owner has not said where it leads then
)

type (
	domainID int64
	linkIDs  struct{ link, account int64 }
)

// linkKey holds the key of a link: the domain's ID in 8 bytes, then the hash.
type linkKey [8 + schema.MaxAliasLen]byte

// New returns a resolver of the links in a store. The host of cfg.URL is the default domain. With cfg.Snapshot it has what an
// earlier resolver had cached.
func New(
	cfg Config, links linkStore, domains domainStore, set *metrics.Set, log *slog.Logger,
) (*Resolver, error) {
	r := &Resolver{limiter: newLimiter(&cfg, set, log), review: newReview(cfg.Blocklist), isProven: make(chan struct{})}
	service.Describe(set, "linkstream_edge_changes_missed_total",
		"How often changes may have been missed, so that all cached links are looked up again; 1 after the first start.")
	r.missed = set.NewCounter("linkstream_edge_changes_missed_total")
	service.Describe(set, "linkstream_edge_changes_current",
		"1 once all changes before the start are taken into account: cached links from before need no look-up then.")
	set.NewGauge("linkstream_edge_changes_current", func() float64 { return float64(min(1, r.proven.Load())) })
	hostBytes := cfg.CacheBytes / 32
	var err error
	r.hosts, err = newCache("hosts", 1, hostBytes, &cfg, r, set, saver[domainID]{kind: kindHost, drop: kindDropHost,
		dropAll: kindDropHosts, encode: encodeHost, isRecalled: func(*entry[domainID]) bool { return false }})
	if err != nil {
		return nil, err
	}
	r.hosts.begin = newHostQuery(domains, r.hosts).run
	r.links, err = newCache("links", 4, cfg.CacheBytes-hostBytes, &cfg, r, set,
		saver[linkIDs]{kind: kindLink, drop: kindDropLink, dropAll: kindDropLinks, encode: encodeLink, isRecalled: r.review.isRecalled})
	if err != nil {
		r.hosts.close()
		return nil, err
	}
	r.queries = newLinkQuery(links, r.links, set)
	r.links.begin, r.links.renews, r.store, r.preview = r.queries.begin, true, links, make(chan struct{}, 1)
	r.cached.defaultHost = string(cfg.URL.Host())
	r.cached.hosts, r.cached.links = &r.hosts.memory, &r.links.memory
	r.cached.quota, r.cached.pages = r.limiter.quota, r.limiter.pages
	r.cached.review, r.cached.renew = r.review, r.links.renew
	r.cached.keys.New = func() any { return new(linkKey) }
	if cfg.Snapshot != "" {
		if err := r.openSnapshot(cfg.Snapshot, set, log); err != nil {
			r.Close()
			return nil, err
		}
	}
	return r, nil
}

// Close cancels the look-ups under way and frees the memory. Those look-ups, and every later Resolve, fail with
// CodeUnavailable. The server must have stopped: no Resolve may be in its first steps, reading the cache. Close is
// idempotent.
func (r *Resolver) Close() {
	r.limiter.close()
	r.queries.close()
	if r.log != nil {
		r.log.Close()
	}
	r.hosts.close()
	r.links.close()
}

// Resolve returns the link that a hash on a host stands for at the time now. The host is that of a request, in lower
// case. CodeNotFound if there is no such link; CodeUnavailable if the link is not cached and the store does not answer;
// ErrTooMany if the link is not cached and the client has asked for too many that do not exist. The zero Addr is a client
// that is not bounded. For a cached link Resolve neither allocates nor waits. It does not retain host and hash.
func (r *Resolver) Resolve(host, hash []byte, client netip.Addr, now time.Time) (Target, error) {
	if !schema.ValidHash(hash) {
		return Target{}, errNotFound
	}
	domain, err := r.domain(host, client, now)
	if err != nil {
		return Target{}, err
	}
	key := r.cached.keys.Get().(*linkKey)
	defer r.cached.keys.Put(key)
	return r.link(key.append(domain, hash), client, now)
}

// domain returns the ID of the domain that a host stands for.
func (r *Resolver) domain(host []byte, client netip.Addr, now time.Time) (domainID, error) {
	name, isDefault, err := r.cached.domainName(host)
	if err != nil || isDefault {
		return 0, err
	}
	e, err := r.hosts.get(name, client, now)
	if err != nil {
		return 0, err
	}
	return e.value, nil
}

// Preview is Resolve for a page about the link. If the link redirects, Preview also reads it from the store. Such pages never
// keep redirects waiting: one query for them is under way at a time. ErrTooMany also if the client has asked for too many of them.
func (r *Resolver) Preview(host, hash []byte, client netip.Addr, now time.Time) (Target, schema.Link, error) {
	target, err := r.Resolve(host, hash, client, now)
	if err != nil || len(target.Location) == 0 {
		return target, schema.Link{}, err
	}
	domain, err := r.domain(host, client, now)
	if err != nil {
		return Target{}, schema.Link{}, err
	}
	if r.limiter.pages.wait(client, now) > 0 {
		return Target{}, schema.Link{}, ErrTooMany
	}
	r.limiter.pages.charge(client, now)
	var link schema.Link
	err = r.limiter.do(func(ctx context.Context) (err error) {
		select {
		case r.preview <- struct{}{}:
			defer func() { <-r.preview }()
			link, err = r.store.Link(ctx, int64(domain), string(hash))
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return target, link, err
}

// maxRecalled is how often a request looks a link up again because all links of its account have changed meanwhile.
const maxRecalled = 2

func (r *Resolver) link(key []byte, client netip.Addr, now time.Time) (Target, error) {
	for tries := 0; ; tries++ {
		e, err := r.links.get(key, client, now)
		if err != nil {
			return Target{}, err
		}
		if v := r.review.judge(e, now); v != recalled || tries == maxRecalled {
			return target(e, v, now), nil
		}
	}
}

// Cached returns the part of the resolver that is in memory.
func (r *Resolver) Cached() *Cached { return &r.cached }

// Host is what a request's host stands for. It refers to the host's bytes.
type Host struct {
	name      []byte // of the domain
	isDefault bool   // it is the default domain, and has no name
	err       error  // why no domain can have this name
}

// Host returns what the host of a request, in lower case, stands for. It stands for the same as long as c exists.
func (c *Cached) Host(host []byte) (h Host) {
	h.name, h.isDefault, h.err = c.domainName(host)
	return h
}

// Resolve is Resolver.Resolve for callers that cannot wait. It fails with CodeNotFound if memory says that there is no such
// link, and with ErrNotCached or ErrOutdated, without a trace in metrics, if Resolver.Resolve has to look it up.
func (c *Cached) Resolve(host, hash []byte, now time.Time) (Target, error) {
	return c.ResolveOn(c.Host(host), hash, now)
}

// ResolveOn is Resolve with the result of Host.
func (c *Cached) ResolveOn(host Host, hash []byte, now time.Time) (Target, error) {
	if !schema.ValidHash(hash) {
		return Target{}, errNotFound
	}
	var domain domainID
	foundHost := missing
	if host.err != nil {
		return Target{}, host.err
	}
	if !host.isDefault {
		var e *entry[domainID]
		e, foundHost = c.hosts.find(host.name, now)
		if foundHost == unknown {
			c.hosts.count(foundHost)
		}
		if err := foundHost.failure(); err != nil {
			return Target{}, err
		}
		domain = e.value
	}
	buffer := c.keys.Get().(*linkKey)
	defer c.keys.Put(buffer)
	key := buffer.append(domain, hash)
	e, found := c.links.find(key, now)
	err := found.failure()
	v := sound
	if err == nil {
		if v = c.review.judge(e, now); v == recalled {
			return Target{}, ErrOutdated
		}
	}
	if err == nil || err == errNotFound {
		if !host.isDefault {
			c.hosts.count(foundHost)
		}
		c.links.count(found)
	}
	if err != nil {
		return Target{}, err
	}
	if found == aging {
		c.renew(key, now)
	}
	return target(e, v, now), nil
}

// failure returns why memory alone cannot give an entry, or nil if it can.
func (f finding) failure() error {
	switch f {
	case missing:
		return ErrNotCached
	case outdated:
		return ErrOutdated
	case unknown:
		return errNotFound
	}
	return nil
}

// Wait returns how long a client has to wait until Resolver.Resolve looks links up for it again; 0 if it does now.
func (c *Cached) Wait(client netip.Addr, now time.Time) time.Duration {
	return c.quota.wait(client, now)
}

// WaitPreview returns how long a client has to wait until Resolver.Preview reads links for it again; 0 if it does now.
func (c *Cached) WaitPreview(client netip.Addr, now time.Time) time.Duration {
	return c.pages.wait(client, now)
}

// domainName returns the name of the domain that a host stands for, unless that is the default domain. Addresses and
// localhost stand for the default domain, so that the service can be tried without a domain name.
func (c *Cached) domainName(host []byte) (name []byte, isDefault bool, err error) {
	name, _ = schema.CutPort(host)
	name = bytes.TrimSuffix(name, []byte("."))
	switch {
	case string(name) == c.defaultHost || string(name) == "localhost" || schema.HostIsAddr(name):
		return nil, true, nil
	case !schema.ValidHostName(name):
		return nil, false, errNotFound
	}
	return name, false, nil
}

// append returns the key of a link. It needs a buffer on the heap, as ristretto lets keys escape.
func (k *linkKey) append(domain domainID, hash []byte) []byte {
	return append(binary.BigEndian.AppendUint64(k[:0], uint64(domain)), hash...)
}

// target returns the target of an entry with a verdict at the time now.
func target(e *entry[linkIDs], v verdict, now time.Time) Target {
	t := Target{LinkID: e.value.link, AccountID: e.value.account}
	t.Location, t.Forward, t.Stop = decodeAnswer(e.bytes(), now)
	if v == blocked {
		t.Location, t.Stop = nil, Unsafe
	}
	return t
}

// Drop makes requests that begin after it look up again what has changed. While the store does not answer, they get what
// was cached before.
func (r *Resolver) Drop(change schema.Change) {
	switch {
	case change.AccountID != 0:
		r.review.recall(change.AccountID)
		if r.log != nil { // after the recall: see saver.save
			r.log.Append(kindRecall, binary.AppendUvarint(nil, uint64(change.AccountID)))
		}
	case change.Hash == "":
		r.hosts.drop([]byte(change.Host))
	default:
		r.links.drop(append(binary.BigEndian.AppendUint64(nil, uint64(change.DomainID)), change.Hash...))
	}
}

// BlocklistChanged makes requests that begin after it consult the blocklist again.
func (r *Resolver) BlocklistChanged() { r.review.next(func(uint32) {}) }

// hostQuery looks up hosts, one at a time for each of its slots.
type hostQuery struct {
	domains domainStore
	cache   *cache[domainID]
	slots   [2]chan struct{} // an element per look-up under way; the second one for suspects, see linkQuery
}

const (
	hostQueries        = 48
	suspectHostQueries = 16
)

func newHostQuery(domains domainStore, c *cache[domainID]) *hostQuery {
	return &hostQuery{domains, c, [2]chan struct{}{make(chan struct{}, hostQueries), make(chan struct{}, suspectHostQueries)}}
}

// run is a cache's begin for hosts. It waits for the look-up.
func (q *hostQuery) run(f *flight[domainID]) {
	f.err = errUnavailable // in case the look-up panics
	defer func() { q.cache.end([]*flight[domainID]{f}) }()
	f.err = q.cache.limiter.do(func(ctx context.Context) error {
		round := q.cache.round.Load() // before the look-up, so that changes during the look-up are noticed
		domain, err := q.lookup(ctx, f.key, f.suspect)
		if err != nil && schema.ErrorCode(err) != schema.CodeNotFound {
			return err
		}
		if err != nil {
			q.cache.publishNegative(f)
			return nil
		}
		e := newEntry(domain, nil)
		e.reviewed.Store(pending(round))
		q.cache.publish(f, e)
		return nil
	})
	if f.err == nil && f.entry == nil {
		f.err = errNotFound
	}
}

func (q *hostQuery) lookup(ctx context.Context, host string, suspect bool) (domainID, error) {
	slots := q.slots[0]
	if suspect {
		slots = q.slots[1]
	}
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return 0, fmt.Errorf("look up domain %q: %d look-ups are under way", host, cap(slots))
	}
	domain, err := q.domains.VerifiedDomain(ctx, host)
	if err != nil {
		return 0, fmt.Errorf("look up domain %q: %w", host, err)
	}
	return domainID(domain.ID), nil
}
