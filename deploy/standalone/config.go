package main

import (
	"errors"
	"flag"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	api "linkstream/api/node"
	edge "linkstream/edge/node"
	ingest "linkstream/ingest/node"
	"linkstream/schema/stream"
)

// Config is the configuration of the whole service in one process.
type Config struct {
	Data string // directory of everything that is kept
	URL  string // public base of short links; "": the address the edge listens on

	Bootstrap Bootstrap
	Edge      edge.Config
	API       api.Config
	Ingest    ingest.Config
}

// Bootstrap presets the account that is made on the first start. What is empty is made up.
type Bootstrap struct{ Email, Password, Token string }

// DefaultConfig returns a configuration that works.
func DefaultConfig() Config {
	return Config{Data: "./data", Bootstrap: Bootstrap{Email: "admin@localhost"},
		Edge: edge.DefaultConfig(), API: api.DefaultConfig(), Ingest: ingest.DefaultConfig()}
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.Data, "data", c.Data, "`directory` of everything that is kept")
	fs.StringVar(&c.URL, "edge.url", c.URL, "public base `URL` of short links (default http:// and the edge's address)")
	fs.StringVar(&c.Bootstrap.Email, "bootstrap.email", c.Bootstrap.Email, "`email` of the account made on the first start")
	fs.StringVar(&c.Bootstrap.Password, "bootstrap.password", "", "its `password` (default a random one, printed once)")
	fs.StringVar(&c.Bootstrap.Token, "bootstrap.token", "", "its API `token` (default a random one, printed once)")
	c.Edge.RegisterFlags(fs)
	c.API.RegisterFlags(fs)
	c.Ingest.RegisterFlags(fs)
}

// Validate completes the configuration and returns every invalid setting.
func (c *Config) Validate() error {
	var errs []error
	if c.Data == "" {
		errs = append(errs, errors.New("-data: is empty"))
	}
	if c.URL == "" {
		c.URL = "http://" + c.Edge.Listen
	}
	if u, err := url.Parse(c.URL); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" ||
		(u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		errs = append(errs, fmt.Errorf("-edge.url: %q is not http:// or https:// and a host", c.URL))
	}
	c.Edge.Redirect.URL, c.API.EdgeURL = c.URL, c.URL
	c.Edge.Spool.Dir = filepath.Join(c.Data, "spool")
	return errors.Join(append(errs, c.Edge.Validate(), c.API.Validate(), c.Ingest.Validate())...)
}

func (c *Config) linksPath() string  { return filepath.Join(c.Data, "links.db") }
func (c *Config) clicksPath() string { return filepath.Join(c.Data, "clicks.db") }
func (c *Config) brokerDir() string  { return filepath.Join(c.Data, "broker") }

// streamConfig is the embedded broker as the services see it.
func (c *Config) streamConfig(addrs []string) stream.Config {
	cfg := stream.DefaultConfig()
	cfg.Brokers = strings.Join(addrs, ",")
	return cfg
}
