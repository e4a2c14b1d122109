package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// What a run may make at most.
const (
	maxLinks  = 10_000_000
	maxClicks = 100_000_000
)

// Config is what is measured, how long, and where the report goes.
type Config struct {
	Start   bool   // services of the run's own, instead of those at Edge and API
	Engines string // that they run on: embedded or real
	Edge    string // base URLs
	API     string
	Tokens  string // of one account, separated by commas; of no use with Start
	Own     bool   // targets elsewhere than on the loopback interface are meant

	Links  int
	Clicks int
	Hot    float64 // share of the clicks of a history that are on one link, beside Zipf's law
	Conns  int
	Rate   float64 // 0: half of the ceiling

	Rounds   int
	Round    time.Duration
	Duration time.Duration
	Timeout  time.Duration

	JSON, HTML string
	Compare    bool

	flags *flag.FlagSet
}

// DefaultConfig returns a configuration that works beside make run, once Tokens is set.
func DefaultConfig() Config {
	return Config{Engines: embeddedEngines, Edge: "http://127.0.0.1:8080", API: "http://127.0.0.1:8081",
		Links: 10_000, Clicks: 500_000, Conns: 64, Rounds: 5, Round: 2 * time.Second, Duration: 10 * time.Second, Timeout: 10 * time.Minute}
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	c.flags = fs
	fs.BoolVar(&c.Start, "start", c.Start, "start the whole service first, and stop it at the end")
	fs.StringVar(&c.Engines, "engines", c.Engines,
		"what the service is started on: `embedded`, in one process, or real, which are Postgres, Kafka and ClickHouse")
	fs.StringVar(&c.Edge, "edge", c.Edge, "`URL` of a running edge, http:// and host:port")
	fs.StringVar(&c.API, "api", c.API, "`URL` of a running api, http:// and host:port")
	fs.StringVar(&c.Tokens, "token", c.Tokens,
		"API `tokens` of one account of the running service, separated by commas; each may make 2000 requests a minute")
	fs.BoolVar(&c.Own, "i-own-this-target", c.Own, "put load on -edge and -api although they are not on the loopback interface")
	fs.IntVar(&c.Links, "links", c.Links, "`number` of links that are made first and visited by Zipf's law")
	fs.IntVar(&c.Clicks, "clicks", c.Clicks, "`number` of clicks that are made first where a scenario needs some")
	fs.Float64Var(&c.Hot, "hot", c.Hot, "`share` of those clicks that are on one link, besides its share by Zipf's law; 0 to 1")
	fs.IntVar(&c.Conns, "conns", c.Conns, "`number` of connections of the load")
	fs.Float64Var(&c.Rate, "rate", c.Rate, "operations a `second` of open loops; 0: half of what the closed loop reached")
	fs.IntVar(&c.Rounds, "rounds", c.Rounds, "`number` of rounds; five or more tell a change from noise")
	fs.DurationVar(&c.Round, "round", c.Round, "`time` of each round of a closed loop")
	fs.DurationVar(&c.Duration, "duration", c.Duration, "`time` of an open loop, all of its rounds together")
	fs.DurationVar(&c.Timeout, "timeout", c.Timeout, "longest `time` that the whole run may take")
	fs.StringVar(&c.JSON, "json", c.JSON, "`file` for the report as JSON")
	fs.StringVar(&c.HTML, "html", c.HTML, "`file` for the report as a page with charts")
	fs.BoolVar(&c.Compare, "compare", c.Compare, "compare two reports in JSON instead of measuring anything")
}

// Validate returns every invalid setting.
func (c *Config) Validate() error {
	if c.Compare {
		return nil
	}
	var errs []error
	invalid := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Engines != embeddedEngines && c.Engines != realEngines {
		invalid("-engines: %q is neither %s nor %s", c.Engines, embeddedEngines, realEngines)
	}
	if !c.Start {
		for name, base := range map[string]string{"-edge": c.Edge, "-api": c.API} {
			if err := c.checkTarget(base); err != nil {
				invalid("%s: %w", name, err)
			}
		}
	}
	for _, n := range []struct {
		flag             string
		value, low, high float64
	}{
		{"-links", float64(c.Links), 1, maxLinks},
		{"-clicks", float64(c.Clicks), 1, maxClicks},
		{"-hot", c.Hot, 0, 1},
		{"-conns", float64(c.Conns), 1, 4096},
		{"-rate", c.Rate, 0, 1e6},
		{"-rounds", float64(c.Rounds), 1, 100},
	} {
		if n.value < n.low || n.value > n.high {
			invalid("%s: %v is not %v to %v", n.flag, n.value, n.low, n.high)
		}
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"-round", c.Round}, {"-duration", c.Duration}, {"-timeout", c.Timeout}} {
		if d.value < 10*time.Millisecond || d.value > time.Hour {
			invalid("%s: %v is not 10ms to 1h", d.flag, d.value)
		}
	}
	return errors.Join(errs...)
}

// checkTarget refuses what the load cannot talk to, and what it must not hit by mistake.
func (c *Config) checkTarget(base string) error {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" || u.Port() == "" || u.Path != "" || u.User != nil {
		return fmt.Errorf("%q is not http:// and host:port", base)
	}
	if ip := net.ParseIP(u.Hostname()); !c.Own && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%q is not on the loopback interface: add -i-own-this-target if you may put load on it", base)
	}
	return nil
}

// command is what reproduces the run of a scenario. Addresses, tokens and files are left out: reports are published.
func (c *Config) command(scenario string) string {
	command := "go run ./bench " + scenario
	c.flags.Visit(func(f *flag.Flag) {
		if !slices.Contains([]string{"edge", "api", "token", "json", "html"}, f.Name) {
			command += fmt.Sprintf(" -%s=%s", f.Name, f.Value)
		}
	})
	return strings.ReplaceAll(command, "=true", "")
}
