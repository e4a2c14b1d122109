// Package limit lets links redirect as many visitors as their limits say, over any number of edges.
//
// # Protocol
//
// The link store divides what a limit leaves among the processes of edges: schema.LeaseStore. A process takes a click
// from its lease before it appends the click to the spool, which is before the visitor is redirected, and gives it back
// if the spool has no room. So it needs the store only when a lease is used up.
//
//	                 TakeLease: a share of the free clicks
//	link store ─────────────────────────────────────────────▶ lease ──take──▶ append, marked "limited" ──▶ redirect
//	    ▲  ▲          StateLeases: spent; the rest if idle      │
//	    │  └────────────────────────────────────────────────────┘
//	    └── EndLeases: by the next process on the spool, which finds the dead process's clicks in it ◀── spool
//
// A process that is killed leaves its marked clicks in the spool. The spool keeps their number when it removes them.
// The next process that opens the spool reports to the store exactly how many clicks the dead process has spent, and
// ends its leases: unspent clicks become free. Nothing depends on clocks: a process that was suspended goes on with its
// leases.
//
// # Invariants
//
//   - At any time the clicks of a link that holders are granted, plus the clicks that ended holders have spent, are at
//     most its limit, unless the limit was lowered afterwards. Holders take turns by the lock of the link's row.
//   - A holder never has more than it is granted: it adds the clicks that TakeLease returns to a lease, and reports
//     clicks that it gives back only after it has removed them from the lease.
//   - A marked click stands for one click taken, and is recorded after it. A visitor is redirected only if the click is
//     recorded.
//   - Calls of a holder about a link take effect in their order: calls are numbered, and the store ignores a late one.
//     After a call with an unknown outcome, the next call states the whole lease.
//   - The spool notes on the disk that a process has leases before its first one, and how many marked clicks a segment
//     has before the segment is removed.
//   - Leases are ended only by a process that has the spool locked, and once: an ended holder is granted nothing.
//
// # Limits
//
//   - The clicks that a dead edge holds, at most a thirty-second of those that were left, are missing until the next
//     process opens its spool, or "edge drain" has sent its clicks. If the spool is lost, it never comes back, and its
//     clicks are not counted either.
//   - Clicks that an edge holds and does not use for 500 ms are given back. Until then visitors of other edges may find
//     the link used up.
//   - A lower limit takes effect when the change reaches an edge, like every change of a link. An edge that reaches
//     neither the link store nor an api spends the clicks that it holds.
//   - A power failure may take the last clicks from the disk of an edge, or grants from the link store's disk. A
//     restored copy may grant again the clicks that were granted since the copy was made.
//   - Clicks before a link had a limit do not count towards it; clicks under an earlier limit do.
package limit

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"linkstream/schema"
)

const (
	// stateEvery is how often spent clicks are reported to the store, and unused ones given back.
	stateEvery = 250 * time.Millisecond
	// answerLife is how long an answer of the store stands: that nothing is left, or that it is not available.
	answerLife = 500 * time.Millisecond
	askTimeout = 2 * time.Second
	// awayLife is how long visitors do not wait for a store that has not answered, while it is asked in the background.
	awayLife = 5 * time.Second
	// forgetAfter is the number of unused turns after which a lease without clicks is forgotten.
	forgetAfter = 8
	// A lease of fetchAhead clicks or more is renewed before it is used up: requests would wait otherwise.
	fetchAhead = 64
	maxStated  = 1000 // leases per call of the store
	maxTries   = 64   // of a request, each after others were faster
)

// Verdict is whether a link with a limit redirects.
type Verdict int64

// The verdicts.
const (
	Unknown     Verdict = iota // the store has to be asked
	Open                       // it does
	UsedUp                     // it does not any more
	Unavailable                // the store does not answer
)

// Store is the part of schema.Database that Limits use.
type Store interface{ schema.LeaseStore }

// Spool is the part of a spool that Limits use.
type Spool interface {
	Incarnation() schema.Incarnation
	NoteLeases() error
	LeftLeases() map[schema.Incarnation]map[int64]int64
	LeasesEnded(schema.Incarnation) error
}

// Limits are the leases of one process. Their methods may be called concurrently.
type Limits struct {
	store Store
	spool Spool
	log   *slog.Logger
	began time.Time
	calls atomic.Int64

	mu         sync.RWMutex
	leases     map[int64]*lease // by link
	first      chan struct{}    // wakes Run, which sleeps while there are no leases
	background sync.WaitGroup

	registering sync.Mutex
	registered  bool
	failing     atomic.Bool // the last call of the store has failed
}

// lease is the process's share of a link's limit.
type lease struct {
	link     int64
	left     atomic.Int64 // clicks that may be taken
	spent    atomic.Int64 // clicks that were taken and recorded
	limit    atomic.Int64 // in the request for which the store was asked last
	low      atomic.Int64 // more is fetched when left is this or less
	answer   atomic.Int64 // the store's last verdict and its time: see noteAnswer
	used     atomic.Bool  // since the last turn
	fetching atomic.Bool

	// mu is held while the store is asked. Only its holder adds to left.
	mu      sync.Mutex
	granted int64 // all clicks that were ever granted and not given back; -1: unknown, the store has to be asked
	stated  int64 // the value of spent that the store has
	unsure  bool  // the store may have another value of granted
	unused  int   // turns
	gone    bool  // forgotten
}

// New returns the limits of a process with a spool.
func New(store Store, spool Spool, log *slog.Logger) *Limits {
	return &Limits{store: store, spool: spool, log: log, began: time.Now(), leases: map[int64]*lease{},
		first: make(chan struct{}, 1)}
}

// Ticket is a click that was taken. Exactly one of its methods is called.
type Ticket struct{ lease *lease }

// Recorded says that the click is in the spool, marked.
func (t Ticket) Recorded() { t.lease.spent.Add(1) }

// GiveBack says that the click was not recorded.
func (t Ticket) GiveBack() { t.lease.left.Add(1) }

// Take takes a click of a link with a limit, from memory. The ticket is for the verdict Open, and only if the visit
// counts; otherwise nothing is taken. Unknown if the store has to be asked. It does not wait, and does not allocate
// unless it begins to fetch more.
func (l *Limits) Take(link, limit int64, counts bool) (Ticket, Verdict) {
	l.mu.RLock()
	x := l.leases[link]
	l.mu.RUnlock()
	if x == nil {
		return Ticket{}, Unknown
	}
	return l.take(x, limit, counts)
}

// Await is Take, and asks the store if need be.
func (l *Limits) Await(link, limit int64, counts bool) (Ticket, Verdict) {
	for range maxTries {
		x := l.lease(link)
		if t, v := l.take(x, limit, counts); v != Unknown {
			return t, v
		}
		l.ask(x, limit, counts)
	}
	return Ticket{}, Unavailable
}

func (l *Limits) lease(link int64) *lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.leases[link]
	if x == nil {
		x = &lease{link: link, granted: -1}
		x.low.Store(-1)
		l.leases[link] = x
		select {
		case l.first <- struct{}{}:
		default:
		}
	}
	return x
}

func (l *Limits) take(x *lease, limit int64, counts bool) (Ticket, Verdict) {
	if x.limit.Load() != limit {
		return Ticket{}, Unknown
	}
	for left := x.left.Load(); left > 0; left = x.left.Load() {
		if !counts {
			return Ticket{}, Open
		}
		if !x.left.CompareAndSwap(left, left-1) {
			continue
		}
		if !x.used.Load() { // a write for each click would cost the other CPUs a cache line
			x.used.Store(true)
		}
		if left-1 <= x.low.Load() {
			l.fetch(x, limit)
		}
		return Ticket{x}, Open
	}
	verdict, age := x.lastAnswer(time.Since(l.began))
	switch {
	case verdict == Open && counts:
		return Ticket{}, Unknown
	case age < answerLife:
		return Ticket{}, verdict
	case age < 2*answerLife && verdict == UsedUp, age < awayLife && verdict == Unavailable: // nobody waits again
		x.used.Store(true) // so that it is not forgotten
		l.fetch(x, limit)
		return Ticket{}, verdict
	}
	return Ticket{}, Unknown
}

// noteAnswer notes a verdict of the store.
func (x *lease) noteAnswer(v Verdict, now time.Duration) { x.answer.Store(int64(now)<<2 | int64(v)) }

// lastAnswer returns the last verdict of the store and its age.
func (x *lease) lastAnswer(now time.Duration) (Verdict, time.Duration) {
	answer := x.answer.Load()
	return Verdict(answer & 3), now - time.Duration(answer>>2)
}

// fetch asks the store in the background, once at a time.
func (l *Limits) fetch(x *lease, limit int64) {
	if x.fetching.Load() || !x.fetching.CompareAndSwap(false, true) {
		return
	}
	l.background.Go(func() {
		defer x.fetching.Store(false)
		x.mu.Lock()
		defer x.mu.Unlock()
		if !x.gone && x.left.Load() <= max(0, x.low.Load()) {
			l.refill(x, limit)
		}
	})
}

// ask asks the store, unless another request has asked while this one waited for the lock.
func (l *Limits) ask(x *lease, limit int64, counts bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	verdict, age := x.lastAnswer(time.Since(l.began))
	answered := x.left.Load() > 0 || age < answerLife && verdict != Unknown && !(verdict == Open && counts)
	switch {
	case x.gone || answered && x.limit.Load() == limit:
	case counts:
		l.refill(x, limit)
	default:
		l.look(x, limit)
	}
}

// refill states the lease and takes more. It gives back clicks that were granted under another limit. Callers hold
// x.mu.
func (l *Limits) refill(x *lease, limit int64) {
	if x.limit.Load() != limit {
		x.giveBack()
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	given := schema.LimitLease{LinkID: x.link, Call: l.calls.Add(1), Granted: x.granted, Spent: x.spent.Load()}
	now, err := given, l.register(ctx)
	if err == nil {
		now, err = l.store.TakeLease(ctx, l.spool.Incarnation(), given)
	}
	l.note(err)
	if err != nil {
		x.unsure = true
		x.noteAnswer(Unavailable, time.Since(l.began))
		x.limit.Store(limit)
		return
	}
	if x.granted < 0 {
		x.granted = now.Spent
		x.spent.Store(now.Spent)
	}
	more := now.Granted - x.granted
	x.granted, x.stated, x.unsure, x.unused = now.Granted, now.Spent, false, 0
	x.low.Store(-1)
	if more >= fetchAhead {
		x.low.Store(more / 4)
	}
	verdict := Unknown // when left is used up
	if more == 0 {
		verdict = UsedUp
	}
	x.noteAnswer(verdict, time.Since(l.began))
	x.left.Add(more)
	x.limit.Store(limit)
}

// look asks whether the link has clicks left, without taking any. Callers hold x.mu.
func (l *Limits) look(x *lease, limit int64) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	use, err := l.store.LimitUse(ctx, []int64{x.link})
	l.note(err)
	x.giveBack()
	verdict := Open
	switch {
	case err != nil:
		verdict = Unavailable
	case use[x.link].Granted >= limit:
		verdict = UsedUp
	}
	x.noteAnswer(verdict, time.Since(l.began))
	x.limit.Store(limit)
}

// giveBack removes all clicks that are left from the lease. The next statement to the store says so. Callers hold mu.
func (x *lease) giveBack() {
	if left := x.left.Swap(0); left > 0 {
		x.granted -= left
		x.unsure = true
	}
}

// register lets the process take leases.
func (l *Limits) register(ctx context.Context) error {
	l.registering.Lock()
	defer l.registering.Unlock()
	if l.registered {
		return nil
	}
	err := l.spool.NoteLeases() // so that the next process ends the leases that the store is about to grant
	if err == nil {
		err = l.store.AddLeaseHolder(ctx, l.spool.Incarnation())
	}
	l.registered = err == nil
	return err
}

// note logs the first of several failures: visitors decide how many there are.
func (l *Limits) note(err error) {
	if failed := err != nil; failed != l.failing.Swap(failed) && failed {
		l.log.Warn("limits of links cannot be checked, links without a lease answer 503", "error", err)
	}
}

// Run reports spent clicks of this process and of earlier ones to the store, until ctx is done.
func (l *Limits) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := EndLeft(ctx, l.store, l.spool) // the next turn tries again; a store that is away is logged for links
		if err == nil && l.idle() {
			select {
			case <-ctx.Done():
			case <-l.first:
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(stateEvery):
			_ = l.state(ctx, false)
		}
	}
}

func (l *Limits) idle() bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return len(l.leases) == 0
}

// Close gives back what is left, after which nothing may be taken any more.
func (l *Limits) Close(ctx context.Context) error {
	l.background.Wait()
	err := l.state(ctx, true)
	if l.registered && err == nil {
		err = l.store.EndLeases(ctx, l.spool.Incarnation(), nil) // the store has all spent clicks
	}
	return err
}

// EndLeft reports the clicks that earlier processes on a spool have spent of their leases to the store, and ends the
// leases.
func EndLeft(ctx context.Context, store Store, spool Spool) error {
	for holder, spent := range spool.LeftLeases() {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		err := store.EndLeases(ctx, holder, spent)
		cancel()
		if err == nil {
			err = spool.LeasesEnded(holder)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// state states all leases that have changed, and gives back the clicks that are left in leases without use since the
// last call, or in all leases.
func (l *Limits) state(ctx context.Context, all bool) (err error) {
	l.mu.RLock()
	leases := slices.Collect(maps.Values(l.leases))
	l.mu.RUnlock()
	for some := range slices.Chunk(leases, maxStated) {
		if e := l.stateSome(ctx, some, all); e != nil {
			err = e
		}
	}
	return err
}

func (l *Limits) stateSome(ctx context.Context, leases []*lease, all bool) error {
	var changed []*lease
	var stated []schema.LimitLease
	for _, x := range leases {
		if all {
			x.mu.Lock()
		} else if !x.mu.TryLock() { // the store is being asked
			continue
		}
		if used := x.used.Swap(false); !used || all {
			x.giveBack()
			x.unused++
		} else {
			x.unused = 0
		}
		spent := x.spent.Load()
		if !x.unsure && spent == x.stated {
			l.forget(x)
			x.mu.Unlock()
			continue
		}
		changed = append(changed, x)
		stated = append(stated, schema.LimitLease{LinkID: x.link, Call: l.calls.Add(1), Granted: x.granted, Spent: spent})
	}
	if len(changed) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	err := l.store.StateLeases(ctx, l.spool.Incarnation(), stated)
	l.note(err)
	for i, x := range changed {
		if err == nil {
			x.stated, x.unsure = stated[i].Spent, false
		}
		x.mu.Unlock()
	}
	return err
}

// forget removes a lease that was unused for forgetAfter turns and whose state the store has. Callers hold x.mu.
func (l *Limits) forget(x *lease) {
	if x.unused < forgetAfter || x.left.Load() > 0 || x.granted >= 0 && x.granted != x.spent.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	x.gone = true
	delete(l.leases, x.link)
}
