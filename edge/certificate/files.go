package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"sync/atomic"

	"linkstream/schema/filewatch"
)

// Files are the certificates that the operator keeps in files. It is safe for concurrent use.
type Files struct {
	certs, keys []string // paths
	log         *slog.Logger
	files       *filewatch.Files
	loaded      atomic.Pointer[[]*tls.Certificate]
}

// OpenFiles reads the certificates that cfg names, perhaps none.
func OpenFiles(cfg Config, log *slog.Logger) (*Files, error) {
	f := &Files{certs: paths(cfg.Cert), keys: paths(cfg.Key), log: log}
	f.loaded.Store(new([]*tls.Certificate))
	f.files = filewatch.NewFiles(append(paths(cfg.Cert), f.keys...), f.read)
	if err := f.files.Load(); err != nil {
		return nil, fmt.Errorf("-edge.tls-cert: %w", err)
	}
	return f, nil
}

// Run reads the files again whenever one of them changes, until ctx is done. While they cannot be read, or a key
// does not belong to its certificate, the certificates stay as they are.
func (f *Files) Run(ctx context.Context) {
	f.files.Follow(ctx, func(err error) {
		f.log.Error("certificates not reloaded, the old ones stay in use", "error", err)
	})
}

// Find returns the certificate that a client can use for the host that it asks for, or nil if there is none.
func (f *Files) Find(hello *tls.ClientHelloInfo) *tls.Certificate {
	for _, cert := range *f.loaded.Load() {
		if hello.SupportsCertificate(cert) == nil {
			return cert
		}
	}
	return nil
}

// First returns the certificate that is named first, or nil if there is none.
func (f *Files) First() *tls.Certificate {
	if certs := *f.loaded.Load(); len(certs) > 0 {
		return certs[0]
	}
	return nil
}

// Oldest returns the certificate that expires first, nil if there is none.
func (f *Files) Oldest() (first *x509.Certificate) {
	for _, cert := range *f.loaded.Load() {
		if first == nil || cert.Leaf.NotAfter.Before(first.NotAfter) {
			first = cert.Leaf
		}
	}
	return first
}

// read replaces the certificates by those in the files.
func (f *Files) read() error {
	certs := make([]*tls.Certificate, len(f.certs))
	for i, path := range f.certs {
		cert, err := tls.LoadX509KeyPair(path, f.keys[i])
		if err != nil {
			return fmt.Errorf("read %q and %q: %w", path, f.keys[i], err)
		}
		if cert.Leaf == nil { // with GODEBUG=x509keypairleaf=0
			if cert.Leaf, err = x509.ParseCertificate(cert.Certificate[0]); err != nil {
				return fmt.Errorf("read %q: %w", path, err)
			}
		}
		certs[i] = &cert
		f.log.Info("certificate read", "file", path, "names", cert.Leaf.DNSNames, "expires", cert.Leaf.NotAfter)
	}
	f.loaded.Store(&certs)
	return nil
}
