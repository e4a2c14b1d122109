// Package scenario has the scenarios of the bench. Each measures its contenders in rounds, in turn.
package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"time"

	"linkstream/bench/contender"
	"linkstream/bench/load"
	"linkstream/bench/proc"
	"linkstream/bench/report"
	"linkstream/bench/system"
	"linkstream/bench/workload"
)

const all = "all"

// Scenario is something that can be measured.
type Scenario struct {
	Name    string
	Summary string
	apart   bool // not part of all: it takes long
	own     bool // does not measure a running service
	run     func(context.Context, *run) error
}

// All returns the scenarios.
func All() []Scenario {
	return []Scenario{
		{"redirect", "redirects on lasting connections, beside bare servers and peers", false, false, runRedirect},
		{"connections", "redirects on new connections, and by HTTPS, beside the same", false, false, runConnections},
		{"cold", "redirects of links that are not in the edge's cache, beside a bare look-up", true, true, runCold},
		{"create", "new links, one per call and 1000 per call, beside a bare insert", false, false, runCreate},
		{"read", "statistics, reports and lists of an account with -clicks", false, false, runRead},
		{"pipeline", "clicks from the redirect to the statistics: CPU per click, freshness, CPU at low rates", false, false,
			runPipeline},
		{"abuse", "latency of others while somebody floods the service, beside a quiet time", true, true, runAbuse},
	}
}

// Run runs the scenarios with the given names one after the other, each with engines and services of its own. The name
// "all" stands for every scenario that is not marked as separate. If there is no error, the report is complete, even if
// checks failed. With an error, it has the rounds up to then, or is nil.
func Run(ctx context.Context, names []string, cfg Config, progress io.Writer) (r *report.Report, err error) {
	scenarios, err := find(names)
	if err != nil {
		return nil, err
	}
	cfg.applyQuick()
	r = &report.Report{Command: cfg.command(names), Began: time.Now().UTC(), Commit: commit(), Machine: proc.ThisMachine()}
	group, err := proc.NewGroup()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, group.Close()) }()
	if len(scenarios) > 1 {
		cfg.System.Start = cfg.System.Start || cfg.System.Tokens == ""
		if cfg.System.Start && cfg.System.Programs == "" { // build once for all
			fmt.Fprintln(progress, "building the programs")
			cfg.System.Programs = group.Path("programs")
			if err := system.Build(ctx, cfg.System); err != nil {
				return nil, err
			}
		}
	}
	for _, s := range scenarios {
		fmt.Fprintf(progress, "\n%s: %s\n", s.Name, s.Summary)
		one := &run{cfg: cfg, progress: progress, began: time.Now(),
			Scenario: &report.Scenario{Name: s.Name, Summary: s.Summary}}
		err = one.measure(ctx, s)
		r.Scenarios, r.Engines = append(r.Scenarios, one.Scenario), one.engines
		if err != nil {
			err = fmt.Errorf("run scenario %s: %w", s.Name, err)
			if len(r.Scenarios) == 1 && len(one.Metrics) == 0 {
				return nil, err
			}
			one.Checks, r.Incomplete = nil, err.Error()
			break
		}
	}
	r.Seconds = time.Since(r.Began).Seconds()
	r.Bounds = bounds(r, cfg, err == nil && (len(scenarios) > 1 || scenarios[0].apart))
	return r, err
}

// find returns the scenarios with the given names.
func find(names []string) (found []Scenario, err error) {
	if len(names) == 0 {
		return nil, errors.New("name a scenario")
	}
	for _, name := range names {
		before := len(found)
		for _, s := range All() {
			if s.Name == name || name == all && !s.apart {
				found = append(found, s)
			}
		}
		if len(found) == before {
			return nil, fmt.Errorf("there is no scenario %q", name)
		}
	}
	return found, nil
}

// commit returns the commit of this program, if the go command has noted it.
func commit() string {
	info, _ := debug.ReadBuildInfo()
	var revision, modified string
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value[:min(len(s.Value), 7)]
		case "vcs.modified":
			modified = map[string]string{"true": " with changes"}[s.Value]
		}
	}
	return revision + modified
}

// run is one run of a scenario, whose result it fills.
type run struct {
	*report.Scenario
	cfg      Config
	group    *proc.Group
	launcher *system.Launcher
	engines  []string
	outside  []int // processes that are measured and that the run has not started
	progress io.Writer
	began    time.Time
}

func (r *run) measure(ctx context.Context, s Scenario) (err error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	if r.group, err = proc.NewGroup(); err != nil {
		return err
	}
	r.launcher = system.NewLauncher(r.cfg.System, r.group, r.logf)
	if err := r.probeTargets(ctx, s); err != nil {
		return errors.Join(err, r.group.Close())
	}
	return errors.Join(s.run(ctx, r), r.group.Close())
}

// probeTargets asks each peer, and each token of a running service, for one answer before anything is measured.
func (r *run) probeTargets(ctx context.Context, s Scenario) error {
	starter := r.starter(nil, r.visits(workload.NewLinks(1), 1))
	for _, secure := range []bool{false, true} {
		starter.Load.TLS = secure
		peers, err := r.peers(starter, secure)
		for _, p := range peers {
			if probed := load.Probe(ctx, p.Target); probed != nil {
				err = errors.Join(err, fmt.Errorf("-peer: %s: %w", p.Name, probed))
			}
		}
		if err != nil {
			return err
		}
	}
	if r.cfg.System.Start || s.own {
		return nil
	}
	return r.launcher.Probe(ctx)
}

// logf writes a line of progress.
func (r *run) logf(format string, args ...any) {
	fmt.Fprintf(r.progress, "%6.1fs  %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}

// startEngines starts the engines without the service.
func (r *run) startEngines(ctx context.Context) (system.Engines, error) {
	on, err := r.launcher.StartEngines(ctx)
	if err == nil {
		r.engines = on.Versions()
	}
	return on, err
}

// open starts or finds the whole service. fill, if not nil, fills the stores of a service that has yet to start.
func (r *run) open(ctx context.Context, links workload.Links,
	fill func(context.Context, system.Engines) error) (*system.Service, error) {
	s, err := r.launcher.Open(ctx, links, fill)
	if err != nil {
		return nil, err
	}
	if s.Engines != nil {
		r.engines = s.Engines.Versions()
	}
	for _, p := range slices.Concat(s.AtEdge, s.AtAPI) {
		r.outside = append(r.outside, p.PIDs...)
	}
	return s, nil
}

// store stores the clicks of a history.
func (r *run) store(ctx context.Context, on system.Engines, h *workload.History, clicks int) error {
	r.logf("storing %d clicks", clicks)
	store, err := on.OpenClicks(ctx, "")
	if err != nil {
		return err
	}
	return errors.Join(h.Store(ctx, store, clicks), store.Close(), on.AwaitMerges(ctx))
}

// starter returns the starter of servers that the service is compared with.
func (r *run) starter(on system.Engines, visits *workload.Visits) *contender.Starter {
	return &contender.Starter{Group: r.group, Engines: on, Visits: visits, Load: r.load(visits.Reconnect),
		Progress: r.logf}
}

// visits returns visits to the first visited links.
func (r *run) visits(links workload.Links, visited int) *workload.Visits {
	v := workload.NewVisits(links, visited, r.cfg.Visitors)
	v.Short = r.cfg.Headers == shortHeaders
	return v
}

// load returns the load on each server.
func (r *run) load(reconnect bool) contender.Load {
	return contender.Load{Conns: r.cfg.Conns, Reconnect: reconnect}
}

// called returns the whole service as the clients of its API use it.
func (r *run) called(name string, s *system.Service, source func(conn int) load.Source) *contender.Contender {
	return contender.Called(name, s, r.load(false), 1, source)
}

// check adds a count that must be exact.
func (r *run) check(name string, want, got int64) {
	r.Checks = append(r.Checks, report.Check{Name: name, Want: want, Got: got})
}

// checkCounters checks that metrics have counted each click exactly once.
func (r *run) checkCounters(ctx context.Context, counters ...*system.Counter) error {
	for _, c := range slices.DeleteFunc(counters, func(c *system.Counter) bool { return c == nil }) {
		got, err := c.Read(ctx)
		if err != nil {
			return err
		}
		r.check("clicks counted: "+c.Name, c.Want, got)
	}
	return nil
}
