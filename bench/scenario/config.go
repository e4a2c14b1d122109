package scenario

import (
	"errors"
	"flag"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"linkstream/bench/contender"
	"linkstream/bench/system"
	"linkstream/bench/workload"
)

const maxClicks, shortHeaders = 1_000_000_000, "short"

// Config is the system under test, and how it is measured.
type Config struct {
	System system.Config

	Links    int
	Clicks   int
	Conns    int
	Attacks  string           // of the scenario abuse, separated by commas; empty: all
	Peers    []contender.Peer // of the scenarios redirect and connections
	Rates    Rates            // operations per second of open loops; none: half of the closed loop's rate
	SLO      SLO              // of the scenarios redirect and connections
	Visitors int              // that visit links
	Headers  string           // of visitors: browser or short

	Quick    bool // short rounds and small data sets, unless a flag says otherwise
	Rounds   int
	Round    time.Duration
	Duration time.Duration
	Timeout  time.Duration

	flags *flag.FlagSet
}

// SLO is a limit of a percentile of the latency.
type SLO struct {
	Percentile float64
	Limit      time.Duration
}

// String returns the flag's value, such as p99=10ms.
func (s *SLO) String() string { return fmt.Sprintf("p%v=%v", s.Percentile, s.Limit) }

// DefaultConfig returns a configuration for the service of make run, once System.Tokens is set.
func DefaultConfig() Config {
	return Config{System: system.DefaultConfig(), Links: 10_000, Clicks: 500_000, Conns: 64, Rounds: 5,
		Visitors: workload.DefaultVisitors, Headers: "browser",
		SLO: SLO{99, 10 * time.Millisecond}, Round: 2 * time.Second, Duration: 3 * time.Second, Timeout: 10 * time.Minute}
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
	fs.Var(&c.Rates, "rates", "`rates` of open loops in operations per second, such as 1k,5k,20k; empty: half of "+
		"the closed loop's")
	fs.Var(&c.SLO, "slo", "`limit` of a percentile of the latency (p50, p90, p99 or p99.9), up to which redirect and "+
		"connections search the highest rate")
	fs.IntVar(&c.Visitors, "visitors", c.Visitors, "`number` of different visitors, each with a browser and a referrer")
	fs.StringVar(&c.Headers, "headers", c.Headers, "`lines` that visitors send: browser (as browsers do) or short (two)")
	fs.BoolVar(&c.Quick, "quick", c.Quick, "short rounds and small data sets, unless other flags say otherwise")
	fs.IntVar(&c.Rounds, "rounds", c.Rounds, "`number` of rounds; five or more to tell a change from noise")
	fs.DurationVar(&c.Round, "round", c.Round, "`time` of one round of a closed loop")
	fs.DurationVar(&c.Duration, "duration", c.Duration, "`time` of one round of an open loop")
	fs.DurationVar(&c.Timeout, "timeout", c.Timeout, "longest `time` of each scenario")
}

// Rates is operations per second, in a flag separated by commas.
type Rates []float64

func (r *Rates) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(*r), " ", ","), "[]")
}

// Set implements flag.Value.
func (r *Rates) Set(s string) error {
	*r = nil
	for text := range strings.SplitSeq(s, ",") {
		digits, thousands := strings.CutSuffix(text, "k")
		rate, err := strconv.ParseFloat(digits, 64)
		if thousands {
			rate *= 1000
		}
		if err != nil || !(rate >= 1 && rate <= 1e6) {
			return fmt.Errorf("%q is not 1 to 1000k", text)
		}
		*r = append(*r, rate)
	}
	return nil
}

// Set implements flag.Value.
func (s *SLO) Set(text string) (err error) {
	name, limit, _ := strings.Cut(text, "=")
	s.Percentile, _ = strconv.ParseFloat(strings.TrimPrefix(name, "p"), 64)
	s.Limit, err = time.ParseDuration(limit)
	if err != nil || s.Limit <= 0 || !slices.Contains([]float64{50, 90, 99, 99.9}, s.Percentile) {
		return fmt.Errorf("%q is not like p99=10ms", text)
	}
	return nil
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
		{"-visitors", float64(c.Visitors), 1, 1e6},
		{"-rounds", float64(c.Rounds), 1, 100},
	} {
		if n.value < n.low || n.value > n.high {
			errs = append(errs, fmt.Errorf("%s: %v is not %v to %v", n.flag, n.value, n.low, n.high))
		}
	}
	if c.Headers != "browser" && c.Headers != shortHeaders {
		errs = append(errs, fmt.Errorf("-headers: %q is neither browser nor short", c.Headers))
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
