package certificate

import (
	"context"
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/caddyserver/certmagic"

	"linkstream/schema"
)

// NewStorage is newStorage for tests.
func NewStorage(store schema.CertificateStore, secret string, log *slog.Logger) (certmagic.Storage, error) {
	return newStorage(store, secret, log)
}

// ServerName is serverName for tests.
var ServerName = serverName

// Fetch puts the certificate of a host into memory, for which it asks issuer instead of the authority.
func (s *Source) Fetch(ctx context.Context, host string, issuer certmagic.Issuer) error {
	s.acme.magic.Issuers = []certmagic.Issuer{issuer}
	return s.acme.fetch(ctx, host)
}

// Hosts returns the names that the source serves.
func (s *Source) Hosts() *Hosts { return s.acme.hosts }

// Tickets is tickets for tests.
type Tickets struct{ *tickets }

// NewTickets is newTickets for tests.
func NewTickets(store schema.CertificateStore, secret string, config *tls.Config, log *slog.Logger) (Tickets, error) {
	files, err := newStorage(store, secret, log)
	return Tickets{newTickets(files, config, metrics.NewSet(), log)}, err
}

// Update is update for tests.
func (t Tickets) Update(ctx context.Context, now time.Time) error { return t.update(ctx, now) }

// Run is run.
func (t Tickets) Run(ctx context.Context) { t.run(ctx) }

// Since is since for tests.
func (t Tickets) Since(now time.Time) time.Time { return t.since(now) }

// Constants for tests.
const (
	TicketUse  = ticketUse
	TicketLife = ticketLife
	TicketLead = ticketLead
	TicketFile = ticketFile
)
