package redirect_test

import (
	"flag"
	"io"
	"strings"
	"testing"
	"time"

	"linkstream/edge/redirect"
	"linkstream/schema/testkit"
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
		testkit.Must(t, fs.Parse([]string{"-edge.idle-timeout=5s", "-edge.trusted-proxies=10.0.0.0/8,::1"}))
		if cfg.IdleTimeout != 5*time.Second || cfg.TrustedProxies.String() != "10.0.0.0/8,::1/128" || cfg.ReadTimeout != 5*time.Second {
			t.Errorf("%+v", cfg)
		}
	})
	t.Run("an invalid list of proxies is an error", func(t *testing.T) {
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
}
