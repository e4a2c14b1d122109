package edgeservice

import (
	"errors"
	"flag"
	"fmt"
	"net"

	"linkstream/edge/certificate"
	"linkstream/edge/eventloop"
	"linkstream/edge/password"
	"linkstream/edge/redirect"
	"linkstream/edge/resolve"
	"linkstream/edge/spool"
	"linkstream/schema"
	"linkstream/schema/service"
)

// Config is the configuration of an edge.
type Config struct {
	Listen      string       // address of short links
	Listener    net.Listener // if not nil, an open listener that New uses instead of listening on Listen
	TLSListen   string       // address of short links by HTTPS; "": none
	TLSListener net.Listener // as Listener, for TLSListen
	Certificate certificate.Config
	Connections eventloop.Config
	Resolve     resolve.Config
	Redirect    redirect.Config
	Spool       spool.Config
	Snapshot    bool   // keep what is cached over restarts, in the spool's directory
	Blocklist   string // paths of blocklist files, separated by commas
	GeoIP       string // path of a MaxMind database; "": countries are unknown
	// API is an api that checks passwords of links; zero: the one that the link store names. It is not a flag.
	API schema.BaseURL
	// Passwords checks passwords of links in this process; nil: an api does. It is not a flag.
	Passwords password.Checker
	// ChangesPushed means that this process calls DropPending after every change of the link store. It is not a flag.
	ChangesPushed bool
}

// DefaultConfig returns a configuration that works once Resolve.URL and Spool.Dir are set.
func DefaultConfig() Config {
	return Config{
		Listen:      "127.0.0.1:8080",
		Connections: eventloop.DefaultConfig(),
		Certificate: certificate.DefaultConfig(),
		Resolve:     resolve.DefaultConfig(),
		Spool:       spool.DefaultConfig(),
		Snapshot:    true,
	}
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.Listen, "edge.listen", c.Listen, "`address` on which short links are served")
	fs.StringVar(&c.TLSListen, "edge.tls-listen", c.TLSListen,
		"`address` on which short links are served by HTTPS, such as :443; none if empty")
	c.Certificate.RegisterFlags(fs)
	fs.StringVar(&c.Blocklist, "edge.blocklist", c.Blocklist,
		"`files` of unsafe hosts in the format of /etc/hosts, separated by commas, to which links are not followed; "+
			"reloaded when they change")
	fs.StringVar(&c.GeoIP, "edge.geoip", c.GeoIP,
		"MaxMind database `file` (.mmdb) of countries or cities for links whose rules ask for a country, "+
			"loaded again when it changes")
	fs.BoolVar(&c.Snapshot, "edge.snapshot", c.Snapshot,
		"keep what is cached over restarts, in files in the spool's directory of up to twice the size of the cached links, "+
			"and the keys of visitors' hashes")
	c.Connections.RegisterFlags(fs)
	c.Resolve.RegisterFlags(fs)
	c.Redirect.RegisterFlags(fs)
	c.Spool.RegisterFlags(fs)
}

// Validate returns every invalid setting.
func (c *Config) Validate() error {
	var errs []error
	if err := service.CheckAddr(c.Listen); err != nil {
		errs = append(errs, fmt.Errorf("-edge.listen: %w", err))
	}
	if c.Connections.ProxyProtocol && len(c.Redirect.TrustedProxies) == 0 {
		errs = append(errs, errors.New("-edge.proxy-protocol: -edge.trusted-proxies names no proxy that may use it"))
	}
	if c.ServesTLS() {
		for _, err := range []error{c.checkTLSListen(), c.Certificate.Enabled()} {
			if err != nil {
				errs = append(errs, fmt.Errorf("-edge.tls-listen: %w", err))
			}
		}
	}
	errs = append(errs, c.Certificate.Validate(), c.Connections.Validate(), c.Resolve.Validate(), c.Spool.Validate())
	return errors.Join(errs...)
}

// ServesTLS reports whether short links are served by HTTPS, too.
func (c *Config) ServesTLS() bool { return c.TLSListen != "" || c.TLSListener != nil }

func (c *Config) checkTLSListen() error {
	if c.TLSListen == "" {
		return nil
	}
	return service.CheckAddr(c.TLSListen)
}
