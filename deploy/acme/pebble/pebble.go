// Package pebble runs pebble, Let's Encrypt's test authority, for tests.
package pebble

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"linkstream/deploy/testengines"
	"linkstream/schema/testkit"
)

// program is the authority, in the version that is tested.
const program = "github.com/letsencrypt/pebble/v2/cmd/pebble@v2.10.1"

// Config says where the authority finds those who ask it for certificates.
type Config struct {
	HTTPPort, TLSPort int               // of each host, instead of 80 and 443
	Resolver          string            // address of the DNS resolver
	Valid             time.Duration     // validity of certificates
	Accounts          map[string]string // secrets of external accounts, one of which is required; empty: none is
}

// Authority is a running authority.
type Authority struct {
	Addr       string         // of its HTTPS, with a certificate for localhost; the directory is at /dir
	Roots      string         // file of the authority that signs this certificate
	Issuers    *x509.CertPool // of the certificates that it issues
	IssuersPEM []byte         // the same
}

// Start starts an authority that runs until the test ends.
func Start(t *testing.T, cfg Config) *Authority {
	t.Helper()
	bin, err := testengines.GoPrograms(t.Context(), slog.Default(), program)
	testkit.Must(t, err)
	dir, own := t.TempDir(), testkit.NewAuthority(t)
	cert, key := own.Files(t, dir, "localhost")
	a := &Authority{Addr: testkit.FreeAddress(t), Roots: filepath.Join(dir, "roots.pem"), Issuers: x509.NewCertPool()}
	testkit.Must(t, os.WriteFile(a.Roots, own.PEM, 0o600))
	management := testkit.FreeAddress(t)
	config, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": a.Addr, "managementListenAddress": management, "certificate": cert, "privateKey": key,
		"httpPort": cfg.HTTPPort, "tlsPort": cfg.TLSPort,
		"externalAccountBindingRequired": len(cfg.Accounts) > 0, "externalAccountMACKeys": cfg.Accounts,
		"retryAfter": map[string]int{"authz": 1, "order": 1},
		"profiles":   map[string]any{"default": map[string]any{"description": "", "validityPeriod": int(cfg.Valid.Seconds())}},
	}})
	testkit.Must(t, err)
	path := filepath.Join(dir, "pebble.json")
	testkit.Must(t, os.WriteFile(path, config, 0o600))
	run(t, filepath.Join(bin, "pebble"), "-config", path, "-dnsserver", cfg.Resolver)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: own.Roots, ServerName: "localhost"}}}
	testkit.Succeeds(t, func() error {
		resp, err := client.Get("https://" + management + "/roots/0")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		a.IssuersPEM, err = io.ReadAll(resp.Body)
		return err
	})
	a.Issuers.AppendCertsFromPEM(a.IssuersPEM)
	return a
}

// run runs a program until the test ends.
func run(t *testing.T, name string, args ...string) {
	t.Helper()
	var output testkit.Buffer
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1")
	cmd.Stdout, cmd.Stderr = &output, &output
	testkit.Must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("output of the authority:\n%s", output.String())
		}
	})
}
