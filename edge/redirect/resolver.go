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
	hosts       *cache[int64]  // domain ids by hostname
	links       *cache[Target] // by linkKey
	keys        sync.Pool      // of *linkKey
}

// Target is where a link leads.
type Target struct {
	LinkID    int64
	AccountID int64  // the link's owner
	Location  string // of func Location
	Active    bool
}

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
	r.hosts, err = newCache("hosts", hostBytes, &cfg, r.store, set, lookupHost(domains))
	if err != nil {
		return nil, err
	}
	r.links, err = newCache("links", cfg.CacheBytes-hostBytes, &cfg, r.store, set, lookupLink(links))
	if err != nil {
		r.hosts.entries.Close()
		return nil, err
	}
	return r, nil
}

// Close ends the look-ups under way and frees the memory. The server must have stopped: of its requests, only such as
// wait for a look-up may be left. A second Close does nothing.
func (r *Resolver) Close() {
	r.store.close()
	r.hosts.entries.Close()
	r.links.entries.Close()
}

// Resolve returns the link that a hash on a host stands for at the time now. The host is that of a request, in lower
// case. CodeNotFound if there is no such link; CodeUnavailable if the store does not answer and the link is not cached.
// A link that is cached costs no allocation and waits for nothing.
func (r *Resolver) Resolve(host, hash []byte, now time.Time) (*Target, error) {
	if !schema.ValidHash(hash) {
		return nil, errNotFound
	}
	domainID, err := r.domain(host, now)
	if err != nil {
		return nil, err
	}
	buf := r.keys.Get().(*linkKey) // ristretto lets keys escape, so a buffer on the stack would not do
	defer r.keys.Put(buf)
	key := binary.BigEndian.AppendUint64(buf[:0], uint64(domainID))
	return r.links.get(append(key, hash...), now)
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
func (r *Resolver) domain(host []byte, now time.Time) (int64, error) {
	name := hostname(host)
	switch {
	case string(name) == r.defaultHost || string(name) == "localhost" || isAddress(name):
		return 0, nil
	case len(name) == 0 || len(name) > maxHostLen:
		return 0, errNotFound
	}
	id, err := r.hosts.get(name, now)
	if err != nil {
		return 0, err
	}
	return *id, nil
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

func lookupHost(domains schema.DomainStore) lookup[int64] {
	return func(ctx context.Context, host string) (int64, int, error) {
		domain, err := domains.VerifiedDomain(ctx, host)
		if err != nil {
			return 0, 0, fmt.Errorf("look up domain %q: %w", host, err)
		}
		return domain.ID, 0, nil
	}
}

func lookupLink(links schema.LinkStore) lookup[Target] {
	return func(ctx context.Context, key string) (Target, int, error) {
		domainID, hash := int64(binary.BigEndian.Uint64([]byte(key[:8]))), key[8:]
		link, err := links.Link(ctx, domainID, hash)
		if err != nil {
			return Target{}, 0, fmt.Errorf("look up link %q: %w", hash, err)
		}
		target := Target{LinkID: link.ID, AccountID: link.AccountID, Location: string(Location(link.URL)), Active: link.Active}
		return target, len(target.Location), nil
	}
}
