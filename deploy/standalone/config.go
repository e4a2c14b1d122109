package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"path/filepath"

	"linkstream/api/admin"
	"linkstream/api/apiservice"
	"linkstream/api/shorten"
	"linkstream/edge/edgeservice"
	"linkstream/ingest/ingestservice"
	"linkstream/schema"
	"linkstream/schema/service"
)

// Config is the configuration of the whole service in one process.
type Config struct {
	Data    string         // directory of all data
	EdgeURL schema.BaseURL // of short links; zero: the address that the edge listens on

	FirstAccount admin.FirstAccount
	Ops          service.OpsConfig
	Edge         edgeservice.Config
	API          apiservice.Config
	Ingest       ingestservice.Config
}

// DefaultConfig returns a configuration that works.
func DefaultConfig() Config {
	return Config{Data: "./data", FirstAccount: admin.FirstAccount{Email: admin.DefaultEmail},
		Ops:  service.OpsConfig{Listen: "127.0.0.1:9080"},
		Edge: edgeservice.DefaultConfig(), API: apiservice.DefaultConfig(), Ingest: ingestservice.DefaultConfig()}
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.Data, "data", c.Data, "`directory` of all data")
	service.EdgeURLVar(fs, &c.EdgeURL)
	c.FirstAccount.RegisterFlags(fs)
	c.Ops.RegisterFlags(fs)
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
		base, err := schema.ParseBaseURL("http://" + c.Edge.Listen)
		if err != nil {
			errs = append(errs, fmt.Errorf("-edge.url: is not set and cannot be derived from -edge.listen: %w", err))
			base = service.DefaultEdgeURL // reported once is enough
		}
		c.EdgeURL = base
	}
	c.Edge.Resolve.URL, c.API.EdgeURL = c.EdgeURL, c.EdgeURL
	if edge, err := shorten.ParseAddress(c.Edge.Listen); err == nil { // otherwise Edge.Validate reports it
		c.API.Own = []shorten.Address{edge}
	}
	c.Edge.Blocklist = cmp.Or(c.Edge.Blocklist, c.API.Blocklist)
	c.Edge.Redirect.PublicHealth, c.API.PublicHealth = c.Ops.Public, c.Ops.Public
	c.Edge.Spool.Dir = c.spoolDir()
	return errors.Join(append(errs, c.Ops.Validate(), c.Edge.Validate(), c.API.Validate(), c.Ingest.Validate())...)
}

// What the data directory holds. A backup has all of it, except for the locks and the address.
const (
	linksName        = "links.db"
	clicksName       = "clicks.db"
	spoolName        = "spool"
	brokerName       = "broker"
	brokerSecretName = "broker.secret" // not in the broker's directory, so that the click log can be deleted without it
	brokerAddrName   = "broker.addr"   // the address of the broker, while the service runs
	lockName         = "lock"          // held while the service runs, or a restore
	backupLockName   = "backup.lock"   // held during a backup, a restore, and the deletion of counted records
)

func (c *Config) linksPath() string        { return filepath.Join(c.Data, linksName) }
func (c *Config) clicksPath() string       { return filepath.Join(c.Data, clicksName) }
func (c *Config) spoolDir() string         { return filepath.Join(c.Data, spoolName) }
func (c *Config) brokerDir() string        { return filepath.Join(c.Data, brokerName) }
func (c *Config) brokerSecretPath() string { return filepath.Join(c.Data, brokerSecretName) }
func (c *Config) brokerAddrPath() string   { return filepath.Join(c.Data, brokerAddrName) }
func (c *Config) lockPath() string         { return filepath.Join(c.Data, lockName) }
func (c *Config) backupLockPath() string   { return filepath.Join(c.Data, backupLockName) }
