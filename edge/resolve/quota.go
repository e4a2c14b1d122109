package resolve

import (
	"errors"
	"hash/maphash"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"linkstream/schema/fair"
)

// ErrTooMany means that a look-up is refused, because the client has asked for too many keys that do not exist, or
// pages about links.
var ErrTooMany = errors.New("too many unknown hosts and links, or pages about links")

// quota bounds how many keys that do not exist, or how many pages about links, a client may have looked up: rate per
// second on average over burst. Look-ups of existing links do not count, so that their clients are never refused,
// however many links are not cached. A client is a fair.Site.
//
// The quota is a token bucket in the form of one time per client (the virtual scheduling algorithm of ITU-T I.371):
// until when the client has used up its share. A client that is over its quota is refused until that time is less than
// burst away.
type quota struct {
	interval int64 // nanoseconds per key
	seed     maphash.Seed
	what     string // is refused, for the log
	log      *slog.Logger
	nextLog  atomic.Int64 // Unix nanoseconds

	mu   sync.Mutex // held while used is written
	used *times     // by client
}

const (
	burst        = 10 * time.Second
	quotaBytes   = 256 << 10 // for 16,384 clients
	quotaLogging = 10 * time.Second
)

func newQuota(rate int, what string, log *slog.Logger) *quota {
	return &quota{what: what, interval: int64(time.Second) / int64(rate), seed: maphash.MakeSeed(), log: log,
		used: newTimes(quotaBytes)}
}

// client returns the hashes of an address's client. It returns false for the zero Addr, which is not bounded.
func (q *quota) client(addr netip.Addr) (hash, check uint64, ok bool) {
	if !addr.IsValid() {
		return 0, 0, false
	}
	check = uint64(fair.Site(addr))
	return maphash.Comparable(q.seed, check), check, true
}

// wait returns how long a client has to wait until keys are looked up for it again; 0 if they are.
func (q *quota) wait(addr netip.Addr, now time.Time) time.Duration {
	hash, check, ok := q.client(addr)
	if !ok {
		return 0
	}
	used, ok := q.used.get(hash, check)
	if !ok {
		return 0
	}
	return max(0, time.Duration(used-now.UnixNano())-burst+1)
}

// suspects reports whether a client has asked for a key that does not exist, for which its share has yet to be
// restored.
func (q *quota) suspects(addr netip.Addr, now time.Time) bool {
	hash, check, ok := q.client(addr)
	if !ok {
		return false
	}
	used, ok := q.used.get(hash, check)
	return ok && used > now.UnixNano()
}

// charge counts a key that was looked up for a client and does not exist.
func (q *quota) charge(addr netip.Addr, now time.Time) {
	hash, check, ok := q.client(addr)
	if !ok {
		return
	}
	q.mu.Lock()
	began := now.UnixNano()
	used, _ := q.used.get(hash, check)
	before := max(used-began, 0)
	after := min(before+q.interval, 2*int64(burst)) // look-ups that were under way together do not count for long
	q.used.put(hash, check, began+after)
	q.mu.Unlock()
	if before < int64(burst) && after >= int64(burst) {
		q.report(addr, now)
	}
}

// report logs that a client is over its quota, one client per quotaLogging.
func (q *quota) report(addr netip.Addr, now time.Time) {
	next := q.nextLog.Load()
	if now.UnixNano() >= next && q.nextLog.CompareAndSwap(next, now.Add(quotaLogging).UnixNano()) {
		q.log.Warn(q.what+" refused: a client asks for too many", "client", addr,
			"flag", "-edge.max-unknown-rate", "per_second", int64(time.Second)/q.interval)
	}
}
