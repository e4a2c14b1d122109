package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"linkstream/bench/proc"
	"linkstream/bench/report"
	"linkstream/bench/system"
)

const all = "all"

// apart are the scenarios that last, that need much data, or that load the machine in a way that says nothing of an idle one.
var apart = []string{abuse, catalogue, cold, history, reports, restart, scale, soak}

// Run runs the scenarios with the given names one after the other. The name "all" stands for every scenario but
// those in apart. The report of several scenarios has the metrics of each under its name, and the health of the build
// and the machine. Several scenarios start services of their own unless the configuration has tokens of a running one.
func Run(ctx context.Context, names []string, cfg Config, progress io.Writer) (*report.Report, error) {
	scenarios, err := find(names)
	if err != nil {
		return nil, err
	}
	cfg.applyQuick()
	if len(scenarios) == 1 {
		return scenarios[0].measure(ctx, cfg, progress)
	}
	r := &report.Report{Scenario: strings.Join(names, " "), Command: cfg.command(strings.Join(names, " ")),
		Began: time.Now().UTC(), Machine: proc.ThisMachine()}
	group, err := proc.NewGroup(func(proc.Process) {})
	if err != nil {
		return nil, err
	}
	err = runSeveral(ctx, r, scenarios, cfg, group, progress)
	return r, errors.Join(err, group.Close())
}

// find returns the scenarios with the given names.
func find(names []string) (found []Scenario, err error) {
	for _, name := range names {
		before := len(found)
		for _, s := range All() {
			if s.Name == name || name == all && !slices.Contains(apart, s.Name) {
				found = append(found, s)
			}
		}
		if len(found) == before {
			return nil, fmt.Errorf("there is no scenario %q", name)
		}
	}
	if len(found) == 0 {
		return nil, errors.New("name a scenario")
	}
	return found, nil
}

// runSeveral runs scenarios and adds their reports to r.
func runSeveral(
	ctx context.Context, r *report.Report, scenarios []Scenario, cfg Config, group *proc.Group, progress io.Writer,
) error {
	cfg.System.Start = cfg.System.Start || cfg.System.Tokens == ""
	if cfg.System.Start && cfg.System.Programs == "" { // build once for all
		fmt.Fprintln(progress, "building the programs")
		cfg.System.Programs = group.Path("programs")
		if err := system.Build(ctx, cfg.System); err != nil {
			return err
		}
	}
	for _, s := range scenarios {
		fmt.Fprintf(progress, "\n%s: %s\n", s.Name, s.Summary)
		one, err := s.measure(ctx, cfg, progress)
		if err != nil {
			return err
		}
		r.Include(one)
		cfg.At = time.Time{} // the next one follows at once
	}
	r.Seconds = time.Since(r.Began).Seconds()
	r.Health = health(r, cfg)
	return nil
}
