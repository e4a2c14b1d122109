package service_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"linkstream/schema/service"
)

// get answers a request for path, and reports whether the path was one of the operator's.
func get(e *service.Endpoints, path string) (res *fasthttp.Response, handled bool) {
	var ctx fasthttp.RequestCtx
	ctx.Request.SetRequestURI(path)
	handled = e.Handle(&ctx)
	return &ctx.Response, handled
}

func TestEndpoints(t *testing.T) {
	t.Run("healthz answers while the service is not ready", func(t *testing.T) {
		e := &service.Endpoints{Ready: func(context.Context) error { return errors.New("not yet") }}
		res, handled := get(e, "/healthz")
		if !handled || res.StatusCode() != 200 || string(res.Body()) != "ok\n" {
			t.Errorf("got %t, %d, %q", handled, res.StatusCode(), res.Body())
		}
	})
	t.Run("readyz answers 200 once the service is ready", func(t *testing.T) {
		e := &service.Endpoints{Ready: func(context.Context) error { return nil }}
		res, handled := get(e, "/readyz")
		if !handled || res.StatusCode() != 200 || string(res.Body()) != "ready\n" {
			t.Errorf("got %t, %d, %q", handled, res.StatusCode(), res.Body())
		}
	})
	t.Run("readyz answers 503 with what the service waits for", func(t *testing.T) {
		e := &service.Endpoints{Ready: func(context.Context) error { return errors.New("waiting for the broker") }}
		res, handled := get(e, "/readyz")
		if !handled || res.StatusCode() != 503 || string(res.Body()) != "not ready: waiting for the broker\n" {
			t.Errorf("got %t, %d, %q", handled, res.StatusCode(), res.Body())
		}
	})
	t.Run("readyz does not wait for an engine that hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := &service.Endpoints{Ready: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
			began := time.Now()
			res, _ := get(e, "/readyz")
			if res.StatusCode() != 503 || time.Since(began) > 5*time.Second {
				t.Errorf("got %d after %v", res.StatusCode(), time.Since(began))
			}
		})
	})
	t.Run("metrics shows the service's metrics and the process's", func(t *testing.T) {
		set := metrics.NewSet()
		set.NewCounter("linkstream_test_total").Set(3)
		res, handled := get(&service.Endpoints{Metrics: set}, "/metrics")
		if !handled || res.StatusCode() != 200 || !strings.HasPrefix(string(res.Header.ContentType()), "text/plain") {
			t.Errorf("got %t, %d, %s", handled, res.StatusCode(), res.Header.ContentType())
		}
		for _, line := range []string{"linkstream_test_total 3\n", "\ngo_goroutines "} {
			if !strings.Contains(string(res.Body()), line) {
				t.Errorf("no %q in\n%s", line, res.Body())
			}
		}
	})
	t.Run("two services show their own metrics", func(t *testing.T) {
		a, b := metrics.NewSet(), metrics.NewSet()
		a.NewCounter("linkstream_test_total").Set(1)
		b.NewCounter("linkstream_test_total").Set(2)
		resA, _ := get(&service.Endpoints{Metrics: a}, "/metrics")
		resB, _ := get(&service.Endpoints{Metrics: b}, "/metrics")
		if !strings.Contains(string(resA.Body()), "linkstream_test_total 1\n") ||
			!strings.Contains(string(resB.Body()), "linkstream_test_total 2\n") {
			t.Error("they do not")
		}
	})
	t.Run("other paths are left alone", func(t *testing.T) {
		for _, path := range []string{"/", "/abc", "/healthz/", "/HEALTHZ", "/metrics2"} {
			res, handled := get(&service.Endpoints{}, path)
			if handled || len(res.Body()) != 0 {
				t.Errorf("%s: got %t, %q", path, handled, res.Body())
			}
		}
	})
}

func TestCheckAddr(t *testing.T) {
	for addr, valid := range map[string]bool{
		"127.0.0.1:8080": true, ":0": true, "[::1]:65535": true, "host:80": true,
		"": false, "127.0.0.1": false, "127.0.0.1:": false, ":65536": false, ":-1": false, ":http": false, "a:b:c": false,
	} {
		if err := service.CheckAddr(addr); (err == nil) != valid {
			t.Errorf("%q: got %v", addr, err)
		}
	}
}

func TestLocalURL(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:8081": "http://127.0.0.1:8081", "0.0.0.0:80": "http://127.0.0.1:80", "[::]:8081": "http://127.0.0.1:8081",
		"[::1]:8081": "http://[::1]:8081", "192.0.2.1:8081": "http://192.0.2.1:8081",
	} {
		got, err := service.LocalURL(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr)))
		if err != nil || got.String() != want {
			t.Errorf("%s: %s, %v, want %s", addr, got, err, want)
		}
	}
}
