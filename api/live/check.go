package live

import (
	"context"
	"slices"
	"sync"
	"time"

	"linkstream/schema"
	"linkstream/schema/turns"
)

// checkLoop ends streams whose holders or links are gone, and reads the links of topics again.
func (h *Hub) checkLoop(ctx context.Context) {
	timer := time.NewTimer(checkEvery)
	defer timer.Stop()
	var selecting sync.WaitGroup
	defer selecting.Wait()
	selected := time.Now()
	failed := false
	for {
		var due <-chan time.Time
		if !h.idle() {
			timer.Reset(checkEvery)
			due = timer.C
		}
		select {
		case <-ctx.Done():
			return
		case <-h.begun:
			continue
		case <-due:
		}
		err := h.checkHolders(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			h.log.Warn("holders of live streams cannot be checked", "error", err)
		}
		failed = err != nil
		all := time.Since(selected) >= selectEvery
		if all {
			selected = time.Now()
		}
		for account, topics := range h.toSelect(all) {
			selecting.Go(func() { h.selectLinks(ctx, account, topics) })
		}
	}
}

// checkHolders ends the streams whose token or session is not valid any more.
func (h *Hub) checkHolders(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var tokens, sessions []int64
	h.mu.Lock()
	holders := make(map[*Stream]Holder, len(h.streams))
	for s := range h.streams {
		holders[s] = s.holder
		if s.holder.Token != 0 {
			tokens = append(tokens, s.holder.Token)
		} else {
			sessions = append(sessions, s.holder.Session)
		}
	}
	h.mu.Unlock()
	slices.Sort(tokens)
	slices.Sort(sessions)
	valid := map[Holder]bool{}
	if len(tokens) > 0 {
		ids, err := h.links.ValidTokens(ctx, slices.Compact(tokens))
		if err != nil {
			return err
		}
		for _, id := range ids {
			valid[Holder{Token: id}] = true
		}
	}
	if len(sessions) > 0 {
		ids, err := h.links.ValidSessions(ctx, slices.Compact(sessions), time.Now())
		if err != nil {
			return err
		}
		for _, id := range ids {
			valid[Holder{Session: id}] = true
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for s, holder := range holders {
		if !valid[holder] {
			h.leave(s)
		}
	}
	return nil
}

// toSelect returns the topics whose links have to be read, or all that have links, by account, and marks them.
func (h *Hub) toSelect(all bool) map[int64][]*topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	due := map[int64][]*topic{}
	for _, t := range h.topics {
		if t.ofAccount() || t.reading || !all && !t.moved {
			continue
		}
		t.reading, t.moved = true, false
		due[t.Account] = append(due[t.Account], t)
	}
	return due
}

// selectLinks reads the links of topics of an account, one after the other. After an error they stay as they were.
func (h *Hub) selectLinks(ctx context.Context, account int64, topics []*topic) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var single []int64
	for _, t := range topics {
		if t.Link != 0 {
			single = append(single, t.Link)
		}
	}
	exist := map[int64]bool{}
	found, failed := h.links.LinksByID(ctx, account, single)
	for _, link := range found {
		exist[link.ID] = true
	}
	for _, t := range topics {
		links, err := []int64{t.Link}, failed
		switch {
		case t.Link == 0:
			filter := schema.LinkFilter{Tag: t.Tag}
			if t.ByDomain {
				filter.DomainID = &t.Domain
			}
			links, err = h.links.LinkIDs(ctx, account, filter, schema.MaxReportLinks+1)
		case !exist[t.Link]:
			links = nil
		}
		h.setLinks(t, links, err)
	}
}

// setLinks sets the links of a topic, unless they could not be read. It ends the topic's streams if its link is
// deleted, or if it has too many links.
func (h *Hub) setLinks(t *topic, links []int64, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t.reading = false
	if err != nil || h.topics[t.Topic] != t || slices.Equal(links, t.links) {
		return
	}
	account := turns.Account(t.Account)
	h.counted.Leave(account, len(t.links))
	t.links = nil
	if t.Link != 0 || len(links) > schema.MaxReportLinks || h.counted.Take(account, len(links)) != nil {
		for s := range t.streams {
			h.leave(s)
		}
		return
	}
	t.links, t.stale = links, true
	notify(h.early)
}
