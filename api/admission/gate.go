// Package admission bounds what clients may take of the api before it knows who they are: connections, request bodies, and
// the work that anonymous requests cause.
package admission

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema"
	"linkstream/schema/fair"
	"linkstream/schema/service"
)

const (
	// pace is the shortest time between two anonymous requests that use the same slot. It leaves most of a CPU to everyone else.
	pace = time.Millisecond
	// burst is how many requests a slot admits without pace after a quiet time.
	burst = 200
	// maxWait bounds how long a request waits for a slot. A client that retries at once is slowed down by it.
	maxWait = 250 * time.Millisecond
	// knownRate is how many requests per second with a known credential pass without a slot, on average over knownOver. It is more
	// than any rate limit admits, so it concerns only clients that ignore refusals, or that flood what has no rate limit.
	knownRate = 100
	knownOver = 20 * time.Second
	// maxLookUpWait bounds how long a request waits until the store is asked about its credential.
	maxLookUpWait = 5 * time.Second
)

// ErrBusy means that no slot has become free in time. Its code is CodeUnavailable.
var ErrBusy = schema.ClientErrorf(schema.CodeUnavailable, "Too many anonymous requests at the moment.")

// Gate lets anonymous requests work in a few slots, one per two CPUs, and no faster than one request per millisecond and slot, so that
// no flood of them takes the service from known clients. A request is known, and passes without a slot, if its credential, a token or a
// session, was valid within the last ten minutes, unless very many requests carry it. Other requests wait for a slot; networks take
// turns. A few requests at a time, which leave their slots meanwhile, ask the store about their credentials. The methods may be called
// concurrently.
type Gate struct {
	slots    *fair.Turns[fair.Network]
	lookUps  *fair.Turns[fair.Network]
	interval time.Duration // between two requests, over all slots
	known    known
	pace     *fair.Pace[Credential] // of known credentials
	refused  *metrics.Counter

	mu   sync.Mutex
	next time.Time // when the next request may begin
}

// NewGate returns a gate that counts in set what it refuses.
func NewGate(set *metrics.Set) *Gate {
	const refused = "linkstream_api_anonymous_refused_total"
	service.Describe(set, refused, "Requests without a known token or session that were refused because too many came.")
	return newGate(max(1, service.CPUs()/2), set.NewCounter(refused))
}

func newGate(slots int, refused *metrics.Counter) *Gate {
	places := func(n int) *fair.Turns[fair.Network] { return fair.NewTurns[fair.Network](fair.Limits{Places: n}) }
	return &Gate{
		slots: places(slots), lookUps: places(max(2, slots)), interval: pace / time.Duration(slots), known: newKnown(),
		pace: fair.NewPace[Credential](knownRate, knownOver), refused: refused,
	}
}

// Credential is the SHA-256 of a token or of a session's secret.
type Credential = [32]byte

// Pass is a request's way through the gate. It belongs to the goroutine that serves the request.
type Pass struct {
	gate       *Gate
	credential Credential // zero: none
	network    fair.Network
	anonymous  bool // not known: it works in a slot
	inside     bool // it has a slot
}

// Enter admits a request from addr with a credential, the zero Credential for none. It returns ErrBusy if the request needs a slot
// and none becomes free in time. Otherwise the caller must call Leave when the answer is ready.
func (g *Gate) Enter(credential Credential, addr netip.Addr) (*Pass, error) {
	p := &Pass{gate: g, credential: credential, network: fair.Site(addr)}
	p.anonymous = !p.isKnown()
	if p.anonymous && !p.take() {
		return nil, ErrBusy
	}
	return p, nil
}

func (p *Pass) isKnown() bool {
	return p.credential != Credential{} && p.gate.known.has(p.credential) && p.gate.pace.Allow(p.credential)
}

// Trust marks the credential as valid and gives the slot back.
func (p *Pass) Trust() {
	p.Leave()
	p.anonymous = false
	p.gate.known.add(p.credential)
}

// Distrust marks the credential as invalid.
func (p *Pass) Distrust() { p.gate.known.remove(p.credential) }

// Slow makes the refusal of a request whose credential is known as slow as that of an anonymous request: it waits for a slot. So a
// client that ignores refusals takes no more than a flood of anonymous requests.
func (p *Pass) Slow() {
	if !p.inside {
		p.inside = p.gate.enter(p.network)
	}
}

// Leave gives the slot back, if the request has one. It may be called more than once.
func (p *Pass) Leave() {
	if p.inside {
		p.inside = false
		p.gate.slots.Leave(p.network)
	}
}

// Outside runs f, which waits for something else than a CPU, without the slot, and then takes a slot again. It returns the error
// of f, or ErrBusy if no slot becomes free in time.
func (p *Pass) Outside(f func() error) error {
	p.Leave()
	if err := f(); err != nil {
		return err
	}
	if p.anonymous && !p.take() {
		return ErrBusy
	}
	return nil
}

// LookUp is Outside for an f that asks a store whether the credential is valid. The requests whose credentials are not known share
// as many look-ups at a time as there are slots, at least two: at most half of a store's default connections. Networks take turns.
// LookUp returns ErrBusy without calling f if the request's turn does not come in time.
func (p *Pass) LookUp(f func() error) error {
	if !p.anonymous || p.credential == (Credential{}) {
		return f()
	}
	return p.Outside(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), maxLookUpWait)
		defer cancel()
		if p.gate.lookUps.Take(ctx, p.network) != nil {
			p.gate.refused.Inc()
			return ErrBusy
		}
		defer p.gate.lookUps.Leave(p.network)
		return f()
	})
}

// take waits for a slot. It reports whether the request may go on: it has a slot, or its credential has become known meanwhile.
func (p *Pass) take() bool {
	if p.inside = p.gate.enter(p.network); p.inside {
		return true
	}
	if p.isKnown() { // by another request
		p.anonymous = false
		return true
	}
	p.gate.refused.Inc()
	return false
}

// enter waits for a slot, and then in the slot for as long as the pace demands, which is at most about pace.
func (g *Gate) enter(network fair.Network) bool {
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	if g.slots.Take(ctx, network) != nil {
		return false
	}
	time.Sleep(g.delay())
	return true
}

// delay returns how long the next request has to wait.
func (g *Gate) delay() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	at := g.next
	if earliest := now.Add(-burst * pace); at.Before(earliest) {
		at = earliest
	}
	g.next = at.Add(g.interval)
	return at.Sub(now)
}
