//go:build deploy

package outside_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"linkstream/deploy/test/launch"
	"linkstream/deploy/tools/engines/testengines"
	"linkstream/schema/testkit"
)

// pebbleProgram is the authority, in the version that is tested.
const pebbleProgram = "github.com/letsencrypt/pebble/v2/cmd/pebble@v2.10.1"

// pebbleConfig says where the authority finds those who ask it for certificates.
type pebbleConfig struct {
	HTTPPort, TLSPort int               // of each host, instead of 80 and 443
	Resolver          string            // address of the DNS resolver
	Accounts          map[string]string // secrets of external accounts, one of which is required; empty: none is
}

// pebble is a running authority.
type pebble struct {
	Addr       string         // of its HTTPS, with a certificate for localhost; the directory is at /dir
	Roots      string         // file of the authority that signs this certificate
	Issuers    *x509.CertPool // of the certificates that it issues
	IssuersPEM []byte         // the same
}

// startPebble starts an authority that runs until the test ends.
func startPebble(t *testing.T, cfg pebbleConfig) *pebble {
	t.Helper()
	bin, err := testengines.GoPrograms(t.Context(), slog.Default(), pebbleProgram)
	testkit.Must(t, err)
	dir, own := t.TempDir(), testkit.NewAuthority(t)
	cert, key := own.Files(t, dir, "localhost")
	a := &pebble{Addr: testkit.FreeAddress(t), Roots: filepath.Join(dir, "roots.pem"), Issuers: x509.NewCertPool()}
	testkit.Must(t, os.WriteFile(a.Roots, own.PEM, 0o600))
	management := testkit.FreeAddress(t)
	config, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": a.Addr, "managementListenAddress": management, "certificate": cert, "privateKey": key,
		"httpPort": cfg.HTTPPort, "tlsPort": cfg.TLSPort,
		"externalAccountBindingRequired": len(cfg.Accounts) > 0, "externalAccountMACKeys": cfg.Accounts,
		"retryAfter": map[string]int{"authz": 1, "order": 1},
		"profiles": map[string]any{"default": map[string]any{"description": "",
			"validityPeriod": int((24 * time.Hour).Seconds())}},
	}})
	testkit.Must(t, err)
	path := filepath.Join(dir, "pebble.json")
	testkit.Must(t, os.WriteFile(path, config, 0o600))
	launch.Start(t, launch.Command(filepath.Join(bin, "pebble"), []string{"PEBBLE_VA_NOSLEEP=1"}, "-config", path,
		"-dnsserver", cfg.Resolver))
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: own.Roots, ServerName: "localhost"}}}
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
