package service_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"linkstream/schema"
	"linkstream/schema/service"
	"linkstream/schema/testkit"
)

// startOps returns the operators' listener of a program, and its log.
func startOps(t *testing.T, cfg service.OpsConfig) (*service.Ops, *testkit.Buffer) {
	t.Helper()
	log := new(testkit.Buffer)
	cfg.Listen = "127.0.0.1:0"
	ops, err := service.ListenOps(cfg, log.Logger())
	testkit.Must(t, err)
	t.Cleanup(ops.Close)
	return ops, log
}

func readyNow(context.Context) error { return nil }

// wantOps requires a status and a part of the body, and returns the body.
func wantOps(t *testing.T, ops *service.Ops, path string, status int, part string) string {
	t.Helper()
	addr, err := net.ResolveTCPAddr("tcp", ops.Addr())
	testkit.Must(t, err)
	got, _, body, err := ask(addr, path)
	if err != nil || got != status || !strings.Contains(body, part) {
		t.Errorf("%s: status %d, body %q, error %v; want %d with %q", path, got, body, err, status, part)
	}
	return body
}

func TestReadiness(t *testing.T) {
	t.Run("names the engine that the program waits for, without the cause", func(t *testing.T) {
		ops, log := startOps(t, service.OpsConfig{})
		wantOps(t, ops, "/healthz", 200, "ok\n")
		wantOps(t, ops, "/readyz", 503, "not ready: waiting for its start\n")
		wantOps(t, ops, "/metrics", 200, "\ngo_goroutines ")
		ops.Report()("Postgres", errors.New("user admin of db.internal is refused"))
		if body := wantOps(t, ops, "/readyz", 503, ""); body != "not ready: waiting for Postgres\n" {
			t.Errorf("body %q", body)
		}
		if !strings.Contains(log.String(), "db.internal") {
			t.Errorf("the cause is not in the log: %s", log)
		}
	})
	t.Run("requires all services", func(t *testing.T) {
		ops, log := startOps(t, service.OpsConfig{})
		ops.Add(readyNow, metrics.NewSet())
		wantOps(t, ops, "/readyz", 200, "ready\n")
		down := func(what string) func(context.Context) error {
			return func(context.Context) error {
				return &service.Unready{What: what, Cause: errors.New("secret of " + what)}
			}
		}
		ops.Add(down("link store"), metrics.NewSet())
		ops.Add(down("click store"), metrics.NewSet())
		ops.Require(down("click store"))
		ops.Require(func(context.Context) error { return errors.New("unnamed") })
		if body := wantOps(t, ops, "/readyz", 503, ""); body != "not ready: link store, click store, a service\n" {
			t.Errorf("body %q", body)
		}
		if n := strings.Count(log.String(), "not ready"); n != 1 || !strings.Contains(log.String(),
			"secret of link store") {
			t.Errorf("logged %d times: %s", n, log)
		}
	})
	t.Run("is checked once per second, and logged when it changes", func(t *testing.T) {
		ops, log := startOps(t, service.OpsConfig{})
		var checks, fails atomic.Int64
		ops.Add(func(context.Context) error {
			checks.Add(1)
			if fails.Load() == 0 {
				return nil
			}
			return &service.Unready{What: "link store", Cause: errors.New("refused")}
		}, metrics.NewSet())
		began := time.Now()
		for range 50 {
			wantOps(t, ops, "/readyz", 200, "ready\n")
		}
		if most := int64(time.Since(began)/time.Second) + 1; checks.Load() > most {
			t.Errorf("%d checks for 50 requests in %v", checks.Load(), time.Since(began))
		}
		fails.Store(1)
		testkit.Eventually(t, "the service is not ready", func() bool { return ops.Unready() == "link store" })
		fails.Store(0)
		testkit.Eventually(t, "the service is ready", func() bool { return ops.Unready() == "" })
		if text := log.String(); strings.Count(text, "not ready") != 1 || strings.Count(text, "ready again") != 1 {
			t.Errorf("logged:\n%s", text)
		}
	})
	t.Run("names what the program is ready without", func(t *testing.T) {
		ops, _ := startOps(t, service.OpsConfig{})
		ops.Add(readyNow, metrics.NewSet())
		var away atomic.Bool
		ops.Miss("ClickHouse", away.Load)
		wantOps(t, ops, "/readyz", 200, "ready\n")
		away.Store(true)
		wantOps(t, ops, "/readyz", 200, "ready, without ClickHouse\n")
		wantOps(t, ops, "/metrics", 200, "\nlinkstream_missing{what=\"ClickHouse\"} 1\n")
		wantOps(t, ops, "/metrics", 200, "\nlinkstream_ready 1\n")
	})
	t.Run("is a metric, with the missing engine", func(t *testing.T) {
		ops, _ := startOps(t, service.OpsConfig{})
		ops.Report()("Postgres", nil)
		wantOps(t, ops, "/metrics", 200, "\nlinkstream_ready 0\n")
		wantOps(t, ops, "/metrics", 200, "\nlinkstream_missing{what=\"Postgres\"} 1\n")
		var fails atomic.Bool
		ops.Add(func(context.Context) error {
			if fails.Load() {
				return &service.Unready{What: "link store", Cause: errors.New("refused")}
			}
			return nil
		}, metrics.NewSet())
		page := func() string { return wantOps(t, ops, "/metrics", 200, "\n# TYPE linkstream_ready gauge\n") }
		if text := page(); !strings.Contains(text, "\nlinkstream_ready 1\n") || strings.Contains(text,
			"linkstream_missing") {
			t.Errorf("metrics of a program that is ready:\n%s", text)
		}
		fails.Store(true)
		testkit.Eventually(t, "the metrics say what is missing", func() bool {
			text := page()
			return strings.Contains(text, "\nlinkstream_ready 0\n") &&
				strings.Contains(text, "\nlinkstream_missing{what=\"link store\"} 1\n")
		})
	})
	t.Run("is decided in time if an engine hangs, and metrics do not wait for that", func(t *testing.T) {
		testkit.Takes(t, 10*time.Second, func(int) {
			ops, _ := startOps(t, service.OpsConfig{})
			hangs := make(chan struct{}, 1)
			ops.Add(func(ctx context.Context) error {
				hangs <- struct{}{}
				<-ctx.Done()
				return &service.Unready{What: "link store", Cause: ctx.Err()}
			}, metrics.NewSet())
			answered := make(chan string, 1)
			go func() { answered <- ops.Unready() }()
			<-hangs
			wantOps(t, ops, "/metrics", 200, "go_goroutines")
			select {
			case <-answered:
				t.Error("the metrics waited for the check")
			default:
			}
			testkit.Equal(t, "what is not ready", <-answered, "link store")
		})
	})
}

func TestOpsPaths(t *testing.T) {
	ops, _ := startOps(t, service.OpsConfig{})
	for _, path := range []string{"/", "/abc", "/healthz/", "/HEALTHZ", "/metrics2", "/debug/pprof/"} {
		wantOps(t, ops, path, 404, "not found")
	}
	t.Run("profiles are served if they are enabled", func(t *testing.T) {
		ops, _ := startOps(t, service.OpsConfig{Pprof: true})
		wantOps(t, ops, "/debug/pprof/goroutine?debug=1", 200, "goroutine profile: total")
		wantOps(t, ops, "/debug/pprof/cmdline", 404, "not found") // the flags may have secrets
	})
}

// A website whose name leads a browser to the listener gets nothing (DNS rebinding).
func TestOpsHosts(t *testing.T) {
	ops, _ := startOps(t, service.OpsConfig{Hosts: "Node7.example.com, edge"})
	ops.Handle("/tls/ask", func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("yes") })
	answer := func(host, path string) int {
		conn, err := net.Dial("tcp", ops.Addr())
		testkit.Must(t, err)
		defer conn.Close()
		version := 1
		if host == "" { // which HTTP/1.1 does not allow
			version = 0
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.%d\r\n%sConnection: close\r\n\r\n", path, version, host)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		testkit.Must(t, err)
		defer res.Body.Close()
		return res.StatusCode
	}
	paths := []string{"/healthz", "/metrics", "/tls/ask"}
	for _, host := range []string{"127.0.0.1", "127.0.0.1:9080", "10.1.2.3:9080", "203.0.113.7", "[::1]:9080", "[::1]",
		"[2001:db8::1]:9080", "[::ffff:10.1.2.3]:80", "localhost", "localhost:9080", "LocalHost", "localhost.:9080",
		"a.localhost", "node7.example.com", "NODE7.EXAMPLE.COM:9080", "node7.example.com.", "edge", "edge:9080"} {
		for _, path := range paths {
			testkit.Equal(t, host+path, answer("Host: "+host+"\r\n", path), 200)
		}
	}
	testkit.Equal(t, "without a host", answer("", "/metrics"), 200)
	for _, host := range []string{"evil.example", "evil.example:9080", "localhost.evil.example",
		"127.0.0.1.evil.example",
		"127.0.0.1.nip.io", "localhost-", "notlocalhost", "metrics", "node7.example.com.evil.example",
		"x.node7.example.com",
		"[evil.example]", "127.0.0.1x", "0x7f.evil.example", "evil.example, localhost", "localhost evil.example"} {
		for _, path := range append(paths, "/readyz", "/none") {
			if got := answer("Host: "+host+"\r\n", path); got != 421 && got != 400 {
				t.Errorf("%s at %s: %d", path, host, got)
			}
		}
	}
	// A target in absolute form has the name, too.
	if got := answer("Host: localhost\r\n", "http://evil.example/metrics"); got != 421 {
		t.Errorf("an absolute target: %d", got)
	}
}

func TestOpsConfig(t *testing.T) {
	cfg := service.OpsConfig{Listen: "127.0.0.1:9080"}
	fs := flag.NewFlagSet("test", flag.ContinueOnError)
	_, err := service.Parse(fs, []string{"-ops.listen", "127.0.0.1:9999", "-ops.pprof", "-ops.public",
		"-ops.hosts=a,b"}, &cfg)
	if want := (service.OpsConfig{Listen: "127.0.0.1:9999", Pprof: true, Public: true,
		Hosts: "a,b"}); err != nil || cfg != want {
		t.Errorf("got %+v, error %v", cfg, err)
	}
	cfg.Listen, cfg.Hosts = "nowhere", "a,b_,c..d"
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "-ops.listen: ") ||
		!strings.Contains(err.Error(), `-ops.hosts: "c..d"`) {
		t.Errorf("error %v", err)
	}
}

func TestOpsHostOfTheListener(t *testing.T) {
	for listen, want := range map[string][]schema.Host{
		"Node7.Example.com.:9080": {"edge", "node7.example.com"}, "node7:http": {"edge", "node7"},
		"10.1.2.3:9080": {"edge", "10.1.2.3"}, "[2001:db8::1]:9080": {"edge", "2001:db8::1"},
		":9080": {"edge"}, "[fe80::1%eth0]:9080": {"edge"},
	} {
		got, err := service.OpsHosts(&service.OpsConfig{Listen: listen, Hosts: "edge"})
		testkit.Must(t, err)
		testkit.Equal(t, "hosts of "+listen, got, want)
	}
}
