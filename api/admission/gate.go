// Package admission bounds what clients may take of the api before it knows who they are: connections, request bodies, and
// the work that anonymous requests cause.
package admission

import (
	"net/netip"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/schema"
	"linkstream/schema/service"
)

const (
	// pace is the least time between two anonymous requests that use the same slot. It leaves most of a CPU to everyone else.
	pace = time.Millisecond
	// burst is how many requests a slot admits without pace after a quiet time.
	burst = 200
	// maxWait bounds how long a request waits for a slot. A request that finds the line full is parked as long and refused if
	// the line has not become empty, so that a client that sends the next request at once sends few.
	maxWait = 250 * time.Millisecond
	// maxInLine bounds, per slot, the requests of one network that are in line or have a slot, so that others get their turn.
	maxInLine = 64
	// knownRate is how many requests with a known credential pass without a slot per second, on average over knownOver. It is more than
	// any rate limit admits, so that it concerns clients alone that ignore refusals, or flood what has no rate limit.
	knownRate = 100
	knownOver = 20 * time.Second
	// maxLookUpWait bounds how long a request waits until the store is asked about its credential.
	maxLookUpWait = 5 * time.Second
)

// ErrBusy means that no slot has become free in time. Its code is CodeUnavailable.
var ErrBusy = schema.ClientErrorf(schema.CodeUnavailable, "Too many anonymous requests at the moment.")

// Gate lets anonymous requests do their work in a few slots, one per two CPUs, and no faster than a request per millisecond and
// slot. So no flood of them takes the service from those who are known: a request whose credential, a token or a session, was
// valid within the last ten minutes passes without a slot, unless very many come with it. Others wait in turn, without a slot, while a
// few at a time ask the store about their credentials. The methods may be called concurrently.
type Gate struct {
	slots    chan struct{} // an element per slot in use
	lookUps  places
	interval time.Duration // between two requests, over all slots
	known    known
	pace     *Pace[Credential] // of those that are known
	refused  *metrics.Counter

	mu     sync.Mutex
	next   time.Time            // when the next request may begin
	inLine map[netip.Prefix]int // requests that wait or have a slot, by network
}

// NewGate returns a gate that counts in set what it refuses.
func NewGate(set *metrics.Set) *Gate {
	const refused = "linkstream_api_anonymous_refused_total"
	service.Describe(set, refused, "Requests without a known token or session that were refused because too many came.")
	return newGate(max(1, service.CPUs()/2), set.NewCounter(refused))
}

func newGate(slots int, refused *metrics.Counter) *Gate {
	return &Gate{
		slots: make(chan struct{}, slots), lookUps: newPlaces(max(2, slots)), interval: pace / time.Duration(slots), known: newKnown(),
		pace:    NewPace[Credential](knownRate, knownOver),
		refused: refused, inLine: map[netip.Prefix]int{},
	}
}

// Credential is the SHA-256 of a token or of a session's secret.
type Credential = [32]byte

// Pass is a request's way through the gate. It belongs to the goroutine that serves the request.
type Pass struct {
	gate       *Gate
	credential Credential // zero: none
	network    netip.Prefix
	anonymous  bool // not known, so it works in a slot
	inside     bool // it has a slot
}

// Enter admits a request from addr with a credential, which is zero for a request without one. It returns ErrBusy if the request needs a
// slot and none becomes free in time. Otherwise the caller must call Leave when the answer is ready.
func (g *Gate) Enter(credential Credential, addr netip.Addr) (*Pass, error) {
	p := &Pass{gate: g, credential: credential, network: networkOf(addr)}
	p.anonymous = !p.isKnown()
	if p.anonymous && !p.take() {
		return nil, ErrBusy
	}
	return p, nil
}

func (p *Pass) isKnown() bool {
	return p.credential != Credential{} && p.gate.known.has(p.credential) && p.gate.pace.Allow(p.credential)
}

// Trust notes that the credential is valid. The slot is free again.
func (p *Pass) Trust() {
	p.Leave()
	p.anonymous = false
	p.gate.known.add(p.credential)
}

// Distrust notes that the credential is not valid any more.
func (p *Pass) Distrust() { p.gate.known.remove(p.credential) }

// Slow makes the refusal of a request whose credential is known as slow as those of anonymous requests: it waits for a slot, or as long
// as they do. So a client that ignores refusals takes no more than a flood of strangers.
func (p *Pass) Slow() {
	if p.inside {
		return
	}
	wait, ok := p.gate.lineUp(p.network, maxWait)
	if !ok {
		time.Sleep(maxWait)
		return
	}
	if p.inside = p.gate.await(wait, maxWait); !p.inside {
		p.gate.stepOut(p.network)
	}
}

// Leave gives the slot back, if the request has one. It may be called more than once.
func (p *Pass) Leave() {
	if p.inside {
		p.inside = false
		<-p.gate.slots
		p.gate.stepOut(p.network)
	}
}

// Outside runs f without the slot, because f waits for something else than a CPU, and takes a slot again. It returns the error
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

// LookUp runs f, which asks a store whether the credential is valid, as Outside does. Of all requests whose credentials are not known, as
// many ask at a time as there are slots, at least two: at most half of the connections that a store has by default. Networks take
// turns. LookUp returns ErrBusy without a call of f if it is not the request's turn in time.
func (p *Pass) LookUp(f func() error) error {
	if !p.anonymous || p.credential == (Credential{}) {
		return f()
	}
	return p.Outside(func() error {
		if !p.gate.lookUps.take(p.network, maxLookUpWait) {
			p.gate.refused.Inc()
			return ErrBusy
		}
		defer p.gate.lookUps.leave()
		return f()
	})
}

// take waits for a slot, or until the credential is known. It reports whether the request may go on.
func (p *Pass) take() bool {
	g, patience := p.gate, maxWait
	wait, ok := g.lineUp(p.network, maxWait)
	if !ok {
		time.Sleep(maxWait)
		if p.isKnown() { // by another request
			p.anonymous = false
			return true
		}
		patience = 0
		_, ok = g.lineUp(p.network, 0)
	}
	if ok {
		p.inside = g.await(wait, patience)
		if p.inside {
			return true
		}
		g.stepOut(p.network)
	}
	g.refused.Inc()
	return false
}

// await waits for the request's turn, and then for a slot until patience is over.
func (g *Gate) await(turn, patience time.Duration) bool {
	if turn > 0 {
		time.Sleep(turn)
	}
	select {
	case g.slots <- struct{}{}:
		return true
	default:
	}
	timeout := time.NewTimer(patience - turn)
	defer timeout.Stop()
	select {
	case g.slots <- struct{}{}:
		return true
	case <-timeout.C:
	}
	select { // the process may have waited for a CPU longer than for a slot
	case g.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

// lineUp returns how long a request has to wait for its turn. ok is false if that is longer than most, or if the network has
// too many requests in line.
func (g *Gate) lineUp(network netip.Prefix, most time.Duration) (wait time.Duration, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	turn := g.next
	if earliest := now.Add(-burst * pace); turn.Before(earliest) {
		turn = earliest
	}
	wait = max(0, turn.Sub(now))
	if wait > most || g.inLine[network] >= maxInLine*cap(g.slots) {
		return 0, false
	}
	g.next = turn.Add(g.interval)
	g.inLine[network]++
	return wait, true
}

func (g *Gate) stepOut(network netip.Prefix) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inLine[network]--; g.inLine[network] == 0 {
		delete(g.inLine, network)
	}
}

// networkOf returns the IPv4 address, or the /48 of an IPv6 address, which is what one client can have.
func networkOf(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 48
	}
	prefix, _ := addr.Prefix(bits) // fails for an invalid address; all of those are one network
	return prefix
}
