package resolve

import (
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"time"

	"linkstream/schema"
	"linkstream/schema/blocklist"
	"linkstream/schema/service"
)

const maxUnknownRate = 1_000_000_000 // so far above what a store answers that it is no bound

// Config sets how links are looked up and cached.
type Config struct {
	URL           schema.BaseURL // of short links, whose host is the default domain; set from -edge.url
	CacheBytes    int64          // memory for cached hosts and links
	CacheTTL      time.Duration  // how long an entry is fresh; a sixtieth of it for an unknown host or hash
	LookupTimeout time.Duration  // bounds one look-up, including the wait for its turn
	// MaxUnknownRate bounds, per second and client, the look-ups of hosts and hashes that do not exist: see quota.
	MaxUnknownRate int
	Blocklist      *blocklist.List // hosts that no link may lead to; nil: none; set by the service
	Site           schema.Site     // of the default domain
	AppLinks       schema.AppLinks // of the default domain
	Snapshot       string          // path of the files that keep entries over restarts; "": none; set by the service
}

// DefaultConfig returns a configuration that works once URL is set.
func DefaultConfig() Config {
	return Config{
		CacheBytes:    256 << 20,
		CacheTTL:      time.Minute,
		LookupTimeout: time.Second,
		// A visitor mistypes a few addresses. A crawler of dead links gets the rest of its answers later.
		MaxUnknownRate: 20,
	}
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.Int64Var(&c.CacheBytes, "edge.cache-bytes", c.CacheBytes, "maximum memory in `bytes` for cached links")
	fs.DurationVar(&c.CacheTTL, "edge.cache-ttl", c.CacheTTL,
		"maximum `time` until a changed link is noticed without a message on the topic of changes; "+
			"a sixtieth of it for a new link that was requested before it existed")
	fs.DurationVar(&c.LookupTimeout, "edge.lookup-timeout", c.LookupTimeout,
		"maximum `time` of a look-up in the link store, including the wait for its turn")
	fs.IntVar(&c.MaxUnknownRate, "edge.max-unknown-rate", c.MaxUnknownRate,
		"most look-ups per `second`, on average over ten seconds, of hosts and links that do not exist, "+
			"for one IPv4 address or IPv6 /48; also most pages about links")
	for _, f := range []struct {
		name, what string
		url        *string
	}{
		{"root-url", "the front page of the default domain", &c.Site.RootURL},
		{"not-found-url", "unknown links of the default domain", &c.Site.NotFoundURL},
		{"expired-url", "expired links of the default domain that have no such URL of their own", &c.Site.ExpiredURL},
	} {
		fs.StringVar(f.url, "edge."+f.name, *f.url, "`URL` to which visitors of "+f.what+" are sent; a page if empty")
	}
	fs.StringVar((*string)(&c.Site.PathMode), "edge.path-mode", string(c.Site.PathMode),
		"what becomes of the path behind a name on the default domain: `none`, ignore or append; none if empty")
	service.EdgeSiteVar(fs, &c.Site)
	const served = "JSON `file` that the default domain serves at "
	fs.Func("edge.apple-app-site-association", served+schema.AppleLinksPath, readAppLinks(&c.AppLinks.Apple))
	fs.Func("edge.assetlinks", served+schema.AndroidLinksPath, readAppLinks(&c.AppLinks.Android))
}

// readAppLinks returns a function that reads a document from a file, which Validate checks.
func readAppLinks(to *string) func(name string) error {
	return func(name string) error {
		if *to = ""; name == "" {
			return nil
		}
		document, err := os.ReadFile(name)
		*to = string(document)
		return err
	}
}

// Validate returns every invalid setting.
func (c *Config) Validate() error {
	var errs []error
	if c.URL.IsZero() {
		errs = append(errs, errors.New("-edge.url: is not set"))
	}
	for name, url := range map[string]string{
		"root-url": c.Site.RootURL, "not-found-url": c.Site.NotFoundURL, "expired-url": c.Site.ExpiredURL} {
		if err := c.checkSiteURL(url); err != nil {
			errs = append(errs, fmt.Errorf("-edge.%s: %w", name, err))
		}
	}
	if !c.Site.PathMode.Valid() {
		errs = append(errs, fmt.Errorf("-edge.path-mode: %q is not none, ignore or append", c.Site.PathMode))
	}
	for name, document := range map[string]string{
		"apple-app-site-association": c.AppLinks.Apple, "assetlinks": c.AppLinks.Android} {
		if problem := schema.AppLinksProblem(document); problem != "" {
			errs = append(errs, fmt.Errorf("-edge.%s: %s", name, problem))
		}
	}
	if c.CacheBytes < 1<<20 {
		errs = append(errs, fmt.Errorf("-edge.cache-bytes: %d is less than 1 MiB", c.CacheBytes))
	}
	if c.MaxUnknownRate < 1 || c.MaxUnknownRate > maxUnknownRate {
		errs = append(errs, fmt.Errorf("-edge.max-unknown-rate: %d is not 1 to %d", c.MaxUnknownRate, maxUnknownRate))
	}
	if c.CacheTTL <= 0 {
		errs = append(errs, fmt.Errorf("-edge.cache-ttl: %v is not positive", c.CacheTTL))
	}
	if c.LookupTimeout <= 0 {
		errs = append(errs, fmt.Errorf("-edge.lookup-timeout: %v is not positive", c.LookupTimeout))
	}
	return errors.Join(errs...)
}

// checkSiteURL returns an error if visitors cannot be sent to a URL of the default domain's site. "" means no URL.
func (c *Config) checkSiteURL(longURL string) error {
	if longURL == "" {
		return nil
	}
	u, err := url.Parse(longURL)
	if err != nil {
		return err
	}
	host, err := schema.ParseHost(u.Hostname())
	switch {
	case err != nil:
		return err
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%q does not begin with http:// or https://", longURL)
	case host == c.URL.Host():
		return fmt.Errorf("%q is on the default domain itself", longURL)
	}
	return nil
}
