package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"

	"linkstream/bench/load"
)

// runStats measures the statistics of links: of any one, and of the one that most clicks are on.
func runStats(ctx context.Context, b *bench) error {
	h := newHistory(newLinkSet(b.cfg.Links), b.cfg.Hot)
	service, err := b.openWithHistory(ctx, h)
	if err != nil {
		return err
	}
	hottest := h.hottest()
	anyLink := b.apiSubject(service, func(conn int) load.Source {
		random := rand.New(rand.NewPCG(uint64(conn), crowdSeed))
		return &statsCall{api: service.api, history: h, next: func() int { return random.IntN(h.links.count) }}
	})
	hotLink := b.apiSubject(service, func(int) load.Source {
		return &statsCall{api: service.api, history: h, next: func() int { return hottest }}
	})
	anyLink.name, hotLink.name = "any link", "most popular link"
	b.say("the most popular link has %d of %d clicks", h.clicks[hottest], b.cfg.Clicks)
	subjects := []*subject{anyLink, hotLink}
	if err := b.rounds(ctx, "stats call", subjects); err != nil {
		return err
	}
	return b.openLoop(ctx, "stats call", subjects)
}

// statsCall makes requests for the statistics of links.
type statsCall struct {
	api     *api
	history *history
	next    func() int
	link    int
	path    []byte
}

// Append implements load.Source.
func (s *statsCall) Append(dst []byte) []byte {
	s.link = s.next()
	s.path = s.history.links.appendHash(append(s.path[:0], "/api/v1/stats/"...), s.link)
	return s.api.appendCall(dst, http.MethodGet, string(s.path), nil)
}

// Check implements load.Source. Each answer has the clicks that the link has.
func (s *statsCall) Check(a load.Answer) error {
	if a.Status != http.StatusOK {
		return statusError(a)
	}
	clicks, err := firstNumber(a.Body, `"total_clicks":`)
	if err == nil && clicks != s.history.clicks[s.link] {
		err = fmt.Errorf("link %q has %d clicks, not %d", s.history.links.hash(s.link), s.history.clicks[s.link], clicks)
	}
	return err
}
