package certificate

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema/service"
)

// Source chooses the certificates of TLS connections. It is safe for concurrent use.
type Source struct {
	files *Files
}

var errNoCertificate = errors.New("there is no certificate for this host")

// Open reads the certificates.
func Open(cfg Config, set *metrics.Set, log *slog.Logger) (*Source, error) {
	files, err := OpenFiles(cfg, log)
	if err != nil {
		return nil, err
	}
	s := &Source{files: files}
	const name = "linkstream_edge_tls_certificate_expiry_timestamp_seconds"
	service.Describe(set, name, "Unix time at which the first of the certificates expires; 0 without any.")
	set.NewGauge(name+`{source="file"}`, func() float64 {
		if expiry := files.Expiry(); !expiry.IsZero() {
			return float64(expiry.Unix())
		}
		return 0
	})
	return s, nil
}

// Run follows changes of the certificates until ctx is done.
func (s *Source) Run(ctx context.Context) { s.files.Run(ctx) }

// TLSConfig returns the configuration of a server that uses the certificates. Go makes the keys of session tickets, and new ones
// every day: a ticket is good at the process that issued it.
func (s *Source) TLSConfig() *tls.Config {
	return &tls.Config{
		GetCertificate: s.certificate,
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"},
	}
}

// certificate is a tls.Config's GetCertificate. A client whose host has no certificate gets the first one: it learns that this is
// the wrong host, which says more than the end of the connection.
func (s *Source) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if cert := s.files.Find(hello); cert != nil {
		return cert, nil
	}
	if cert := s.files.First(); cert != nil {
		return cert, nil
	}
	return nil, errNoCertificate
}
