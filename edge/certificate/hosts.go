package certificate

import (
	"context"
	"hash/maphash"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"linkstream/schema"
	"linkstream/schema/service"
)

const (
	hostsPage      = 10_000
	hostsTimeout   = 30 * time.Second // of a query
	reloadEvery    = time.Minute      // shortest time between two loads of all hosts
	reloadShare    = 100              // loading takes at most 1/reloadShare of the time
	reloadRetry    = 2 * time.Second  // after a failure
	pendingChanges = 1024             // if more are pending, all hosts are loaded again
)

// HostStore is the link store as Hosts use it.
type HostStore interface {
	VerifiedDomain(ctx context.Context, host string) (schema.Domain, error)
	VerifiedDomains(ctx context.Context, after int64, limit int) ([]schema.Domain, error)
}

// Hosts are the names that the edge serves: the default domain and the verified custom domains. It keeps a seeded
// 64-bit hash of each in memory, so that a flood of unknown names costs nothing but their hashes. Drop reports
// changes; if a message is lost, the next load from the store, within minutes, has them. It is safe for concurrent
// use.
type Hosts struct {
	defaultHost string
	store       HostStore
	log         *slog.Logger
	seed        maphash.Seed
	changes     chan string
	retry       chan struct{} // holds an element if hosts have to be loaded again
	notify      func(host string, known bool)
	yes, no     *metrics.Counter

	mu     sync.RWMutex
	known  map[uint64]struct{}
	loaded bool
}

// NewHosts returns hosts with the default domain only, until Run has loaded the others.
func NewHosts(defaultHost schema.Host, store HostStore, set *metrics.Set, log *slog.Logger) *Hosts {
	h := &Hosts{defaultHost: string(defaultHost), store: store, log: log, seed: maphash.MakeSeed(),
		changes: make(chan string, pendingChanges), retry: make(chan struct{}, 1),
		notify: func(string, bool) {}, known: map[uint64]struct{}{}}
	const asks = "linkstream_edge_tls_asks_total"
	service.Describe(set, asks, "Questions at /tls/ask whether a host may have a certificate, by answer.")
	h.yes, h.no = set.NewCounter(asks+`{answer="yes"}`), set.NewCounter(asks+`{answer="no"}`)
	service.NewGauge(set, "linkstream_edge_custom_hosts", "Verified custom domains that the edge knows.", func() float64 {
		h.mu.RLock()
		defer h.mu.RUnlock()
		return float64(len(h.known))
	})
	return h
}

// Known reports whether name, in lower case and without a dot at its end, is one of the hosts. Until loaded is
// true, not all hosts have been read from the store, and an unknown name may turn out to be a host.
func (h *Hosts) Known(name string) (known, loaded bool) {
	if name == h.defaultHost {
		return true, true
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	_, known = h.known[maphash.String(h.seed, name)]
	return known, h.loaded
}

// Drop makes Run look up a host again that was verified or lost.
func (h *Hosts) Drop(change schema.Change) {
	if change.Host == "" || change.Hash != "" {
		return
	}
	select {
	case h.changes <- change.Host:
	default:
		h.reloadSoon()
	}
}

// Missed makes Run load all hosts again, because changes may have been missed.
func (h *Hosts) Missed() { h.reloadSoon() }

func (h *Hosts) reloadSoon() {
	select {
	case h.retry <- struct{}{}:
	default:
	}
}

// Run keeps the hosts up to date until ctx is done.
func (h *Hosts) Run(ctx context.Context) {
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case host := <-h.changes:
			if err := h.lookUp(ctx, host); err != nil && ctx.Err() == nil {
				h.log.Warn("cannot look up a custom domain that has changed, retrying", "host", host, "error", err)
				h.reloadSoon()
			}
			continue
		case <-h.retry:
			next.Reset(reloadRetry)
			continue
		case <-next.C:
		}
		began := time.Now()
		err := h.load(ctx)
		if err != nil && ctx.Err() == nil {
			h.log.Warn("cannot read custom domains, retrying", "error", err)
			next.Reset(reloadRetry)
			continue
		}
		next.Reset(max(reloadEvery, reloadShare*time.Since(began)))
	}
}

// load reads all hosts from the store. Changes during the load are looked up afterwards.
func (h *Hosts) load(ctx context.Context) error {
	known := make(map[uint64]struct{}, len(h.known)) // only this goroutine writes it
	for after := int64(0); ; {
		page, err := h.page(ctx, after)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		for _, domain := range page {
			known[maphash.String(h.seed, domain.Host)] = struct{}{}
		}
		after = page[len(page)-1].ID
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known, h.loaded = known, true
	return nil
}

func (h *Hosts) page(ctx context.Context, after int64) ([]schema.Domain, error) {
	ctx, cancel := context.WithTimeout(ctx, hostsTimeout)
	defer cancel()
	return h.store.VerifiedDomains(ctx, after, hostsPage)
}

// lookUp reads one host from the store.
func (h *Hosts) lookUp(ctx context.Context, host string) error {
	ctx, cancel := context.WithTimeout(ctx, hostsTimeout)
	defer cancel()
	_, err := h.store.VerifiedDomain(ctx, host)
	verified := err == nil
	if err != nil && schema.ErrorCode(err) != schema.CodeNotFound {
		return err
	}
	h.mu.Lock()
	if verified {
		h.known[maphash.String(h.seed, host)] = struct{}{}
	} else {
		delete(h.known, maphash.String(h.seed, host))
	}
	h.mu.Unlock()
	h.notify(host, verified)
	return nil
}

// Answer answers GET /tls/ask?domain=: 200 if the host may have a certificate, 404 if it may not, 503 before all
// hosts are loaded. It never queries the store.
func (h *Hosts) Answer(ctx *fasthttp.RequestCtx) {
	ctx.SetContentType("text/plain; charset=utf-8")
	host, err := schema.ParseHost(string(ctx.QueryArgs().Peek("domain")))
	if err != nil {
		h.no.Inc()
		ctx.Error("domain is not a host\n", fasthttp.StatusBadRequest)
		return
	}
	switch known, loaded := h.Known(string(host)); {
	case known:
		h.yes.Inc()
		ctx.SetBodyString("yes\n")
	case !loaded:
		ctx.Error("custom domains are not known yet\n", fasthttp.StatusServiceUnavailable)
	default:
		h.no.Inc()
		ctx.Error("no\n", fasthttp.StatusNotFound)
	}
}

// serverName returns the canonical form of the name that a client asks for, "" if the name is not valid.
func serverName(name string) string {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if !schema.ValidHostName(name) {
		return ""
	}
	return name
}
