package scenario

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"linkstream/bench/contender"
	"linkstream/bench/load"
	"linkstream/bench/system"
	"linkstream/bench/workload"
)

const reports = "reports"

// runReports measures reports of all clicks of the history, beside the statistics of the link with the most clicks: of this link, of any
// link, and of either link's clicks from one kind of device.
func runReports(ctx context.Context, r *run) error {
	h := workload.NewHistory(workload.NewLinks(r.cfg.Links), r.cfg.Hot)
	service, err := r.openWithHistory(ctx, h)
	if err != nil {
		return err
	}
	r.logf("the most visited link has %d of %d clicks", h.Clicks[h.MostVisited()], r.cfg.Clicks)
	month := wholeMonth(h)
	report := func(name, query string, next func() func() int, want []int64) *contender.Contender {
		return r.called(name, service, func(int) load.Source {
			return &reportRequest{api: service.API, links: h.Links, next: next(), query: query, want: want}
		})
	}
	contenders := []*contender.Contender{
		r.called("statistics, most popular link", service, func(int) load.Source {
			return &statsRequest{api: service.API, history: h, next: h.TheMostVisited()}
		}),
		report("month, most popular link", month, h.TheMostVisited, h.Clicks),
		report("month, any link", month, h.AnyLink, h.Clicks),
		report("filtered month, most popular link", month+"&device=mobile", h.TheMostVisited, h.Mobile),
		report("filtered month, any link", month+"&device=mobile", h.AnyLink, h.Mobile),
	}
	if err := r.closedLoop(ctx, "report", contenders); err != nil {
		return err
	}
	return r.openLoop(ctx, "report", contenders)
}

// wholeMonth returns the query of a report of all clicks of a history.
func wholeMonth(h *workload.History) string {
	return fmt.Sprintf("/report?from=%s&to=%s", h.Begin().Format(time.DateOnly), time.Now().UTC().AddDate(0, 0, 1).Format(time.DateOnly))
}

// reportRequest requests the reports of links.
type reportRequest struct {
	api   *system.API
	links workload.Links
	next  func() int
	query string
	want  []int64 // clicks of each link
	link  int
	path  []byte // scratch
}

// Append implements load.Source.
func (s *reportRequest) Append(dst []byte) []byte {
	s.link = s.next()
	s.path = s.links.AppendHash(append(s.path[:0], "/api/v1/links/"...), s.link)
	s.path = append(s.path, s.query...)
	return s.api.AppendRequest(dst, http.MethodGet, string(s.path), nil)
}

// Check implements load.Source. The answer must have exactly the clicks of the link.
func (s *reportRequest) Check(a load.Answer) error {
	if a.Status != http.StatusOK {
		return system.StatusError(a)
	}
	clicks, err := firstNumber(a.Body, `"totals":{"clicks":`)
	if err == nil && clicks != s.want[s.link] {
		err = fmt.Errorf("link %q: %d clicks, want %d", s.links.Hash(s.link), clicks, s.want[s.link])
	}
	return err
}
