package redirect

import (
	"flag"

	"linkstream/schema/clientaddr"
)

// Config sets how requests are answered. The zero Config works.
type Config struct {
	TrustedProxies clientaddr.Proxies // whose X-Forwarded-For names the client
	PublicHealth   bool               // answer /healthz; the program sets it from -ops.public
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.Var(&c.TrustedProxies, "edge.trusted-proxies",
		"`addresses` or CIDR blocks, separated by commas, of the proxies whose X-Forwarded-For header is trusted")
}
