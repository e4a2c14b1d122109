package redirect

import (
	"errors"
	"flag"
	"fmt"
	"time"

	"linkstream/edge/deadline"
	"linkstream/schema/clientaddr"
)

// Config sets how requests are served.
type Config struct {
	TrustedProxies clientaddr.Proxies // whose X-Forwarded-For names the client
	PublicHealth   bool               // answer /healthz; the program sets it from -ops.public

	ReadTimeout    time.Duration // for a request to arrive
	WriteTimeout   time.Duration // for an answer to be taken
	IdleTimeout    time.Duration // between requests
	MaxHeaderBytes int
	MaxConnections int
}

// DefaultConfig returns a configuration that works.
func DefaultConfig() Config {
	return Config{
		ReadTimeout:    5 * time.Second,
		WriteTimeout:   5 * time.Second,
		IdleTimeout:    75 * time.Second, // longer than the minute after which load balancers close idle connections
		MaxHeaderBytes: 8 << 10,
		MaxConnections: 16 << 10,
	}
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.Var(&c.TrustedProxies, "edge.trusted-proxies",
		"`addresses` or CIDR blocks, separated by commas, of the proxies whose X-Forwarded-For header is trusted")
	fs.DurationVar(&c.ReadTimeout, "edge.read-timeout", c.ReadTimeout, "maximum `time` for a client to send a request")
	fs.DurationVar(&c.WriteTimeout, "edge.write-timeout", c.WriteTimeout, "maximum `time` for a client to receive an answer")
	fs.DurationVar(&c.IdleTimeout, "edge.idle-timeout", c.IdleTimeout, "`time` after which an idle connection is closed")
	fs.IntVar(&c.MaxHeaderBytes, "edge.max-header-bytes", c.MaxHeaderBytes, "maximum `bytes` of a request header")
	fs.IntVar(&c.MaxConnections, "edge.max-connections", c.MaxConnections, "maximum `number` of connections at the same time")
}

// Limits returns the time limits of connections.
func (c *Config) Limits() deadline.Limits {
	return deadline.Limits{Read: c.ReadTimeout, Write: c.WriteTimeout, Idle: c.IdleTimeout}
}

// Validate returns every invalid setting.
func (c *Config) Validate() error {
	var errs []error
	if c.MaxHeaderBytes < 1<<10 {
		errs = append(errs, fmt.Errorf("-edge.max-header-bytes: %d is less than 1 KiB", c.MaxHeaderBytes))
	}
	if c.MaxConnections < 1 {
		errs = append(errs, fmt.Errorf("-edge.max-connections: %d is not positive", c.MaxConnections))
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{
		{"-edge.read-timeout", c.ReadTimeout},
		{"-edge.write-timeout", c.WriteTimeout},
		{"-edge.idle-timeout", c.IdleTimeout},
	} {
		if d.value <= 0 {
			errs = append(errs, fmt.Errorf("%s: %v is not positive", d.flag, d.value))
		}
	}
	return errors.Join(errs...)
}
