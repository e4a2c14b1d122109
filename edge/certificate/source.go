// Package certificate gives an edge the certificates of the hosts that it serves, from files and from an authority by ACME.
//
//	handshake ─▶ Source ─▶ Files: a certificate that names the host
//	                  └──▶ acmeSource: the host is one of Hosts ─▶ memory ─▶ link store ─▶ authority
//
// Hosts also answers /tls/ask, for proxies that get certificates themselves.
package certificate

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

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
	const name = "linkstream_edge_tls_certificate_expiry_timestamp_seconds"
	service.Describe(set, name, "Unix time at which the first of the certificates in use expires, by source; 0 without any.")
	set.NewGauge(name+`{source="file"}`, func() float64 { return unix(files.Expiry()) })
	if cfg.ACME.Email != "" {
		if s.acme, err = openACME(cfg.ACME, hosts, store, ports, set, log); err != nil {
			return nil, err
		}
		set.NewGauge(name+`{source="acme"}`, func() float64 { return unix(s.acme.expiry()) })
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

func unix(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.Unix())
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

// TLSConfig returns the configuration of a server that uses the certificates. It must not be changed. With -edge.acme-key all edges
// have the same keys of session tickets. Without, Go makes them, and new ones every day: a ticket is good at the process that
// issued it.
func (s *Source) TLSConfig() *tls.Config { return s.config }

func (s *Source) newTLSConfig() *tls.Config {
	config := &tls.Config{
		GetConfigForClient: s.admit,
		GetCertificate:     s.certificate,
		MinVersion:         tls.VersionTLS12,
		NextProtos:         []string{"http/1.1"},
	}
	if s.acme != nil {
		config.NextProtos = append(config.NextProtos, acmez.ACMETLS1Protocol)
	}
	return config
}

var errUnknownName = errors.New("the name is not served")

// unrecognizedName is a TLS record with the fatal alert 112 (RFC 6066, section 3). Its version is the one that all versions of TLS
// write before they have agreed on one.
var unrecognizedName = []byte{21, 3, 1, 0, 2, 2, 112}

// admit is a tls.Config's GetConfigForClient. It refuses names that are not served before any key is computed: crypto/tls would
// exchange keys first, and would resume sessions without asking for a certificate.
func (s *Source) admit(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	if s.acme == nil || s.files.First() != nil { // who asks for another name gets the first certificate of the files
		return nil, nil
	}
	if _, ok := s.acme.serves(hello); ok {
		return nil, nil
	}
	s.acme.unknown.Inc()
	_, _ = hello.Conn.Write(unrecognizedName) // crypto/tls says "internal error" after it
	return nil, errUnknownName
}

// certificate is a tls.Config's GetCertificate. A client whose host has no certificate gets the first one of the files: it learns
// that this is the wrong host, which says more than the end of the connection.
func (s *Source) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if cert := s.files.Find(hello); cert != nil && !isChallenge(hello) {
		return cert, nil
	}
	if s.acme != nil {
		if cert, err := s.acme.certificate(hello); cert != nil || err != nil {
			return cert, err
		}
	}
	return s.files.First(), nil // without one, the client is told that the name is unknown
}
