package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"linkstream/bench/proc"
	"linkstream/bench/report"
)

const (
	sampleEvery  = 200 * time.Millisecond // of the charts over time
	startTimeout = time.Minute            // of a child, to its first answer
	stopGrace    = time.Second            // for the requests of a child that stops
)

// scenarios are what can be measured.
var scenarios = map[string]struct {
	summary string
	run     func(context.Context, *bench) error
}{
	"pipeline":  {"clicks from the spool to a topic and on to the store: CPU time beside bare loops, clicks a second", runPipeline},
	"freshness": {"from a redirect to its click in the list of links, under load", runFreshness},
	"links":     {"the list of links, its first and its last page: CPU time, calls a second, latency", runLinks},
	"shorten":   {"new links: CPU time beside a bare insert, links a second, latency", runShorten},
	"stats":     {"statistics of any link and of the most popular one: CPU time, calls a second, latency", runStats},
	"memory":    {"an edge that has all links in memory: what is resident, and what a redirect costs then", runMemory},
	"soak":      {"everything at once for a long -duration: latency, memory and lag over time", runSoak},
	"redirect":  {"the edge's answers: CPU time beside bare servers, ceiling, latency at half of it", runRedirect},
}

// bench is one run of a scenario.
type bench struct {
	cfg      Config
	progress io.Writer
	dir      string // of everything that the run writes, removed at the end
	report   *report.Report
	recorder *report.Recorder
	stops    []func() error // in the opposite order
}

// measure runs a scenario. The report is complete if there is no error, also if checks in it failed.
func measure(ctx context.Context, scenario string, cfg Config, progress io.Writer) (*report.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "linkstream-bench-")
	if err != nil {
		return nil, err
	}
	b := &bench{cfg: cfg, progress: progress, dir: dir, recorder: report.NewRecorder(sampleEvery),
		report: &report.Report{Scenario: scenario, Command: cfg.command(scenario), Began: time.Now().UTC(),
			Machine: proc.ThisMachine()}}
	b.watch(process{"bench", proc.Self})
	sampling, stop := context.WithCancel(ctx)
	var sampled sync.WaitGroup
	sampled.Go(func() { b.recorder.Run(sampling) })
	err = scenarios[scenario].run(ctx, b)
	stop()
	sampled.Wait()
	b.report.Series, b.report.Seconds = b.recorder.Series(), time.Since(b.report.Began).Seconds()
	return b.report, errors.Join(err, b.close())
}

// close stops what was started and removes what was written.
func (b *bench) close() error {
	var errs []error
	for i := len(b.stops) - 1; i >= 0; i-- {
		errs = append(errs, b.stops[i]())
	}
	return errors.Join(append(errs, os.RemoveAll(b.dir))...)
}

// say tells who waits what is going on.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.progress, "%6.1fs  %s\n", time.Since(b.report.Began).Seconds(), fmt.Sprintf(format, args...))
}

// process is one whose usage is measured.
type process struct {
	name  string
	usage func() (proc.Usage, error)
}

// watch adds a process to the charts over time.
func (b *bench) watch(p process) {
	b.recorder.Rate("CPU", p.name, "cores", func() (float64, bool) {
		usage, err := p.usage()
		return usage.CPU.Seconds(), err == nil
	})
	b.recorder.Gauge("memory", p.name, "MiB", func() (float64, bool) {
		usage, err := p.usage()
		return float64(usage.RSS) / (1 << 20), err == nil
	})
}

// spawn starts a program, and watches it. It is killed at the end: what it has then is of no use to anybody.
func (b *bench) spawn(name string, env []string, program string, args ...string) (*proc.Child, error) {
	child, err := proc.Start(filepath.Join(b.dir, strings.ReplaceAll(name, " ", "-")+".log"), env, program, args...)
	if err != nil {
		return nil, err
	}
	b.stops = append(b.stops, func() error { child.Kill(); return nil })
	b.watch(process{name, child.Usage})
	return child, nil
}

// role starts this program in one of its roles, and returns the address it listens on.
func (b *bench) role(ctx context.Context, name, role string, args ...string) (*proc.Child, string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	child, err := b.spawn(name, nil, self, append([]string{role}, args...)...)
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	addr, err := child.FirstLine(ctx)
	return child, addr, err
}
