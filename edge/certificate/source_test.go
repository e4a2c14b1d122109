package certificate_test

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/mholt/acmez/v3/acme"

	"linkstream/edge/certificate"
	"linkstream/schema/sqlite"
	"linkstream/schema/sqlite/sqlitetest"
	"linkstream/schema/testkit"
)

// openSource returns a source for the host sho.example.com, whose authority is away.
func openSource(t *testing.T, change ...func(*certificate.Config)) (*certificate.Source, *metrics.Set) {
	t.Helper()
	return openSourceOn(t, sqlitetest.New(t), change...)
}

func openSourceOn(t *testing.T, store *sqlite.Store, change ...func(*certificate.Config)) (*certificate.Source, *metrics.Set) {
	t.Helper()
	set, log := metrics.NewSet(), slog.New(slog.DiscardHandler)
	cfg := certificate.DefaultConfig()
	cfg.ACME.Email, cfg.ACME.Key, cfg.ACME.Directory = "you@example.com", secret, "https://127.0.0.1:1/dir"
	for _, f := range change {
		f(&cfg)
	}
	addr := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}
	source, err := certificate.Open(cfg, certificate.NewHosts("sho.example.com", store, set, log), store,
		certificate.Ports{Plain: addr, Secure: addr}, set, log)
	testkit.Must(t, err)
	return source, set
}

// TestUnknownNamesAreRefusedFirst shakes hands in ways that fail for another reason if the name is served.
func TestUnknownNamesAreRefusedFirst(t *testing.T) {
	t.Parallel()
	source, set := openSource(t)
	shake := func(config *tls.Config) string {
		near, far := net.Pipe()
		go func() {
			_ = tls.Server(far, source.TLSConfig()).Handshake()
			far.Close()
		}()
		defer near.Close()
		testkit.Must(t, near.SetDeadline(time.Now().Add(testkit.Patience)))
		conn := tls.Client(near, config)
		err := conn.Handshake()
		if err == nil {
			t.Fatalf("%q is served", config.ServerName)
		}
		_, _ = io.Copy(io.Discard, near) // what the server says after the alert
		return err.Error()
	}
	for name, want := range map[string]string{"unknown.example.com": "unrecognized name", "sho.example.com": "no application protocol"} {
		err := shake(&tls.Config{ServerName: name, NextProtos: []string{"nothing"}}) // which crypto/tls refuses after it has exchanged keys
		if !strings.Contains(err, want) {
			t.Errorf("%s: %s, want %s", name, err, want)
		}
	}
	if err := shake(&tls.Config{ServerName: "unknown.example.com"}); !strings.Contains(err, "unrecognized name") {
		t.Errorf("by TLS 1.3: %s", err)
	}
	var text strings.Builder
	set.WritePrometheus(&text)
	if !strings.Contains(text.String(), "linkstream_edge_tls_unknown_names_total 2\n") {
		t.Errorf("unknown names are not counted:\n%s", text.String())
	}
}

// TestValidationsOfAHost counts what an authority may count against a host: two failed validations per attempt that it refuses.
func TestValidationsOfAHost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		failure  error
		attempts int // that are admitted
		refusal  string
	}{{acme.Problem{Detail: "no such host"}, 2, "5 failed validations per hour"}, {errors.New("connection refused"), 5, "5 certificates per hour"}} {
		hour := func() time.Time { return time.Now().Truncate(time.Hour) }
		for began := (time.Time{}); began != hour(); { // again if the hour has passed meanwhile
			began = hour()
			source, _ := openSource(t)
			admitted := 0
			for range c.attempts + 2 {
				err := source.Attempt(t.Context(), "sho.example.com", c.failure)
				if err == nil {
					admitted++
				} else if !strings.Contains(err.Error(), c.refusal) {
					t.Errorf("after %q: %v", c.failure, err)
				}
			}
			if began == hour() {
				testkit.Equal(t, "attempts after "+c.failure.Error(), admitted, c.attempts)
			}
		}
	}
}

func TestSuitesWithoutAuthenticatedEncryptionAreRefused(t *testing.T) {
	t.Parallel()
	a := testkit.NewAuthority(t)
	source, _ := openSource(t, func(cfg *certificate.Config) { cfg.Cert, cfg.Key = a.Files(t, t.TempDir(), "sho.example.com") })
	shake := func(suite uint16) error {
		near, far := net.Pipe()
		defer near.Close()
		go func() {
			_ = tls.Server(far, source.TLSConfig()).Handshake()
			far.Close()
		}()
		testkit.Must(t, near.SetDeadline(time.Now().Add(testkit.Patience)))
		return tls.Client(near, &tls.Config{ServerName: "sho.example.com", RootCAs: a.Roots, MaxVersion: tls.VersionTLS12,
			CipherSuites: []uint16{suite}}).Handshake()
	}
	testkit.Must(t, shake(tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256))
	for _, suite := range []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA} {
		if shake(suite) == nil {
			t.Errorf("%s is accepted", tls.CipherSuiteName(suite))
		}
	}
}
