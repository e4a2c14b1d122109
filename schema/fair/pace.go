package fair

import (
	"sync"
	"time"
)

// maxPaced bounds the clients that a Pace remembers. While it remembers that many, it does not count new ones.
const maxPaced = 1 << 16

// Pace bounds how often each client may do something per second, on average over a period: the virtual scheduling algorithm of ITU-T
// I.371.
type Pace[K comparable] struct {
	interval, period time.Duration

	mu    sync.Mutex
	used  map[K]time.Time // until when a client has used up its share; a client without debts may be missing
	swept time.Time       // when clients without debts were last removed
}

// NewPace returns a Pace of perSecond on average over period. A client may use all of a period at once.
func NewPace[K comparable](perSecond int, period time.Duration) *Pace[K] {
	return &Pace[K]{interval: time.Second / time.Duration(perSecond), period: period, used: map[K]time.Time{}}
}

// Allow reports whether the client may do it now, and counts it if so.
func (p *Pace[K]) Allow(key K) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.sweep(now)
	used, known := p.used[key]
	if used.Before(now) {
		used = now
	}
	used = used.Add(p.interval)
	if used.Sub(now) > p.period {
		return false
	}
	if known || len(p.used) < maxPaced {
		p.used[key] = used
	}
	return true
}

// sweep removes clients without debts, once per second at most.
func (p *Pace[K]) sweep(now time.Time) {
	if now.Sub(p.swept) < time.Second {
		return
	}
	p.swept = now
	for key, used := range p.used {
		if !now.Before(used) {
			delete(p.used, key)
		}
	}
}
