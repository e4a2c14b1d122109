package ratelimit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"time"

	"linkstream/schema"
	"linkstream/schema/groupcommit"
)

// AttemptLimit says how often a subject may attempt something.
type AttemptLimit struct {
	Purpose   string // what is attempted and what kind of subject it is counted by; part of the key in the store
	PerMinute int64
	PerHour   int64
}

// By returns an attempt by subject.
func (l AttemptLimit) By(subject string) Attempt { return Attempt{l, subject} }

// Attempt is an attempt of a subject that has a limit.
type Attempt struct {
	limit   AttemptLimit
	subject string
}

// attemptBatches bounds the transactions: attempts that arrive within a pause are counted by one.
var attemptBatches = groupcommit.Limits{Batch: 128, Queue: 2048, Timeout: 5 * time.Second, Pause: 20 * time.Millisecond}

// maxKnownWindows bounds the windows that a limiter keeps in memory. Attempts in others are counted by the store.
const maxKnownWindows = 1 << 16

// AttemptLimiter limits attempts such as sign-ins. All processes that share the store share the counts: together they
// allow exactly as many attempts as the limit. Refusals are answered from memory: once a limit is reached, the
// process does not ask the store again until the window ends. The methods may be called concurrently.
type AttemptLimiter struct {
	store schema.AttemptStore
	now   func() time.Time
	group *groupcommit.Group[[]counted]

	mu    sync.Mutex
	known map[window]*state // windows that are full, or in which attempts are being counted
	swept time.Time         // when windows that have ended were last removed from known
}

// window is a subject's time window.
type window struct {
	key    [sha256.Size]byte
	begins int64 // in Unix seconds
}

// state is what a process knows of a window.
type state struct {
	total   int64 // the highest that the store has returned
	pending int64 // attempts that are being counted
	ends    time.Time
}

// counted is an attempt in a window.
type counted struct {
	window
	ends  time.Time
	limit int64
	total int64 // of the window with this attempt, when it has been counted
}

// NewAttemptLimiter returns a limiter that counts in store. Windows begin and end by now; nil: time.Now.
func NewAttemptLimiter(store schema.AttemptStore, now func() time.Time) *AttemptLimiter {
	if now == nil {
		now = time.Now
	}
	a := &AttemptLimiter{store: store, now: now, known: map[window]*state{}}
	a.group = groupcommit.New(attemptBatches, a.count)
	return a
}

// Allow counts attempts, which are one attempt by several subjects. It returns 0 if all are within their limits, else
// the time until the last window that is full ends, in whole seconds. Attempts that are refused from memory are not
// counted.
func (a *AttemptLimiter) Allow(ctx context.Context, attempts ...Attempt) (wait time.Duration, err error) {
	now := a.now()
	windows := windowsOf(attempts, now)
	if wait := a.claim(windows, now); wait > 0 {
		return wait, nil
	}
	result, err := a.group.Submit(ctx, slices.Clone(windows))
	if err != nil {
		a.endClaim(windows)
		return 0, fmt.Errorf("count attempt: %w", err)
	}
	a.endClaim(result)
	for _, w := range result {
		if w.total > w.limit {
			wait = max(wait, ceilSeconds(w.ends.Sub(now)))
		}
	}
	return wait, nil
}

func windowsOf(attempts []Attempt, now time.Time) []counted {
	windows := make([]counted, 0, 2*len(attempts))
	for _, attempt := range attempts {
		for _, w := range []struct {
			length time.Duration
			limit  int64
		}{{time.Minute, attempt.limit.PerMinute}, {time.Hour, attempt.limit.PerHour}} {
			begins := now.Truncate(w.length)
			key := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s", attempt.limit.Purpose, w.length, attempt.subject))
			windows = append(windows, counted{window: window{key, begins.Unix()}, ends: begins.Add(w.length), limit: w.limit})
		}
	}
	return windows
}

// claim notes that attempts are being counted in windows, unless one of them is full. It returns how long that one
// lasts.
func (a *AttemptLimiter) claim(windows []counted, now time.Time) (wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range windows {
		if s := a.known[w.window]; s != nil && s.total+s.pending >= w.limit {
			wait = max(wait, ceilSeconds(w.ends.Sub(now)))
		}
	}
	if wait > 0 {
		return wait
	}
	a.sweep(now)
	for _, w := range windows {
		s := a.known[w.window]
		if s == nil && len(a.known) < maxKnownWindows {
			s = &state{ends: w.ends}
			a.known[w.window] = s
		}
		if s != nil {
			s.pending++
		}
	}
	return 0
}

// endClaim ends what claim has begun. Windows that are not full are forgotten: other processes may count in them, too.
func (a *AttemptLimiter) endClaim(windows []counted) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range windows {
		s := a.known[w.window]
		if s == nil {
			continue
		}
		s.total = max(s.total, w.total)
		s.pending = max(0, s.pending-1) // the state may be younger than the claim
		if s.pending == 0 && s.total < w.limit {
			delete(a.known, w.window)
		}
	}
}

// sweep removes the windows that have ended, once per second at most.
func (a *AttemptLimiter) sweep(now time.Time) {
	if now.Sub(a.swept) < time.Second {
		return
	}
	a.swept = now
	for w, s := range a.known {
		if s.pending == 0 && !now.Before(s.ends) {
			delete(a.known, w)
		}
	}
}

// count counts a batch of attempts in one transaction and gives each its own total.
func (a *AttemptLimiter) count(ctx context.Context, batch []*groupcommit.Call[[]counted]) error {
	sums := map[window]int64{}
	for _, call := range batch {
		for _, w := range call.Value {
			sums[w.window]++
		}
	}
	attempts := make([]schema.Attempts, 0, len(sums))
	for w, n := range sums {
		attempts = append(attempts, schema.Attempts{Key: w.key, Window: time.Unix(w.begins, 0).UTC(), N: n})
	}
	slices.SortFunc(attempts, func(x, y schema.Attempts) int {
		return cmp.Or(x.Window.Compare(y.Window), bytes.Compare(x.Key[:], y.Key[:]))
	})
	totals, err := a.store.CountAttempts(ctx, attempts)
	if err != nil {
		return err
	}
	before := make(map[window]int64, len(sums)) // the total before the next attempt
	for i, t := range attempts {
		before[window{t.Key, t.Window.Unix()}] = totals[i] - t.N
	}
	for _, call := range batch {
		for i := range call.Value {
			w := &call.Value[i]
			before[w.window]++
			w.total = before[w.window]
		}
	}
	return nil
}
