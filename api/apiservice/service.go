// Package apiservice composes one api process: the public API, the dashboard, and what both need to run.
package apiservice

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"linkstream/api/auth"
	"linkstream/api/clickreport"
	"linkstream/api/customdomain"
	"linkstream/api/dashboard"
	"linkstream/api/linkpassword"
	"linkstream/api/links"
	"linkstream/api/live"
	"linkstream/api/ratelimit"
	"linkstream/api/reads"
	"linkstream/api/request"
	"linkstream/api/rest"
	"linkstream/api/sharing"
	"linkstream/api/transfer"
	"linkstream/api/webhook"
	"linkstream/schema"
	"linkstream/schema/blocklist"
	"linkstream/schema/service"
)

// shutdownTimeout bounds how long Run waits for the requests under way once it has to stop.
const shutdownTimeout = 10 * time.Second

// Service is an api process.
type Service struct {
	listener  net.Listener
	clients   net.Listener // listener within the limits of connections
	server    *fasthttp.Server
	tokens    *auth.Authenticator
	blocklist *blocklist.List
	domains   *customdomain.Manager
	imports   *transfer.Uploads
	rankings  *clickreport.Rankings
	pages     *dashboard.Dashboard
	live      *live.Hub
	shortener *links.Shortener
	webhooks  *webhook.Sender
	passwords *linkpassword.Checker
	links     schema.Database // its reads take turns
	clicks    reads.Store
	log       *slog.Logger
	clickLog  clickreport.ClickLog
	url       schema.BaseURL
	metrics   *metrics.Set
}

// New reads the blocklist, listens, and returns a service that serves once Run is called. The caller closes the stores
// after Run has returned. waiting may be nil; without it the dashboard cannot tell how many clicks are still uncounted.
func New(
	cfg Config, db schema.Database, clicks reads.Store, waiting clickreport.ClickLog, log *slog.Logger,
) (*Service, error) {
	blocked, err := blocklist.Open(cfg.Blocklist, log)
	if err != nil {
		return nil, fmt.Errorf("-api.blocklist: %w", err)
	}
	listener, err := service.ListenUnlessOpen(cfg.Listener, cfg.Listen)
	if err != nil {
		return nil, err
	}
	set := metrics.NewSet()
	s := &Service{
		listener: listener, blocklist: blocked, links: reads.Links(db, set), clicks: clicks, clickLog: waiting, log: log,
		url: cfg.URL, metrics: set,
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
	cfg Config, store schema.LinkStore, domains schema.DomainStore, log *slog.Logger,
) (*links.Shortener, error) {
	blocked, err := blocklist.Open(cfg.Blocklist, log)
	if err != nil {
		return nil, fmt.Errorf("-api.blocklist: %w", err)
	}
	own, err := cfg.ownAddresses()
	if err != nil {
		return nil, err
	}
	if !cfg.URL.IsZero() {
		own = append(own, links.AddressOf(cfg.URL))
	}
	if listens, err := links.ParseAddress(cfg.Listen); err == nil {
		// a port of 0 is not known before the service listens
		own = append(own, listens)
	}
	return links.New(cfg.EdgeURL, store, domains, blocked, own...), nil
}

// compose creates the API, the dashboard and the server of both.
func (s *Service) compose(cfg Config) error {
	requests, work := request.NewRecorder(s.metrics), request.NewWork()
	own, err := cfg.ownAddresses()
	if err != nil {
		return err
	}
	listener, err := links.ParseAddress(s.Addr())
	if err != nil {
		return err
	}
	s.shortener = links.New(cfg.EdgeURL, s.links, s.links, s.blocklist,
		append(own, links.AddressOf(s.url), listener)...)
	for _, address := range own {
		if ip := address.IP(); ip.IsValid() {
			cfg.Domains.Addresses = append(cfg.Domains.Addresses, ip)
		}
	}
	verifier := customdomain.NewVerifier(cfg.Domains, cfg.EdgeURL.Host(), s.metrics, s.log)
	s.domains = customdomain.NewManager(s.links, verifier)
	lag := clickreport.NewLag(s.clickLog, s.log)
	clicks := reads.NewClicks(s.clicks, s.metrics)
	s.rankings = clickreport.NewRankings(clicks, s.log)
	s.live = live.NewHub(s.clicks, s.links, lag.CountedUntil, cfg.MaxConnections/2, s.metrics, s.log)
	s.imports = transfer.NewUploads(s.links, transfer.NewImporter(s.shortener, s.links, s.links, s.clicks), s.log)
	others, err := links.ParseAddresses(service.OpsListen, service.OpsListenAPI, service.OpsListenIngest)
	if err != nil {
		return err
	}
	receivers := webhook.Config{Allow: cfg.WebhookAllow, Own: slices.Concat(own, cfg.Private, others,
		[]links.Address{listener}, links.AddressesOf(cfg.EdgeURL), links.AddressesOf(s.url))}
	s.webhooks = webhook.New(receivers, s.links, func(link schema.Link) any { return rest.LinkFields(s.shortener, link) },
		s.metrics, s.log)
	shares := sharing.New(s.url, s.links, s.shortener, cfg.Now)
	parts := dashboard.Parts{DB: s.links, Clicks: clicks, Lag: lag, Rankings: s.rankings, Live: s.live,
		Shortener: s.shortener, Shares: shares,
		Domains: s.domains, Imports: s.imports, Webhooks: s.webhooks, Work: work, Requests: requests,
		Document: rest.Document(), Log: s.log}
	s.pages, err = dashboard.New(
		dashboard.Config{URL: s.url, Unnamed: cfg.URL.IsZero(), SignUp: cfg.SignUp == signUpOpen,
			TrustedProxies: cfg.TrustedProxies, Site: cfg.Site,
			PagesPerSecond: cfg.PagesPerSecond, Now: cfg.Now}, parts)
	if err != nil {
		return err
	}
	if s.tokens, err = auth.NewAuthenticator(s.links); err != nil {
		return err
	}
	api := rest.New(s.tokens, ratelimit.NewRequestLimiter(s.links), s.shortener, s.links, clicks, s.rankings,
		lag.CountedUntil, s.live, s.webhooks, shares, cfg.CORSOrigins, s.pages.AnswerReference,
		work, requests, s.log)
	s.passwords = linkpassword.New(s.links, s.shortener.Passwords(), cfg.Now, requests, s.log)
	s.server = newServer(&router{api: api, pages: s.pages, passwords: s.passwords,
		anonymous: request.NewAnonymous(s.metrics, max(1, service.CPUs()/2)),
		proxies:   cfg.TrustedProxies,
		tracer:    cfg.Tracer, health: cfg.PublicHealth, contacts: cfg.Contacts, log: s.log}, cfg.MaxConnections, s.log)
	s.clients = newListener(s.listener, connLimits{Connections: cfg.MaxConnections,
		PerAddress: cfg.MaxConnectionsPerAddress, Exempt: cfg.TrustedProxies.Contain}, s.metrics, s.log)
	return nil
}

// Addr returns the address of the listener.
func (s *Service) Addr() string { return s.listener.Addr().String() }

// CheckPassword says what becomes of an attempt at a link's password.
func (s *Service) CheckPassword(ctx context.Context, attempt schema.PasswordAttempt) (schema.PasswordVerdict, error) {
	return s.passwords.Check(ctx, attempt)
}

// URL returns the public base of the API and the dashboard.
func (s *Service) URL() schema.BaseURL { return s.url }

// Metrics returns the metrics of the API and the dashboard.
func (s *Service) Metrics() *metrics.Set { return s.metrics }

// Ready returns nil if the link store answers, or else a service.Unready. Without the click store links are created,
// changed and listed in the dashboard; calls that need it answer 503.
func (s *Service) Ready(ctx context.Context) error {
	if _, err := s.links.EdgeLinks(ctx, []schema.LinkKey{{}}); err != nil {
		return &service.Unready{What: "link store", Cause: err}
	}
	return nil
}

// Run serves until ctx is done or serving fails, and then stops in this order:
//
//  1. The listener is closed, live streams end, and the requests under way are answered, within shutdownTimeout.
//  2. Deliveries to webhooks end, within 5 s. Imports are interrupted between two chunks of rows, rankings of links,
//     shared reports and counts of tags.
//  3. The last uses of tokens are written, those by the requests of step 1 included.
//  4. Reloads of the blocklist and checks of domains end, and the token cache is released.
//
// Nothing uses the stores after Run has returned.
func (s *Service) Run(ctx context.Context) error {
	// Background work outlives ctx: requests need it until they are answered.
	background := context.WithoutCancel(ctx)
	stopReloading := service.RunInBackground(background, func(ctx context.Context) { s.blocklist.Run(ctx, func() {}) })
	stopChecking := service.RunInBackground(background, s.domains.Run)
	stopImporting := service.RunInBackground(background, s.imports.Run)
	stopRanking := service.RunInBackground(background, s.rankings.Run)
	stopReading := service.RunInBackground(background, s.pages.Run)
	stopCounting := service.RunInBackground(background, s.shortener.Run)
	stopStreaming := service.RunInBackground(ctx, s.live.Run)
	stopSending := service.RunInBackground(ctx, s.webhooks.Run)
	stopTidying := service.RunInBackground(background, func(ctx context.Context) { s.shortener.Tidy(ctx, s.log) })
	stopWritingUses := service.RunInBackground(background, func(ctx context.Context) { s.tokens.Run(ctx, s.log) })
	stopNaming := service.RunInBackground(background, func(ctx context.Context) { s.passwords.Name(ctx, s.url) })

	err := service.Serve(ctx, s.server, s.clients, shutdownTimeout)
	stopStreaming()
	stopSending()
	stopNaming()
	stopImporting()
	stopRanking()
	stopReading()
	stopCounting()
	stopTidying()
	stopWritingUses()
	stopReloading()
	stopChecking()
	s.tokens.Close()
	return err
}
