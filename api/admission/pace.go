package admission

import (
	"sync"
	"time"
)

// maxPaced bounds the memory of a Pace. Beyond it, those who are new are not counted.
const maxPaced = 1 << 16

// Pace bounds how often each of many may do something per second, on average over a while: the virtual scheduling algorithm of ITU-T
// I.371. It counts in this process alone. The methods may be called concurrently.
type Pace[K comparable] struct {
	interval, over time.Duration

	mu    sync.Mutex
	used  map[K]time.Time // until when one has used up its share; those who owe nothing may be missing
	swept time.Time       // when those were last removed
}

// NewPace returns a pace of so many times per second on average over a while, all of which may come at once.
func NewPace[K comparable](perSecond int, over time.Duration) *Pace[K] {
	return &Pace[K]{interval: time.Second / time.Duration(perSecond), over: over, used: map[K]time.Time{}}
}

// Allow counts one time of who, unless that is one too many.
func (p *Pace[K]) Allow(who K) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.sweep(now)
	used, counted := p.used[who]
	if used.Before(now) {
		used = now
	}
	used = used.Add(p.interval)
	if used.Sub(now) > p.over {
		return false
	}
	if counted || len(p.used) < maxPaced {
		p.used[who] = used
	}
	return true
}

// sweep removes who owes nothing, once per second at most.
func (p *Pace[K]) sweep(now time.Time) {
	if now.Sub(p.swept) < time.Second {
		return
	}
	p.swept = now
	for who, used := range p.used {
		if !now.Before(used) {
			delete(p.used, who)
		}
	}
}
