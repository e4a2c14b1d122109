// Bench measures linkstream: the CPU time of an operation beside a bare server or loop that does the least possible, the
// highest rate, and the latency that clients see.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"linkstream/bench/contender"
	"linkstream/bench/report"
	"linkstream/bench/scenario"
	"linkstream/bench/system"
	"linkstream/schema/service"
)

const usage = `Usage: bench [flags] SCENARIO
       bench -compare OLD.json NEW.json

Scenarios:
%s
By default, bench measures a service that is already running, such as that of make run. With -start it starts its own.
`

// config is everything that flags set.
type config struct {
	scenario.Config
	output  report.Output
	compare bool
}

func (c *config) RegisterFlags(fs *flag.FlagSet) {
	c.Config.RegisterFlags(fs)
	c.output.RegisterFlags(fs)
	fs.BoolVar(&c.compare, "compare", c.compare, "compare two JSON reports instead of measuring")
}

func (c *config) Validate() error {
	if c.compare {
		return nil
	}
	return c.Config.Validate()
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
	switch {
	case err != nil:
		return err
	case cfg.compare && len(operands) == 2:
		return report.CompareFiles(operands[0], operands[1], stdout)
	case cfg.compare:
		return errors.New("-compare: name two reports, the old one and the new one")
	case len(operands) == 1:
		if s, ok := scenario.Find(operands[0]); ok {
			r, err := s.Run(ctx, cfg.Config, stderr)
			if err != nil {
				return fmt.Errorf("run scenario %s: %w", s.Name, err)
			}
			return errors.Join(cfg.output.Write(r, stdout), r.Failed())
		}
	}
	return fmt.Errorf("name one scenario:\n%s", names.String())
}
