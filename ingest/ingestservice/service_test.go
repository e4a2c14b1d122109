package ingestservice_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"linkstream/ingest/ingestservice"
	"linkstream/schema/enrich/enrichtest"
	"linkstream/schema/testkit"
)

func TestConfig(t *testing.T) {
	t.Run("the default is valid", func(t *testing.T) {
		cfg := ingestservice.DefaultConfig()
		if err := cfg.Validate(); err != nil {
			t.Error(err)
		}
	})
	t.Run("flags set it", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "countries.mmdb")
		enrichtest.WriteCountries(t, path, map[string]enrichtest.Record{"81.2.69.0/24": enrichtest.In("GB")})
		cfg := ingestservice.DefaultConfig()
		fs := flag.NewFlagSet("test", flag.ContinueOnError)
		cfg.RegisterFlags(fs)
		if err := fs.Parse([]string{"-ingest.geoip", path}); err != nil || cfg.GeoIP != path {
			t.Errorf("got %+v, error %v", cfg, err)
		}
		if err := cfg.Validate(); err != nil {
			t.Error(err)
		}
	})
	t.Run("every invalid field is reported by its flag", func(t *testing.T) {
		text := filepath.Join(t.TempDir(), "text")
		testkit.Must(t, os.WriteFile(text, []byte("81.2.69.0/24 GB\n"), 0o600))
		for _, path := range []string{text, filepath.Join(t.TempDir(), "missing")} {
			cfg := ingestservice.Config{GeoIP: path}
			err := cfg.Validate()
			for _, part := range []string{"-ingest.geoip: ", path, "-ingest.max-batch: "} {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in %v", part, err)
				}
			}
		}
	})
}
