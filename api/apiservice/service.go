// Package apiservice composes one api process: the public API, the dashboard, and what both need to run.
package apiservice

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"linkstream/api/admission"
	"linkstream/api/auth"
	"linkstream/api/customdomain"
	"linkstream/api/dashboard"
	"linkstream/api/httpmetrics"
	"linkstream/api/ratelimit"
	"linkstream/api/rest"
	"linkstream/api/shorten"
	"linkstream/schema"
	"linkstream/schema/blocklist"
	"linkstream/schema/service"
	"linkstream/schema/stream"
)

// shutdownTimeout bounds how long Run waits for the requests under way once it has to stop.
const shutdownTimeout = 10 * time.Second

// Clicks is the part of a click store that the API and the dashboard read.
type Clicks interface {
	schema.ClickStore
	schema.ReportStore
}

// Service is an api process.
type Service struct {
	listener  net.Listener
	clients   net.Listener // listener within the limits of connections
	server    *fasthttp.Server
	tokens    *auth.Authenticator
	blocklist *blocklist.List
	domains   *customdomain.Manager
	pages     *dashboard.Dashboard
	links     schema.Database
	clicks    Clicks
	topics    *stream.Client
	url       schema.BaseURL
	metrics   *metrics.Set
	log       *slog.Logger
}

// New reads the blocklist, listens, and returns a service that serves once Run is called. The caller closes the stores
// after Run has returned. topics may be nil; without it the dashboard cannot tell how many clicks are still uncounted.
func New(cfg Config, links schema.Database, clicks Clicks, topics *stream.Client, log *slog.Logger) (*Service, error) {
	blocked, err := blocklist.Open(cfg.Blocklist, log)
	if err != nil {
		return nil, fmt.Errorf("-api.blocklist: %w", err)
	}
	listener, err := service.ListenUnlessOpen(cfg.Listener, cfg.Listen)
	if err != nil {
		return nil, err
	}
	s := &Service{
		listener: listener, blocklist: blocked, links: links, clicks: clicks, topics: topics, log: log,
		url: cfg.URL, metrics: metrics.NewSet(),
	}
	if s.url.IsZero() {
		s.url, err = service.LocalURL(listener.Addr())
	}
	if err == nil {
		err = s.compose(cfg)
	}
	if err != nil {
		listener.Close()
		return nil, err
	}
	return s, nil
}

// NewShortener returns the rules that a service with these settings has for links, for commands that create links.
func NewShortener(
	cfg Config, links schema.LinkStore, domains schema.DomainStore, log *slog.Logger,
) (*shorten.Shortener, error) {
	blocked, err := blocklist.Open(cfg.Blocklist, log)
	if err != nil {
		return nil, fmt.Errorf("-api.blocklist: %w", err)
	}
	own, err := cfg.ownAddresses()
	if err != nil {
		return nil, err
	}
	if !cfg.URL.IsZero() {
		own = append(own, shorten.AddressOf(cfg.URL))
	}
	if listens, err := shorten.ParseAddress(cfg.Listen); err == nil { // a port of 0 is not known before the service listens
		own = append(own, listens)
	}
	return shorten.New(cfg.EdgeURL, links, domains, blocked, own...), nil
}

// compose creates the API, the dashboard and the server of both.
func (s *Service) compose(cfg Config) error {
	requests := httpmetrics.NewRecorder(s.metrics)
	own, err := cfg.ownAddresses()
	if err != nil {
		return err
	}
	listener, err := shorten.ParseAddress(s.Addr())
	if err != nil {
		return err
	}
	shortener := shorten.New(cfg.EdgeURL, s.links, s.links, s.blocklist, append(own, shorten.AddressOf(s.url), listener)...)
	verifier := customdomain.NewVerifier(cfg.Domains, cfg.EdgeURL.Host(), s.metrics, s.log)
	s.domains = customdomain.NewManager(s.links, verifier)
	parts := dashboard.Parts{DB: s.links, Clicks: s.clicks, Reports: s.clicks, Shortener: shortener,
		Domains: s.domains, Requests: requests, Log: s.log}
	if s.topics != nil { // an interface that holds a nil pointer is not nil
		parts.ClickLog = s.topics
	}
	pages, err := dashboard.New(
		dashboard.Config{URL: s.url, Unnamed: cfg.URL.IsZero(), SignUp: cfg.SignUp == signUpOpen, TrustedProxies: cfg.TrustedProxies,
			PagesPerSecond: cfg.PagesPerSecond, Now: cfg.Now}, parts)
	if err != nil {
		return err
	}
	s.pages = pages
	if s.tokens, err = auth.NewAuthenticator(s.links); err != nil {
		return err
	}
	api := rest.New(s.tokens, ratelimit.NewRequestLimiter(s.links), shortener, s.links, s.clicks,
		rest.Reports{Store: s.clicks, CountedUntil: pages.CountedUntil}, requests, s.log)
	s.server = newServer(&router{api: api, pages: pages, gate: admission.NewGate(s.metrics), proxies: cfg.TrustedProxies,
		tracer: cfg.Tracer, health: cfg.PublicHealth, log: s.log}, cfg.MaxConnections, s.log)
	s.clients = admission.NewListener(s.listener, admission.Limits{Connections: cfg.MaxConnections,
		PerAddress: cfg.MaxConnectionsPerAddress, Exempt: cfg.TrustedProxies.Contain}, s.metrics, s.log)
	return nil
}

// Addr returns the address of the listener.
func (s *Service) Addr() string { return s.listener.Addr().String() }

// URL returns the public base of the API and the dashboard.
func (s *Service) URL() schema.BaseURL { return s.url }

// Metrics returns the metrics of the API and the dashboard.
func (s *Service) Metrics() *metrics.Set { return s.metrics }

// Ready returns nil if both stores answer, or else a service.Unready.
func (s *Service) Ready(ctx context.Context) error {
	if _, err := s.links.Link(ctx, 0, ""); err != nil && schema.ErrorCode(err) != schema.CodeNotFound {
		return &service.Unready{What: "link store", Cause: err}
	}
	if _, err := s.clicks.ClickCounts(ctx, []int64{0}); err != nil {
		return &service.Unready{What: "click store", Cause: err}
	}
	return nil
}

// Run serves until ctx is done or serving fails, and then stops in this order:
//
//  1. The listener is closed and the requests under way are answered, within shutdownTimeout.
//  2. Imports are interrupted between two chunks of rows.
//  3. The last uses of tokens are written, those by the requests of step 1 included.
//  4. The blocklist is no longer reloaded, domains are no longer checked, and the token cache is released.
//
// Nothing uses the stores after Run has returned.
func (s *Service) Run(ctx context.Context) error {
	// Background work outlives ctx: requests need it until they are answered.
	background := context.WithoutCancel(ctx)
	stopReloading := service.RunInBackground(background, func(ctx context.Context) { s.blocklist.Run(ctx, func() {}) })
	stopChecking := service.RunInBackground(background, s.domains.Run)
	stopImporting := service.RunInBackground(background, s.pages.Run)
	stopWritingUses := service.RunInBackground(background, func(ctx context.Context) { s.tokens.Run(ctx, s.log) })

	err := service.Serve(ctx, s.server, s.clients, shutdownTimeout)
	stopImporting()
	stopWritingUses()
	stopReloading()
	stopChecking()
	s.tokens.Close()
	return err
}
