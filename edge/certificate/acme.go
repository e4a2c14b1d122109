package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/caddyserver/certmagic"
	"github.com/mholt/acmez/v3"
	"github.com/mholt/acmez/v3/acme"
	"go.uber.org/zap"

	"linkstream/schema"
	"linkstream/schema/service"
)

const (
	issueTimeout  = 3 * time.Minute  // of one attempt to get a certificate
	issueWait     = 20 * time.Second // longest wait of a visitor for a certificate
	waitAtOnce    = 256              // visitors that wait for certificates
	pauseFailed   = time.Minute      // of a host after a failed attempt
	pauseAway     = 2 * time.Second  // of a host whose certificate could not be read because the link store was away
	maxCached     = 10_000           // certificates in memory; others are read from the store again
	cleanInterval = 24 * time.Hour   // between two deletions of old files
	keepExpired   = 30 * 24 * time.Hour
)

// Store is the link store as it keeps certificates.
type Store interface {
	HostStore
	schema.CertificateStore
}

// acmeSource gets certificates from an authority by ACME (RFC 8555), on demand and for Hosts only. All edges share
// the certificates and the authority's challenges through the link store, so that any edge can answer the
// authority. certmagic orders, at most 10 certificates in 10 seconds, renews and staples; acmeSource bounds what
// visitors can cause.
//
// A handshake takes these steps:
//
//  1. If the name is not one of Hosts, which are in memory, the handshake ends.
//  2. If the certificate is in memory, it is used: the usual case.
//  3. Otherwise a flight, one per host at a time, reads the certificate from the store or gets one from the authority.
//     The handshake waits for the flight for up to issueWait. A failed flight is not repeated before the host's pause
//     is over.
type acmeSource struct {
	cfg    ACMEConfig
	hosts  *Hosts
	store  Store
	log    *slog.Logger
	cache  *certmagic.Cache
	magic  *certmagic.Config
	issuer *certmagic.ACMEIssuer
	ctx    context.Context // of flights
	cancel context.CancelFunc
	grace  time.Duration // for the rest of a handshake that has waited

	waiting chan struct{} // semaphore of waitAtOnce
	lookups perSecond     // of challenges in the store

	mu          sync.Mutex
	flights     map[string]*flight // by host
	running     sync.WaitGroup
	cachedHosts map[string]struct{} // whose certificates are in memory, and may have been removed there since

	issued, failed, refused, unknown *metrics.Counter
}

// flight is the reading of a certificate, or an attempt to get one. If it has failed, it stays with its host for a
// pause.
type flight struct {
	done chan struct{}
	err  error // set before done is closed
}

// openACME returns a source whose caller must call run.
func openACME(
	cfg ACMEConfig, hosts *Hosts, store Store, ports Ports, set *metrics.Set, log *slog.Logger,
) (*acmeSource, error) {
	files, err := newStorage(store, cfg.Key, log)
	if err != nil {
		return nil, err
	}
	a := &acmeSource{
		cfg: cfg, hosts: hosts, store: store, log: log, grace: cfg.HandshakeTimeout,
		waiting: make(chan struct{}, waitAtOnce), flights: map[string]*flight{}, cachedHosts: map[string]struct{}{},
	}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	a.registerMetrics(set)
	logger := zap.NewNop() // onEvent logs what operators need
	template := certmagic.ACMEIssuer{
		CA: cfg.Directory, Email: cfg.Email, Agreed: true, Logger: logger,
		// certmagic finds that these ports are in use: by this edge, which answers the challenges.
		AltHTTPPort: port(ports.Plain), AltTLSALPNPort: port(ports.Secure),
	}
	if cfg.EABID != "" {
		template.ExternalAccount = &acme.EAB{KeyID: cfg.EABID, MACKey: cfg.EABKey}
	}
	if template.TrustedRoots, err = readRoots(cfg.Roots); err != nil {
		return nil, fmt.Errorf("-edge.acme-roots: %w", err)
	}
	a.cache = certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert:   func(certmagic.Certificate) (*certmagic.Config, error) { return a.magic, nil },
		RenewCheckInterval: cfg.RenewEvery, Capacity: maxCached, Logger: logger,
	})
	a.magic = certmagic.New(a.cache, certmagic.Config{
		Storage: files, Logger: logger, OnEvent: a.onEvent, DefaultServerName: hosts.defaultHost, DisableStorageCheck: true,
	})
	a.issuer = certmagic.NewACMEIssuer(a.magic, template)
	a.magic.Issuers = []certmagic.Issuer{a.issuer}
	hosts.notify = a.hostChanged
	return a, nil
}

func (a *acmeSource) registerMetrics(set *metrics.Set) {
	const issued = "linkstream_edge_acme_attempts_total"
	service.Describe(set, issued,
		"Attempts of this edge to get or to renew a certificate, by result; refused: the domain is not verified.")
	a.issued, a.failed = set.NewCounter(issued+`{result="issued"}`), set.NewCounter(issued+`{result="failed"}`)
	a.refused = set.NewCounter(issued + `{result="refused"}`)
	a.unknown = service.NewCounter(set, "linkstream_edge_tls_unknown_names_total",
		"TLS handshakes for names that are not served.")
}

func readRoots(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%q has no certificate in PEM format", path)
	}
	return roots, nil
}

func port(addr net.Addr) int {
	_, text, err := net.SplitHostPort(addr.String())
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(text)
	return n
}

// run gets the default domain's certificate, and deletes old files every cleanInterval, until ctx is done. Then it
// ends all flights.
func (a *acmeSource) run(ctx context.Context) {
	if qualifies(a.hosts.defaultHost) {
		a.begin(a.hosts.defaultHost)
	}
	ticker := time.NewTicker(cleanInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			a.close()
			return
		case <-ticker.C:
		}
		options := certmagic.CleanStorageOptions{Logger: a.magic.Logger, Interval: cleanInterval, OCSPStaples: true,
			ExpiredCerts: true, ExpiredCertGracePeriod: keepExpired}
		if err := certmagic.CleanStorage(ctx, a.magic.Storage, options); err != nil && ctx.Err() == nil {
			a.log.Warn("cannot delete old certificates", "error", err)
		}
	}
}

// close ends all flights and the maintenance of certificates.
func (a *acmeSource) close() {
	a.mu.Lock()
	a.cancel() // no flight begins from now on
	a.mu.Unlock()
	a.running.Wait()
	a.cache.Stop()
}

// qualifies reports whether an authority may issue a certificate for host.
func qualifies(host string) bool {
	return certmagic.SubjectQualifiesForPublicCert(host) && !schema.HostIsAddr(host)
}

// serves returns the name that a client asks for, and whether it is served. A client without a name asks for the
// default domain.
func (a *acmeSource) serves(hello *tls.ClientHelloInfo) (name string, ok bool) {
	if hello.ServerName == "" {
		return a.hosts.defaultHost, qualifies(a.hosts.defaultHost)
	}
	name = serverName(hello.ServerName)
	known, _ := a.hosts.Known(name)
	return name, known && qualifies(name)
}

// certificate returns the certificate for a handshake, nil if the name is not served.
func (a *acmeSource) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name, ok := a.serves(hello)
	if !ok {
		a.unknown.Inc()
		return nil, nil
	}
	if isChallenge(hello) {
		if !a.lookups.allow(maxChallengeLookups) {
			return nil, errTooManyChallenges
		}
		return a.magic.GetCertificate(hello)
	}
	if cert, err := a.magic.GetCertificate(hello); err == nil {
		return cert, nil
	}
	if err := a.await(hello, name); err != nil {
		return nil, fmt.Errorf("certificate of %q: %w", name, err)
	}
	return a.magic.GetCertificate(hello)
}

// isChallenge reports whether this handshake is an authority's validation of a name (RFC 8737).
func isChallenge(hello *tls.ClientHelloInfo) bool {
	return len(hello.SupportedProtos) == 1 && hello.SupportedProtos[0] == acmez.ACMETLS1Protocol
}

var (
	errTooManyWait       = errors.New("too many visitors wait for certificates")
	errSlow              = errors.New("it takes longer than visitors wait")
	errTooManyChallenges = errors.New("too many challenges")
)

// await waits until the certificate of a host is in memory.
func (a *acmeSource) await(hello *tls.ClientHelloInfo, name string) error {
	select {
	case a.waiting <- struct{}{}:
		defer func() { <-a.waiting }()
	default:
		return errTooManyWait
	}
	f := a.begin(name)
	if conn, ok := hello.Conn.(handshakeConn); ok {
		var err error
		conn.Idle(func() { err = a.awaitFlight(hello, f) })
		return err
	}
	return a.awaitFlight(hello, f)
}

// handshakeConn is a connection whose handshake has one of the places to compute.
type handshakeConn interface {
	// Idle gives the place back while f, which waits, runs.
	Idle(f func())
}

func (a *acmeSource) awaitFlight(hello *tls.ClientHelloInfo, f *flight) error {
	patience := time.NewTimer(issueWait)
	defer patience.Stop()
	// The handshake's own timeout bounds slow clients, not this wait.
	_ = hello.Conn.SetDeadline(time.Now().Add(issueWait + a.grace))
	select {
	case <-f.done:
		_ = hello.Conn.SetDeadline(time.Now().Add(a.grace))
		return f.err
	case <-patience.C:
		return errSlow
	case <-a.ctx.Done():
		return a.ctx.Err()
	}
}

// begin returns the flight of a host, which it starts if there is none.
func (a *acmeSource) begin(name string) *flight {
	a.mu.Lock()
	defer a.mu.Unlock()
	if f := a.flights[name]; f != nil {
		return f
	}
	f := &flight{done: make(chan struct{})}
	if f.err = a.ctx.Err(); f.err != nil {
		close(f.done)
		return f
	}
	a.flights[name] = f
	a.running.Go(func() {
		ctx, cancel := context.WithTimeout(a.ctx, issueTimeout)
		defer cancel()
		f.err = a.fetch(ctx, name)
		a.end(name, f)
	})
	return f
}

// end ends a flight. If it has failed, its host pauses.
func (a *acmeSource) end(name string, f *flight) {
	close(f.done)
	if f.err == nil {
		a.forget(name, f)
		return
	}
	a.log.Warn("no certificate", "host", name, "error", f.err)
	pause := pauseFailed
	if schema.ErrorCode(f.err) == schema.CodeUnavailable {
		pause = pauseAway
	}
	time.AfterFunc(pause, func() { a.forget(name, f) })
}

func (a *acmeSource) forget(name string, f *flight) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.flights[name] == f {
		delete(a.flights, name)
	}
}

// hostChanged is called when a host was verified or lost.
func (a *acmeSource) hostChanged(host string, known bool) {
	if !known {
		a.cache.RemoveManaged([]certmagic.SubjectIssuer{{Subject: host}})
		return
	}
	if qualifies(host) { // get the certificate before the first visitor comes; edges do so one after the other
		f := a.begin(host)
		select {
		case <-f.done: // it has failed a moment ago
			a.forget(host, f)
			a.begin(host)
		default:
		}
	}
}

// perSecond counts events within the current second.
type perSecond struct {
	mu     sync.Mutex
	second int64
	n      int
}

func (p *perSecond) allow(most int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now().Unix(); now != p.second {
		p.second, p.n = now, 0
	}
	p.n++
	return p.n <= most
}
