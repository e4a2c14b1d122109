package redirect

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema"
)

const maxHostLen = 253 // RFC 1035

// Resolver finds links, in memory if it can.
type Resolver struct {
	defaultHost string
	store       *gate
	hosts       *cache[domainID] // domain ids by hostname
	links       *cache[linkIDs]  // by linkKey
	keys        sync.Pool        // of *linkKey
}

// Target is where a link leads.
type Target struct {
	LinkID    int64
	AccountID int64  // the link's owner
	Location  []byte // of func Location; empty while the link is not active. Belongs to the cache
}

type (
	domainID int64
	linkIDs  struct{ link, account int64 }
)

// linkKey has room for a domain's id, 8 bytes, and a hash after it.
type linkKey [8 + schema.MaxAliasLen]byte

// NewResolver returns a resolver of the links in a store. The host of cfg.URL is the default domain.
func NewResolver(
	cfg Config, links schema.LinkStore, domains schema.DomainStore, set *metrics.Set, log *slog.Logger,
) (*Resolver, error) {
	base, err := url.Parse(cfg.URL)
	if err != nil || base.Hostname() == "" {
		return nil, fmt.Errorf("-edge.url: %q is not a URL with a host", cfg.URL)
	}
	r := &Resolver{
		defaultHost: strings.TrimSuffix(strings.ToLower(asciiHost(base.Hostname())), "."),
		store:       newGate(cfg.LookupTimeout, set, log),
		keys:        sync.Pool{New: func() any { return new(linkKey) }},
	}
	hostBytes := cfg.CacheBytes / 32
	r.hosts, err = newCache("hosts", 1, hostBytes, &cfg, r.store, set, lookupHost(domains))
	if err != nil {
		return nil, err
	}
	r.links, err = newCache("links", 4, cfg.CacheBytes-hostBytes, &cfg, r.store, set, lookupLink(links))
	if err != nil {
		r.hosts.entries.close()
		return nil, err
	}
	return r, nil
}

// Close ends the look-ups under way and frees the memory. The server must have stopped: of its requests, only such as
// wait for a look-up may be left. A second Close does nothing.
func (r *Resolver) Close() {
	r.store.close()
	r.hosts.entries.close()
	r.links.entries.close()
}

// Resolve returns the link that a hash on a host stands for at the time now. The host is that of a request, in lower
// case. CodeNotFound if there is no such link; CodeUnavailable if the store does not answer and the link is not cached.
// A link that is cached costs no allocation and waits for nothing.
func (r *Resolver) Resolve(host, hash []byte, now time.Time) (Target, error) {
	if !schema.ValidHash(hash) {
		return Target{}, errNotFound
	}
	domain, err := r.domain(host, now)
	if err != nil {
		return Target{}, err
	}
	buf := r.keys.Get().(*linkKey) // ristretto lets keys escape, so a buffer on the stack would not do
	defer r.keys.Put(buf)
	key := binary.BigEndian.AppendUint64(buf[:0], uint64(domain))
	e, err := r.links.get(append(key, hash...), now)
	if err != nil {
		return Target{}, err
	}
	return Target{e.value.link, e.value.account, e.bytes()}, nil
}

// Drop has the next request look up what a change is about. While the store is down, what was cached before is served.
func (r *Resolver) Drop(change schema.Change) {
	if change.Hash == "" {
		r.hosts.drop([]byte(change.Host))
		return
	}
	r.links.drop(append(binary.BigEndian.AppendUint64(nil, uint64(change.DomainID)), change.Hash...))
}

// domain returns the id of the domain that a host stands for. Addresses and localhost stand for the default domain, so
// that the service can be tried without a name.
func (r *Resolver) domain(host []byte, now time.Time) (domainID, error) {
	name := hostname(host)
	switch {
	case string(name) == r.defaultHost || string(name) == "localhost" || isAddress(name):
		return 0, nil
	case len(name) == 0 || len(name) > maxHostLen:
		return 0, errNotFound
	}
	e, err := r.hosts.get(name, now)
	if err != nil {
		return 0, err
	}
	return e.value, nil
}

// hostname returns a host without its port and the dot that may end a name. An IPv6 address keeps its brackets.
func hostname(host []byte) []byte {
	if i := bytes.LastIndexByte(host, ':'); i >= 0 && !bytes.HasSuffix(host, []byte("]")) {
		host = host[:i]
	}
	return bytes.TrimSuffix(host, []byte("."))
}

// isAddress tells an address from a name. A name has a letter in its last label (RFC 3696, section 2).
func isAddress(name []byte) bool {
	if len(name) > 0 && name[0] == '[' {
		return true
	}
	for _, c := range name {
		if (c < '0' || c > '9') && c != '.' {
			return false
		}
	}
	return len(name) > 0
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
		var location []byte
		if link.Active {
			location = Location(link.URL)
		}
		return linkIDs{link.ID, link.AccountID}, location, nil
	}
}
