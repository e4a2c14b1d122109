package request

import (
	"context"
	"net/netip"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema"
	"linkstream/schema/service"
	"linkstream/schema/turns"
)

const (
	// pace is how many anonymous requests per second and place begin. It leaves most of a CPU to everyone else.
	pace = 1000
	// paceOver is the quiet time after which requests begin without pace, as many as belong to that time.
	paceOver = 200 * time.Millisecond
	// maxWait bounds how long a request waits for a place. A client that retries at once is slowed down by it.
	maxWait = 250 * time.Millisecond
	// knownRate is how many requests per second with a known credential need no place, on average over knownOver. It is
	// more than any rate limit admits, so it concerns only clients that ignore refusals, or that flood what has no rate
	// limit.
	knownRate = 100
	knownOver = 20 * time.Second
	// maxLookUpWait bounds how long a request waits until the store is asked about its credential.
	maxLookUpWait = 5 * time.Second
)

// ErrBusy means that no place has become free in time. Its code is CodeUnavailable.
var ErrBusy = schema.ClientErrorf(schema.CodeUnavailable, "Too many anonymous requests at the moment.")

// Anonymous lets anonymous requests work in a few places, one per two CPUs, and no faster than one request per
// millisecond and place, so that no flood of them takes the service from known clients. A request is known, and needs
// no place, if its credential, a token or a session, was valid within the last ten minutes, unless very many requests
// carry it. Other requests take turns by network, or by the account whose shared report they read. A few requests at a
// time ask the store about their credentials; they need no place for that. The methods may be called concurrently.
type Anonymous struct {
	places  *turns.Turns
	lookUps *turns.Turns
	pace    *turns.Bucket // of all requests with a place
	known   known
	rate    *turns.Bucket // of known credentials
	refused *metrics.Counter
}

// NewAnonymous returns an Anonymous with a number of places, which counts refusals in set.
func NewAnonymous(set *metrics.Set, places int) *Anonymous {
	const refused = "linkstream_api_anonymous_refused_total"
	service.Describe(set, refused, "Requests without a known token or session that were refused because too many came.")
	return &Anonymous{
		places: turns.New(turns.Limits{Places: places}), lookUps: turns.New(turns.Limits{Places: max(2, places)}),
		pace: turns.NewBucket(pace*places, paceOver), known: newKnown(),
		rate: turns.NewBucket(knownRate, knownOver), refused: set.NewCounter(refused),
	}
}

// Credential is the SHA-256 of a token or of a session's secret.
type Credential = [32]byte

// Turn is the turn of a request. It belongs to the goroutine that serves the request.
type Turn struct {
	of         *Anonymous
	credential Credential   // zero: none
	client     turns.Client // whose turns it takes: its network, unless its credential is known to take others
	anonymous  bool         // not known: it works in a place
	placed     bool         // it has a place
}

// Begin admits a request from addr with a credential, the zero Credential for none. It returns ErrBusy if the request
// needs a place and none becomes free in time. Otherwise the caller must call End when the answer is ready.
func (a *Anonymous) Begin(credential Credential, addr netip.Addr) (*Turn, error) {
	t := &Turn{of: a, credential: credential, client: turns.Site(addr)}
	t.anonymous = !t.isKnown()
	if t.anonymous && !t.take() {
		return nil, ErrBusy
	}
	return t, nil
}

// isKnown reports whether the request needs no place. If its credential takes the turns of a client, so does the
// request from now on.
func (t *Turn) isKnown() bool {
	as, found := t.of.known.find(t.credential)
	if found && as != (turns.Client{}) {
		t.client = as
		return false
	}
	return found && t.of.rate.Take(turns.Credential(t.credential))
}

// Trust marks the credential as valid and gives the place back.
func (t *Turn) Trust() {
	t.End()
	t.anonymous = false
	t.of.known.add(t.credential, turns.Client{})
}

// TrustAs marks the credential as valid. Requests with it go on to need places, for which they take the turns of a
// client: many networks with one credential are one client.
func (t *Turn) TrustAs(c turns.Client) { t.of.known.add(t.credential, c) }

// Distrust marks the credential as invalid.
func (t *Turn) Distrust() { t.of.known.remove(t.credential) }

// Slow makes the refusal of a request whose credential is known as slow as the refusal of an anonymous request: it
// waits for a place. So a client that ignores refusals takes no more than a flood of anonymous requests.
func (t *Turn) Slow() {
	if !t.placed {
		t.placed = t.of.enter(t.client)
	}
}

// End gives the place back, if the request has one. It may be called more than once.
func (t *Turn) End() {
	if t.placed {
		t.placed = false
		t.of.places.Leave(t.client)
	}
}

// Outside runs f, which waits for something other than a CPU, without the place, and then takes a place again. It
// returns the error of f, or ErrBusy if no place becomes free in time.
func (t *Turn) Outside(f func() error) error {
	t.End()
	if err := f(); err != nil {
		return err
	}
	if t.anonymous && !t.take() {
		return ErrBusy
	}
	return nil
}

// LookUp is Outside for an f that asks a store whether the credential is valid. The requests whose credentials are
// not known share as many look-ups at a time as there are places, at least two: at most half of a store's default
// connections. Networks take turns. LookUp returns ErrBusy without calling f if the request's turn does not come in
// time.
func (t *Turn) LookUp(f func() error) error {
	if !t.anonymous || t.credential == (Credential{}) {
		return f()
	}
	return t.Outside(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), maxLookUpWait)
		defer cancel()
		if t.of.lookUps.Take(ctx, t.client, 1) != nil {
			t.of.refused.Inc()
			return ErrBusy
		}
		defer t.of.lookUps.Leave(t.client)
		return f()
	})
}

// take waits for a place. It reports whether the request may go on: it has a place, or another request has made its
// credential known.
func (t *Turn) take() bool {
	if t.placed = t.of.enter(t.client); t.placed {
		return true
	}
	if t.isKnown() {
		t.anonymous = false
		return true
	}
	t.of.refused.Inc()
	return false
}

// enter waits for a place, and then in the place for as long as the pace demands, which is about a millisecond at most.
func (a *Anonymous) enter(network turns.Client) bool {
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	if a.places.Take(ctx, network, 1) != nil {
		return false
	}
	time.Sleep(a.pace.Reserve(turns.Client{}))
	return true
}
