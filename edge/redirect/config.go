package redirect

import (
	"errors"
	"flag"
	"fmt"
	"time"

	"linkstream/schema/clientaddr"
)

// Config is how links are resolved and redirects are served.
type Config struct {
	URL string // the public base of short links, whose host is the default domain; set by the program from -edge.url

	CacheBytes    int64
	CacheTTL      time.Duration
	NegativeTTL   time.Duration
	LookupTimeout time.Duration

	TrustedProxies clientaddr.Proxies

	ReadTimeout    time.Duration
	WriteTimeout   time.Duration
	IdleTimeout    time.Duration
	MaxHeaderBytes int
	MaxConnections int
}

// DefaultConfig returns a configuration that works once URL is set.
func DefaultConfig() Config {
	return Config{
		CacheBytes:    256 << 20,
		CacheTTL:      time.Minute,
		NegativeTTL:   time.Second,
		LookupTimeout: time.Second,

		ReadTimeout:    5 * time.Second,
		WriteTimeout:   5 * time.Second,
		IdleTimeout:    75 * time.Second, // more than the minute after which load balancers drop idle connections
		MaxHeaderBytes: 8 << 10,
		MaxConnections: 16 << 10,
	}
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.Int64Var(&c.CacheBytes, "edge.cache-bytes", c.CacheBytes, "most `bytes` of memory for cached links")
	fs.DurationVar(&c.CacheTTL, "edge.cache-ttl", c.CacheTTL,
		"longest `time` for which a link that was changed may be answered as it was, while the link store can be reached")
	fs.DurationVar(&c.NegativeTTL, "edge.negative-ttl", c.NegativeTTL,
		"longest `time` for which a new link is not found, if it was asked for before it existed")
	fs.DurationVar(&c.LookupTimeout, "edge.lookup-timeout", c.LookupTimeout,
		"longest `time` that a look-up in the link store may take, the wait for its turn included")
	fs.Var(&c.TrustedProxies, "edge.trusted-proxies",
		"`addresses` or CIDR blocks, separated by commas, of the proxies whose X-Forwarded-For is believed")
	fs.DurationVar(&c.ReadTimeout, "edge.read-timeout", c.ReadTimeout,
		"longest `time` a client may take to send a request")
	fs.DurationVar(&c.WriteTimeout, "edge.write-timeout", c.WriteTimeout,
		"longest `time` a client may take to receive an answer")
	fs.DurationVar(&c.IdleTimeout, "edge.idle-timeout", c.IdleTimeout, "`time` after which an idle connection is closed")
	fs.IntVar(&c.MaxHeaderBytes, "edge.max-header-bytes", c.MaxHeaderBytes, "most `bytes` of a request's header")
	fs.IntVar(&c.MaxConnections, "edge.max-connections", c.MaxConnections, "most `connections` served at the same time")
}

// Validate returns every invalid setting but the URL, which NewResolver reads.
func (c *Config) Validate() error {
	var errs []error
	if c.CacheBytes < 1<<20 {
		errs = append(errs, fmt.Errorf("-edge.cache-bytes: %d is less than 1 MiB", c.CacheBytes))
	}
	if c.MaxHeaderBytes < 1<<10 {
		errs = append(errs, fmt.Errorf("-edge.max-header-bytes: %d is less than 1 KiB", c.MaxHeaderBytes))
	}
	if c.MaxConnections < 1 {
		errs = append(errs, fmt.Errorf("-edge.max-connections: %d is not above zero", c.MaxConnections))
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{
		{"-edge.cache-ttl", c.CacheTTL},
		{"-edge.negative-ttl", c.NegativeTTL},
		{"-edge.lookup-timeout", c.LookupTimeout},
		{"-edge.read-timeout", c.ReadTimeout},
		{"-edge.write-timeout", c.WriteTimeout},
		{"-edge.idle-timeout", c.IdleTimeout},
	} {
		if d.value <= 0 {
			errs = append(errs, fmt.Errorf("%s: %v is not above zero", d.flag, d.value))
		}
	}
	return errors.Join(errs...)
}
