// Package scenario has the scenarios of the bench. Each measures its contenders in rounds, in turn, and fills one report.
package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"linkstream/bench/contender"
	"linkstream/bench/load"
	"linkstream/bench/proc"
	"linkstream/bench/report"
	"linkstream/bench/system"
	"linkstream/bench/workload"
)

const sampleInterval = 200 * time.Millisecond // of the charts over time

// Scenario is something that can be measured.
type Scenario struct {
	Name    string
	Summary string
	run     func(context.Context, *run) error
}

// All returns the scenarios by name.
func All() []Scenario {
	return []Scenario{
		{abuse, "redirects and new links while somebody floods the service: latency under each attack, beside a quiet time", runAbuse},
		{"bulk", "creation of links by calls of a thousand: CPU per link beside a bare insert of as many rows, links per second", runBulk},
		{catalogue, "overview and lists of the dashboard and the API, of accounts with 10,000, 100,000 and a million links", runCatalogue},
		{cold, "redirects of links that are not in the edge's cache: CPU per redirect beside a bare look-up, latency", runCold},
		{"connections", "redirects on new connections, one per redirect, and by HTTPS: CPU per redirect, redirects per second, latency", runConnections},
		{"freshness", "time from a redirect until its click is in the list of links, under load", runFreshness},
		{history, "statistics and reports of a month, of 50 million clicks and of ten times as many: CPU per call, latency", runHistory},
		{"links", "first and last page of the list of links: CPU per call, calls per second, latency", runLinks},
		{"memory", "an edge with all links in its cache: resident memory, CPU per redirect", runMemory},
		{"pipeline", "clicks from the spool to a topic, and from there to the store: CPU per click, clicks per second", runPipeline},
		{"redirect", "redirects of the edge: CPU per redirect beside bare servers, redirects per second, latency", runRedirect},
		{reports, "reports of a month of links, filtered and not: CPU per report beside statistics, reports per second, latency", runReports},
		{restart, "edges restarted one after the other, with and without what they had cached: look-ups, queries of the store per second, latency", runRestart},
		{scale, "redirects of 1, 2 and 4 pinned edges, clicks counted by 1, 2 and 4 workers and from 8, 64 and 256 partitions: CPU per operation", runScale},
		{"shorten", "creation of links: CPU per link beside a bare insert, links per second, latency", runShorten},
		{soak, "visits and API calls at a fixed rate for -duration: latency, memory and lag over time", runSoak},
		{"stats", "statistics of any link and of the most visited one: CPU per call, calls per second, latency", runStats},
	}
}

// measure runs the scenario. It writes its progress to progress. If there is no error, the report is complete, even if
// some of its checks failed.
func (s Scenario) measure(ctx context.Context, cfg Config, progress io.Writer) (*report.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	r := &run{cfg: cfg, progress: progress, recorder: report.NewRecorder(sampleInterval), report: &report.Report{
		Scenario: s.Name, Command: cfg.command(s.Name), Began: time.Now().UTC(), Machine: proc.ThisMachine()}}
	group, err := proc.NewGroup(r.watch)
	if err != nil {
		return nil, err
	}
	r.group, r.launcher = group, system.NewLauncher(cfg.System, group, r.logf)
	r.watch(proc.This("bench"))
	sampling, stop := context.WithCancel(ctx)
	var sampled sync.WaitGroup
	sampled.Go(func() { r.recorder.Run(sampling) })
	err = s.run(ctx, r)
	stop()
	sampled.Wait()
	r.report.Series, r.report.Seconds = r.recorder.Series(), time.Since(r.report.Began).Seconds()
	if err := errors.Join(err, group.Close()); err != nil {
		return nil, fmt.Errorf("run scenario %s: %w", s.Name, err)
	}
	return r.report, nil
}

// run is one run of a scenario.
type run struct {
	cfg      Config
	group    *proc.Group
	launcher *system.Launcher
	report   *report.Report
	recorder *report.Recorder
	progress io.Writer
}

// logf writes a line of progress.
func (r *run) logf(format string, args ...any) {
	fmt.Fprintf(r.progress, "%6.1fs  %s\n", time.Since(r.report.Began).Seconds(), fmt.Sprintf(format, args...))
}

// watch adds a process to the charts over time.
func (r *run) watch(p proc.Process) {
	r.recorder.Rate("CPU", p.Name, "cores", func() (float64, bool) {
		usage, err := p.Usage()
		return usage.CPU.Seconds(), err == nil
	})
	r.recorder.Gauge("memory", p.Name, "MiB", func() (float64, bool) {
		usage, err := p.Usage()
		return float64(usage.RSS) / (1 << 20), err == nil
	})
}

// startEngines starts the engines without the service.
func (r *run) startEngines(ctx context.Context) (system.Engines, error) {
	on, err := r.launcher.StartEngines(ctx)
	if err == nil {
		r.report.Engines = on.Versions()
	}
	return on, err
}

// open starts or finds the whole service.
func (r *run) open(ctx context.Context, links workload.Links) (*system.Service, error) {
	return r.openFilled(ctx, links, nil)
}

// openWithHistory opens the service with clicks in its store. A running service has none: its links are new.
func (r *run) openWithHistory(ctx context.Context, h *workload.History) (*system.Service, error) {
	return r.openFilled(ctx, h.Links, func(ctx context.Context, on system.Engines) error {
		r.logf("storing %d clicks", r.cfg.Clicks)
		store, err := on.OpenClicks(ctx, "")
		if err != nil {
			return err
		}
		return errors.Join(h.Store(ctx, store, r.cfg.Clicks), store.Close(), on.AwaitMerges(ctx))
	})
}

func (r *run) openFilled(
	ctx context.Context, links workload.Links, fill func(context.Context, system.Engines) error,
) (*system.Service, error) {
	s, err := r.launcher.Open(ctx, links, fill)
	if err == nil && s.Engines != nil {
		r.report.Engines = s.Engines.Versions()
	}
	return s, err
}

// starter returns what starts the servers beside the service.
func (r *run) starter(on system.Engines, visits *workload.Visits) *contender.Starter {
	return &contender.Starter{Group: r.group, Engines: on, Visits: visits, Load: r.load(visits.Reconnect), Progress: r.logf}
}

// load returns the load on each server.
func (r *run) load(reconnect bool) contender.Load {
	return contender.Load{Conns: r.cfg.Conns, Threads: r.cfg.Generators, Reconnect: reconnect}
}

// called returns the whole service as the clients of its API use it.
func (r *run) called(name string, s *system.Service, source func(conn int) load.Source) *contender.Contender {
	return contender.Called(name, s, r.load(false), source)
}

// awaitStart waits until the load may begin.
func (r *run) awaitStart(ctx context.Context) error {
	if r.cfg.At.IsZero() {
		return nil
	}
	wait := time.Until(r.cfg.At)
	if wait < 0 {
		return fmt.Errorf("-at: the load was ready %.1f s too late", -wait.Seconds())
	}
	r.logf("waiting until %s", r.cfg.At.Format(time.RFC3339))
	r.cfg.At = time.Time{} // later loops of the run follow without a pause
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// check adds a count that must be right.
func (r *run) check(name string, want, got int64) {
	r.report.Checks = append(r.report.Checks, report.Check{Name: name, Want: want, Got: got})
}

// checkCounter checks that a metric has counted each click exactly once.
func (r *run) checkCounter(ctx context.Context, c *system.Counter) error {
	got, err := c.Read(ctx)
	r.check("clicks counted: "+c.Name, c.Want, got)
	return err
}
