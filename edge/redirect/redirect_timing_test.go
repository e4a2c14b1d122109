package redirect_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"linkstream/edge/redirect"
	"linkstream/schema"
)

var (
	benchPeer   = &net.TCPAddr{IP: net.IPv4(203, 0, 113, 7), Port: 4711}
	benchFields = []string{
		"User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
		"Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
		"Accept-Language", "en-US,en;q=0.5",
		"Accept-Encoding", "gzip, deflate, br, zstd",
		"Referer", "https://from.example/",
		"Upgrade-Insecure-Requests", "1",
		"Sec-Fetch-Dest", "document",
	}
)

const benchTarget = "https://example.com/some/page?with=query"

// BenchmarkRedirect is the cost of a redirect that hits the cache, its click's append to the spool included, beside that
// of a handler that gives the same answer and does nothing else.
//   - handler: the handler alone.
//   - request: the server's whole work on a keep-alive connection in memory, without a kernel's.
func BenchmarkRedirect(b *testing.B) {
	e := newEdge(b, func(e *edge) { e.spoolCfg.MaxBytes, e.spoolCfg.SegmentBytes = 16<<30, 16<<20 })
	e.link(b, 0, "abcdefg", benchTarget)
	log := slog.New(slog.DiscardHandler)
	server := redirect.NewServer(e.cfg, e.handler, log)
	bareServer := redirect.NewServer(e.cfg, e.handler, log)
	bareServer.Handler = bare

	b.Run("handler/redirect", func(b *testing.B) { benchHandler(b, e.handler.Serve) })
	b.Run("handler/bare", func(b *testing.B) { benchHandler(b, bare) })
	b.Run("request/redirect", func(b *testing.B) { benchServer(b, server) })
	b.Run("request/bare", func(b *testing.B) { benchServer(b, bareServer) })
	if n := e.spool.Dropped(); n > 0 {
		b.Errorf("%d clicks found no room in the spool: give it more", n)
	}
}

func bare(ctx *fasthttp.RequestCtx) {
	ctx.SetStatusCode(fasthttp.StatusFound)
	ctx.Response.Header.Set("Location", benchTarget)
	ctx.Response.Header.Set("Cache-Control", "private, no-store")
}

// reportCPU reports the processor time of an operation, which other work on the machine does not change.
func reportCPU(b *testing.B) (stop func()) {
	used := func() int64 {
		var usage unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
			b.Fatal(err)
		}
		return usage.Utime.Nano() + usage.Stime.Nano()
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op") }
}

func benchHandler(b *testing.B, handler fasthttp.RequestHandler) {
	b.ReportAllocs()
	defer reportCPU(b)()
	b.RunParallel(func(pb *testing.PB) {
		ctx := request("http://sho.rt/abcdefg", benchPeer, benchFields...)
		for pb.Next() {
			ctx.Response.Reset()
			handler(ctx)
			if ctx.Response.StatusCode() != fasthttp.StatusFound {
				b.Error("no redirect")
				return
			}
		}
	})
}

func benchServer(b *testing.B, server *fasthttp.Server) {
	ctx := request("http://sho.rt/abcdefg", benchPeer, benchFields...)
	ctx.Request.Header.SetHost("sho.rt")
	raw := ctx.Request.Header.Header()
	b.ReportAllocs()
	defer reportCPU(b)()
	b.RunParallel(func(pb *testing.PB) {
		conn := &repeatingConn{request: raw, more: pb.Next}
		if err := server.ServeConn(conn); err != nil {
			b.Error(err)
		}
		if len(conn.answer) > 0 && !bytes.HasPrefix(conn.answer, []byte("HTTP/1.1 302 ")) {
			b.Errorf("answered %q", conn.answer)
		}
	})
}

// repeatingConn is a client that sends its request again as soon as it is answered, as long as more says so.
type repeatingConn struct {
	net.Conn
	request []byte
	more    func() bool
	answer  []byte
}

func (c *repeatingConn) Read(p []byte) (int, error) {
	if !c.more() {
		return 0, io.EOF
	}
	return copy(p, c.request), nil
}

func (c *repeatingConn) Write(p []byte) (int, error) {
	c.answer = append(c.answer[:0], p...)
	return len(p), nil
}

func (c *repeatingConn) Close() error                     { return nil }
func (c *repeatingConn) RemoteAddr() net.Addr             { return benchPeer }
func (c *repeatingConn) LocalAddr() net.Addr              { return benchPeer }
func (c *repeatingConn) SetReadDeadline(time.Time) error  { return nil }
func (c *repeatingConn) SetWriteDeadline(time.Time) error { return nil }

// BenchmarkConnection is the cost of an answer over TCP to a client in another process, through the edge's listener and
// through that of package net.
func BenchmarkConnection(b *testing.B) {
	for name, listener := range map[string]func(net.Listener) net.Listener{
		"edge": func(inner net.Listener) net.Listener { return redirect.NewListener(inner, redirect.DefaultConfig()) },
		"net":  func(inner net.Listener) net.Listener { return inner },
	} {
		b.Run(name, func(b *testing.B) {
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			server := &fasthttp.Server{Handler: bare, CloseOnShutdown: true}
			served := make(chan error)
			go func() { served <- server.Serve(listener(inner)) }()
			client := exec.Command(os.Args[0])
			client.Env = []string{fmt.Sprintf("%s=%s %d", visitorsEnv, inner.Addr(), b.N)}
			stop := reportCPU(b)
			if out, err := client.CombinedOutput(); err != nil {
				b.Errorf("%v: %s", err, out)
			}
			stop()
			if err := errors.Join(server.Shutdown(), <-served); err != nil {
				b.Error(err)
			}
		})
	}
}

// visitorsEnv makes the test program the client of a benchmark: it names an address and how many requests are for it.
const visitorsEnv = "LINKSTREAM_TEST_VISITORS"

// visit sends the requests over 64 connections.
func visit(job string) error {
	var addr string
	var requests atomic.Int64
	var n int64
	if _, err := fmt.Sscan(job, &addr, &n); err != nil {
		return err
	}
	requests.Store(n)
	ctx := request("http://sho.rt/abcdefg", benchPeer, benchFields...)
	ctx.Request.Header.SetHost("sho.rt")
	raw := ctx.Request.Header.Header()
	var group errgroup.Group
	for range 64 {
		group.Go(func() error {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				return err
			}
			defer conn.Close()
			for answer := make([]byte, 1000); requests.Add(-1) >= 0; {
				if _, err := conn.Write(raw); err != nil {
					return err
				}
				if n, err := conn.Read(answer); err != nil || !bytes.HasPrefix(answer[:n], []byte("HTTP/1.1 302 ")) {
					return fmt.Errorf("answered %q: %w", answer[:n], err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// madeUpLinks is a store that has a link at every hash.
type madeUpLinks struct {
	schema.LinkStore
	schema.DomainStore
}

func (madeUpLinks) Link(_ context.Context, _ int64, hash string) (schema.Link, error) {
	url := "https://shop.example.com/campaigns/autumn/collection/" + hash + "?utm_source=newsletter&utm_medium=email&utm_content=hero"
	return schema.Link{ID: 1, AccountID: 2, URL: url[:111], Active: true}, nil
}

// BenchmarkCachedLink is the memory of a link in the cache, its URL of 111 bytes included, of a million of them.
func BenchmarkCachedLink(b *testing.B) {
	cfg := redirect.DefaultConfig()
	cfg.URL, cfg.CacheBytes = "http://sho.rt", 400e6
	const links = 1_000_000
	for range b.N {
		before := heapBytes()
		r, err := redirect.NewResolver(cfg, madeUpLinks{}, madeUpLinks{}, metrics.NewSet(), slog.New(slog.DiscardHandler))
		if err != nil {
			b.Fatal(err)
		}
		empty := heapBytes() - before
		now := time.Now()
		for i := range links {
			if _, err := r.Resolve([]byte("sho.rt"), fmt.Appendf(nil, "h%07d", i), now); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(heapBytes()-before)/links, "bytes/link")
		b.ReportMetric(float64(empty)/links, "empty-bytes/link")
		r.Close()
	}
}
