// Package certificate gives an edge the certificates of the hosts that it serves, from files and from an authority
// by ACME.
//
//	handshake ─▶ Source ─▶ Files: a certificate that names the host
//	                  └──▶ acmeSource: the host is one of Hosts ─▶ memory ─▶ link store ─▶ authority
//
// Hosts also answers /tls/ask, for proxies that get certificates themselves.
//
// # On demand
//
// An unknown name costs a hash: the names of all verified hosts are 64-bit hashes in memory. A host has one order
// at a time, of all edges: the edge that orders holds a lease of 30 s in the link store, and looks first whether
// the certificate is there already. A challenge is in the store before the edge asks the authority to validate, so any
// edge answers it, on port 80 or 443. Up to 256 visitors wait for an order, for at most 20 s. A host whose order
// has failed pauses for a minute on that edge. certmagic makes at most 10 orders in 10 seconds.
//
// An edge renews the certificates in its memory when a third of their validity is left, or in the window that the
// authority suggests (ARI), and serves the old one while that fails. A certificate that no edge has in memory is
// renewed when the next visitor comes.
//
// # Session tickets
//
// Edges with the same -edge.acme-key resume each other's TLS sessions (tickets.go). Two edges that do not share
// keys take 1.10 × the CPU per new connection (1.02 to 1.26, six paired rounds) of two that do, if all visitors
// return and a balancer takes turns.
//
// # Limits
//
// certmagic keeps locks without fencing, so an edge that is suspended for longer than its lease may order a
// certificate a second time; both are valid.
package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"

	"github.com/VictoriaMetrics/metrics"
	"github.com/mholt/acmez/v3"

	"linkstream/schema/service"
)

// Source chooses the certificates of TLS connections. It is safe for concurrent use.
type Source struct {
	files   *Files
	acme    *acmeSource // nil: certificates come from files only
	tickets *tickets    // nil: sessions are resumed by the process that began them
	config  *tls.Config
}

// Ports are the addresses that an edge listens on.
type Ports struct{ Plain, Secure net.Addr }

// Open reads the certificates. The caller must call Run.
func Open(cfg Config, hosts *Hosts, store Store, ports Ports, set *metrics.Set, log *slog.Logger) (*Source, error) {
	files, err := OpenFiles(cfg, log)
	if err != nil {
		return nil, err
	}
	s := &Source{files: files}
	registerExpiry(set, "file", files.Oldest)
	if cfg.ACME.Email != "" {
		if s.acme, err = openACME(cfg.ACME, hosts, store, ports, set, log); err != nil {
			return nil, err
		}
		registerExpiry(set, "acme", s.acme.oldest)
	}
	s.config = s.newTLSConfig()
	if cfg.ACME.Key != "" {
		shared, err := newStorage(store, cfg.ACME.Key, log)
		if err != nil {
			return nil, err
		}
		s.tickets = newTickets(shared, s.config, set, log)
	}
	return s, nil
}

// registerExpiry adds the gauges of the first certificate of a source that expires to set. oldest returns nil
// without one.
func registerExpiry(set *metrics.Set, source string, oldest func() *x509.Certificate) {
	gauge := func(name, help string, value func(*x509.Certificate) float64) {
		service.NewGauge(set, fmt.Sprintf("%s{source=%q}", name, source), help, func() float64 {
			if cert := oldest(); cert != nil {
				return value(cert)
			}
			return 0
		})
	}
	gauge("linkstream_edge_tls_certificate_expiry_timestamp_seconds",
		"Unix time at which the first of the certificates in use expires, by source; 0 without any.",
		func(cert *x509.Certificate) float64 { return float64(cert.NotAfter.Unix()) })
	gauge("linkstream_edge_tls_certificate_lifetime_seconds",
		"Time for which this certificate is valid in all; 0 without any.",
		func(cert *x509.Certificate) float64 { return cert.NotAfter.Sub(cert.NotBefore).Seconds() })
}

// Run keeps the certificates up to date until ctx is done.
func (s *Source) Run(ctx context.Context) {
	var running sync.WaitGroup
	if s.acme != nil {
		running.Go(func() { s.acme.run(ctx) })
	}
	if s.tickets != nil {
		running.Go(func() { s.tickets.run(ctx) })
	}
	s.files.Run(ctx)
	running.Wait()
}

// TLSConfig returns the configuration of a server that uses the certificates. It must not be changed. With
// -edge.acme-key all edges have the same keys for session tickets. Without it, Go makes keys every day, and only
// the process that issued a ticket resumes it.
func (s *Source) TLSConfig() *tls.Config { return s.config }

func (s *Source) newTLSConfig() *tls.Config {
	config := &tls.Config{
		GetConfigForClient: s.admit,
		GetCertificate:     s.certificate,
		MinVersion:         tls.VersionTLS12,
		CipherSuites:       authenticatedSuites(),
		NextProtos:         []string{"http/1.1"},
	}
	if s.acme != nil {
		config.NextProtos = append(config.NextProtos, acmez.ACMETLS1Protocol)
	}
	return config
}

// authenticatedSuites returns Go's suites of TLS 1.2 without those in CBC mode.
func authenticatedSuites() (ids []uint16) {
	for _, suite := range tls.CipherSuites() {
		if !strings.Contains(suite.Name, "_CBC_") {
			ids = append(ids, suite.ID)
		}
	}
	return ids
}

var errUnknownName = errors.New("the name is not served")

// unrecognizedName is a TLS record with the fatal alert 112 (RFC 6066, section 3). It has the version of records
// before a version is negotiated.
var unrecognizedName = []byte{21, 3, 1, 0, 2, 2, 112}

// admit is a tls.Config's GetConfigForClient. It refuses names that are not served before any key is computed.
// GetCertificate alone would be too late: crypto/tls calls it after the key exchange, and not at all for resumed
// sessions.
func (s *Source) admit(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	if s.acme == nil || s.files.First() != nil { // clients that ask for other names get the first certificate of the files
		return nil, nil
	}
	if _, ok := s.acme.serves(hello); ok {
		return nil, nil
	}
	s.acme.unknown.Inc()
	_, _ = hello.Conn.Write(unrecognizedName) // crypto/tls says "internal error" after it
	return nil, errUnknownName
}

// certificate is a tls.Config's GetCertificate. A client whose host has no certificate gets the first one of the
// files: an error about the wrong host says more than a closed connection.
func (s *Source) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if cert := s.files.Find(hello); cert != nil && !isChallenge(hello) {
		return cert, nil
	}
	if s.acme != nil {
		if cert, err := s.acme.certificate(hello); cert != nil || err != nil {
			return cert, err
		}
	}
	return s.files.First(), nil // nil: crypto/tls sends the alert unrecognized_name
}
