package scenario

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"linkstream/bench/system"
	"linkstream/bench/workload"
)

const maxClicks = 100_000_000

// Config is the system under test, and how it is measured.
type Config struct {
	System system.Config

	Links      int
	Clicks     int
	Hot        float64 // share of the clicks of a history that are on one link, in addition to Zipf's law
	Conns      int
	Idle       int     // connections without a request, of the scenario memory
	Generators int     // threads that generate the load
	Attacks    string  // of the scenario abuse, separated by commas; empty: all
	Rate       float64 // operations per second of open loops; 0: half of the closed loop's rate

	Quick    bool // short rounds and small data sets, unless a flag says otherwise
	Rounds   int
	Round    time.Duration
	Duration time.Duration
	At       time.Time // begin of the load, so that several generators load a service together; zero: at once
	Timeout  time.Duration

	flags *flag.FlagSet
}

// DefaultConfig returns a configuration that works beside make run, once System.Tokens is set.
func DefaultConfig() Config {
	return Config{System: system.DefaultConfig(), Links: 10_000, Clicks: 500_000, Conns: 64, Idle: maxIdle, Generators: 1, Rounds: 5,
		Round: 2 * time.Second, Duration: 10 * time.Second, Timeout: 10 * time.Minute}
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	c.flags = fs
	c.System.RegisterFlags(fs)
	fs.IntVar(&c.Links, "links", c.Links, "`number` of links that are created and visited by Zipf's law")
	fs.IntVar(&c.Clicks, "clicks", c.Clicks, "`number` of clicks that are created first, in scenarios that need some")
	fs.Float64Var(&c.Hot, "hot", c.Hot, "`share` of these clicks on one link, in addition to its share by Zipf's law; 0 to 1")
	fs.IntVar(&c.Conns, "conns", c.Conns, "`number` of connections of the load")
	fs.IntVar(&c.Idle, "idle", c.Idle, "`number` of idle connections of the scenario memory; fewer if the limit of open files is lower")
	fs.IntVar(&c.Generators, "generators", c.Generators, "`number` of threads that generate the load, each for its share of -conns")
	fs.StringVar(&c.Attacks, "attacks", c.Attacks, "`names` of the attacks of the scenario abuse, separated by commas; empty: all")
	fs.Float64Var(&c.Rate, "rate", c.Rate, "operations per `second` of open loops; 0: half of the closed loop's rate")
	fs.BoolVar(&c.Quick, "quick", c.Quick,
		"short rounds and small data sets, unless other flags say otherwise: a look at all scenarios in minutes")
	fs.IntVar(&c.Rounds, "rounds", c.Rounds, "`number` of rounds; five or more to tell a change from noise")
	fs.DurationVar(&c.Round, "round", c.Round, "`time` of one round of a closed loop")
	fs.DurationVar(&c.Duration, "duration", c.Duration, "`time` of an open loop, all rounds together")
	fs.Func("at", "`time`, RFC 3339, at which the load begins, so that several generators load one service together",
		func(s string) (err error) {
			c.At, err = time.Parse(time.RFC3339, s)
			return err
		})
	fs.DurationVar(&c.Timeout, "timeout", c.Timeout, "longest `time` of the whole run")
}

// Validate returns every invalid setting.
func (c *Config) Validate() error {
	errs := []error{c.System.Validate()}
	for _, n := range []struct {
		flag             string
		value, low, high float64
	}{
		{"-links", float64(c.Links), 1, workload.MaxLinks},
		{"-clicks", float64(c.Clicks), 1, maxClicks},
		{"-hot", c.Hot, 0, 1},
		{"-conns", float64(c.Conns), 1, 4096},
		{"-idle", float64(c.Idle), 2, maxIdle},
		{"-generators", float64(c.Generators), 1, 256},
		{"-rate", c.Rate, 0, 1e6},
		{"-rounds", float64(c.Rounds), 1, 100},
	} {
		if n.value < n.low || n.value > n.high {
			errs = append(errs, fmt.Errorf("%s: %v is not %v to %v", n.flag, n.value, n.low, n.high))
		}
	}
	if !c.At.IsZero() && time.Now().After(c.At) {
		errs = append(errs, fmt.Errorf("-at: %v is in the past", c.At.Format(time.RFC3339)))
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"-round", c.Round}, {"-duration", c.Duration}, {"-timeout", c.Timeout}} {
		if d.value < 10*time.Millisecond || d.value > time.Hour {
			errs = append(errs, fmt.Errorf("%s: %v is not 10ms to 1h", d.flag, d.value))
		}
	}
	return errors.Join(errs...)
}

// applyQuick shortens a quick run. Flags that were set keep their values.
func (c *Config) applyQuick() {
	if !c.Quick {
		return
	}
	c.unlessSet("links", func() { c.Links = 2000 })
	c.unlessSet("idle", func() { c.Idle = 10_000 })
	c.unlessSet("clicks", func() { c.Clicks = 100_000 })
	c.unlessSet("round", func() { c.Round = 400 * time.Millisecond })
	c.unlessSet("duration", func() { c.Duration = 4 * time.Second })
}

// unlessSet calls apply unless a flag was set.
func (c *Config) unlessSet(name string, apply func()) {
	if !c.isSet(name) {
		apply()
	}
}

// isSet reports whether a flag was set.
func (c *Config) isSet(name string) (set bool) {
	c.flags.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

// command returns the command that repeats the run. It leaves out addresses, tokens and files, because reports are
// published, and limits.
func (c *Config) command(scenario string) string {
	leftOut := []string{"edge", "api", "token", "postgres", "kafka", "clickhouse", "json", "html", "programs", "at",
		"fail-above", "fail-below", "fail-worse"}
	command := "go run ./bench " + scenario
	c.flags.Visit(func(f *flag.Flag) {
		if !slices.Contains(leftOut, f.Name) {
			command += fmt.Sprintf(" -%s=%s", f.Name, f.Value)
		}
	})
	return strings.ReplaceAll(command, "=true", "")
}
