package live

import (
	"context"
	"slices"
	"time"

	"linkstream/schema"
)

// countLoop reads the counts of all topics once per countEvery, and the counts of new topics at once.
func (h *Hub) countLoop(ctx context.Context) {
	timer := time.NewTimer(countEvery)
	defer timer.Stop()
	var next time.Time // the next read of all topics; zero without streams
	failed := false
	for {
		var due <-chan time.Time
		if h.idle() {
			next = time.Time{}
		} else {
			if next.IsZero() {
				next = time.Now().Add(countEvery)
			}
			timer.Reset(time.Until(next))
			due = timer.C
		}
		var err error
		select {
		case <-ctx.Done():
			return
		case <-h.early:
			err = h.count(ctx, true)
			sleep(ctx, earlyPause)
		case <-due:
			next = time.Now().Add(countEvery)
			if err = h.count(ctx, false); err != nil {
				next = time.Now().Add(failPause)
			}
		}
		if err != nil && !failed && ctx.Err() == nil {
			h.log.Warn("live counts cannot be read", "error", err)
		}
		failed = err != nil
	}
}

// count reads the counts of all topics, or only of topics without counts, and wakes their streams.
func (h *Hub) count(ctx context.Context, onlyNew bool) error {
	topics, links, accounts := h.toCount(onlyNew)
	if len(topics) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	until, known := h.countedUntil(ctx) // before the counts, which have at least the clicks until then
	if !known {
		until = time.Time{}
	}
	ofLinks, ofAccounts, err := h.clicks.ClickTotals(ctx, links, accounts)
	h.mu.Lock()
	defer h.mu.Unlock()
	for t, links := range topics {
		switch {
		case err == nil:
			t.set(links, ofLinks, ofAccounts[t.Account], until)
		case !t.known:
			t.err = err
			close(t.ready)
		}
	}
	return err
}

// toCount returns the topics to count with the links of each, and all their links and accounts.
func (h *Hub) toCount(onlyNew bool) (topics map[*topic][]int64, links, accounts []int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	topics = map[*topic][]int64{}
	for _, t := range h.topics {
		if t.err != nil || onlyNew && t.known && !t.stale {
			continue
		}
		topics[t] = t.links
		links = append(links, t.links...)
		if t.Link == 0 {
			accounts = append(accounts, t.Account)
		}
	}
	slices.Sort(links)
	slices.Sort(accounts)
	return topics, slices.Compact(links), slices.Compact(accounts)
}

// set sets the counts of a topic that had these links. The caller holds the hub's mutex.
func (t *topic) set(links []int64, ofLinks map[int64]schema.Period, owned schema.Period, until time.Time) {
	t.moved = t.moved || t.known && owned != t.owned
	t.owned = owned
	sum := owned
	if !t.ofAccount() {
		sum = schema.Period{}
		for _, id := range links {
			sum.Add(ofLinks[id])
		}
	}
	t.stale = t.stale && !slices.Equal(links, t.links)
	changed := sum != t.counts.Period
	t.counts = Counts{sum, until}
	switch {
	case !t.known:
		t.known = true
		close(t.ready)
	case changed:
		for s := range t.streams {
			notify(s.changed)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
