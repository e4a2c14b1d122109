package redirect_test

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"

	"linkstream/schema"
	"linkstream/schema/testkit"
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

// BenchmarkRedirect measures a redirect to a cached link, including the append of its click. The bare variants answer
// the same and do nothing else.
//   - handler: only the handler; "rules" is a link whose third rule matches, "limit" a link with a limit.
//   - request: all work of the server, on a keep-alive connection in memory.
func BenchmarkRedirect(b *testing.B) {
	e := newEdge(b, func(e *edge) { e.spoolCfg.MaxBytes, e.spoolCfg.SegmentBytes = 16<<30, 16<<20 })
	e.link(b, 0, "abcdefg", benchTarget)
	server := &fasthttp.Server{Handler: e.handler.Serve, NoDefaultServerHeader: true, NoDefaultContentType: true}
	bareServer := &fasthttp.Server{Handler: bare, NoDefaultServerHeader: true, NoDefaultContentType: true}

	e.extend(b, "ruled", schema.Behaviour{Rules: rules(schema.Conditions{Device: []string{"mobile"}},
		schema.Conditions{Language: []string{"de"}}, schema.Conditions{Browser: []string{"Firefox"}})})

	e.extend(b, "limited", schema.Behaviour{MaxClicks: schema.MaxClickLimit})
	b.Run("handler/redirect", func(b *testing.B) { benchHandler(b, e.handler.Serve, "abcdefg") })
	b.Run("handler/rules", func(b *testing.B) { benchHandler(b, e.handler.Serve, "ruled") })
	b.Run("handler/limit", func(b *testing.B) { benchHandler(b, e.handler.Serve, "limited") })
	b.Run("handler/bare", func(b *testing.B) { benchHandler(b, bare, "abcdefg") })
	b.Run("request/redirect", func(b *testing.B) { benchServer(b, server) })
	b.Run("request/bare", func(b *testing.B) { benchServer(b, bareServer) })
	if n := e.spool.Dropped(); n > 0 {
		b.Errorf("%d clicks were dropped: the spool is too small for this benchmark", n)
	}
}

func bare(ctx *fasthttp.RequestCtx) {
	ctx.SetStatusCode(fasthttp.StatusFound)
	ctx.Response.Header.Set("Location", benchTarget)
	ctx.Response.Header.Set("Cache-Control", "private, no-store")
}

// reportCPU reports the CPU time per operation until stop is called. Other load on the machine hardly changes it.
func reportCPU(b *testing.B) (stop func()) {
	used := func() int64 {
		var usage unix.Rusage
		testkit.Must(b, unix.Getrusage(unix.RUSAGE_SELF, &usage))
		return usage.Utime.Nano() + usage.Stime.Nano()
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op") }
}

func benchHandler(b *testing.B, handler fasthttp.RequestHandler, hash string) {
	b.ReportAllocs()
	defer reportCPU(b)()
	b.RunParallel(func(pb *testing.PB) {
		ctx := request("http://sho.rt/"+hash, benchPeer, benchFields...)
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

// repeatingConn is a connection whose client repeats its request after every answer, while more returns true.
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
