package certificate_test

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/edge/certificate"
	"linkstream/schema/testkit"
)

// TestUnknownNamesAreRefusedFirst shakes hands in ways that fail for another reason if the name is served.
func TestUnknownNamesAreRefusedFirst(t *testing.T) {
	t.Parallel()
	store, set, log := openStore(t), metrics.NewSet(), slog.New(slog.DiscardHandler)
	cfg := certificate.DefaultConfig()
	cfg.ACME.Email, cfg.ACME.Key, cfg.ACME.Directory = "you@example.com", secret, "https://127.0.0.1:1/dir"
	addr := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}
	source, err := certificate.Open(cfg, certificate.NewHosts("sho.example.com", store, set, log), store,
		certificate.Ports{Plain: addr, Secure: addr}, set, log)
	testkit.Must(t, err)
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
