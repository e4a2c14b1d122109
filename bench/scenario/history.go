package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"linkstream/bench/contender"
	"linkstream/bench/load"
	"linkstream/bench/report"
	"linkstream/bench/system"
	"linkstream/bench/workload"
)

const (
	history = "history"

	historyLinks    = 1_000_000  // unless -links says otherwise
	historyClicks   = 50_000_000 // of the smaller history, unless -clicks says otherwise
	historyTimes    = 10         // as many has the larger one
	historyHot      = 0.4        // unless -hot says otherwise
	historyRate     = 20         // calls per second, unless -rate says otherwise
	historyDuration = 4 * time.Minute
	historyConns    = 2
)

// runHistory measures how statistics and reports of a month grow with the clicks that are stored: those of the most visited link and of
// any link, of -clicks and of ten times as many.
func runHistory(ctx context.Context, r *run) error {
	if !r.cfg.System.Start || r.cfg.System.Engines != system.Real {
		return errors.New("history: add -start -engines=real, as it copies clicks within ClickHouse")
	}
	r.cfg.unlessSet("links", func() { r.cfg.Links = historyLinks })
	r.cfg.unlessSet("clicks", func() { r.cfg.Clicks = historyClicks })
	r.cfg.unlessSet("hot", func() { r.cfg.Hot = historyHot })
	r.cfg.unlessSet("rate", func() { r.cfg.Rate = historyRate })
	r.cfg.unlessSet("duration", func() { r.cfg.Duration = historyDuration })
	r.cfg.unlessSet("conns", func() { r.cfg.Conns = historyConns })
	h := workload.NewHistory(workload.NewLinks(r.cfg.Links), r.cfg.Hot)
	service, err := r.openWithHistory(ctx, h)
	if err != nil {
		return err
	}
	larger, err := service.Multiply(ctx, historyTimes)
	if err != nil {
		return err
	}
	r.logf("the most visited link has %d of %d clicks", h.Clicks[h.MostVisited()], r.cfg.Clicks)
	stored := []storedHistory{{service, h, r.cfg.Clicks}, {larger, h.Times(historyTimes), historyTimes * r.cfg.Clicks}}
	calls := historyCalls()
	r.cfg.Duration /= time.Duration(len(calls))
	for _, call := range calls {
		if err := r.measureCall(ctx, call, stored); err != nil {
			return err
		}
	}
	return nil
}

// storedHistory is a history that a service has stored.
type storedHistory struct {
	service *system.Service
	history *workload.History
	clicks  int
}

// historyCall is a call whose cost could grow with the clicks that are stored.
type historyCall struct {
	name   string
	source func(api *system.API, h *workload.History, next func() int) load.Source
	next   func(h *workload.History) func() int
}

func historyCalls() []historyCall {
	stats := func(api *system.API, h *workload.History, next func() int) load.Source {
		return &statsRequest{api: api, history: h, next: next}
	}
	month := func(api *system.API, h *workload.History, next func() int) load.Source {
		return &reportRequest{api: api, links: h.Links, next: next, query: wholeMonth(h), want: h.Clicks}
	}
	return []historyCall{
		{"statistics, most popular link", stats, (*workload.History).TheMostVisited},
		{"statistics, any link", stats, (*workload.History).AnyLink},
		{"month, most popular link", month, (*workload.History).TheMostVisited},
		{"month, any link", month, (*workload.History).AnyLink},
	}
}

// measureCall measures a call of each history.
func (r *run) measureCall(ctx context.Context, call historyCall, stored []storedHistory) error {
	var contenders []*contender.Contender
	var sizes []float64
	for _, s := range stored {
		c := r.called(fmt.Sprintf("%s, %d clicks", call.name, s.clicks), s.service, func(int) load.Source {
			return call.source(s.service.API, s.history, call.next(s.history))
		})
		c.AddStore(s.service.Engines.ClickProcesses())
		c.Prepare = s.service.ReadClicks // some machines drop from the page cache what was not used for minutes
		contenders, sizes = append(contenders, c), append(sizes, float64(s.clicks))
	}
	const op = "call"
	if err := r.closedLoop(ctx, op, contenders); err != nil {
		return err
	}
	if err := r.openLoop(ctx, op, contenders); err != nil {
		return err
	}
	r.addGrowth(op, call.name, "clicks", sizes, contenders)
	for _, metric := range []string{op + " latency p50", op + " latency p99"} {
		metric += openLoop + ": "
		smaller := r.report.Metric(metric + contenders[0].Name).Samples
		for round, value := range r.report.Metric(metric + contenders[1].Name).Samples {
			r.report.Add(metric+contenders[1].Name+" / "+contenders[0].Name, "ratio", report.Lower, value/smaller[round])
		}
	}
	return nil
}
