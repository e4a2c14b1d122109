// Bench measures linkstream: the CPU time of an operation compared with a bare server or loop that does the least
// possible, the highest rate, and the latency of clients.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"linkstream/bench/contender"
	"linkstream/bench/report"
	"linkstream/bench/scenario"
	"linkstream/bench/system"
	"linkstream/schema/service"
)

const usage = `Usage: bench [flags] SCENARIO...
       bench all -quick
       bench [-html PAGE] [-fail-above 10%%] show REPORT.json [REPORT.json]

Scenarios (all: every one except cold and abuse; several run one after the other. Their bounds and the bounds of
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
	failAbove  float64 // of show: growth of a ratio; 0: any
}

func (c *config) RegisterFlags(fs *flag.FlagSet) {
	c.Config.RegisterFlags(fs)
	fs.StringVar(&c.json, "json", "", "`file` for the report as JSON")
	fs.StringVar(&c.html, "html", "", "`file` for the report as a page with plots")
	fs.Func("fail-above", "`percentage`, such as 10%, by which no ratio of the second report may be clearly above "+
		"the first's", func(s string) error {
		percent, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
		if c.failAbove = percent / 100; err != nil || !(percent > 0) {
			return fmt.Errorf("%q is not like 10%%", s)
		}
		return nil
	})
}

func main() { service.Main("bench", run) }

// parse parses the command line. A mistake does not print all flags: the error would be out of sight.
func parse(args []string, stderr io.Writer, usage string, cfg *config) (operands []string, err error) {
	var help bytes.Buffer
	operands, err = service.ParseArgs("bench", usage, args, &help, cfg)
	if errors.Is(err, flag.ErrHelp) {
		_, err := help.WriteTo(stderr)
		return nil, errors.Join(flag.ErrHelp, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w\ngo run ./bench -h lists scenarios and flags", err)
	}
	return operands, nil
}

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
	operands, err := parse(args, stderr, fmt.Sprintf(usage, names.String()), &cfg)
	if err != nil {
		return err
	}
	if len(operands) > 0 && operands[0] == show {
		return cfg.showReports(operands[1:], stdout)
	}
	for _, path := range []string{cfg.json, cfg.html} { // a run whose report cannot be written is lost
		if path == "" {
			continue
		}
		file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		file.Close()
	}
	r, err := scenario.Run(ctx, operands, cfg.Config, stderr)
	if r == nil {
		return err
	}
	errs := []error{err, cfg.write(stdout, r)}
	if cfg.json != "" {
		errs = append(errs, r.Save(cfg.json))
	}
	if err := errors.Join(append(errs, r.Failed())...); err != nil {
		return err // bounds of a wrong report mean nothing
	}
	return r.Unhealthy()
}

// showReports writes one saved report, or two side by side. With -fail-above it judges the second by the first.
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
	if err := c.write(stdout, reports...); err != nil || c.failAbove == 0 {
		return err
	}
	if len(reports) < 2 {
		return errors.New("-fail-above: name two reports")
	}
	return report.Worse(reports[0], reports[1], c.failAbove)
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
