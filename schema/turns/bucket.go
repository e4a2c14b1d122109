package turns

import (
	"sync"
	"time"
)

// maxKept bounds the clients that a Bucket remembers. While it remembers that many, all new ones are one client.
const maxKept = 1 << 16

// Bucket is a token bucket for each client: it bounds how often each may do something, on average over a time. It keeps
// one time per client, until when the client has used up its share: the virtual scheduling algorithm of ITU-T I.371.
type Bucket struct {
	interval, over time.Duration

	mu    sync.Mutex
	used  map[Client]time.Time // a client without debts may be missing
	swept time.Time            // when clients without debts were last removed
}

// NewBucket returns a Bucket of perSecond on average over a time. A client may use all of that time's share at once.
func NewBucket(perSecond int, over time.Duration) *Bucket {
	return &Bucket{interval: time.Second / time.Duration(perSecond), over: over, used: map[Client]time.Time{}}
}

// Take counts one and reports true if the client may do it now.
func (b *Bucket) Take(c Client) bool {
	return b.count(c, time.Now(), func(debt time.Duration) (time.Duration, bool) { return debt, debt <= b.over })
}

// Reserve counts one and returns how long the client has to wait before it does it.
func (b *Bucket) Reserve(c Client) (wait time.Duration) {
	b.count(c, time.Now(), func(debt time.Duration) (time.Duration, bool) {
		wait = max(0, debt-b.over)
		return debt, true
	})
	return wait
}

// Charge counts one that the client has done before now. However much it has done, Wait is 0 again after the time over
// which b counts.
func (b *Bucket) Charge(c Client, now time.Time) {
	b.count(c, now, func(debt time.Duration) (time.Duration, bool) { return min(debt, 2*b.over), true })
}

// count counts one if judge agrees to the debt that the client then has, in time. judge returns the debt to remember.
func (b *Bucket) count(c Client, now time.Time, judge func(time.Duration) (time.Duration, bool)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sweep(now)
	c = b.counted(c)
	debt, ok := judge(max(0, b.used[c].Sub(now)) + b.interval)
	if ok {
		b.used[c] = now.Add(debt)
	}
	return ok
}

// counted returns the client under which c is counted.
func (b *Bucket) counted(c Client) Client {
	if _, known := b.used[c]; !known && len(b.used) >= maxKept {
		return Client{kind: others}
	}
	return c
}

// Debt returns for how long the client has used up its share.
func (b *Bucket) Debt(c Client, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(0, b.used[b.counted(c)].Sub(now))
}

// Wait returns how long a client that is charged afterwards has to wait until it may do it.
func (b *Bucket) Wait(c Client, now time.Time) time.Duration { return max(0, b.Debt(c, now)-b.over+1) }

// sweep removes clients without debts, once per second at most.
func (b *Bucket) sweep(now time.Time) {
	if now.Sub(b.swept) < time.Second {
		return
	}
	b.swept = now
	for c, used := range b.used {
		if !now.Before(used) {
			delete(b.used, c)
		}
	}
}
