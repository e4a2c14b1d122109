package redirect

import (
	"flag"
	"fmt"
	"os"

	"github.com/valyala/fasthttp"

	"linkstream/edge/limit"
	"linkstream/edge/password"
	"linkstream/edge/visitorhash"
	"linkstream/schema/clientaddr"
	"linkstream/schema/enrich"
	"linkstream/schema/service"
)

// Config sets how requests are answered. The zero Config works.
type Config struct {
	TrustedProxies clientaddr.Proxies // whose X-Forwarded-For names the client
	// Challenge answers requests below /.well-known/acme-challenge/ and reports whether it did; nil: none. Set by the
	// service.
	Challenge func(*fasthttp.RequestCtx) bool
	// for rules that ask for the visitor's country; nil: every country is unknown, or, in a service, the file of
	// -edge.geoip is used
	Countries    *enrich.Countries
	PublicHealth bool               // answer /healthz; the program sets it from -ops.public
	Robots       Robots             // of every host
	Contacts     service.Contacts   // in security.txt of the default domain
	Passwords    *password.Verifier // of links that ask for one; set by the service
	Limits       *limit.Limits      // of links that have one; set by the service
	Visitors     *visitorhash.Keys  // of clicks; nil: they have no hash; set by the service
	Secure       bool               // visitors use HTTPS, so cookies are for HTTPS only; set by the service
}

// Robots is a /robots.txt. The zero Robots allows crawlers to follow short links.
type Robots struct{ name, text string }

const (
	robotsAllow = "allow"
	robotsDeny  = "deny"
	// maxRobots is as much as crawlers read (RFC 9309, section 2.5).
	maxRobots = 500 << 10
)

// Set implements flag.Value: "allow", "deny" or the name of a file.
func (r *Robots) Set(name string) error {
	r.name = name
	switch name {
	case robotsAllow:
		r.text = "User-agent: *\nAllow: /\n"
	case robotsDeny:
		r.text = "User-agent: *\nAllow: /$\nDisallow: /\n"
	default:
		text, err := os.ReadFile(name)
		if err == nil && len(text) > maxRobots {
			err = fmt.Errorf("the file has more than %d bytes", maxRobots)
		}
		r.text = string(text)
		return err
	}
	return nil
}

func (r *Robots) String() string { return r.name }

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.Var(&c.TrustedProxies, "edge.trusted-proxies",
		"`addresses` or CIDR blocks, separated by commas, of the proxies whose X-Forwarded-For header is trusted")
	_ = c.Robots.Set(robotsAllow) // needs no file
	fs.Var(&c.Robots, "edge.robots", "`what` /robots.txt of every host says: allow to let crawlers follow short links, "+
		"deny, or a file")
	fs.Var(&c.Contacts, "edge.security-contact", "`contacts` in "+service.SecurityPath+" of the default domain: "+
		"addresses of e-mail or https URLs, separated by commas")
}
