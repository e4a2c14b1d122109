package service_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"linkstream/schema/service"
	"linkstream/schema/testkit"
)

func startPort(t *testing.T) *service.Standby {
	t.Helper()
	port, err := service.Sockets(nil).ListenStandby("", "127.0.0.1:0", "application/json", `{"message":"soon"}`,
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { port.Close() })
	return port
}

// ask requests path on a new connection.
func ask(addr net.Addr, path string) (status int, retryAfter, body string, err error) {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: testkit.Patience}
	res, err := client.Get(fmt.Sprintf("http://%s%s", addr, path))
	if err != nil {
		return 0, "", "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, res.Header.Get("Retry-After"), string(text), err
}

func wantAnswer(t *testing.T, addr net.Addr, path string, status int, part string) (retryAfter string) {
	t.Helper()
	got, retryAfter, body, err := ask(addr, path)
	if err != nil || got != status || !strings.Contains(body, part) {
		t.Errorf("%s: status %d, body %q, error %v; want %d with %q", path, got, body, err, status, part)
	}
	return retryAfter
}

func TestStandby(t *testing.T) {
	t.Run("answers all requests with 503, including requests of operators", func(t *testing.T) {
		port := startPort(t)
		for _, path := range []string{"/abc", "/healthz", "/readyz", "/metrics"} {
			if after := wantAnswer(t, port.Addr(), path, 503, `{"message":"soon"}`); after != "1" {
				t.Errorf("%s: Retry-After %q", path, after)
			}
		}
	})
	t.Run("is not ready until the service has taken over", func(t *testing.T) {
		port := startPort(t)
		var unready *service.Unready
		if err := port.Ready(t.Context()); !errors.As(err, &unready) {
			t.Errorf("error %v", err)
		}
		go port.Accept()
		testkit.Succeeds(t, func() error { return port.Ready(t.Context()) })
	})
	t.Run("every connection is answered while the service takes over", func(t *testing.T) {
		port := startPort(t)
		ctx, cancel := context.WithCancel(t.Context())
		var served atomic.Int64
		var clients sync.WaitGroup
		for range 4 {
			clients.Go(func() {
				for ctx.Err() == nil {
					status, _, body, err := ask(port.Addr(), "/abc")
					switch {
					case err != nil, status == 200 && body != "service":
						t.Errorf("status %d, body %q, error %v", status, body, err)
						return
					case status == 200:
						served.Add(1)
						return
					}
				}
			})
		}
		idle, err := net.Dial("tcp", port.Addr().String()) // sends nothing
		if err != nil {
			t.Fatal(err)
		}
		defer idle.Close()
		wantAnswer(t, port.Addr(), "/abc", 503, "soon")
		server := &fasthttp.Server{Handler: func(ctx *fasthttp.RequestCtx) { ctx.SetBodyString("service") }}
		done := make(chan error, 1)
		go func() { done <- service.Serve(ctx, server, port, time.Second) }()
		clients.Wait()
		if served.Load() != 4 {
			t.Errorf("%d of 4 clients were answered by the service", served.Load())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if conn, err := net.Dial("tcp", port.Addr().String()); err == nil {
			conn.Close()
			t.Error("the port is still open after the service has stopped")
		}
	})
	t.Run("Close works before the service takes over", func(t *testing.T) {
		for range 20 {
			port := startPort(t)
			if err := port.Close(); err != nil {
				t.Error(err)
			}
			if conn, err := net.Dial("tcp", port.Addr().String()); err == nil {
				conn.Close()
				t.Error("the port is open")
			}
		}
	})
}
