package webhook

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	randv2 "math/rand/v2"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/VictoriaMetrics/metrics"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"linkstream/api/links"
	"linkstream/schema"
	"linkstream/schema/service"
	"linkstream/schema/stream"
	"linkstream/schema/turns"
)

const (
	pollEvery      = 100 * time.Millisecond // while webhooks have something to send
	idleEvery      = 2 * time.Second
	maxSending     = 512 // webhooks that one process sends to at the same time
	readAhead      = 8   // deliveries of a webhook that are read together
	turn           = 16  // such reads of a webhook, before it is the turn of others
	connectTimeout = 5 * time.Second
	answerTimeout  = 15 * time.Second
	sendTimeout    = 20 * time.Second
	lease          = 25 * time.Second // longer than an attempt; it bounds the delay after a kill
	noteTimeout    = 10 * time.Second
	drainTimeout   = 5 * time.Second
	maxAnswer      = 64 << 10       // bytes that are read, so that the connection can be used again
	giveUp         = 72 * time.Hour // of failures, before a webhook is switched off
	maxRetryAfter  = 24 * time.Hour
)

// retries are the pauses after the first, second, … failed attempt; the last one repeats.
var retries = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute,
	30 * time.Minute, time.Hour,
	2 * time.Hour, 4 * time.Hour, 8 * time.Hour}

// SecretOverlap is how long a former secret signs in addition to its successor.
const SecretOverlap = 24 * time.Hour

// NewSecret returns a random secret of Standard Webhooks.
func NewSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return "whsec_" + base64.StdEncoding.EncodeToString(key)
}

// Config says which addresses a sender may call.
type Config struct {
	Allow Networks
	Own   []links.Address // of this service
}

// Sender sends the deliveries that wait.
type Sender struct {
	store         schema.WebhookStore
	link          func(schema.Link) any // a link as the API shows it
	plain, secure *dialer
	own           *ownAddresses
	http, https   *http.Transport
	sending       *turns.Bound // webhooks that are sent to
	pauses        []time.Duration
	log           *slog.Logger

	delivered, failed, switchedOff *metrics.Counter
}

// New returns a sender. link returns a link as the API shows it. It sends nothing until Run is called.
func New(cfg Config, store schema.WebhookStore, link func(schema.Link) any, set *metrics.Set,
	log *slog.Logger) *Sender {
	own := &ownAddresses{all: cfg.Own, found: map[schema.Host][]netip.Addr{}}
	s := &Sender{store: store, link: link, own: own, pauses: retries, log: log,
		sending: turns.NewBound(maxSending, schema.MaxWebhooks),
		plain:   &dialer{allow: cfg.Allow, own: own},
		secure:  &dialer{allow: cfg.Allow, own: own, secure: true}}
	s.http, s.https = newTransport(s.plain), newTransport(s.secure)
	counter := func(name, help string) *metrics.Counter {
		name = "linkstream_api_webhook_" + name + "_total"
		service.Describe(set, name, help)
		return set.NewCounter(name)
	}
	s.delivered = counter("deliveries", "Deliveries that receivers have accepted.")
	s.failed = counter("failures", "Attempts to deliver that have failed.")
	s.switchedOff = counter("switched_off", "Webhooks switched off because they were gone or failing.")
	return s
}

// Run sends until ctx is done. Attempts that are then under way may take drainTimeout. Longer attempts are abandoned:
// the next process repeats them.
func (s *Sender) Run(ctx context.Context) {
	attempts, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	var sending sync.WaitGroup
	defer func() {
		defer time.AfterFunc(drainTimeout, abandon).Stop()
		sending.Wait()
		s.http.CloseIdleConnections()
		s.https.CloseIdleConnections()
	}()
	failing, idle := false, idleEvery
	for ctx.Err() == nil {
		free := maxSending - s.sending.Total() // only this goroutine takes any
		// another one each time: if a lease has ended, this process may claim the webhook again
		holder := rand.Text()
		hooks, err := s.claim(ctx, holder, free)
		if err != nil && !failing && ctx.Err() == nil && !errors.Is(err, schema.ErrMoved) {
			s.log.Warn("cannot look for webhooks, retrying", "error", err)
		}
		failing = err != nil
		for _, hook := range hooks {
			// Otherwise an account could take all by replacing webhooks whose receivers hang. A webhook that is left out
			// waits until its lease ends.
			account := turns.Account(hook.AccountID)
			if s.sending.Take(account, 1) != nil {
				continue
			}
			sending.Go(func() {
				defer s.sending.Leave(account, 1)
				s.send(ctx, attempts, hook, holder)
			})
		}
		if len(hooks) > 0 {
			idle = pollEvery
		} else {
			idle = min(2*idle, idleEvery)
		}
		stream.Sleep(ctx, idle)
	}
}

func (s *Sender) claim(ctx context.Context, holder string, limit int) ([]schema.Webhook, error) {
	if limit == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	return s.store.ClaimWebhooks(ctx, holder, lease, limit)
}

// send sends the deliveries of a webhook whose lease holder has. It stops when no delivery waits, when one fails, or
// when it is the turn of other webhooks.
func (s *Sender) send(ctx, attempts context.Context, hook schema.Webhook, holder string) {
	noting := context.WithoutCancel(ctx)
	release := true
	defer func() {
		if release {
			ctx, cancel := context.WithTimeout(noting, noteTimeout)
			defer cancel()
			_ = s.store.ReleaseWebhook(ctx, hook.ID, holder) // otherwise the lease ends by itself
		}
	}()
	for range turn {
		deliveries, err := s.waiting(ctx, hook)
		for _, d := range deliveries {
			if ctx.Err() != nil {
				return
			}
			note, held := s.attempt(attempts, hook, d), false
			if attempts.Err() != nil && !note.Delivered {
				return
			}
			if held, err = s.note(noting, hook, holder, d, note); err != nil || !held || !note.Delivered {
				release = err != nil // a noted failure ends the lease; without held, another process has it
				break
			}
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, schema.ErrMoved) {
			s.log.Warn("cannot read or note deliveries, retrying", "webhook", hook.ID, "error", err)
		}
		if err != nil || !release || len(deliveries) < readAhead {
			return
		}
	}
}

func (s *Sender) waiting(ctx context.Context, hook schema.Webhook) ([]schema.Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	return s.store.WaitingDeliveries(ctx, hook.AccountID, hook.ID, readAhead)
}

func (s *Sender) note(ctx context.Context, hook schema.Webhook, holder string, d schema.Delivery,
	note schema.DeliveryNote) (bool, error) {
	switch {
	case note.Delivered:
		s.delivered.Inc()
	case note.Off != "":
		s.switchedOff.Inc()
		s.log.Warn("webhook switched off", "webhook", hook.ID, "account", hook.AccountID, "reason", note.Off,
			"error", note.Error)
		fallthrough
	default:
		s.failed.Inc()
	}
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	return s.store.NoteDelivery(ctx, hook.AccountID, hook.ID, holder, d, note)
}

// attempt sends a delivery once and returns the outcome.
func (s *Sender) attempt(ctx context.Context, hook schema.Webhook, d schema.Delivery) schema.DeliveryNote {
	began := time.Now()
	answer, text, err := s.post(ctx, hook, d)
	kept := schema.Answer{Took: time.Since(began).Truncate(time.Millisecond), Text: text}
	if err == nil {
		kept.Status = answer.StatusCode
	}
	if kept.Status/100 == 2 {
		return schema.DeliveryNote{Delivered: true, Answer: kept, Lease: lease}
	}
	pause := s.pauses[min(d.Attempts, len(s.pauses)-1)]
	// Receivers that fail together are not called together.
	note := schema.DeliveryNote{Answer: kept, Pause: pause + randv2.N(pause/5+1)}
	switch {
	case err != nil:
		note.Error = explain(err)
	default:
		note.Error = fmt.Sprintf("The receiver answered %d.", answer.StatusCode)
		note.Pause = max(note.Pause, retryAfter(answer.Header, time.Now()))
		if answer.StatusCode == http.StatusGone {
			note.Off = schema.OffGone
		}
	}
	if note.Off == "" && !hook.FailingSince.IsZero() && time.Since(hook.FailingSince) > giveUp {
		note.Off = schema.OffFailing
	}
	return note
}

// post sends a delivery and reads the answer, which begins with text.
func (s *Sender) post(
	ctx context.Context, hook schema.Webhook, d schema.Delivery,
) (answer *http.Response, text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	body, err := s.Body(d)
	if err != nil {
		return nil, "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.URL, bytes.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	now := time.Now()
	signatures, err := sign(hook, d.Message, now, body)
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "linkstream")
	req.Header.Set(standardwebhooks.HeaderWebhookID, d.Message)
	req.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(standardwebhooks.HeaderWebhookSignature, signatures)
	transport := s.https
	if req.URL.Scheme == "http" {
		transport = s.http
	}
	answer, err = transport.RoundTrip(req) // unlike a client, it follows no redirect
	if err != nil {
		return nil, "", err
	}
	defer answer.Body.Close()
	first, _ := io.ReadAll(io.LimitReader(answer.Body, schema.MaxWebhookAnswer)) // only the status counts
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer)
	return answer, beginning(first), nil
}

// beginning returns the first bytes of an answer in the form that stores keep. Replaced bytes become longer.
func beginning(first []byte) string {
	text := strings.ReplaceAll(strings.ToValidUTF8(string(first), "\uFFFD"), "\x00", "\uFFFD")
	for len(text) > schema.MaxWebhookAnswer {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

// sign returns the signatures of all secrets that are valid.
func sign(hook schema.Webhook, message string, at time.Time, body []byte) (string, error) {
	secrets := []string{hook.Secret}
	if hook.OldSecret != "" && at.Before(hook.OldSecretUntil) {
		secrets = append(secrets, hook.OldSecret)
	}
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		signer, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			return "", err
		}
		if signatures[i], err = signer.Sign(message, at, body); err != nil {
			return "", err
		}
	}
	return strings.Join(signatures, " "), nil
}

// Body returns the body of a delivery, which is the same in each attempt.
func (s *Sender) Body(d schema.Delivery) ([]byte, error) {
	message := struct {
		Type      string         `json:"type"`
		Timestamp string         `json:"timestamp"`
		Data      map[string]any `json:"data"`
	}{d.Event, d.At.UTC().Format("2006-01-02T15:04:05.000-07:00"), map[string]any{}}
	switch d.Event {
	case schema.EventTest:
	case schema.EventLinkClicked:
		clicks := []json.RawMessage{}
		for line := range strings.Lines(d.Data) {
			clicks = append(clicks, json.RawMessage(line))
		}
		message.Data["clicks"] = clicks
	case schema.EventDomainChanged:
		domain, err := schema.DomainOfEvent(d.Data)
		if err != nil {
			return nil, err
		}
		message.Data["domain"] = map[string]any{"id": domain.ID, "host": domain.Host, "verified": domain.Verified != 0,
			"deleted": domain.Deleted != 0}
	default:
		link, err := schema.LinkOfEvent(d.Data)
		if err != nil {
			return nil, err
		}
		message.Data["link"] = s.link(link)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(message)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

// retryAfter returns the pause that a receiver asks for: Retry-After has seconds or a date (RFC 9110, section 10.2.3).
func retryAfter(header http.Header, now time.Time) time.Duration {
	value, pause := header.Get("Retry-After"), time.Duration(0)
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		pause = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		pause = at.Sub(now)
	}
	return min(max(pause, 0), maxRetryAfter)
}

// explain returns why an attempt has failed, in words for the owner of the webhook. They name no address that only this
// service sees.
func explain(err error) string {
	for _, known := range []error{errNotPublic, errOwn, errPlain} {
		if errors.Is(err, known) {
			text := known.Error()
			return strings.ToUpper(text[:1]) + text[1:] + "."
		}
	}
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, context.DeadlineExceeded) || isTimeout(err):
		return "The receiver did not answer in time."
	case errors.As(err, &certificate):
		return "The certificate of the receiver is not valid."
	}
	return "The receiver could not be reached."
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}
