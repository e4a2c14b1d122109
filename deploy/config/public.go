package config

import (
	"flag"
	"fmt"

	"linkstream/schema/ops"
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
	if err := ops.CheckURL(p.URL); err != nil {
		return fmt.Errorf("-edge.url: %w", err)
	}
	return nil
}
