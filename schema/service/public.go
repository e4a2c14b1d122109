package service

import (
	"flag"
	"fmt"
)

// PublicURL is how the world sees the service.
type PublicURL struct {
	URL string // base of short links: scheme and host, perhaps a port
}

// RegisterFlags binds the settings to flags.
func (p *PublicURL) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&p.URL, "edge.url", p.URL, "public base `URL` of short links: http:// or https:// and a host")
}

// Validate returns what is wrong with the URL.
func (p *PublicURL) Validate() error {
	if err := CheckURL(p.URL); err != nil {
		return fmt.Errorf("-edge.url: %w", err)
	}
	return nil
}
