package scenario

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"

	"linkstream/bench/contender"
	"linkstream/bench/load"
	"linkstream/bench/system"
	"linkstream/bench/workload"
)

// runStats measures the statistics of links: of any link, and of the link with the most clicks.
func runStats(ctx context.Context, r *run) error {
	h := workload.NewHistory(workload.NewLinks(r.cfg.Links), r.cfg.Hot)
	service, err := r.openWithHistory(ctx, h)
	if err != nil {
		return err
	}
	r.logf("the most visited link has %d of %d clicks", h.Clicks[h.MostVisited()], r.cfg.Clicks)
	contenders := []*contender.Contender{
		r.called("any link", service, func(int) load.Source {
			return &statsRequest{api: service.API, history: h, next: h.AnyLink()}
		}),
		r.called("most popular link", service, func(int) load.Source {
			return &statsRequest{api: service.API, history: h, next: h.TheMostVisited()}
		}),
	}
	if err := r.closedLoop(ctx, "stats call", contenders); err != nil {
		return err
	}
	return r.openLoop(ctx, "stats call", contenders)
}

// statsRequest requests the statistics of links.
type statsRequest struct {
	api     *system.API
	history *workload.History
	next    func() int
	link    int
	path    []byte // scratch
}

// Append implements load.Source.
func (s *statsRequest) Append(dst []byte) []byte {
	s.link = s.next()
	s.path = s.history.Links.AppendHash(append(s.path[:0], "/api/v1/stats/"...), s.link)
	return s.api.AppendRequest(dst, http.MethodGet, string(s.path), nil)
}

// Check implements load.Source. The answer must have exactly the clicks of the link.
func (s *statsRequest) Check(a load.Answer) error {
	if a.Status != http.StatusOK {
		return system.StatusError(a)
	}
	clicks, err := firstNumber(a.Body, `"total_clicks":`)
	if err == nil && clicks != s.history.Clicks[s.link] {
		err = fmt.Errorf("link %q: %d clicks, want %d", s.history.Links.Hash(s.link), clicks, s.history.Clicks[s.link])
	}
	return err
}

// firstNumber returns the number after the first occurrence of key in a JSON text.
func firstNumber(text []byte, key string) (int64, error) {
	_, rest, found := bytes.Cut(text, []byte(key))
	digits := bytes.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if !found || digits <= 0 {
		return 0, fmt.Errorf("no number follows %s in %.200s", key, text)
	}
	return strconv.ParseInt(string(rest[:digits]), 10, 64)
}
