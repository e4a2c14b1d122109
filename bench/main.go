// Bench measures linkstream: the CPU time of an operation compared with a bare server or loop that does the least
// possible, the highest rate, and the latency of clients.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"linkstream/bench/contender"
	"linkstream/bench/report"
	"linkstream/bench/scenario"
	"linkstream/bench/system"
	"linkstream/schema/service"
)

const usage = `Usage: bench [flags] SCENARIO...
       bench all -quick
       bench -html PAGE show REPORT.json [REPORT.json]

Scenarios (all: every one except cold, abuse and scale; several run one after the other. Their bounds and the bounds of
abuse are judged):
%s
By default, bench measures a service that is already running, such as that of make run. With -start it starts its own.
The exit code is 1 if a run or one of its checks fails, and 2 if it succeeds but a metric is beyond a bound.
`

// show is the command that shows one or two reports instead of measuring.
const show = "show"

// config is everything that flags set.
type config struct {
	scenario.Config
	json, html string
}

func (c *config) RegisterFlags(fs *flag.FlagSet) {
	c.Config.RegisterFlags(fs)
	fs.StringVar(&c.json, "json", "", "`file` for the report as JSON")
	fs.StringVar(&c.html, "html", "", "`file` for the report as a page with plots")
}

func main() { service.Main("bench", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	for _, role := range append(system.Roles(), contender.Roles()...) {
		if len(args) > 0 && args[0] == role.Name {
			return role.Run(ctx, args[1:], stdout, stderr)
		}
	}
	var names strings.Builder
	for _, s := range scenario.All() {
		fmt.Fprintf(&names, "  %-11s %s\n", s.Name, s.Summary)
	}
	cfg := config{Config: scenario.DefaultConfig()}
	operands, err := service.ParseArgs("bench", fmt.Sprintf(usage, names.String()), args, stderr, &cfg)
	if err != nil {
		return err
	}
	if len(operands) > 0 && operands[0] == show {
		return cfg.showReports(operands[1:], stdout)
	}
	r, err := scenario.Run(ctx, operands, cfg.Config, stderr)
	if err != nil {
		return err
	}
	errs := []error{cfg.write(stdout, r)}
	if cfg.json != "" {
		errs = append(errs, r.Save(cfg.json))
	}
	if err := errors.Join(append(errs, r.Failed())...); err != nil {
		return err // bounds of a wrong report mean nothing
	}
	return r.Unhealthy()
}

// showReports writes one saved report, or two side by side.
func (c *config) showReports(paths []string, stdout io.Writer) error {
	if len(paths) < 1 || len(paths) > 2 {
		return errors.New("show: name one report or two")
	}
	var reports []*report.Report
	for _, path := range paths {
		r, err := report.Load(path)
		if err != nil {
			return err
		}
		reports = append(reports, r)
	}
	return c.write(stdout, reports...)
}

// write writes reports as text to stdout, and as a page if there is a file for it.
func (c *config) write(stdout io.Writer, reports ...*report.Report) error {
	err := report.WriteText(stdout, reports...)
	if c.html == "" {
		return err
	}
	page, pageErr := report.Page(reports...)
	if err := errors.Join(err, pageErr); err != nil {
		return err
	}
	return os.WriteFile(c.html, page, 0o644)
}
