// Package system provides the system under test: the whole of linkstream, either started on embedded or real engines
// (Embedded, Real) or found running (see Launcher.Open), and a client of its API.
package system

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"strings"

	"linkstream/schema"
)

// The values of Config.Engines.
const (
	Embedded = "embedded"
	Real     = "real"
)

// Config selects the system under test.
type Config struct {
	Start    bool   // start a system for this run
	Engines  string // of a started system: Embedded or Real
	Programs string // directory of the built programs of a started system; empty: build them
	// Addresses of engines that already run, each with an empty database, all three or none. If they are empty, Real
	// starts engines of its own.
	Postgres, Kafka, ClickHouse string

	Edge   string // base URL of a running edge
	API    string // base URL of a running api
	Tokens string // of one account of a running system, separated by commas
	Own    bool   // Edge and API may be on other machines
}

// DefaultConfig returns a configuration that finds the service of make run, once Tokens is set.
func DefaultConfig() Config {
	return Config{Engines: Embedded, Edge: "http://127.0.0.1:8080", API: "http://127.0.0.1:8081"}
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.BoolVar(&c.Start, "start", c.Start, "start the whole service before the run and stop it at the end")
	fs.StringVar(&c.Engines, "engines", c.Engines,
		"`engines` of a started service: embedded (one process) or real (Postgres, Kafka and ClickHouse)")
	fs.StringVar(&c.Programs, "programs", c.Programs,
		"`directory` with the programs of make build, for -start; empty: build them with the go command")
	fs.StringVar(&c.Postgres, "postgres", c.Postgres,
		"`URL` of an empty Postgres database for -engines=real; empty: start one")
	fs.StringVar(&c.Kafka, "kafka", c.Kafka, "`addresses` of Kafka brokers for -engines=real; empty: start one")
	fs.StringVar(&c.ClickHouse, "clickhouse", c.ClickHouse,
		"`URL` of an empty ClickHouse database, clickhouse://host:port/database, for -engines=real; empty: start one")
	fs.StringVar(&c.Edge, "edge", c.Edge, "`URL` of a running edge: http:// and host:port")
	fs.StringVar(&c.API, "api", c.API, "`URL` of a running api: http:// and host:port")
	fs.StringVar(&c.Tokens, "token", c.Tokens,
		"API `tokens` of one account of the running service, separated by commas; each token allows 2000 requests per minute")
	fs.BoolVar(&c.Own, "i-own-this-target", c.Own, "allow load on -edge, -api and -peer outside the loopback interface")
}

// Validate returns every invalid setting.
func (c *Config) Validate() error {
	var errs []error
	if c.Engines != Embedded && c.Engines != Real {
		errs = append(errs, fmt.Errorf("-engines: %q is neither %s nor %s", c.Engines, Embedded, Real))
	}
	if c.Start {
		return errors.Join(append(errs, c.checkEngines())...)
	}
	for _, target := range []struct{ flag, base string }{{"-edge", c.Edge}, {"-api", c.API}} {
		if err := c.checkTarget(target.base); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", target.flag, err))
		}
	}
	return errors.Join(errs...)
}

// checkTarget returns an error for a URL that the load generator does not speak, or that must not get any load.
func (c *Config) checkTarget(base string) error {
	u, err := parseBase(base)
	if err != nil {
		return err
	}
	return c.CheckHost(string(u.Host()))
}

// parseBase parses a URL that the load generator speaks.
func parseBase(base string) (schema.BaseURL, error) {
	u, err := schema.ParseBaseURL(base)
	if err != nil || u.Scheme() != "http" || u.Port() == "" || u.String() != base {
		return u, fmt.Errorf("%q is not http:// and host:port", base)
	}
	return u, nil
}

// CheckHost returns an error for a host on another machine, unless the user has confirmed that it may get load.
func (c *Config) CheckHost(host string) error {
	if ip := net.ParseIP(host); c.Own || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("%q is not on the loopback interface: add -i-own-this-target if you may put load on it", host)
}

// checkEngines returns an error for invalid addresses of engines.
func (c *Config) checkEngines() error {
	if c.Postgres == "" && c.Kafka == "" && c.ClickHouse == "" {
		return nil
	}
	if c.Engines != Real || c.Postgres == "" || c.Kafka == "" || c.ClickHouse == "" {
		return errors.New("-postgres, -kafka, -clickhouse: name all three, with -engines=real")
	}
	var errs []error
	for _, engine := range []struct{ flag, url string }{
		{"-postgres", c.Postgres}, {"-kafka", "kafka://" + c.Kafka}, {"-clickhouse", c.ClickHouse},
	} {
		u, err := url.Parse(engine.url)
		if err == nil {
			for _, part := range strings.Split(u.Host, ",") {
				host, _, split := net.SplitHostPort(part)
				err = errors.Join(err, split, c.CheckHost(host))
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", engine.flag, err))
		}
	}
	return errors.Join(errs...)
}
