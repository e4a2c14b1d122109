package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"

	"linkstream/api/admin"
	"linkstream/api/apiservice"
	"linkstream/api/links"
	"linkstream/deploy/standalone/embedded"
	"linkstream/edge/edgeservice"
	"linkstream/ingest/ingestservice"
	"linkstream/schema"
	"linkstream/schema/service"
	"linkstream/schema/tracing"
)

// Config is the configuration of the whole service in one process.
type Config struct {
	Data    string         // directory of all data
	EdgeURL schema.BaseURL // of short links; zero: the address that the edge listens on

	FirstAccount admin.FirstAccount
	Ops          service.OpsConfig
	Traces       tracing.Config
	Edge         edgeservice.Config
	API          apiservice.Config
	Ingest       ingestservice.LocalConfig
}

// DefaultConfig returns a configuration that works.
func DefaultConfig() Config {
	return Config{Data: "./data", FirstAccount: admin.FirstAccount{Email: admin.DefaultEmail},
		Ops: service.OpsConfig{Listen: service.OpsListen}, Traces: tracing.DefaultConfig(),
		Edge: edgeservice.DefaultConfig(), API: apiservice.DefaultConfig()}
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.Data, "data", c.Data, "`directory` of all data")
	service.EdgeURLVar(fs, &c.EdgeURL)
	c.FirstAccount.RegisterFlags(fs)
	c.Ops.RegisterFlags(fs)
	c.Traces.RegisterFlags(fs)
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
	if c.EdgeURL.IsZero() {
		from := "http://" + c.Edge.Listen
		if c.Edge.TLSListen != "" {
			from = "https://" + c.Edge.TLSListen
		}
		base, err := schema.ParseBaseURL(from)
		if err != nil {
			errs = append(errs, fmt.Errorf("-edge.url: is not set and cannot be derived from -edge.listen: %w", err))
			base = service.DefaultEdgeURL // reported once is enough
		}
		c.EdgeURL = base
	}
	c.Edge.Resolve.URL, c.API.EdgeURL, c.API.Site = c.EdgeURL, c.EdgeURL, c.Edge.Resolve.Site
	for _, addr := range []string{c.Edge.Listen, c.Edge.TLSListen} {
		if edge, err := links.ParseAddress(addr); err == nil { // otherwise Edge.Validate reports it
			c.API.Own = append(c.API.Own, edge)
		}
	}
	c.Edge.Blocklist = cmp.Or(c.Edge.Blocklist, c.API.Blocklist)
	c.Edge.Redirect.PublicHealth, c.API.PublicHealth = c.Ops.Public, c.Ops.Public
	c.Edge.Spool.Dir = c.dir().Spool()
	c.Edge.Snapshot = false // what was cached may have changed, and the store is as near
	return errors.Join(append(errs, c.Ops.Validate(), c.Traces.Validate(), c.Edge.Validate(), c.API.Validate(),
		c.Ingest.Validate())...)
}

// dir returns the data directory.
func (c *Config) dir() embedded.Dir { return embedded.Dir(c.Data) }
