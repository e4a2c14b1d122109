package resolve

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/edge/resolve/snapshot"
	"linkstream/schema"
	"linkstream/schema/blocklist"
	"linkstream/schema/service"
)

// Resolver finds links. It is safe for concurrent use.
type Resolver struct {
	defaultHost string
	home        *entry[domainID] // of the default domain
	homeLinks   schema.AppLinks  // of the default domain
	hosts       *cache[domainID] // by hostname
	links       *cache[linkIDs]  // by linkKey; its questions are of type question
	limiter     *limiter
	queries     *linkQuery
	blocklist   *blocklist.List // nil: nothing is blocked
	store       linkStore
	domains     domainStore
	page        chan struct{} // has an element while the store is read for readPage
	questions   sync.Pool     // of *question
	waiting     sync.Pool     // of waiting

	missed   *metrics.Counter
	snapshot *snapshot.Snapshot // nil: none
	restored int                // entries of the snapshot
	current  chan struct{}      // closed when all changes since the snapshot have been dropped
	reaching sync.Mutex         // guards position, and closing current
	position Position
}

// linkStore is the part of schema.LinkStore that a resolver uses.
type linkStore interface {
	LinksByHash(ctx context.Context, keys []schema.LinkKey) ([]schema.Link, error)
	EdgeLinks(ctx context.Context, keys []schema.LinkKey) ([]schema.EdgeLink, error)
}

// domainStore is the part of schema.DomainStore that a resolver uses.
type domainStore interface {
	VerifiedDomain(ctx context.Context, host string) (schema.Domain, error)
	AppLinks(ctx context.Context, domainID int64) (schema.AppLinks, error)
}

// Target is where a link leads.
type Target struct {
	LinkID    int64
	AccountID int64 // of the link's owner
	// Location is the long URL as a Location header carries it; empty if the link does not redirect. It belongs to the
	// cache and stays valid; the caller must not modify it.
	Location []byte
	Forward  bool // the visitor's query string is appended to Location
	Stop     Stop // why Location is empty

	behind bool             // see IsBehind
	host   *entry[domainID] // also of a link that is not found; nil: unknown
	entry  *entry[linkIDs]
}

// Extended returns the location of a link with Stop Extended without its rules and variants, and its behaviour. They
// belong to the cache, as Location does.
func (t *Target) Extended() (location []byte, x Behaviour) {
	a := cutAnswer(t.entry.answer())
	return a.before, a.extension
}

// hash returns the hash of a link that was found.
func (t *Target) hash() string { return string(t.entry.key()[8:]) }

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
	Extended        // it is not stopped, but has an extension that decides where it leads
	Behind          // it may be stopped or not: the path goes on behind its name, see Settle
)

type (
	domainID int64
	linkIDs  struct{ link, account int64 }
)

// linkKey holds the key of a link: the domain's ID in 8 bytes, then the hash.
type linkKey [8 + schema.MaxAliasLen]byte

// append returns the key of a link. It needs a buffer on the heap, as ristretto lets keys escape.
func (k *linkKey) append(domain domainID, hash []byte) []byte {
	return append(binary.BigEndian.AppendUint64(k[:0], uint64(domain)), hash...)
}

// New returns a resolver of the links in a store. The host of cfg.URL is the default domain. With cfg.Snapshot it
// restores the entries of an earlier resolver.
func New(
	cfg Config, links linkStore, domains domainStore, set *metrics.Set, log *slog.Logger,
) (*Resolver, error) {
	r := &Resolver{
		defaultHost: string(cfg.URL.Host()),
		home:        newEntry(domainID(0), nil, appendSite(nil, &cfg.Site, false)),
		homeLinks:   cfg.AppLinks,
		limiter:     newLimiter(&cfg, set, log),
		blocklist:   cfg.Blocklist,
		store:       links,
		domains:     domains,
		page:        make(chan struct{}, 1),
		questions:   sync.Pool{New: func() any { return new(question) }},
		waiting:     sync.Pool{New: func() any { return make(waiting, 1) }},
		current:     make(chan struct{}),
		missed: service.NewCounter(set, "linkstream_edge_changes_missed_total",
			"How often changes may have been missed, so that all cached links are looked up again; 1 after the first start."),
	}
	service.NewGauge(set, "linkstream_edge_changes_current",
		"1 once all changes before the start are taken into account: restored links need no look-up then.",
		func() float64 {
			select {
			case <-r.current:
				return 1
			default:
				return 0
			}
		})
	hostBytes := cfg.CacheBytes / 32
	var err error
	if r.hosts, err = newCache[domainID]("hosts", hostBytes, &cfg, r.limiter, set); err != nil {
		return nil, err
	}
	if r.links, err = newCache[linkIDs]("links", cfg.CacheBytes-hostBytes, &cfg, r.limiter, set); err != nil {
		r.hosts.close()
		return nil, err
	}
	r.queries = newLinkQuery(links, r.links, set)
	r.hosts.begin, r.links.begin = newHostQuery(domains, r.hosts).begin, r.queries.begin
	r.hosts.judge, r.links.judge = r.judgeHost, r.judge
	if cfg.Snapshot != "" {
		r.openSnapshot(cfg.Snapshot, set, log)
	}
	return r, nil
}

// Close cancels the look-ups under way and frees the memory. Those look-ups, and every later Resolve, fail with
// CodeUnavailable. The server must have stopped: no Resolve may be in its first steps, reading the cache. Close is
// idempotent.
func (r *Resolver) Close() {
	r.limiter.close()
	r.queries.close()
	if r.snapshot != nil {
		r.snapshot.Close()
	}
	r.hosts.close()
	r.links.close()
}

// Lookup is a look-up of a host or of a link that a request waits for.
type Lookup struct {
	host   pending[domainID]
	link   pending[linkIDs] // if there is no flight of a host
	domain *entry[domainID] // of the link
	lower  bool             // of the second question, see askLower
}

// TryResolve returns the link that a path stands for on a host at the time now, from memory: see question. The host is
// a request's, in lower case; the path has neither its first slash nor escapes, except for slashes. CodeNotFound if
// there is no such link; ErrTooMany if the link is not cached and the client has asked for too many that do not exist.
// The zero Addr is a client that is not bounded.
//
// If the host or the link has to be looked up, TryResolve begins the look-up and returns it, and w.Done is called once
// when it has ended, perhaps before TryResolve returns. The caller then calls TryResolve again, with the look-up as
// waited and a w that is not in use. CodeUnavailable if the look-up failed and nothing is cached. For a cached link
// TryResolve does not allocate. It neither waits nor retains host and path.
func (r *Resolver) TryResolve(
	host, path []byte, client netip.Addr, now time.Time, waited *Lookup, w Waiter,
) (t Target, lookup *Lookup, err error) {
	if waited == nil || !waited.lower {
		t, lookup, err = r.tryFirst(host, path, client, now, waited, w)
		if err != errNotFound || t.host == nil {
			return t, lookup, err
		}
		waited = nil
	}
	q := r.questions.Get().(*question)
	defer r.questions.Put(q)
	switch {
	case waited != nil:
		t, err = r.outcome(waited, now)
		return t, nil, err
	case !q.askLower(t.host.value, path):
		return t, nil, err
	}
	t, lookup, err = r.search(q, t.host, netip.Addr{}, now, w) // the first question has counted against the quota
	if lookup != nil {
		lookup.lower = true
	}
	return t, lookup, err
}

// tryFirst is TryResolve for the first question of a path.
func (r *Resolver) tryFirst(
	host, path []byte, client netip.Addr, now time.Time, waited *Lookup, w Waiter,
) (Target, *Lookup, error) {
	if waited != nil && waited.link.flight != nil {
		t, err := r.outcome(waited, now)
		return t, nil, err
	}
	domain, p, err := r.tryDomain(host, client, now, waited, w)
	if err != nil {
		return Target{}, nil, err
	}
	if p.flight != nil {
		return Target{}, &Lookup{host: p}, nil
	}
	q := r.questions.Get().(*question)
	defer r.questions.Put(q)
	if schema.ValidHash(path) {
		if e := r.links.cached(q.link.append(domain.value, path), now); e != nil {
			return r.target(domain, e, isWhole, now), nil, nil
		}
	}
	if !q.ask(domain.value, path, before(domain)) {
		return Target{host: domain}, nil, errNotFound
	}
	return r.search(q, domain, client, now, w)
}

// search is TryResolve for a question.
func (r *Resolver) search(
	q *question, domain *entry[domainID], client netip.Addr, now time.Time, w Waiter,
) (Target, *Lookup, error) {
	answer, answered := r.links.answered(q.key, now)
	old, name, sure := r.recall(q, answer, answered)
	if sure && old == nil {
		r.links.hits.Inc()
		return Target{host: domain}, nil, errNotFound
	}
	e, p, err := r.links.get(q.key, old, name, sure, client, now, w)
	switch {
	case p.flight != nil:
		return Target{}, &Lookup{link: p, domain: domain}, nil
	case err != nil:
		return Target{host: domain}, nil, err
	}
	return r.target(domain, e, markOf(q.key, name), now), nil, nil
}

// outcome returns what the look-up of a link has found.
func (r *Resolver) outcome(l *Lookup, now time.Time) (Target, error) {
	e, name, err := r.links.outcome(&l.link)
	if err != nil {
		return Target{host: l.domain}, err
	}
	return r.target(l.domain, e, markOf(l.link.flight.question, name), now), nil
}

// recall returns what the cache has of the names of a question: the entry of the name that answers it, if the question
// was answered a moment ago. Otherwise the entry of the first name that can. It is sure to answer if all names before
// are known: they are cached, or no name begins with its own and a slash, as all of them do. No entry is sure if no
// name exists.
func (r *Resolver) recall(q *question, answer int, answered bool) (e *entry[linkIDs], name int, sure bool) {
	sure = true
	i := -1
	for hash, mark := range names(q.key) {
		if i++; answered && i != answer {
			continue
		}
		key := q.linkKey(hash)
		e := r.links.store.get(r.links.store.hash(key), key)
		if e == nil {
			sure = false
		} else if answers(e.paths, mark) {
			return e, i, sure || mark != isWhole && e.paths&pathsBeneath == 0
		}
	}
	return nil, 0, sure
}

// tryDomain returns the entry of the domain that a host stands for, or its look-up.
func (r *Resolver) tryDomain(
	host []byte, client netip.Addr, now time.Time, waited *Lookup, w Waiter,
) (domain *entry[domainID], p pending[domainID], err error) {
	if waited != nil {
		domain, _, err = r.hosts.outcome(&waited.host)
		return domain, p, err
	}
	name, isDefault, err := r.domainName(host)
	if err != nil || isDefault {
		return r.home, p, err
	}
	return r.hosts.find(name, client, now, w)
}

// domainName returns the name of the domain that a host stands for, unless that is the default domain. Addresses and
// localhost stand for the default domain, so that the service can be tried without a domain name.
func (r *Resolver) domainName(host []byte) (name []byte, isDefault bool, err error) {
	name, _ = schema.CutPort(host)
	name = bytes.TrimSuffix(name, []byte("."))
	switch {
	case string(name) == r.defaultHost || string(name) == "localhost" || schema.HostIsAddr(name):
		return nil, true, nil
	case !schema.ValidHostName(name):
		return nil, false, errNotFound
	}
	return name, false, nil
}

// target returns where the link of an entry leads at the time now. mark is the mark of its name.
func (r *Resolver) target(host *entry[domainID], e *entry[linkIDs], mark byte, now time.Time) Target {
	t := Target{LinkID: e.value.link, AccountID: e.value.account, host: host, entry: e}
	if mark != isWhole {
		t.Stop, t.behind = Behind, true
		return t
	}
	t.Location, t.Forward, t.Stop = decodeAnswer(e.answer(), now)
	r.finish(&t)
	return t
}

// finish sends visitors of an expired link where its domain says, and nobody to a blocked host.
func (r *Resolver) finish(t *Target) {
	if t.Stop == Expired {
		if location := r.SiteLocation(t, ExpiredURL); len(location) > 0 {
			t.Location, t.Stop = location, NotStopped
		}
	}
	if r.Blocks(t) {
		t.Location, t.Stop = nil, Unsafe
	}
}

// Expire makes the target of a link with a behaviour what it is once the link has expired.
func (r *Resolver) Expire(t *Target) {
	t.Location, t.Stop = cutAnswer(t.entry.answer()).after, NotStopped
	if len(t.Location) == 0 {
		t.Location, t.Stop = nil, Expired
	}
	r.finish(t)
}

// Blocks reports whether the location of a target leads to a blocked host.
func (r *Resolver) Blocks(t *Target) bool { return t.entry.listed.Load() && r.blocks(t.Location) }

// judge notes whether a link may lead to a blocked host, for any visitor at any time.
func (r *Resolver) judge(e *entry[linkIDs]) {
	a := cutAnswer(e.answer())
	listed := r.blocks(a.before) || r.blocks(a.after)
	a.extension.locations(func(location []byte) bool {
		listed = listed || r.blocks(location)
		return !listed
	})
	e.listed.Store(listed)
}

// blocks reports whether a location leads to a blocked host.
func (r *Resolver) blocks(location []byte) bool {
	if len(location) == 0 || r.blocklist.IsEmpty() {
		return false
	}
	host, err := schema.HostOfURL(string(location))
	return err == nil && r.blocklist.Blocks(host)
}

// waiting is a Waiter of a goroutine.
type waiting chan struct{}

// Done implements Waiter.
func (w waiting) Done() { w <- struct{}{} }

// Resolve is TryResolve, and waits for look-ups.
func (r *Resolver) Resolve(host, path []byte, client netip.Addr, now time.Time) (Target, error) {
	w := r.waiting.Get().(waiting)
	defer r.waiting.Put(w)
	for waited := (*Lookup)(nil); ; <-w {
		t, lookup, err := r.TryResolve(host, path, client, now, waited, w)
		if lookup == nil {
			return t, err
		}
		waited = lookup
	}
}

// Wait returns how long a client has to wait until look-ups are made for it again; 0 if they are now.
func (r *Resolver) Wait(client netip.Addr, now time.Time) time.Duration {
	return r.limiter.quota.wait(client, now)
}

// WaitPreview returns how long a client has to wait until Preview reads links for it again; 0 if it does now.
func (r *Resolver) WaitPreview(client netip.Addr, now time.Time) time.Duration {
	return r.limiter.pages.wait(client, now)
}

// Preview is Resolve for a page about the link. If the link redirects, Preview also reads it from the store. Such
// pages never delay redirects: one query for them is under way at a time. ErrTooMany also if the client has asked for
// too many of them.
func (r *Resolver) Preview(host, path []byte, client netip.Addr, now time.Time) (Target, schema.Link, error) {
	target, err := r.Resolve(host, path, client, now)
	if err == nil && target.Stop == Behind {
		r.Settle(&target, now)
	}
	if err == nil && target.Stop == Extended {
		if target.Location, _ = target.Extended(); r.Blocks(&target) {
			target.Location, target.Stop = nil, Unsafe
		}
	}
	if err != nil || len(target.Location) == 0 {
		return target, schema.Link{}, err
	}
	var link schema.Link
	err = r.readPage(client, now, func(ctx context.Context) (err error) {
		link, err = schema.FindLink(ctx, r.store, int64(target.host.value), target.hash())
		return err
	})
	return target, link, err
}

// readPage reads titles, dates and documents from the store. One such query is under way at a time, and the queries of
// a client are bounded.
func (r *Resolver) readPage(client netip.Addr, now time.Time, read func(context.Context) error) error {
	if r.WaitPreview(client, now) > 0 {
		return ErrTooMany
	}
	r.limiter.pages.charge(client, now)
	return r.limiter.do(func(ctx context.Context) error {
		select {
		case r.page <- struct{}{}:
			defer func() { <-r.page }()
			return read(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// Drop makes requests that begin after it look up a changed key. While the store does not answer, they get the entry
// that was cached before. The snapshot loses the entry.
func (r *Resolver) Drop(change schema.Change) {
	switch {
	case change.AccountID != 0:
		r.links.dropEach(func(e *entry[linkIDs]) bool { return e.value.account == change.AccountID })
	case change.Hash == "":
		r.hosts.drop([]byte(change.Host)) // another path mode asks other questions: see the marks of names
	default:
		r.links.drop(new(linkKey).append(domainID(change.DomainID), []byte(change.Hash)))
	}
	if r.snapshot != nil {
		r.snapshot.Add(change.Key())
	}
}

// Missed is Drop for all keys, because changes may have been missed. The snapshot loses all entries.
func (r *Resolver) Missed() {
	r.missed.Inc()
	r.hosts.dropEach(func(*entry[domainID]) bool { return true })
	r.links.dropEach(func(*entry[linkIDs]) bool { return true })
	if r.snapshot != nil {
		r.snapshot.Invalidate()
	}
}

// BlocklistChanged makes requests that begin after it consult the blocklist again.
func (r *Resolver) BlocklistChanged() {
	r.hosts.judgeAll()
	r.links.judgeAll()
}
