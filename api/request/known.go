package request

import (
	"sync"
	"time"
)

const (
	knownFor     = 10 * time.Minute
	knownRefresh = time.Minute // how often the time of a credential in use is extended
	maxKnown     = 1 << 16
)

// known is a bounded set of credentials that were valid within knownFor. It decides which requests wait; it
// authenticates nobody.
type known struct {
	mu    sync.RWMutex
	until map[Credential]time.Time
}

func newKnown() known { return known{until: map[Credential]time.Time{}} }

func (k *known) has(c Credential) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return time.Now().Before(k.until[c])
}

func (k *known) add(c Credential) {
	now := time.Now()
	k.mu.RLock()
	fresh := k.until[c].Sub(now) > knownFor-knownRefresh
	k.mu.RUnlock()
	if fresh {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.until) >= maxKnown {
		k.makeRoom(now)
	}
	k.until[c] = now.Add(knownFor)
}

// makeRoom looks at 32 credentials, in random order, and removes those that have expired, or any one if none has.
func (k *known) makeRoom(now time.Time) {
	looked, removed := 0, 0
	for c, until := range k.until {
		if looked++; !now.Before(until) || looked == 32 && removed == 0 {
			delete(k.until, c)
			removed++
		}
		if looked == 32 {
			return
		}
	}
}

func (k *known) remove(c Credential) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.until, c)
}
