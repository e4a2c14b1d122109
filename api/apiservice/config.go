package apiservice

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"linkstream/api/customdomain"
	"linkstream/api/links"
	"linkstream/api/rest"
	"linkstream/api/webhook"
	"linkstream/schema"
	"linkstream/schema/clientaddr"
	"linkstream/schema/service"
	"linkstream/schema/tracing"
)

// Config is the configuration of an api process.
type Config struct {
	EdgeURL        schema.BaseURL // of short links; the program sets it from -edge.url
	Site           schema.Site    // the default domain's name and colour; the program sets them from -edge.site-…
	Listen         string         // address of the API and the dashboard
	Listener       net.Listener   // if not nil, an open listener that New uses instead of listening on Listen
	URL            schema.BaseURL // public base of the API and the dashboard; zero: the address of the listener
	SignUp         string         // "open" if anyone may create an account, else "closed"
	TrustedProxies clientaddr.Proxies
	Blocklist      string          // paths of blocklist files, separated by commas
	OwnHosts       string          // more addresses of the service, separated by commas: see links.ParseAddress
	Own            []links.Address // still more; set by the program
	Private        []links.Address // of listeners that are for operators; set by the program
	Domains        customdomain.Config
	WebhookAllow   webhook.Networks // that receivers of webhooks may be in though they are not public
	CORSOrigins    rest.Origins     // whose pages may call the API from browsers
	Tracer         *tracing.Tracer  // of requests; nil: none; set by the program
	Contacts       service.Contacts // of security.txt
	PublicHealth   bool             // answer /healthz; the program sets it from -ops.public

	MaxConnections           int
	MaxConnectionsPerAddress int // of one IPv4 address or IPv6 /64, trusted proxies exempt; 0: no bound
	PagesPerSecond           int // of the dashboard, by an account, on average over 10 s; not a flag

	// the clock of the dashboard's reports and of limited attempts such as sign-ins; nil: time.Now; not a flag
	Now func() time.Time
}

// Values of Config.SignUp.
const (
	signUpOpen   = "open"
	signUpClosed = "closed"
)

// DefaultConfig returns a configuration that works once EdgeURL is set.
func DefaultConfig() Config {
	return Config{Listen: "127.0.0.1:8081", SignUp: signUpClosed, Domains: customdomain.DefaultConfig(),
		MaxConnections: service.DefaultConnections, MaxConnectionsPerAddress: 1 << 10, PagesPerSecond: 20}
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.Listen, "api.listen", c.Listen, "`address` on which the API and the dashboard are served")
	fs.TextVar(&c.URL, "api.url", c.URL,
		"public base `URL` of the API and the dashboard; https:// restricts session cookies to TLS (default the listen "+
			"address)")
	fs.StringVar(&c.SignUp, "api.signup", c.SignUp, "`open` if anyone may create an account, else closed")
	fs.Var(&c.TrustedProxies, "api.trusted-proxies",
		"`addresses` and CIDR blocks of proxies whose X-Forwarded-For is trusted, separated by commas")
	fs.StringVar(&c.Blocklist, "api.blocklist", c.Blocklist,
		"`files` of unsafe hosts in the format of /etc/hosts, separated by commas; reloaded when they change")
	fs.StringVar(&c.OwnHosts, "api.own-hosts", c.OwnHosts,
		"more `hosts`, host:port or :port of this service, separated by commas, to which no link may lead, such as those of "+
			"load balancers and edges")
	fs.Var(&c.WebhookAllow, "api.webhook-allow",
		"`networks` (CIDR blocks, separated by commas) that webhooks may call though they are not public, also by http")
	fs.Var(&c.CORSOrigins, "api.cors-origins",
		"`origins`, such as https://app.example.org, separated by commas, whose pages may call the API from browsers; never "+
			"the dashboard")
	fs.Var(&c.Contacts, "api.security-contact",
		"`contacts` in /.well-known/security.txt: addresses of e-mail or https URLs, separated by commas")
	fs.IntVar(&c.MaxConnections, "api.max-connections", c.MaxConnections,
		"most `connections` at the same time, fewer by default where the limit of open files is lower; a further one takes "+
			"the place of the one that has been idle longest")
	fs.IntVar(&c.MaxConnectionsPerAddress, "api.max-connections-per-address", c.MaxConnectionsPerAddress,
		"most `connections` of one IPv4 address or IPv6 /64 at the same time, trusted proxies exempt; 0: no bound")
	c.Domains.RegisterFlags(fs)
}

// Validate returns every invalid setting, except for the blocklist files, which New reads.
func (c *Config) Validate() error {
	var errs []error
	if err := service.CheckAddr(c.Listen); err != nil {
		errs = append(errs, fmt.Errorf("-api.listen: %w", err))
	}
	if c.EdgeURL.IsZero() {
		errs = append(errs, errors.New("-edge.url: is not set"))
	}
	if c.SignUp != signUpOpen && c.SignUp != signUpClosed {
		errs = append(errs, fmt.Errorf("-api.signup: %q is neither %s nor %s", c.SignUp, signUpOpen, signUpClosed))
	}
	if c.MaxConnections < 1 {
		errs = append(errs, fmt.Errorf("-api.max-connections: %d is not above zero", c.MaxConnections))
	}
	if c.MaxConnectionsPerAddress < 0 {
		errs = append(errs, fmt.Errorf("-api.max-connections-per-address: %d is below zero", c.MaxConnectionsPerAddress))
	}
	if _, err := c.ownAddresses(); err != nil {
		errs = append(errs, fmt.Errorf("-api.own-hosts: %w", err))
	}
	return errors.Join(append(errs, c.Domains.Validate())...)
}

// ownAddresses returns the addresses in Own and OwnHosts.
func (c *Config) ownAddresses() ([]links.Address, error) {
	named, err := links.ParseAddresses(strings.Split(c.OwnHosts, ",")...)
	return slices.Concat(c.Own, named), err
}
