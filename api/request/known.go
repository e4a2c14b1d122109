package request

import (
	"sync"
	"time"

	"linkstream/schema/turns"
)

const (
	knownFor     = 10 * time.Minute
	knownRefresh = time.Minute // how often the time of a credential in use is extended
	maxKnown     = 1 << 16
)

// known is a bounded set of credentials that were valid within knownFor. It decides whose turns requests take, and
// which requests need none; it authenticates nobody.
type known struct {
	mu  sync.RWMutex
	all map[Credential]knownCredential
}

type knownCredential struct {
	until time.Time
	as    turns.Client // whose turns its requests take; zero: they need none
}

func newKnown() known { return known{all: map[Credential]knownCredential{}} }

// find returns whose turns the requests with a credential take, the zero Client if they need none. false if it is not
// known.
func (k *known) find(c Credential) (as turns.Client, found bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	is := k.all[c]
	return is.as, time.Now().Before(is.until)
}

func (k *known) add(c Credential, as turns.Client) {
	now := time.Now()
	k.mu.RLock()
	fresh := k.all[c].until.Sub(now) > knownFor-knownRefresh
	k.mu.RUnlock()
	if fresh {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.all) >= maxKnown {
		k.makeRoom(now)
	}
	k.all[c] = knownCredential{now.Add(knownFor), as}
}

// makeRoom looks at 32 credentials, in random order, and removes those that have expired, or any one if none has.
func (k *known) makeRoom(now time.Time) {
	looked, removed := 0, 0
	for c, is := range k.all {
		if looked++; !now.Before(is.until) || looked == 32 && removed == 0 {
			delete(k.all, c)
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
	delete(k.all, c)
}
