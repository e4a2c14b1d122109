package load_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/bench/load"
	"linkstream/schema/testkit"
)

// serve returns the address of a server on the loopback interface that runs until the test ends.
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

// pages requests one page after the other and checks that each answer belongs to its request.
type pages struct {
	n    int
	more string // header lines
}

func (p *pages) Append(dst []byte) []byte {
	p.n++
	return fmt.Appendf(dst, "GET /%d HTTP/1.1\r\nHost: test\r\n%s\r\n", p.n, p.more)
}

func (p *pages) Check(a load.Answer) error {
	if a.Status != http.StatusFound || string(a.Location) != "https://example.com/" ||
		string(a.Body) != fmt.Sprint("/", p.n) {
		return fmt.Errorf("answer to request %d: status %d, location %q, body %q", p.n, a.Status, a.Location, a.Body)
	}
	return nil
}

func target(addr string, conns int) load.Target {
	return load.Target{Addr: addr, Conns: conns, Source: func(int) load.Source { return new(pages) }}
}

// reconnecting returns a target with a new connection for each request.
func reconnecting(addr string, conns int) load.Target {
	t := target(addr, conns)
	t.Reconnect = true
	t.Source = func(int) load.Source { return &pages{more: "Connection: close\r\n"} }
	return t
}

func TestClosed(t *testing.T) {
	const window = 100 * time.Millisecond
	counted := func(t *testing.T, make func(addr string, conns int) load.Target) {
		t.Helper()
		var served atomic.Int64
		redirect := redirectTo("https://example.com/")
		target := make(serve(t, func(w http.ResponseWriter, r *http.Request) { served.Add(1); redirect(w, r) }), 5)
		result, err := load.Closed(t.Context(), target, window)
		testkit.Must(t, err)
		if n := served.Load(); n == 0 || result.Answers != n || result.Latency.TotalCount() != n {
			t.Errorf("served %d, result %d, histogram %d", n, result.Answers, result.Latency.TotalCount())
		}
		if result.Elapsed < window {
			t.Errorf("took %v", result.Elapsed)
		}
	}
	t.Run("counts the answers", func(t *testing.T) { counted(t, target) })
	t.Run("counts the answers of new connections", func(t *testing.T) { counted(t, reconnecting) })
	t.Run("reads answers that come in pieces", func(t *testing.T) {
		addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "https://example.com/")
			w.Header().Set("Content-Length", fmt.Sprint(len(r.URL.Path)))
			w.WriteHeader(http.StatusFound)
			for i := range r.URL.Path {
				w.(http.Flusher).Flush()
				io.WriteString(w, r.URL.Path[i:i+1])
			}
		})
		result, err := load.Closed(t.Context(), target(addr, 2), window)
		if err != nil || result.Answers == 0 {
			t.Errorf("%d answers, error %v", result.Answers, err)
		}
	})
	t.Run("sends requests that are larger than the socket's buffer", func(t *testing.T) {
		redirect := redirectTo("https://example.com/")
		addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			redirect(w, r)
		})
		large := target(addr, 1)
		large.Source = func(int) load.Source { return largeRequests{} }
		result, err := load.Closed(t.Context(), large, window)
		if err != nil || result.Answers == 0 {
			t.Errorf("%d answers, error %v", result.Answers, err)
		}
	})
	t.Run("ends at a wrong answer", func(t *testing.T) {
		addr := serve(t, redirectTo("https://example.org/"))
		_, err := load.Closed(t.Context(), target(addr, 2), time.Minute)
		if err == nil || !strings.Contains(err.Error(), "https://example.org/") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("ends when the context does", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		released := make(chan struct{})
		addr := serve(t, func(http.ResponseWriter, *http.Request) { cancel(); <-released })
		_, err := load.Closed(ctx, target(addr, 2), time.Minute)
		close(released)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("fails if nobody listens", func(t *testing.T) {
		for _, make := range []func(string, int) load.Target{target, reconnecting} {
			if _, err := load.Closed(t.Context(), make("127.0.0.1:1", 1), time.Minute); err == nil {
				t.Error("no error")
			}
		}
	})
	t.Run("fails if the server closes a connection without an answer", func(t *testing.T) {
		addr := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		for _, make := range []func(string, int) load.Target{target, reconnecting} {
			if _, err := load.Closed(t.Context(), make(addr, 1), time.Minute); err == nil {
				t.Error("no error")
			}
		}
	})
	const answer = "HTTP/1.1 302 Found\r\nLocation: https://example.com/\r\nContent-Length: 2\r\n\r\n/1"
	t.Run("fails if the server sends more than an answer", func(t *testing.T) {
		for _, make := range []func(string, int) load.Target{target, reconnecting} {
			addr := serveRaw(t, answer+answer)
			if _, err := load.Closed(t.Context(), make(addr, 1), time.Minute); err == nil {
				t.Error("no error")
			}
		}
	})
	t.Run("fails if the server sends more after the last answer of a connection", func(t *testing.T) {
		target := reconnecting(serveRaw(t, answer, "more"), 1)
		target.Source = func(int) load.Source { return new(first) }
		if _, err := load.Closed(t.Context(), target, window); err == nil {
			t.Error("no error")
		}
	})
	t.Run("waits until the server closes the connection", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		target, checked := reconnecting(serveRaw(t, answer), 1), new(atomic.Int64)
		target.Source = func(int) load.Source { return &counting{checked: checked} }
		time.AfterFunc(2*window, func() {
			_ = testkit.Poll(testkit.Patience, func() error {
				if n := checked.Load(); n != 1 {
					return fmt.Errorf("%d answers", n)
				}
				return nil
			})
			cancel()
		})
		result, err := load.Closed(ctx, target, window)
		if result.Answers != 1 || !errors.Is(err, context.Canceled) {
			t.Errorf("%d answers, error %v", result.Answers, err)
		}
	})
}

// counting counts the answers, each on a connection of its own.
type counting struct {
	pages
	checked *atomic.Int64
}

func (c *counting) Append(dst []byte) []byte {
	c.more = "Connection: close\r\n"
	return c.pages.Append(dst)
}

func (c *counting) Check(a load.Answer) error {
	c.checked.Add(1)
	return c.pages.Check(a)
}

// first requests the same page again and again.
type first struct{ pages }

func (f *first) Append(dst []byte) []byte {
	f.n = 0
	return f.pages.Append(dst)
}

// largeRequests are requests that no socket buffer holds.
type largeRequests struct{}

func (largeRequests) Append(dst []byte) []byte {
	const size = 16 << 20
	dst = fmt.Appendf(dst, "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n\r\n", size)
	return append(dst, make([]byte, size)...)
}

func (largeRequests) Check(a load.Answer) error {
	if a.Status != http.StatusFound {
		return fmt.Errorf("status %d", a.Status)
	}
	return nil
}

// serveRaw returns the address of a server that answers the first request of each connection with the given parts, a
// moment apart, and keeps the connection open.
func serveRaw(t *testing.T, parts ...string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait)
	t.Cleanup(func() { listener.Close() })
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				buf := make([]byte, 1<<10)
				if _, err := conn.Read(buf); err != nil {
					return
				}
				for i, part := range parts {
					if i > 0 {
						time.Sleep(20 * time.Millisecond) // the server is slow; the test does not wait for a state
					}
					io.WriteString(conn, part)
				}
				conn.Read(buf) // until the client closes
			})
		}
	})
	return listener.Addr().String()
}

// TestConnectionsThatTheServerCloses serves three requests on each connection. The first case announces that the third
// answer is the last, as nginx does after keepalive_requests; the others close a connection that the client may use.
func TestConnectionsThatTheServerCloses(t *testing.T) {
	const answer = "HTTP/1.1 302 Found\r\nLocation: https://example.com/\r\n%sContent-Length: 2\r\n\r\n/1"
	for name, c := range map[string]struct {
		last  string // header line of the last answer
		reset bool
	}{"announced": {last: "Connection: close\r\n"}, "silent": {}, "reset": {reset: true}} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			testkit.Must(t, err)
			var served, conns atomic.Int64
			var serving sync.WaitGroup
			serving.Go(func() {
				for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
					conns.Add(1)
					requests := bufio.NewReader(conn)
					for n := range 3 {
						if _, err := http.ReadRequest(requests); err != nil {
							break
						}
						served.Add(1)
						fmt.Fprintf(conn, answer, []string{"", "", c.last}[n])
					}
					if c.reset {
						_ = conn.(*net.TCPConn).SetLinger(0)
					}
					conn.Close()
				}
			})
			t.Cleanup(serving.Wait)
			t.Cleanup(func() { listener.Close() })
			one := target(listener.Addr().String(), 1)
			one.Source = func(int) load.Source { return new(first) }
			result, err := load.Open(t.Context(), one, 100, 100*time.Millisecond) // answers have time to arrive
			testkit.Must(t, err)
			testkit.Equal(t, "answers", result.Answers, 10)
			testkit.Equal(t, "answers and served", result.Answers, served.Load())
			testkit.Equal(t, "reconnects", result.Reconnects, 3)
		})
	}
}

func TestProbe(t *testing.T) {
	var served atomic.Int64
	redirect := redirectTo("https://example.com/")
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) { served.Add(1); redirect(w, r) })
	testkit.Must(t, load.Probe(t.Context(), target(addr, 64)))
	testkit.Equal(t, "requests", served.Load(), 1)
	for name, addr := range map[string]string{"nobody listens": "127.0.0.1:1",
		"a wrong answer": serve(t, redirectTo("https://example.org/"))} {
		if err := load.Probe(t.Context(), target(addr, 1)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestOpen(t *testing.T) {
	t.Run("refuses a rate of zero", func(t *testing.T) {
		if _, err := load.Open(t.Context(), target("127.0.0.1:1", 1), 0, time.Second); err == nil {
			t.Error("no error")
		}
	})
	t.Run("sends as many requests as the rate requires", func(t *testing.T) {
		addr := serve(t, redirectTo("https://example.com/"))
		for _, threads := range []int{1, 3} {
			for _, make := range []func(string, int) load.Target{target, reconnecting} {
				target := make(addr, 8)
				result, err := load.Open(t.Context(), target, 1000, 100*time.Millisecond)
				if err != nil || result.Answers != 100 || result.Unsent != 0 || result.SendDelay.TotalCount() != 100 {
					t.Errorf("%d threads: %d answers, %d unsent, error %v", threads, result.Answers, result.Unsent, err)
				}
			}
		}
	})
	t.Run("spaces requests evenly", func(t *testing.T) {
		var mu sync.Mutex
		var served []time.Time
		redirect := redirectTo("https://example.com/")
		addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			served = append(served, time.Now())
			mu.Unlock()
			redirect(w, r)
		})
		const interval = 20 * time.Millisecond
		began := time.Now()
		_, err := load.Open(t.Context(), target(addr, 8), float64(time.Second/interval), 10*interval)
		testkit.Must(t, err)
		mu.Lock()
		defer mu.Unlock()
		// No request is early: a server may be late, so only that can be tested.
		for i, at := range served {
			if early := time.Duration(i)*interval - at.Sub(began); early > 0 {
				t.Errorf("request %d is %v early", i, early)
			}
		}
	})
	t.Run("sends requests when they are due", func(t *testing.T) {
		addr := serve(t, redirectTo("https://example.com/"))
		testkit.Succeeds(t, func() error { // the machine may be busy
			result, err := load.Open(t.Context(), target(addr, 8), 1000, 50*time.Millisecond)
			delay := time.Duration(result.SendDelay.ValueAtPercentile(50))
			if err == nil && delay > 3*time.Millisecond {
				err = fmt.Errorf("median send delay %v", delay)
			}
			return err
		})
	})
	t.Run("is more precise than the runtime's timers at low rates", func(t *testing.T) {
		addr := serve(t, redirectTo("https://example.com/"))
		testkit.Succeeds(t, func() error { // the machine may be busy
			result, err := load.Open(t.Context(), target(addr, 8), 100, 300*time.Millisecond)
			delay := time.Duration(result.SendDelay.ValueAtPercentile(50))
			if err == nil && delay > 200*time.Microsecond {
				err = fmt.Errorf("median send delay %v", delay)
			}
			return err
		})
	})
	t.Run("keeps its rate although answers take long", func(t *testing.T) {
		redirect := redirectTo("https://example.com/")
		addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(200 * time.Millisecond) // a slow answer; the test does not wait for a state
			redirect(w, r)
		})
		testkit.Succeeds(t, func() error { // the machine may be busy
			result, err := load.Open(t.Context(), target(addr, 8), 20, 300*time.Millisecond)
			if rate := result.Rate(); err == nil && (rate < 0.97*20 || rate > 20.1) {
				err = fmt.Errorf("%v per second", rate)
			}
			return err
		})
	})
	const stall = 300 * time.Millisecond
	stalling := func(t *testing.T) string { // the first answer takes a while
		var served atomic.Int64
		redirect := redirectTo("https://example.com/")
		return serve(t, func(w http.ResponseWriter, r *http.Request) {
			if served.Add(1) == 1 {
				time.Sleep(stall) // the server is slow; the test does not wait for a state
			}
			redirect(w, r)
		})
	}
	t.Run("counts latency from when a request was due", func(t *testing.T) {
		// With one connection, the first answer delays all others. The requests that were due in the first half of the stall
		// are late by at least a third of it, although each is answered at once when it is sent.
		result, err := load.Open(t.Context(), target(stalling(t), 1), 100, stall)
		testkit.Must(t, err)
		latency, delay := time.Duration(result.Latency.ValueAtPercentile(50)),
			time.Duration(result.SendDelay.ValueAtPercentile(50))
		if latency < stall/3 || delay < stall/3 {
			t.Errorf("median latency %v, send delay %v", latency, delay)
		}
		if sent := time.Duration(result.Sent.ValueAtPercentile(50)); sent > stall/3 || result.Sent.TotalCount() != 30 {
			t.Errorf("median latency from the actual send %v, of %d", sent, result.Sent.TotalCount())
		}
		if result.Answers != 30 || result.Unsent != 0 {
			t.Errorf("%d answers, %d unsent", result.Answers, result.Unsent)
		}
	})
	t.Run("drops and counts requests that are too late", func(t *testing.T) {
		impatient := target(stalling(t), 1)
		impatient.Late = stall / 10
		result, err := load.Open(t.Context(), impatient, 100, stall)
		testkit.Must(t, err)
		if result.Unsent < 10 || result.Answers+result.Unsent != 30 {
			t.Errorf("%d answers, %d unsent", result.Answers, result.Unsent)
		}
	})
}

// firstAnswer ends a load with its first answer.
type firstAnswer struct{ *testing.T }

func (firstAnswer) Append(dst []byte) []byte {
	return append(dst, "GET / HTTP/1.1\r\nHost: test\r\n\r\n"...)
}

func (t firstAnswer) Check(a load.Answer) error {
	if a.Status < 0 || a.Status > 999 {
		t.Errorf("status %d", a.Status)
	}
	return errors.New("this is the first answer")
}

// FuzzAnswer answers with any header, and closes the connection.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 302 Found\r\nLocation: https://example.com/\r\nContent-Length: 0\r\n",
		"HTTP/1.1 200 OK\r\ncontent-length:12\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n", "HTTP/1.0 200 OK\r\n",
		"HTTP/1.1 2",
	} {
		f.Add([]byte(seed))
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(f, err)
	var header atomic.Pointer[[]byte]
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1<<10))
			_, _ = fmt.Fprintf(conn, "%s\r\n", *header.Load())
			conn.Close()
		}
	})
	f.Cleanup(func() { ln.Close(); served.Wait() })
	f.Fuzz(func(t *testing.T, text []byte) {
		header.Store(&text)
		target := load.Target{Addr: ln.Addr().String(), Conns: 1, Source: func(int) load.Source { return firstAnswer{t} }}
		if _, err := load.Closed(t.Context(), target, time.Minute); err == nil {
			t.Error("the load did not end with the first answer")
		}
	})
}
