package dashboard

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"linkstream/schema"
)

const (
	rankedAtOnce = 1000                  // links of an account whose clicks are read for each page
	rankWait     = 50 * time.Millisecond // how long a page waits for the first ranking
	rankTimeout  = 10 * time.Second      // of a reading
	rankPause    = 2 * time.Second       // between two readings of an account, at least
	rankShare    = 20                    // and as many times as long as the last one took
	rankAge      = 10 * time.Minute      // how long a ranking is shown
	maxRankings  = 1000                  // accounts that have one
	maxRankers   = 2                     // readings at the same time
)

// topCounts has the links of an account with the most clicks of some days.
type topCounts struct {
	links []schema.LinkCount
	since time.Time // the first day
	total int64     // clicks on all links
	at    time.Time // counts are of this moment or a later one
	exact bool      // no clicks were counted since
}

// topWatch finds the links with the most clicks where finding them takes long: all links that have clicks are read for it. Pages get the
// last ranking, while a new one is read in the background. Clicks are only ever added, so a ranking is still true as long as the account
// has as many clicks as at its time.
type topWatch struct {
	read  func(ctx context.Context, accountID int64, since, linksSince time.Time) (schema.AccountReport, error)
	log   *slog.Logger
	turns chan struct{} // a semaphore

	mu       sync.Mutex
	accounts map[int64]*rankedAccount
	stopped  bool
	stop     context.Context
	end      context.CancelFunc
	readings sync.WaitGroup
}

// rankedAccount is guarded by the mu of topWatch.
type rankedAccount struct {
	last    *topCounts    // nil until one was read
	reading chan struct{} // closed at the end of the reading under way, else nil
	next    time.Time     // no reading begins before
	used    time.Time
}

func newTopWatch(reports schema.ReportStore, log *slog.Logger) *topWatch {
	r := &topWatch{read: reports.AccountReport, log: log, turns: make(chan struct{}, maxRankers), accounts: map[int64]*rankedAccount{}}
	r.stop, r.end = context.WithCancel(context.Background())
	return r
}

// Run returns when ctx is done and no reading is under way any more. Later pages get what is known.
func (r *topWatch) Run(ctx context.Context) {
	<-ctx.Done()
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	r.end()
	r.readings.Wait()
}

// of returns the ranking of an account that has total clicks since a day; nil if none is known yet. It takes at most rankWait.
func (r *topWatch) of(ctx context.Context, accountID int64, since time.Time, total int64) *topCounts {
	if total == 0 {
		return &topCounts{since: since, exact: true}
	}
	known, reading := r.look(accountID, since, total)
	if known != nil || reading == nil {
		return known
	}
	wait := time.NewTimer(rankWait)
	defer wait.Stop()
	select {
	case <-reading:
	case <-wait.C:
	case <-ctx.Done():
	}
	known, _ = r.look(accountID, since, total)
	return known
}

// look returns what is known, and begins a reading if that is not exact. reading is nil unless one is under way.
func (r *topWatch) look(accountID int64, since time.Time, total int64) (known *topCounts, reading chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	a := r.account(accountID, now)
	if a.last != nil && now.Sub(a.last.at) < rankAge {
		found := *a.last
		found.exact = found.since.Equal(since) && found.total == total
		known = &found
	}
	if (known == nil || !known.exact) && a.reading == nil && !r.stopped && !now.Before(a.next) {
		a.reading = make(chan struct{})
		r.readings.Go(func() { r.renew(accountID, a, since) })
	}
	return known, a.reading
}

// account returns the entry of an account. If there are too many, it forgets the one that has not been used for the longest time.
func (r *topWatch) account(id int64, now time.Time) *rankedAccount {
	a := r.accounts[id]
	if a == nil {
		if len(r.accounts) >= maxRankings {
			oldest := id
			for other, entry := range r.accounts {
				if r.accounts[oldest] == nil || entry.used.Before(r.accounts[oldest].used) {
					oldest = other
				}
			}
			delete(r.accounts, oldest)
		}
		a = &rankedAccount{}
		r.accounts[id] = a
	}
	a.used = now
	return a
}

// renew reads a ranking.
func (r *topWatch) renew(accountID int64, a *rankedAccount, since time.Time) {
	ctx, cancel := context.WithTimeout(r.stop, rankTimeout)
	defer cancel()
	var began time.Time
	var report schema.AccountReport
	var err error
	select {
	case r.turns <- struct{}{}:
		began = time.Now()
		report, err = r.read(ctx, accountID, since, since)
		<-r.turns
	case <-ctx.Done():
		began, err = time.Now(), ctx.Err()
	}
	if err != nil && r.stop.Err() == nil {
		r.log.Warn("links with the most clicks are unknown", "account", accountID, "error", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		a.last = &topCounts{links: report.Links, since: since, total: sumOf(report.Days).Total(), at: began.UTC()}
	}
	now := time.Now()
	a.next = now.Add(max(rankPause, rankShare*now.Sub(began)))
	close(a.reading)
	a.reading = nil
}

// Clock formats the time of the ranking for people; "" if it is that of the page.
func (r *topCounts) Clock() string {
	if r.exact {
		return ""
	}
	return progress{UpTo: r.at}.Clock()
}
