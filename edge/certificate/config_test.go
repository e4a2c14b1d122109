package certificate_test

import (
	"flag"
	"strings"
	"testing"

	"linkstream/edge/certificate"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestConfig(t *testing.T) {
	valid := func() certificate.Config {
		cfg := certificate.DefaultConfig()
		cfg.ACME.Email, cfg.ACME.Key = "you@example.com", secret
		return cfg
	}
	t.Run("an address and a key are enough", func(t *testing.T) {
		cfg := valid()
		testkit.Must(t, cfg.Validate())
		testkit.Must(t, cfg.Enabled())
	})
	t.Run("without an address nothing of ACME matters", func(t *testing.T) {
		cfg := certificate.DefaultConfig()
		testkit.Must(t, cfg.Validate())
		if cfg.Enabled() == nil {
			t.Error("it has certificates")
		}
	})
	t.Run("invalid settings are named", func(t *testing.T) {
		for want, change := range map[string]func(*certificate.ACMEConfig){
			"-edge.acme-directory: ":     func(a *certificate.ACMEConfig) { a.Directory = "http://acme.example/dir" },
			"-edge.acme-email: ":         func(a *certificate.ACMEConfig) { a.Email = "you" },
			"-edge.acme-key: ":           func(a *certificate.ACMEConfig) { a.Key = "short" },
			"only one of them is set":    func(a *certificate.ACMEConfig) { a.EABID = "kid" },
			"-edge.acme-eab-key: ":       func(a *certificate.ACMEConfig) { a.EABID, a.EABKey = "kid", "not base64!" },
			"-edge.acme-renew-every: 0s": func(a *certificate.ACMEConfig) { a.RenewEvery = 0 },
		} {
			cfg := valid()
			change(&cfg.ACME)
			if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q is not all of %v", want, err)
			}
		}
	})
	t.Run("flags set every part, and secrets may be in files", func(t *testing.T) {
		cfg := certificate.DefaultConfig()
		fs := flag.NewFlagSet("edge", flag.ContinueOnError)
		cfg.RegisterFlags(fs)
		testkit.Must(t, fs.Parse([]string{"-edge.tls-cert=a", "-edge.tls-key=b", "-edge.acme-email=you@example.com",
			"-edge.acme-directory=https://acme.example/dir", "-edge.acme-roots=r", "-edge.acme-key=k", "-edge.acme-eab-id=i",
			"-edge.acme-eab-key=e", "-edge.acme-renew-every=1h", "-edge.acme-max-per-hour=5"}))
		want := certificate.Config{Cert: "a", Key: "b", ACME: certificate.ACMEConfig{Email: "you@example.com",
			Directory: "https://acme.example/dir", Roots: "r", Key: "k", EABID: "i", EABKey: "e", RenewEvery: 3600e9}}
		testkit.Equal(t, "settings", cfg, want)
		for _, name := range []string{"edge.acme-key", "edge.acme-eab-key"} {
			if _, secret := fs.Lookup(name).Value.(*schema.Secret); !secret {
				t.Errorf("-%s is not a secret", name)
			}
		}
	})
}
