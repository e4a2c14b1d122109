// Bench measures linkstream: the CPU time of an operation beside a bare server or loop that does the least possible, the
// highest rate, and the latency that clients see.
package main

import (
	"context"
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

const usage = `Usage: bench [flags] SCENARIO...
       bench all -quick
       bench -compare OLD.json NEW.json
       bench -merge GENERATOR.json GENERATOR.json ...

Scenarios (all of them except abuse, catalogue, cold, history, reports, restart, scale and soak: all; several run one after the other, and one table says whether the build is healthy):
%s
By default, bench measures a service that is already running, such as that of make run. With -start it starts its own.
The exit code is 1 if a run or one of its checks fails, and 2 if it succeeds but a metric is beyond a limit.
`

// config is everything that flags set.
type config struct {
	scenario.Config
	files report.Files
}

func (c *config) RegisterFlags(fs *flag.FlagSet) {
	c.Config.RegisterFlags(fs)
	c.files.RegisterFlags(fs)
}

func (c *config) Validate() error {
	if c.files.Read() {
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
	case cfg.files.Read():
		return cfg.files.Process(operands, stdout)
	}
	r, err := scenario.Run(ctx, operands, cfg.Config, stderr)
	if err != nil {
		return err
	}
	return cfg.files.Write(r, stdout)
}
