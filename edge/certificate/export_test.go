package certificate

import (
	"log/slog"

	"github.com/caddyserver/certmagic"

	"linkstream/schema"
)

// NewStorage is newStorage for tests.
func NewStorage(store schema.CertificateStore, secret string, log *slog.Logger) (certmagic.Storage, error) {
	return newStorage(store, secret, log)
}

// Explain is explain for tests.
var Explain = explain

// ServerName is serverName for tests.
var ServerName = serverName
