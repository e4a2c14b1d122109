package resolve

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema"
)

// Resolver finds links. It is safe for concurrent use.
type Resolver struct {
	defaultHost string
	limiter     *limiter
	hosts       *cache[domainID] // by hostname
	links       *cache[linkIDs]  // by linkKey
	keys        sync.Pool        // of *linkKey
}

// Target is where a link leads.
type Target struct {
	LinkID    int64
	AccountID int64 // of the link's owner
	// Location is the long URL as a Location header carries it; empty if the link is not active. It belongs to the cache
	// and stays valid; the caller must not modify it.
	Location []byte
}

type (
	domainID int64
	linkIDs  struct{ link, account int64 }
)

// linkKey holds the key of a link: the domain's ID in 8 bytes, then the hash.
type linkKey [8 + schema.MaxAliasLen]byte

// New returns a resolver of the links in a store. The host of cfg.URL is the default domain.
func New(
	cfg Config, links schema.LinkStore, domains schema.DomainStore, set *metrics.Set, log *slog.Logger,
) (*Resolver, error) {
	r := &Resolver{
		defaultHost: string(cfg.URL.Host()),
		limiter:     newLimiter(cfg.LookupTimeout, set, log),
		keys:        sync.Pool{New: func() any { return new(linkKey) }},
	}
	hostBytes := cfg.CacheBytes / 32
	var err error
	r.hosts, err = newCache("hosts", 1, hostBytes, &cfg, r.limiter, set, lookupHost(domains))
	if err != nil {
		return nil, err
	}
	r.links, err = newCache("links", 4, cfg.CacheBytes-hostBytes, &cfg, r.limiter, set, lookupLink(links))
	if err != nil {
		r.hosts.shards.close()
		return nil, err
	}
	return r, nil
}

// Close cancels the look-ups under way and frees the memory. Those look-ups, and every later Resolve, fail with
// CodeUnavailable. The server must have stopped: no Resolve may be in its first steps, reading the cache. Close is
// idempotent.
func (r *Resolver) Close() {
	r.limiter.close()
	r.hosts.shards.close()
	r.links.shards.close()
}

// Resolve returns the link that a hash on a host stands for at the time now. The host is that of a request, in lower
// case. CodeNotFound if there is no such link; CodeUnavailable if the link is not cached and the store does not answer.
// For a cached link Resolve neither allocates nor waits. It does not retain host and hash.
func (r *Resolver) Resolve(host, hash []byte, now time.Time) (Target, error) {
	if !schema.ValidHash(hash) {
		return Target{}, errNotFound
	}
	domain, err := r.domain(host, now)
	if err != nil {
		return Target{}, err
	}
	buf := r.keys.Get().(*linkKey) // ristretto lets keys escape, so a buffer on the stack would be allocated
	defer r.keys.Put(buf)
	key := binary.BigEndian.AppendUint64(buf[:0], uint64(domain))
	e, err := r.links.get(append(key, hash...), now)
	if err != nil {
		return Target{}, err
	}
	return Target{e.value.link, e.value.account, e.bytes()}, nil
}

// Drop makes requests that begin after it look up again what has changed. While the store does not answer, they get what
// was cached before.
func (r *Resolver) Drop(change schema.Change) {
	if change.Hash == "" {
		r.hosts.drop([]byte(change.Host))
		return
	}
	r.links.drop(append(binary.BigEndian.AppendUint64(nil, uint64(change.DomainID)), change.Hash...))
}

// domain returns the ID of the domain that a host stands for. Addresses and localhost stand for the default domain, so
// that the service can be tried without a domain name.
func (r *Resolver) domain(host []byte, now time.Time) (domainID, error) {
	name, _ := schema.CutPort(host)
	name = bytes.TrimSuffix(name, []byte("."))
	switch {
	case string(name) == r.defaultHost || string(name) == "localhost" || schema.HostIsAddr(name):
		return 0, nil
	case !schema.ValidHostName(name):
		return 0, errNotFound
	}
	e, err := r.hosts.get(name, now)
	if err != nil {
		return 0, err
	}
	return e.value, nil
}

func lookupHost(domains schema.DomainStore) lookup[domainID] {
	return func(ctx context.Context, host string) (domainID, []byte, error) {
		domain, err := domains.VerifiedDomain(ctx, host)
		if err != nil {
			return 0, nil, fmt.Errorf("look up domain %q: %w", host, err)
		}
		return domainID(domain.ID), nil, nil
	}
}

func lookupLink(links schema.LinkStore) lookup[linkIDs] {
	return func(ctx context.Context, key string) (linkIDs, []byte, error) {
		domain, hash := int64(binary.BigEndian.Uint64([]byte(key[:8]))), key[8:]
		link, err := links.Link(ctx, domain, hash)
		if err != nil {
			return linkIDs{}, nil, fmt.Errorf("look up link %q: %w", hash, err)
		}
		if !link.Active {
			return linkIDs{link.ID, link.AccountID}, nil, nil
		}
		return linkIDs{link.ID, link.AccountID}, encodeLocation(link.URL), nil
	}
}
