package certificate_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/mholt/acmez/v3/acme"

	"linkstream/edge/certificate"
	"linkstream/schema"
	"linkstream/schema/linkstore"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/testkit"
)

// openSource returns a source for the host sho.example.com, whose authority is away.
func openSource(t *testing.T, change ...func(*certificate.Config)) (*certificate.Source, *metrics.Set) {
	t.Helper()
	return openSourceOn(t, sqlitetest.New(t), change...)
}

func openSourceOn(
	t *testing.T, store *linkstore.Store, change ...func(*certificate.Config),
) (*certificate.Source, *metrics.Set) {
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
	for name, want := range map[string]string{
		"unknown.example.com": "unrecognized name", "sho.example.com": "no application protocol",
	} {
		// crypto/tls refuses the protocol after it has exchanged keys.
		err := shake(&tls.Config{ServerName: name, NextProtos: []string{"nothing"}})
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

// An order is for a host that is verified in the store, also if a message about a lost one was missed.
func TestOrdersAreForVerifiedHosts(t *testing.T) {
	t.Parallel()
	store := sqlitetest.New(t)
	source, set := openSourceOn(t, store)
	a := newAuthority(t)
	err := source.Fetch(t.Context(), "lost.example.com", a)
	if err == nil || !strings.Contains(err.Error(), "the domain is not verified") {
		t.Errorf("error %v", err)
	}
	testkit.Equal(t, "orders", a.issued.Load(), 0)
	testkit.Equal(t, "refused", set.GetOrCreateCounter(`linkstream_edge_acme_attempts_total{result="refused"}`).Get(), 1)
	state, err := store.CertificateState(t.Context(), "lost.example.com")
	testkit.Must(t, err)
	testkit.Equal(t, "what its owner reads", state.Error, "The domain is not verified.")
	testkit.Must(t, source.Fetch(t.Context(), "sho.example.com", a))
	testkit.Equal(t, "orders", a.issued.Load(), 1)
}

// A host's owner reads what the authority says, and nothing of what else goes wrong.
func TestOwnersReadWhyTheyHaveNoCertificate(t *testing.T) {
	t.Parallel()
	store := sqlitetest.New(t)
	source, _ := openSourceOn(t, store)
	long := strings.Repeat("ä", schema.MaxCertificateErrorLen)
	for _, c := range []struct {
		fails error
		want  string
	}{
		{errors.New("dial tcp 10.0.0.5:443: refused"), "The certificate authority does not answer."},
		{fmt.Errorf("order: %w", acme.Problem{Type: "urn:dns", Detail: "no such host", Subproblems: []acme.Subproblem{
			{Problem: acme.Problem{Detail: "a.example"}}}}), "no such host a.example"},
		{acme.Problem{Type: "urn:dns"}, "urn:dns"},
		{acme.Problem{Detail: "a\x00b\xff"}, "ab"},
		{acme.Problem{Detail: "x" + long}, "x" + long[:schema.MaxCertificateErrorLen-2]},
		{nil, ""},
	} {
		a := newAuthority(t)
		a.fails = c.fails
		err := source.Fetch(t.Context(), "sho.example.com", a)
		testkit.Equal(t, "an error", err != nil, c.fails != nil)
		state, err := store.CertificateState(t.Context(), "sho.example.com")
		testkit.Must(t, err)
		testkit.Equal(t, fmt.Sprintf("what the owner reads of %v", c.fails), state.Error, c.want)
	}
}

// After an attempt that has failed, visitors do not make the edge try again for a while.
func TestHostPausesAfterAFailure(t *testing.T) {
	t.Parallel()
	authority, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer authority.Close()
	var asked atomic.Int64
	go func() {
		for {
			conn, err := authority.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			conn.Close()
		}
	}()
	source, _ := openSource(t, func(cfg *certificate.Config) {
		cfg.ACME.Directory = "https://" + authority.Addr().String() + "/dir"
		cfg.ACME.HandshakeTimeout = testkit.Patience
	})
	visit := func() {
		near, far := net.Pipe()
		defer near.Close()
		go func() {
			_ = tls.Server(far, source.TLSConfig()).Handshake()
			far.Close()
		}()
		if tls.Client(near, &tls.Config{ServerName: "sho.example.com"}).Handshake() == nil {
			t.Error("there is a certificate")
		}
	}
	visit()
	first := asked.Load()
	if first == 0 {
		t.Error("the authority is not asked")
	}
	for range 20 {
		visit()
	}
	testkit.Equal(t, "times that the authority is asked", asked.Load(), first)
}

func TestSuitesWithoutAuthenticatedEncryptionAreRefused(t *testing.T) {
	t.Parallel()
	a := testkit.NewAuthority(t)
	source, _ := openSource(t, func(cfg *certificate.Config) {
		cfg.Cert, cfg.Key = a.Files(t, t.TempDir(), "sho.example.com")
	})
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
