package resolve

import (
	"errors"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"linkstream/schema/turns"
)

// ErrTooMany means that a look-up is refused, because the client has asked for too many keys that do not exist, or
// pages about links.
var ErrTooMany = errors.New("too many unknown hosts and links, or pages about links")

// quota bounds how many keys that do not exist, or how many pages about links, a client may have looked up: rate per
// second on average over burst. Look-ups of existing links do not count, so that their clients are never refused,
// however many links are not cached. A client is a turns.Site. The zero Addr is not bounded.
type quota struct {
	bucket  *turns.Bucket
	rate    int
	what    string // is refused, for the log
	log     *slog.Logger
	nextLog atomic.Int64 // Unix nanoseconds
}

const (
	burst        = 10 * time.Second
	quotaLogging = 10 * time.Second
)

func newQuota(rate int, what string, log *slog.Logger) *quota {
	return &quota{bucket: turns.NewBucket(rate, burst), rate: rate, what: what, log: log}
}

// wait returns how long a client has to wait until keys are looked up for it again; 0 if they are.
func (q *quota) wait(addr netip.Addr, now time.Time) time.Duration {
	if !addr.IsValid() {
		return 0
	}
	return q.bucket.Wait(turns.Site(addr), now)
}

// suspects reports whether a client has asked for a key that does not exist, for which its share has yet to be
// restored.
func (q *quota) suspects(addr netip.Addr, now time.Time) bool {
	return addr.IsValid() && q.bucket.Debt(turns.Site(addr), now) > 0
}

// charge counts a key that was looked up for a client and does not exist. It logs that a client is over its quota, one
// client per quotaLogging.
func (q *quota) charge(addr netip.Addr, now time.Time) {
	if !addr.IsValid() {
		return
	}
	q.bucket.Charge(turns.Site(addr), now)
	next := q.nextLog.Load()
	if now.UnixNano() < next || q.wait(addr, now) == 0 ||
		!q.nextLog.CompareAndSwap(next, now.Add(quotaLogging).UnixNano()) {
		return
	}
	q.log.Warn(q.what+" refused: a client asks for too many", "client", addr,
		"flag", "-edge.max-unknown-rate", "per_second", q.rate)
}
