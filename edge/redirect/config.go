package redirect

import (
	"flag"

	"github.com/valyala/fasthttp"

	"linkstream/schema/clientaddr"
)

// Config sets how requests are answered. The zero Config works.
type Config struct {
	TrustedProxies clientaddr.Proxies // whose X-Forwarded-For names the client
	// Challenge answers requests below /.well-known/acme-challenge/ and reports whether it did; nil: none. Set by the service.
	Challenge    func(*fasthttp.RequestCtx) bool
	PublicHealth bool // answer /healthz; the program sets it from -ops.public
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.Var(&c.TrustedProxies, "edge.trusted-proxies",
		"`addresses` or CIDR blocks, separated by commas, of the proxies whose X-Forwarded-For header is trusted")
}
