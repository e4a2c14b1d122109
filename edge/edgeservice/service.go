// Package edgeservice is one process of the edge: it serves redirects, records clicks in the spool, and ships them to
// the broker.
package edgeservice

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/edge/certificate"
	"linkstream/edge/eventloop"
	"linkstream/edge/limit"
	"linkstream/edge/password"
	"linkstream/edge/redirect"
	"linkstream/edge/resolve"
	"linkstream/edge/spool"
	"linkstream/edge/visitorhash"
	"linkstream/schema"
	"linkstream/schema/blocklist"
	"linkstream/schema/enrich"
	"linkstream/schema/service"
	"linkstream/schema/stream"
)

// stopGrace bounds how long requests under way may take after the context of Run is done.
const stopGrace = 5 * time.Second

// Links is the link store as an edge uses it. Its methods are those of schema.Database.
type Links interface {
	LinksByHash(ctx context.Context, keys []schema.LinkKey) ([]schema.Link, error)
	EdgeLinks(ctx context.Context, keys []schema.LinkKey) ([]schema.EdgeLink, error)
	AppLinks(ctx context.Context, domainID int64) (schema.AppLinks, error)
	PendingChanges(ctx context.Context, after schema.OutboxPosition) (schema.Pending, error)
	certificate.Store
	password.Store
	limit.Store
	visitorhash.Store
}

// Topics are the topics of clicks and of changes: a *stream.Client, or its replacement on a machine without a broker.
type Topics interface {
	spool.Topic
	FollowChanges(ctx context.Context, from schema.ChangePosition, follower stream.ChangeFollower)
}

// catchUpTime bounds how long a starting edge reads the changes since its snapshot before it serves. Without them it
// looks up each restored link at its first visit.
const catchUpTime = 300 * time.Millisecond

// Names of files in the spool's directory.
const (
	SnapshotName = "links.snapshot" // see package snapshot
	KeysName     = "visitors.keys"  // see package visitorhash
)

// Service is an edge.
type Service struct {
	listener  net.Listener
	secure    net.Listener        // for HTTPS; nil if that is not served
	certs     *certificate.Source // nil without secure
	hosts     *certificate.Hosts
	server    *eventloop.Server
	resolver  *resolve.Resolver
	spool     *spool.Spool
	shipper   *spool.Shipper
	topics    Topics
	blocked   *blocklist.List
	countries *enrich.Countries
	links     Links
	pending   *pending
	pushed    bool // see Config.ChangesPushed
	limits    *limit.Limits
	visitors  *visitorhash.Keys
	metrics   *metrics.Set
	log       *slog.Logger
}

// New reads the blocklist, opens the spool, restores the cache of an earlier process, and listens. The caller must call
// Run, which releases all of it, but not links and topics.
func New(cfg Config, links Links, topics Topics, log *slog.Logger) (*Service, error) {
	set := metrics.NewSet()
	blocked, err := blocklist.Open(cfg.Blocklist, log)
	if err != nil {
		return nil, fmt.Errorf("-edge.blocklist: %w", err)
	}
	countries, err := enrich.OpenCountries(cfg.GeoIP, log)
	if err != nil {
		return nil, fmt.Errorf("-edge.geoip: %w", err)
	}
	clicks, err := spool.Open(cfg.Spool, log)
	if err != nil {
		return nil, err
	}
	cfg.Resolve.Blocklist = blocked
	if cfg.Redirect.Countries == nil {
		cfg.Redirect.Countries = countries
	}
	if cfg.Snapshot { // the spool is locked
		cfg.Resolve.Snapshot = filepath.Join(cfg.Spool.Dir, SnapshotName)
	}
	restored := stopCollecting()
	resolver, err := resolve.New(cfg.Resolve, links, links, set, log)
	restored()
	if err != nil {
		return nil, errors.Join(err, clicks.Close())
	}
	s := &Service{
		resolver:  resolver,
		spool:     clicks,
		shipper:   spool.NewShipper(clicks, topics, log),
		topics:    topics,
		blocked:   blocked,
		countries: countries,
		links:     links,
		metrics:   set,
		log:       log,
		hosts:     certificate.NewHosts(cfg.Resolve.URL.Host(), links, set, log),
	}
	s.pending, s.pushed = &pending{store: links, caches: caches{resolver, s.hosts}, log: log}, cfg.ChangesPushed
	if err := s.listen(cfg, log); err != nil {
		resolver.Close()
		return nil, errors.Join(err, clicks.Close())
	}
	clicks.RegisterMetrics(set)
	s.shipper.RegisterMetrics(set)
	if s.certs != nil {
		cfg.Redirect.Challenge = s.certs.AnswerChallenge
	}
	cfg.Redirect.Passwords = password.New(links, cfg.Passwords, cfg.API)
	s.limits = limit.New(links, clicks, log)
	cfg.Redirect.Limits = s.limits
	s.visitors = openVisitors(&cfg, links, log)
	cfg.Redirect.Visitors = s.visitors
	cfg.Redirect.Secure = cfg.Resolve.URL.Scheme() == "https"
	handler := redirect.NewHandler(cfg.Redirect, resolver, clicks, set, log)
	cfg.Connections.Exempt = cfg.Redirect.TrustedProxies.Contain
	s.server = eventloop.New(cfg.Connections, handler, set, log)
	return s, nil
}

// openVisitors returns the keys of visitors, which outlive the process as the cache does.
func openVisitors(cfg *Config, links Links, log *slog.Logger) *visitorhash.Keys {
	if !cfg.Snapshot {
		return visitorhash.New(links, log)
	}
	return visitorhash.Open(filepath.Join(cfg.Spool.Dir, KeysName), time.Now(), links, log)
}

// listen opens the listeners and, if HTTPS is to be served, reads the certificates.
func (s *Service) listen(cfg Config, log *slog.Logger) (err error) {
	if s.listener, err = service.ListenUnlessOpen(cfg.Listener, cfg.Listen); err != nil || !cfg.ServesTLS() {
		return err
	}
	if err := s.listenTLS(cfg, log); err != nil {
		return errors.Join(err, s.listener.Close())
	}
	return nil
}

func (s *Service) listenTLS(cfg Config, log *slog.Logger) (err error) {
	if err := cfg.Certificate.Enabled(); err != nil { // a socket for HTTPS was inherited
		return err
	}
	if cfg.Resolve.URL.Scheme() != "https" {
		log.Warn("HTTPS is served, but short links are written with http: set -edge.url", "url", cfg.Resolve.URL)
	}
	if s.secure, err = service.ListenUnlessOpen(cfg.TLSListener, cfg.TLSListen); err != nil {
		return err
	}
	cfg.Certificate.ACME.HandshakeTimeout = cfg.Connections.ReadTimeout
	ports := certificate.Ports{Plain: s.listener.Addr(), Secure: s.secure.Addr()}
	if s.certs, err = certificate.Open(cfg.Certificate, s.hosts, s.links, ports, s.metrics, log); err != nil {
		return errors.Join(err, s.secure.Close())
	}
	return nil
}

// caches are all caches from which changes are dropped.
type caches struct {
	*resolve.Resolver
	hosts *certificate.Hosts
}

// Drop implements stream.ChangeFollower.
func (c caches) Drop(change schema.Change) {
	c.Resolver.Drop(change)
	c.hosts.Drop(change)
}

// Missed implements stream.ChangeFollower.
func (c caches) Missed() {
	c.Resolver.Missed()
	c.hosts.Missed()
}

// Addr returns the address that the edge listens on.
func (s *Service) Addr() string { return s.listener.Addr().String() }

// TLSAddr returns the address that the edge serves HTTPS on, "" if it does not.
func (s *Service) TLSAddr() string {
	if s.secure == nil {
		return ""
	}
	return s.secure.Addr().String()
}

// Operate adds the edge's endpoints to the operators' listener.
func (s *Service) Operate(ops *service.Ops) {
	ops.Add(s.Ready, s.Metrics())
	ops.Handle("/tls/ask", s.hosts.Answer)
}

// Waiting returns the number of clicks in the spool, and the time of the oldest one if it is known.
func (s *Service) Waiting() (clicks uint64, oldest time.Time) { return s.spool.Waiting() }

// Metrics returns the edge's metrics.
func (s *Service) Metrics() *metrics.Set { return s.metrics }

// Ready returns nil if the edge can look up links and record clicks, or else a service.Unready.
func (s *Service) Ready(ctx context.Context) error {
	if _, err := s.links.EdgeLinks(ctx, []schema.LinkKey{{}}); err != nil {
		return &service.Unready{What: "link store", Cause: err}
	}
	if err := s.spool.Ready(); err != nil {
		return &service.Unready{What: "spool", Cause: err}
	}
	return nil
}

// Run serves until ctx is done, then stops in the order that loses no click:
//
//  1. The server stops, on both listeners. Requests under way are answered and their clicks appended, for at most
//     stopGrace. Then the resolver writes its snapshot and is closed, and unused parts of leases are given back. If a
//     handler is stuck, Run returns an error without the steps that follow: the handler may be using the spool, which
//     loses nothing when the process ends.
//  2. The shipper sends the pending clicks, for a bounded time if the broker does not answer.
//  3. The spool is closed. It keeps clicks that are still pending for the next process.
func (s *Service) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	shipping, stopShipping := context.WithCancel(context.WithoutCancel(ctx))
	defer stopShipping()
	var following, shipper sync.WaitGroup
	following.Go(func() { s.followChanges(ctx) })
	if !s.pushed {
		following.Go(func() { s.pending.run(ctx) })
	}
	following.Go(func() { s.hosts.Run(ctx) })
	following.Go(func() { s.limits.Run(ctx) })
	following.Go(func() { s.visitors.Run(ctx) })
	following.Go(func() { s.blocked.Run(ctx, s.resolver.BlocklistChanged) })
	following.Go(func() { s.countries.Run(ctx) })
	shipper.Go(func() { s.shipper.Run(shipping) })
	if s.certs != nil {
		following.Go(func() { s.certs.Run(ctx) })
	}
	s.prepare(ctx)
	// 1. serve returns when no request is under way or stopGrace has passed.
	err := s.serve(ctx)
	cancel()
	if errors.Is(err, eventloop.ErrStuck) {
		return err
	}
	following.Wait()
	s.resolver.Close()
	s.closeLimits(ctx)
	// 2.
	stopShipping()
	shipper.Wait()
	// 3.
	return errors.Join(err, s.spool.Close())
}

// prepare waits, for at most catchUpTime, until restored links need no look-up and the first clicks have keys for their
// visitors. If the store does not answer, the first clicks have the keys of the process before, if it had the day's.
func (s *Service) prepare(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	var reading sync.WaitGroup
	reading.Go(func() { _ = s.visitors.Update(ctx, time.Now()) }) // its Run tries again, and logs
	s.resolver.AwaitCurrent(ctx)
	reading.Wait()
}

// closeLimits gives unused parts of leases back. If the link store does not answer, the next process on the spool does
// it.
func (s *Service) closeLimits(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	if err := s.limits.Close(ctx); err != nil {
		s.log.Warn("cannot give back unused leases of limited links, the next process will", "error", err)
	}
}

// followChanges drops changed entries of the cache until ctx is done. It reads the outbox first: a change that has
// left the outbox is in the topic, so that outbox and topic together have every change since the snapshot. If the
// store does not answer, the topic alone makes restored entries current, and links are served from memory.
func (s *Service) followChanges(ctx context.Context) {
	first, cancel := context.WithTimeout(ctx, catchUpTime/2)
	_ = s.pending.drop(first) // run tries again, and logs
	cancel()
	s.topics.FollowChanges(ctx, s.resolver.Position().Topic, caches{s.resolver, s.hosts})
}

// DropPending drops the changes in the outbox at once, for a process that makes changes and serves visitors, too.
func (s *Service) DropPending(ctx context.Context) error { return s.pending.drop(ctx) }

// serve serves both listeners until ctx is done or one of them fails.
func (s *Service) serve(ctx context.Context) error {
	if s.secure == nil {
		return s.server.Serve(ctx, s.listener, stopGrace)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		ended <- s.server.ServeTLS(ctx, s.secure, s.certs.TLSConfig(), stopGrace)
	}()
	err := s.server.Serve(ctx, s.listener, stopGrace)
	cancel()
	return errors.Join(err, <-ended)
}
