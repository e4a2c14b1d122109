// Package node is one api process: the public API, the dashboard, and what they need to run.
package apiservice

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"linkstream/api/auth"
	"linkstream/api/customdomain"
	"linkstream/api/dashboard"
	"linkstream/api/ratelimit"
	"linkstream/api/rest"
	"linkstream/api/shorten"
	"linkstream/schema"
	"linkstream/schema/clientaddr"
	"linkstream/schema/service"
	"linkstream/schema/stream"
)

// stopGrace bounds how long requests under way may take once the node is to stop.
const stopGrace = 10 * time.Second

// Config is the configuration of an api process.
type Config struct {
	EdgeURL        schema.BaseURL // of short links; from the program's -edge.url
	Listen         string         // address that the API and the dashboard are served on
	Listener       net.Listener   // that is open already; nil: New listens at Listen
	URL            schema.BaseURL // of both, as the public sees it; zero: the address that is listened on
	SignUp         string         // whether anyone may make an account: signUpOpen or signUpClosed
	TrustedProxies clientaddr.Proxies
	Blocklist      string // paths of blocklist files, separated by commas
	Domains        customdomain.Config
}

// The values of SignUp.
const (
	signUpOpen   = "open"
	signUpClosed = "closed"
)

// DefaultConfig returns a configuration that works once EdgeURL is set.
func DefaultConfig() Config {
	return Config{Listen: "127.0.0.1:8081", SignUp: signUpClosed, Domains: customdomain.DefaultConfig()}
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.Listen, "api.listen", c.Listen, "`address` that the API and the dashboard are served on")
	fs.TextVar(&c.URL, "api.url", c.URL,
		"public base `URL` of the API and the dashboard; with https:// sessions need TLS (default http:// and the address)")
	fs.StringVar(&c.SignUp, "api.signup", c.SignUp, "`open` if anyone may make an account, closed if not")
	fs.Var(&c.TrustedProxies, "api.trusted-proxies",
		"`addresses` and CIDR blocks, separated by commas, of proxies whose X-Forwarded-For is believed")
	fs.StringVar(&c.Blocklist, "api.blocklist", c.Blocklist,
		"`files` of unsafe hosts in the format of /etc/hosts, separated by commas; read again when they change")
	c.Domains.RegisterFlags(fs)
}

// Validate returns every invalid setting but the files, which New reads.
func (c *Config) Validate() error {
	var errs []error
	if err := service.CheckAddr(c.Listen); err != nil {
		errs = append(errs, fmt.Errorf("-api.listen: %w", err))
	}
	if c.EdgeURL.IsZero() {
		errs = append(errs, errors.New("-edge.url: is not set"))
	}
	if c.SignUp != signUpOpen && c.SignUp != signUpClosed {
		errs = append(errs, fmt.Errorf("-api.signup: %q is neither %s nor %s", c.SignUp, signUpOpen, signUpClosed))
	}
	return errors.Join(append(errs, c.Domains.Validate())...)
}

func (c *Config) blocklistFiles() []string {
	return strings.FieldsFunc(c.Blocklist, func(r rune) bool { return r == ',' })
}

// Clicks is what an api asks its click store.
type Clicks interface {
	schema.ClickStore
	schema.ReportStore
}

// Service is an api process.
type Service struct {
	listener  net.Listener
	server    *fasthttp.Server
	tokens    *auth.Authenticator
	blocklist *shorten.Blocklist
	links     schema.Database
	clicks    Clicks
	topics    *stream.Client
	url       schema.BaseURL
	log       *slog.Logger
}

// New reads the blocklist, listens, and returns a node that has yet to Run. Without topics, which may be nil, it cannot
// tell how far clicks are counted.
func New(cfg Config, links schema.Database, clicks Clicks, topics *stream.Client, log *slog.Logger) (*Service, error) {
	blocklist, err := shorten.OpenBlocklist(cfg.blocklistFiles(), log)
	if err != nil {
		return nil, fmt.Errorf("-api.blocklist: %w", err)
	}
	listener, err := service.ListenUnlessOpen(cfg.Listener, cfg.Listen)
	if err != nil {
		return nil, err
	}
	s := &Service{
		listener: listener, blocklist: blocklist, links: links, clicks: clicks, topics: topics, log: log,
		url: cfg.URL,
	}
	if s.url.IsZero() {
		s.url, err = service.LocalURL(listener.Addr())
	}
	if err == nil {
		err = s.prepare(cfg)
	}
	if err != nil {
		listener.Close()
		return nil, err
	}
	return s, nil
}

// prepare makes what is served.
func (s *Service) prepare(cfg Config) error {
	set := metrics.NewSet()
	shortener := shorten.New(cfg.EdgeURL, s.links, s.links, s.blocklist)
	verifier := customdomain.NewVerifier(cfg.Domains, cfg.EdgeURL.Host(), set, s.log)
	parts := dashboard.Parts{DB: s.links, Clicks: s.clicks, Reports: s.clicks, Shortener: shortener,
		Domains: customdomain.NewManager(s.links, verifier), Metrics: set, Log: s.log}
	if s.topics != nil { // an interface that holds a nil pointer is not nil
		parts.ClickLog = s.topics
	}
	pages, err := dashboard.New(
		dashboard.Config{URL: s.url, SignUp: cfg.SignUp == signUpOpen, TrustedProxies: cfg.TrustedProxies}, parts)
	if err != nil {
		return err
	}
	if s.tokens, err = auth.NewAuthenticator(s.links); err != nil {
		return err
	}
	api := rest.New(s.tokens, ratelimit.NewRequestLimiter(s.links), shortener, s.links, s.clicks, set, s.log)
	s.server = newServer(api, pages, &service.Endpoints{Ready: s.Ready, Metrics: set}, s.log)
	return nil
}

// Addr returns the address the node listens on.
func (s *Service) Addr() string { return s.listener.Addr().String() }

// URL returns the public base of the API and the dashboard.
func (s *Service) URL() schema.BaseURL { return s.url }

// Ready returns nil if both stores answer.
func (s *Service) Ready(ctx context.Context) error {
	if _, err := s.links.Link(ctx, 0, ""); err != nil && schema.ErrorCode(err) != schema.CodeNotFound {
		return fmt.Errorf("link store: %w", err)
	}
	if _, err := s.clicks.ClickCounts(ctx, []int64{0}); err != nil {
		return fmt.Errorf("click store: %w", err)
	}
	return nil
}

// Run serves until ctx is done and the requests under way are answered.
func (s *Service) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() { s.blocklist.Run(ctx) })
	following.Go(func() { s.tokens.Run(ctx, s.log) })
	err := service.Serve(ctx, s.server, s.listener, stopGrace)
	cancel()
	following.Wait()
	s.tokens.Close()
	return err
}
