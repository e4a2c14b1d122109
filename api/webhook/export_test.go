package webhook

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"linkstream/schema"
)

var (
	Sign       = sign
	RetryAfter = retryAfter
	IsPublic   = isPublic
)

// GiveUp is how long a webhook may fail.
const GiveUp = giveUp

// SetPause makes all pauses after failures one.
func (s *Sender) SetPause(pause time.Duration) { s.pauses = []time.Duration{pause} }

// SetAnswerTimeout sets how long a receiver may take.
func (s *Sender) SetAnswerTimeout(timeout time.Duration) {
	for _, transport := range []*http.Transport{s.http, s.https} {
		transport.ResponseHeaderTimeout = timeout
	}
}

// Attempt sends a delivery once.
func (s *Sender) Attempt(ctx context.Context, hook schema.Webhook, d schema.Delivery) schema.DeliveryNote {
	return s.attempt(ctx, hook, d)
}

// Check returns why a sender does not connect to an address.
func (s *Sender) Check(secure bool, to netip.AddrPort) error {
	if secure {
		return s.secure.check(to)
	}
	return s.plain.check(to)
}
