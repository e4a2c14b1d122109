package admission

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

// places are handed to requests, each for a while. Networks that wait for one take turns, so that a network with many requests does not
// keep others waiting. How many can wait is bounded by the connections.
type places struct {
	mu      sync.Mutex
	free    int                              // more than 0 only if nobody waits
	waiting map[netip.Prefix][]chan struct{} // closed when the request has its place; oldest first, never empty
	next    []netip.Prefix                   // the networks that wait, in the order of their turns
}

func newPlaces(n int) places { return places{free: n, waiting: map[netip.Prefix][]chan struct{}{}} }

// take waits for a place until patience is over. It reports whether the request has one, which leave gives back.
func (p *places) take(network netip.Prefix, patience time.Duration) bool {
	p.mu.Lock()
	if p.free > 0 {
		p.free--
		p.mu.Unlock()
		return true
	}
	mine := make(chan struct{})
	if len(p.waiting[network]) == 0 {
		p.next = append(p.next, network)
	}
	p.waiting[network] = append(p.waiting[network], mine)
	p.mu.Unlock()

	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case <-mine:
		return true
	case <-timeout.C:
		return !p.giveUp(network, mine)
	}
}

// giveUp ends a request's wait. It returns false if the request has got its place meanwhile.
func (p *places) giveUp(network netip.Prefix, mine chan struct{}) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.waiting[network], mine)
	if i < 0 {
		return false
	}
	if p.setWaiting(network, slices.Delete(p.waiting[network], i, i+1)) == 0 {
		p.next = slices.DeleteFunc(p.next, func(n netip.Prefix) bool { return n == network })
	}
	return true
}

// leave gives a place to the request whose turn it is.
func (p *places) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.next) == 0 {
		p.free++
		return
	}
	network := p.next[0]
	p.next = p.next[1:]
	close(p.waiting[network][0])
	if p.setWaiting(network, p.waiting[network][1:]) > 0 {
		p.next = append(p.next, network)
	}
}

// setWaiting notes which requests of a network wait, and returns their number.
func (p *places) setWaiting(network netip.Prefix, waiting []chan struct{}) int {
	if len(waiting) == 0 {
		delete(p.waiting, network)
	} else {
		p.waiting[network] = waiting
	}
	return len(waiting)
}
