package load_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/bench/load"
)

// serve returns the address of a server on the loopback interface that lasts as long as the test.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func redirectTo(location string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", location)
		w.WriteHeader(http.StatusFound)
		io.WriteString(w, r.URL.Path)
	}
}

// pages asks for one page after the other and requires that each answer is to its own request.
type pages struct{ n int }

func (p *pages) Append(dst []byte) []byte {
	p.n++
	return fmt.Appendf(dst, "GET /%d HTTP/1.1\r\nHost: test\r\n\r\n", p.n)
}

func (p *pages) Check(a load.Answer) error {
	if a.Status != http.StatusFound || string(a.Location) != "https://example.com/" || string(a.Body) != fmt.Sprint("/", p.n) {
		return fmt.Errorf("answer to request %d: status %d, location %q, body %q", p.n, a.Status, a.Location, a.Body)
	}
	return nil
}

func target(addr string, conns int) load.Target {
	return load.Target{Addr: addr, Conns: conns, Done: new(atomic.Int64), Source: func(int) load.Source { return new(pages) }}
}

func TestClosed(t *testing.T) {
	t.Run("counts what the server has answered", func(t *testing.T) {
		var served atomic.Int64
		redirect := redirectTo("https://example.com/")
		target := target(serve(t, func(w http.ResponseWriter, r *http.Request) { served.Add(1); redirect(w, r) }), 4)
		result, err := load.Closed(t.Context(), target, 100*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		if n := served.Load(); n == 0 || result.Answers != n || result.Latency.TotalCount() != n || target.Done.Load() != n {
			t.Errorf("served %d, result %d, histogram %d, done %d", n, result.Answers, result.Latency.TotalCount(),
				target.Done.Load())
		}
		if result.Elapsed < 100*time.Millisecond {
			t.Errorf("took %v", result.Elapsed)
		}
	})
	t.Run("ends at an answer that is wrong", func(t *testing.T) {
		addr := serve(t, redirectTo("https://example.org/"))
		_, err := load.Closed(t.Context(), target(addr, 2), time.Minute)
		if err == nil || !strings.Contains(err.Error(), "https://example.org/") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("ends when it is told to", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		released := make(chan struct{})
		addr := serve(t, func(http.ResponseWriter, *http.Request) { cancel(); <-released })
		_, err := load.Closed(ctx, target(addr, 2), time.Minute)
		close(released)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("says that nobody listens", func(t *testing.T) {
		if _, err := load.Closed(t.Context(), target("127.0.0.1:1", 1), time.Minute); err == nil {
			t.Error("no error")
		}
	})
}

func TestOpen(t *testing.T) {
	t.Run("sends as many requests as the rate says", func(t *testing.T) {
		addr := serve(t, redirectTo("https://example.com/"))
		result, err := load.Open(t.Context(), target(addr, 8), 1000, 200*time.Millisecond)
		if err != nil || result.Answers != 200 || result.Unsent != 0 {
			t.Errorf("%d answers, %d unsent, error %v", result.Answers, result.Unsent, err)
		}
	})
	t.Run("latency counts from when a request was due", func(t *testing.T) {
		const stall = 300 * time.Millisecond
		var served atomic.Int64
		redirect := redirectTo("https://example.com/")
		addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if served.Add(1) == 1 {
				time.Sleep(stall) // the server's, not the test's, which waits for nothing
			}
			redirect(w, r)
		})
		// With one connection the first answer holds up all others: the half of them that was due in its time is late by
		// at least a third of it, though each was answered at once when it was sent.
		result, err := load.Open(t.Context(), target(addr, 1), 100, stall)
		if err != nil {
			t.Fatal(err)
		}
		latency, lateness := time.Duration(result.Latency.ValueAtPercentile(50)), time.Duration(result.Lateness.ValueAtPercentile(50))
		if latency < stall/3 || lateness < stall/3 {
			t.Errorf("median latency %v, lateness %v", latency, lateness)
		}
	})
	t.Run("refuses a rate that is none", func(t *testing.T) {
		if _, err := load.Open(t.Context(), target("127.0.0.1:1", 1), 0, time.Second); err == nil {
			t.Error("no error")
		}
	})
}

func FuzzParseHeader(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 302 Found\r\nLocation: https://example.com/\r\nContent-Length: 0\r\n",
		"HTTP/1.1 200 OK\r\ncontent-length:12\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n", "HTTP/1.0 200 OK\r\n", "HTTP/1.1 2",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, header []byte) {
		answer, length, err := load.ParseHeader(header)
		if err == nil && (length < 0 || answer.Status < 0 || answer.Status > 999) {
			t.Errorf("status %d, length %d", answer.Status, length)
		}
	})
}
