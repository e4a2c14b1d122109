package redirect_test

import (
	"flag"
	"io"
	"testing"

	"linkstream/edge/redirect"
	"linkstream/schema/testkit"
)

func TestConfig(t *testing.T) {
	t.Run("flags change settings", func(t *testing.T) {
		var cfg redirect.Config
		fs := flag.NewFlagSet("edge", flag.ContinueOnError)
		cfg.RegisterFlags(fs)
		testkit.Must(t, fs.Parse([]string{"-edge.trusted-proxies=10.0.0.0/8,::1"}))
		testkit.Equal(t, "proxies", cfg.TrustedProxies.String(), "10.0.0.0/8,::1/128")
	})
	t.Run("an invalid list of proxies is an error", func(t *testing.T) {
		var cfg redirect.Config
		fs := flag.NewFlagSet("edge", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		cfg.RegisterFlags(fs)
		if err := fs.Parse([]string{"-edge.trusted-proxies=proxy"}); err == nil {
			t.Error("no error")
		}
	})
}
