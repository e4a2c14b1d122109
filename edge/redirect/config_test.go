package redirect_test

import (
	"flag"
	"io"
	"strings"
	"testing"
	"time"

	"linkstream/edge/redirect"
)

func TestConfig(t *testing.T) {
	t.Run("the defaults are valid", func(t *testing.T) {
		cfg := redirect.DefaultConfig()
		if err := cfg.Validate(); err != nil {
			t.Error(err)
		}
	})
	t.Run("flags change settings", func(t *testing.T) {
		cfg := redirect.DefaultConfig()
		fs := flag.NewFlagSet("edge", flag.ContinueOnError)
		cfg.RegisterFlags(fs)
		if err := fs.Parse([]string{"-edge.cache-ttl=5s", "-edge.trusted-proxies=10.0.0.0/8,::1"}); err != nil {
			t.Fatal(err)
		}
		if cfg.CacheTTL != 5*time.Second || cfg.TrustedProxies.String() != "10.0.0.0/8,::1/128" || cfg.NegativeTTL != time.Second {
			t.Errorf("%+v", cfg)
		}
	})
	t.Run("a list of proxies that cannot be read is an error", func(t *testing.T) {
		cfg := redirect.DefaultConfig()
		fs := flag.NewFlagSet("edge", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		cfg.RegisterFlags(fs)
		if err := fs.Parse([]string{"-edge.trusted-proxies=proxy"}); err == nil {
			t.Error("no error")
		}
	})
	t.Run("every invalid setting is named by its flag", func(t *testing.T) {
		var cfg redirect.Config
		fs := flag.NewFlagSet("edge", flag.ContinueOnError)
		cfg.RegisterFlags(fs)
		err := cfg.Validate()
		fs.VisitAll(func(f *flag.Flag) {
			if named := strings.Contains(err.Error(), "-"+f.Name+": "); named == (f.Name == "edge.trusted-proxies") {
				t.Errorf("-%s: named: %t in\n%v", f.Name, named, err)
			}
		})
	})
	t.Run("a base without a host is an error", func(t *testing.T) {
		for _, base := range []string{"", "sho.rt", "https://", "https://:80", "%"} {
			cfg := redirect.DefaultConfig()
			cfg.URL = base
			if _, err := redirect.NewResolver(cfg, nil, nil, nil, nil); err == nil || !strings.Contains(err.Error(), "-edge.url") {
				t.Errorf("%q: error %v", base, err)
			}
		}
	})
}
