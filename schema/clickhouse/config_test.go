//go:build engines

package clickhouse_test

import (
	"context"
	"crypto/tls"
	"flag"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"linkstream/deploy/tools/engines/enginetest"
	"linkstream/schema/clickhouse"
	"linkstream/schema/testkit"
)

func TestConfig(t *testing.T) {
	t.Run("is set by flags", func(t *testing.T) {
		var cfg clickhouse.Config
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		cfg.RegisterFlags(flags)
		const dsn = "clickhouse://user:s3cret@a:9000,b:9000/clicks?secure=true&max_open_conns=20"
		ca, _ := enginetest.Certificate(t)
		args := []string{"-clickhouse.dsn", dsn, "-clickhouse.cluster", "{cluster}", "-clickhouse.tls-ca", ca}
		testkit.Must(t, flags.Parse(args))
		if want := (clickhouse.Config{DSN: dsn, CAFile: ca, Cluster: "{cluster}"}); cfg != want {
			t.Fatalf("got %+v", cfg)
		}
		testkit.Must(t, cfg.Validate())
	})
	t.Run("reports everything that is invalid, without the password", func(t *testing.T) {
		for _, dsn := range []string{
			"", "clickhouse", "postgres://user:s3cret@host/database", "https://user:s3cret@host:8443/clicks",
			"clickhouse://user:s3cret@host:port/clicks", "clickhouse://host?dial_timeout=soon",
		} {
			cfg := clickhouse.Config{DSN: dsn, Cluster: "it's"}
			err := cfg.Validate()
			if err == nil {
				t.Fatalf("%q is valid", dsn)
			}
			for _, text := range []string{"-clickhouse.dsn: ", `-clickhouse.cluster: "it's"`} {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q is not in: %v", text, err)
				}
			}
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the password is in: %v", err)
			}
		}
	})
}

func TestSeveralHostsNeedACluster(t *testing.T) {
	cfg := clickhouse.Config{DSN: "clickhouse://user:s3cret@a:9000,b:9000/clicks"}
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "-clickhouse.dsn: several hosts need "+
		"-clickhouse.cluster") {
		t.Errorf("got error %v", err)
	}
	cfg.Cluster = "main"
	testkit.Must(t, cfg.Validate())
}

func TestConfigCAFile(t *testing.T) {
	const dsn = "clickhouse://127.0.0.1:9000/default"
	_, key := enginetest.Certificate(t)
	for says, cfg := range map[string]clickhouse.Config{
		"secure=true":               {DSN: dsn, CAFile: key},
		"no such file":              {DSN: dsn + "?secure=true", CAFile: key + ".missing"},
		"has no certificate in PEM": {DSN: dsn + "?secure=true", CAFile: key},
	} {
		err := cfg.Validate()
		if err == nil || !strings.Contains(err.Error(), "-clickhouse.tls-ca: ") || !strings.Contains(err.Error(), says) {
			t.Errorf("got error %v, want one that says %q", err, says)
		}
	}
}

func TestTLS(t *testing.T) {
	for scheme, database := range map[string]func(testing.TB) string{
		"clickhouse": engines.ClickHouse, "https": engines.ClickHouseHTTP,
	} {
		t.Run(scheme, func(t *testing.T) {
			u, err := url.Parse(database(t))
			testkit.Must(t, err)
			certFile, keyFile := enginetest.Certificate(t)
			u.Scheme, u.Host = scheme, serveTLS(t, certFile, keyFile, u.Host)
			u.RawQuery = "secure=true"
			cfg := clickhouse.Config{DSN: u.String()}
			if _, err := clickhouse.OpenClickStore(t.Context(), cfg); err == nil ||
				!strings.Contains(err.Error(), "certificate") {
				t.Errorf("the certificate of an unknown authority is trusted: %v", err)
			}
			clicks, err := clickhouse.OpenClickStore(t.Context(), clickhouse.Config{DSN: u.String(), CAFile: certFile})
			if err != nil {
				t.Fatalf("the certificate of the authority is not trusted: %v", err)
			}
			if err := clicks.Close(); err != nil {
				t.Error(err)
			}
			u.RawQuery += "&skip_verify=true&compress=lz4"
			store := openClicks(t, u.String())
			if at, err := store.Position(t.Context(), 0); err != nil || at.Next != 0 {
				t.Errorf("got position %+v, error %v", at, err)
			}
		})
	}
}

// serveTLS starts a proxy that accepts TLS for a server without TLS, and returns its address.
func serveTLS(t *testing.T, certFile, keyFile, to string) (addr string) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	testkit.Must(t, err)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	testkit.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	pipe := func(from, to net.Conn) {
		defer context.AfterFunc(ctx, func() { from.Close() })()
		_, _ = io.Copy(to, from) // until one side closes
		to.Close()
	}
	group.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				client.Close()
				continue
			}
			group.Go(func() { pipe(client, server) })
			group.Go(func() { pipe(server, client) })
		}
	})
	t.Cleanup(func() { cancel(); listener.Close(); group.Wait() })
	return listener.Addr().String()
}
