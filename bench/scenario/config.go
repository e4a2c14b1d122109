package scenario

import (
	"errors"
	"flag"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"linkstream/bench/contender"
	"linkstream/bench/system"
	"linkstream/bench/workload"
)

const maxClicks = 1_000_000_000

// Config is the system under test, and how it is measured.
type Config struct {
	System system.Config

	Links    int
	Clicks   int
	Conns    int
	Attacks  string           // of the scenario abuse, separated by commas; empty: all
	Peers    []contender.Peer // of the scenarios redirect and connections
	Webhooks bool             // of the scenario pipeline: measure with webhooks, too
	Rate     float64          // operations per second of open loops; 0: half of the closed loop's rate

	Quick    bool // short rounds and small data sets, unless a flag says otherwise
	Rounds   int
	Round    time.Duration
	Duration time.Duration
	Timeout  time.Duration

	flags *flag.FlagSet
}

// DefaultConfig returns a configuration for the service of make run, once System.Tokens is set.
func DefaultConfig() Config {
	return Config{System: system.DefaultConfig(), Links: 10_000, Clicks: 500_000, Conns: 64, Rounds: 5,
		Round: 2 * time.Second, Duration: 10 * time.Second, Timeout: 10 * time.Minute}
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	c.flags = fs
	c.System.RegisterFlags(fs)
	fs.IntVar(&c.Links, "links", c.Links, "`number` of links that are created and visited by Zipf's law")
	fs.IntVar(&c.Clicks, "clicks", c.Clicks, "`number` of clicks that are created first, in scenarios that need some")
	fs.IntVar(&c.Conns, "conns", c.Conns, "`number` of connections of the load")
	fs.StringVar(&c.Attacks, "attacks", c.Attacks,
		"`names` of the attacks of the scenario abuse, separated by commas; empty: all")
	fs.Func("peer", "`name=URL` of a running program that redirects, for redirect and connections; repeatable", c.addPeer)
	fs.BoolVar(&c.Webhooks, "webhooks", c.Webhooks,
		"measure the rates of the scenario pipeline also with 1 and with 100 webhooks of clicks")
	fs.Float64Var(&c.Rate, "rate", c.Rate, "operations per `second` of open loops; 0: half of the closed loop's rate")
	fs.BoolVar(&c.Quick, "quick", c.Quick, "short rounds and small data sets, unless other flags say otherwise")
	fs.IntVar(&c.Rounds, "rounds", c.Rounds, "`number` of rounds; five or more to tell a change from noise")
	fs.DurationVar(&c.Round, "round", c.Round, "`time` of one round of a closed loop")
	fs.DurationVar(&c.Duration, "duration", c.Duration, "`time` of an open loop, all rounds together")
	fs.DurationVar(&c.Timeout, "timeout", c.Timeout, "longest `time` of each scenario")
}

// addPeer adds a contender of the form name=URL.
func (c *Config) addPeer(s string) error {
	name, text, _ := strings.Cut(s, "=")
	u, err := url.Parse(text)
	if err != nil || name == "" || u.Scheme != "http" && u.Scheme != "https" || u.Port() == "" {
		return fmt.Errorf("%q is not name=URL with a port", s)
	}
	c.Peers = append(c.Peers, contender.Peer{Name: name, URL: text})
	return nil
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
		{"-conns", float64(c.Conns), 1, 4096},
		{"-rate", c.Rate, 0, 1e6},
		{"-rounds", float64(c.Rounds), 1, 100},
	} {
		if n.value < n.low || n.value > n.high {
			errs = append(errs, fmt.Errorf("%s: %v is not %v to %v", n.flag, n.value, n.low, n.high))
		}
	}
	for _, p := range c.Peers {
		u, err := url.Parse(p.URL)
		if err == nil {
			err = c.System.CheckHost(u.Hostname())
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("-peer: %w", err))
		}
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
	c.unlessSet("clicks", func() { c.Clicks = 100_000 })
	c.unlessSet("rounds", func() { c.Rounds = 3 })
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

// command returns the command that repeats the run. It leaves out addresses, tokens and files, since reports are
// published.
func (c *Config) command(scenarios []string) string {
	leftOut := []string{"edge", "api", "token", "postgres", "kafka", "clickhouse", "json", "html", "programs", "peer"}
	command := "go run ./bench " + strings.Join(scenarios, " ")
	c.flags.Visit(func(f *flag.Flag) {
		if !slices.Contains(leftOut, f.Name) {
			command += fmt.Sprintf(" -%s=%s", f.Name, f.Value)
		}
	})
	return strings.ReplaceAll(command, "=true", "")
}
