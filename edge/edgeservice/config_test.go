package edgeservice_test

import (
	"flag"
	"strings"
	"testing"
	"time"

	"linkstream/edge/edgeservice"
	"linkstream/schema/testkit"
)

func TestConfig(t *testing.T) {
	t.Run("the defaults are valid once the URL is set", func(t *testing.T) {
		cfg := edgeservice.DefaultConfig()
		cfg.Resolve.URL = baseURL
		testkit.Must(t, cfg.Validate())
	})
	t.Run("flags set every part", func(t *testing.T) {
		cfg := edgeservice.DefaultConfig()
		fs := flag.NewFlagSet("edge", flag.ContinueOnError)
		cfg.RegisterFlags(fs)
		testkit.Must(t, fs.Parse([]string{
			"-edge.listen=:80", "-edge.cache-bytes=2000000", "-edge.max-connections=7", "-spool.sync=3s"}))
		testkit.Equal(t, "listen", cfg.Listen, ":80")
		testkit.Equal(t, "cache-bytes", cfg.Resolve.CacheBytes, 2_000_000)
		testkit.Equal(t, "max-connections", cfg.Connections.MaxConnections, 7)
		testkit.Equal(t, "sync", cfg.Spool.Sync, 3*time.Second)
	})
	t.Run("one error names the invalid settings of every part", func(t *testing.T) {
		cfg := edgeservice.DefaultConfig()
		cfg.Listen, cfg.Resolve.CacheTTL, cfg.Connections.MaxConnections, cfg.Spool.Sync = "nowhere", 0, 0, -1
		err := cfg.Validate()
		for _, name := range []string{
			"-edge.listen", "-edge.url", "-edge.cache-ttl", "-edge.max-connections", "-spool.sync"} {
			if err == nil || !strings.Contains(err.Error(), name+": ") {
				t.Errorf("%s is not in\n%v", name, err)
			}
		}
	})
}
