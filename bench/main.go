// Bench measures linkstream: what an operation costs in CPU time, beside a bare server or loop that does the least that
// could be called the same, how fast it can be and how long clients wait.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"linkstream/bench/report"
	"linkstream/schema/service"
)

const usage = `Usage: bench [flags] SCENARIO
       bench -compare OLD.json NEW.json

Scenarios:
%s
By default they measure services that run already, such as those of make run; with -start they start their own.
`

func main() { service.Main("bench", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 && roles[args[0]] != nil {
		return roles[args[0]](ctx, args[1:], stdout, stderr)
	}
	var names strings.Builder
	for _, name := range slices.Sorted(maps.Keys(scenarios)) {
		fmt.Fprintf(&names, "  %-10s %s\n", name, scenarios[name].summary)
	}
	cfg := DefaultConfig()
	what, err := service.ParseArgs("bench", fmt.Sprintf(usage, names.String()), args, stderr, &cfg)
	if err != nil {
		return err
	}
	if cfg.Compare {
		return compare(what, stdout)
	}
	if len(what) != 1 || scenarios[what[0]].run == nil {
		return fmt.Errorf("name one scenario:\n%s", names.String())
	}
	r, err := measure(ctx, what[0], cfg, stderr)
	if err != nil {
		return fmt.Errorf("run scenario %s: %w", what[0], err)
	}
	return errors.Join(write(r, cfg, stdout), r.Failed())
}

// write writes the report as a table, and to the files that were asked for.
func write(r *report.Report, cfg Config, stdout io.Writer) error {
	errs := []error{r.WriteTable(stdout)}
	if cfg.JSON != "" {
		errs = append(errs, r.Save(cfg.JSON))
	}
	if cfg.HTML != "" {
		page, err := r.Page()
		if err == nil {
			err = os.WriteFile(cfg.HTML, page, 0o644)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func compare(files []string, stdout io.Writer) error {
	if len(files) != 2 {
		return errors.New("-compare: name two reports, the old one and the new one")
	}
	old, err := report.Load(files[0])
	if err != nil {
		return err
	}
	new, err := report.Load(files[1])
	if err != nil {
		return err
	}
	changes, err := report.Compare(old, new)
	if err != nil {
		return err
	}
	return report.WriteChanges(stdout, old, new, changes)
}
