package certificate_test

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/edge/certificate"
	"linkstream/schema/testkit"
)

// serve completes handshakes until the test ends, and returns the address.
func serve(t *testing.T, config *tls.Config) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_ = tls.Server(conn, config).Handshake()
			}()
		}
	}()
	return ln.Addr().String()
}

// names shakes hands as a client that asks for host, and returns the names of the certificate.
func names(t *testing.T, addr, host string) []string {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, &tls.Config{ServerName: host, InsecureSkipVerify: true})
	testkit.Must(t, err)
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].DNSNames
}

func TestFiles(t *testing.T) {
	t.Parallel()
	dir, authority := t.TempDir(), testkit.NewAuthority(t)
	first, firstKey := authority.Files(t, dir, "sho.rt")
	second, secondKey := authority.Files(t, dir, "go.example", "*.links.example")
	cfg := certificate.Config{Cert: first + "," + second, Key: firstKey + "," + secondKey}
	open := func(t *testing.T) (*certificate.Source, *testkit.Buffer) {
		t.Helper()
		testkit.Must(t, cfg.Validate())
		var log testkit.Buffer
		source, err := certificate.Open(cfg, nil, nil, certificate.Ports{}, metrics.NewSet(), log.Logger())
		testkit.Must(t, err)
		return source, &log
	}
	t.Run("a client gets the one that names its host, else the first", func(t *testing.T) {
		source, _ := open(t)
		addr := serve(t, source.TLSConfig())
		for host, want := range map[string]string{"sho.rt": "sho.rt", "go.example": "go.example",
			"a.links.example": "go.example",
			"links.example":   "sho.rt", "unknown.example": "sho.rt", "": "sho.rt"} {
			testkit.Equal(t, "certificate for "+host, names(t, addr, host)[0], want)
		}
	})
	t.Run("TLS 1.1 is refused", func(t *testing.T) {
		source, _ := open(t)
		old := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
		if conn, err := tls.Dial("tcp", serve(t, source.TLSConfig()), old); err == nil {
			conn.Close()
			t.Error("the handshake succeeds")
		}
	})
	t.Run("files that change are loaded, once they belong together", func(t *testing.T) {
		source, log := open(t)
		addr := serve(t, source.TLSConfig())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go source.Run(ctx)
		cert, key := authority.Sign(t, time.Hour, "new.example")
		testkit.Must(t, os.WriteFile(first, cert, 0o600))
		testkit.Eventually(t, "the log says that the key is another one's", func() bool {
			return log.Contains("certificates not reloaded") && log.Contains("does not match")
		})
		testkit.Equal(t, "meanwhile", names(t, addr, "")[0], "sho.rt")
		testkit.Must(t, os.WriteFile(firstKey, key, 0o600))
		testkit.Eventually(t, "the new one is served", func() bool { return names(t, addr, "")[0] == "new.example" })
	})
	t.Run("what cannot be read is reported", func(t *testing.T) {
		for _, c := range []certificate.Config{
			{Cert: filepath.Join(dir, "missing"), Key: firstKey},
			{Cert: first, Key: secondKey},
			{Cert: firstKey, Key: firstKey},
		} {
			log := new(testkit.Buffer).Logger()
			if _, err := certificate.Open(c, nil, nil, certificate.Ports{}, metrics.NewSet(), log); err == nil {
				t.Errorf("%+v is no error", c)
			}
		}
		if err := (&certificate.Config{Cert: "a,b", Key: "a"}).Validate(); err == nil {
			t.Error("a key too few is no error")
		}
	})
}
