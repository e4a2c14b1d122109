package config

import (
	"flag"
	"fmt"
	"net/url"
)

// Public is how the world sees the service.
type Public struct {
	URL string // base of short links: scheme and host, perhaps a port
}

// RegisterFlags binds the settings to flags.
func (p *Public) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&p.URL, "edge.url", p.URL, "public base `URL` of short links: http:// or https:// and a host")
}

// Validate returns what is wrong with the URL.
func (p *Public) Validate() error {
	u, err := url.Parse(p.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || (u.Path != "" && u.Path != "/") ||
		u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return fmt.Errorf("-edge.url: %q is not http:// or https:// and a host", p.URL)
	}
	return nil
}
