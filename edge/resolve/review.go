package resolve

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"linkstream/schema"
	"linkstream/schema/blocklist"
)

// review decides whether a link in the cache may still be followed when the blocklist has changed, or all links of an
// account have. Such a change begins a new round. An entry carries the round in which it passed, so that a request costs
// one comparison until the next change; the first request after it judges the entry again, in memory.
type review struct {
	blocklist *blocklist.List // nil: nothing is blocked
	round     atomic.Uint32
	accounts  atomic.Pointer[recalls]
	changing  sync.Mutex // held by whoever begins a round
}

// recalls says in which round all links of an account changed. It is replaced as a whole.
type recalls struct {
	rounds map[int64]uint32 // by account
	all    uint32           // the round in which the links of all accounts did
}

// maxRecalls bounds recalls. One more account recalls the links of all.
const maxRecalls = 1 << 12

// since returns the last round in which all links of an account changed.
func (r *recalls) since(account int64) uint32 { return max(r.all, r.rounds[account]) }

func newReview(list *blocklist.List) *review {
	r := &review{blocklist: list}
	r.accounts.Store(&recalls{})
	return r
}

// next begins a round. The change itself is visible before.
func (r *review) next(change func(round uint32)) {
	r.changing.Lock()
	defer r.changing.Unlock()
	round := r.round.Load() + 1
	change(round)
	r.round.Store(round)
}

// recall makes requests look up again every link of an account that was looked up before.
func (r *review) recall(account int64) {
	r.next(func(round uint32) {
		old := r.accounts.Load()
		if len(old.rounds) >= maxRecalls {
			r.accounts.Store(&recalls{all: round})
			return
		}
		rounds := maps.Clone(old.rounds)
		if rounds == nil {
			rounds = map[int64]uint32{}
		}
		rounds[account] = round
		r.accounts.Store(&recalls{rounds, old.all})
	})
}

// An entry's word is twice the round in which it was looked up or judged, plus 1 if it has passed in that round.
func pending(round uint32) uint32 { return round << 1 }
func passed(round uint32) uint32  { return round<<1 | 1 }

// verdict is the result of a review.
type verdict int

const (
	sound    verdict = iota // the link is what the cache says
	recalled                // the link has to be looked up again; its entry has been dropped
	blocked                 // the link leads to a blocked host
)

// judge reviews an entry at the time now. For an entry that has passed in this round it reads two words. A link that leads
// elsewhere once it has expired passes with both locations.
func (r *review) judge(e *entry[linkIDs], now time.Time) verdict {
	round, word := r.round.Load(), e.reviewed.Load()
	if word == passed(round) {
		return sound
	}
	if r.isRecalled(e) {
		e.state.drop()
		e.reviewed.Store(pending(round)) // after the drop: a concurrent request must not pass before it
		return recalled
	}
	if before, after, _ := cutAnswer(e.bytes()); !r.blocks(before) && !r.blocks(after) {
		e.reviewed.Store(passed(round))
		return sound
	}
	if location, _, _ := decodeAnswer(e.bytes(), now); r.blocks(location) {
		return blocked
	}
	return sound
}

// isRecalled reports whether all links of an entry's account have changed since it was looked up.
func (r *review) isRecalled(e *entry[linkIDs]) bool {
	return e.reviewed.Load()>>1 < r.accounts.Load().since(e.value.account)
}

// blocks reports whether a location leads to a blocked host.
func (r *review) blocks(location []byte) bool {
	if len(location) == 0 || r.blocklist.IsEmpty() {
		return false
	}
	host, err := schema.HostOfURL(string(location))
	return err == nil && r.blocklist.Blocks(host)
}
