package resolve_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linkstream/edge/resolve"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestConfig(t *testing.T) {
	t.Run("the defaults are valid", func(t *testing.T) {
		cfg := resolve.DefaultConfig()
		cfg.URL = schema.MustParseBaseURL("https://sho.rt")
		if err := cfg.Validate(); err != nil {
			t.Error(err)
		}
	})
	t.Run("flags change settings", func(t *testing.T) {
		document := filepath.Join(t.TempDir(), "assetlinks.json")
		testkit.Must(t, os.WriteFile(document, []byte("[]"), 0o600))
		cfg := resolve.DefaultConfig()
		fs := flag.NewFlagSet("edge", flag.ContinueOnError)
		cfg.RegisterFlags(fs)
		testkit.Must(t, fs.Parse([]string{
			"-edge.cache-ttl=5s", "-edge.cache-bytes=2000000", "-edge.root-url=https://example.com/",
			"-edge.path-mode=append", "-edge.site-name=Acme", "-edge.site-color=#ffd400", "-edge.assetlinks=" + document}))
		want := resolve.DefaultConfig()
		want.Site.RootURL, want.AppLinks.Android = "https://example.com/", "[]"
		want.Site.PathMode, want.Site.Name, want.Site.Color = schema.PathAppend, "Acme", "#ffd400"
		want.CacheTTL, want.CacheBytes = 5*time.Second, 2_000_000
		if cfg != want {
			t.Errorf("got %+v, want %+v", cfg, want)
		}
	})
	t.Run("every invalid setting is named by its flag", func(t *testing.T) {
		cfg := resolve.Config{
			Site: schema.Site{RootURL: "sho.rt", NotFoundURL: "ftp://example.com/", ExpiredURL: "https:///late",
				PathMode: "keep"},
			AppLinks: schema.AppLinks{Apple: "{", Android: "none"}}
		fs := flag.NewFlagSet("edge", flag.ContinueOnError)
		cfg.RegisterFlags(fs)
		err := cfg.Validate()
		parsed := map[string]string{"edge.site-name": strings.Repeat("ü", 61), "edge.site-color": "red"}
		fs.VisitAll(func(f *flag.Flag) {
			if wrong, ok := parsed[f.Name]; ok {
				if fs.Set(f.Name, wrong) == nil {
					t.Errorf("-%s takes %s", f.Name, wrong)
				}
				return
			}
			if !strings.Contains(err.Error(), "-"+f.Name+": ") {
				t.Errorf("-%s is not in\n%v", f.Name, err)
			}
		})
	})
	t.Run("the default domain's site does not lead to itself", func(t *testing.T) {
		cfg := resolve.DefaultConfig()
		cfg.URL, cfg.Site.NotFoundURL = schema.MustParseBaseURL("https://sho.rt"), "https://sho.rt/none"
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "-edge.not-found-url: ") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a base URL that is not set is an error", func(t *testing.T) {
		cfg := resolve.DefaultConfig()
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "-edge.url: ") {
			t.Errorf("error %v", err)
		}
	})
}
