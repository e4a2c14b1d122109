package eventloop_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"

	"linkstream/edge/eventloop"
	"linkstream/schema/service"
	"linkstream/schema/testkit"
)

func TestMain(m *testing.M) {
	if runChild() {
		return
	}
	// Parallel tests wait for timeouts most of the time.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m,
		// fasthttp renews its Date header as long as the process lasts, and a stopped server's cleaner sleeps for 10 s.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// ways are the numbers of loops that every test of behaviour runs with. With 0, goroutines serve.
var ways = []int{0, 1, 3}

// eachWay runs test once per way.
func eachWay(t *testing.T, test func(t *testing.T, loops int)) {
	for _, loops := range ways {
		t.Run(fmt.Sprintf("with %d loops", loops), func(t *testing.T) { test(t, loops) })
	}
}

const location = "https://example.com/some/page?with=query"

var (
	largePage    = bytes.Repeat([]byte("large\n"), 20_000)
	locationLine = []byte("Location: " + location + "\r\n")
	cacheLine    = []byte("Cache-Control: private, no-store\r\n")
)

// app answers /link and /page from memory and everything else from its store. Both ways give the same answers.
type app struct {
	tried, served, rejected atomic.Int64

	gate     chan struct{} // /wait is answered once it is closed
	waiting  atomic.Int64
	awaiting chan *eventloop.Waiter // gets the waiters of /await
}

func (a *app) TryServe(r *eventloop.Request) bool {
	switch string(r.Path()) {
	case "/link":
		a.tried.Add(1)
		r.SendHeader(fasthttp.StatusFound, locationLine, cacheLine)
		return true
	case "/hold": // breaks the promise, and so holds its loop
		a.waiting.Add(1)
		<-a.gate
		r.SendHeader(fasthttp.StatusFound, locationLine)
		return true
	case "/work": // takes a loop's time but no CPU, which tests that run at the same time may need
		time.Sleep(time.Millisecond)
		r.SetStatusCode(fasthttp.StatusOK)
		fmt.Fprint(r, r.Loop)
		return true
	case "/soon", "/await", "/never":
		return a.await(r)
	case "/page", "/large", "/goodbye":
		a.tried.Add(1)
		a.answer(r.RequestCtx)
		return true
	}
	return false
}

// await answers a request after it has waited. the waiter of /soon is done before the request is parked, the waiter
// of /await when the test calls Done, and /never is left to Serve then.
func (a *app) await(r *eventloop.Request) bool {
	if r.Resumed == nil {
		w := r.Waiter()
		if string(r.Path()) == "/await" {
			a.awaiting <- w
		} else {
			w.Done()
		}
		r.Await(a)
		return false
	}
	if string(r.Path()) == "/never" || r.Resumed.Value != a {
		return false
	}
	if a.tried.Add(1); string(r.Path()) == "/soon" {
		r.SendHeader(fasthttp.StatusFound, locationLine, cacheLine)
	} else {
		a.answer(r.RequestCtx)
	}
	return true
}

func (a *app) Serve(ctx *fasthttp.RequestCtx) {
	a.served.Add(1)
	a.answer(ctx)
}

func (a *app) answer(ctx *fasthttp.RequestCtx) {
	switch string(ctx.Path()) {
	case "/link", "/soon":
		ctx.SetStatusCode(fasthttp.StatusFound)
		ctx.Response.Header.Set("Location", location)
		ctx.Response.Header.Set("Cache-Control", "private, no-store")
	case "/page":
		ctx.SetStatusCode(fasthttp.StatusNotFound)
		ctx.SetContentType("text/plain")
		ctx.SetBodyString("no such page\n")
	case "/large":
		ctx.SetContentType("text/plain")
		ctx.Response.SetBodyRaw(largePage)
	case "/goodbye":
		ctx.SetBodyString("goodbye")
		ctx.SetConnectionClose()
	case "/wait":
		a.waiting.Add(1)
		<-a.gate
		ctx.SetBodyString("waited")
	case "/address":
		fmt.Fprint(ctx, ctx.RemoteAddr(), " to ", ctx.LocalAddr())
	default:
		fmt.Fprintf(ctx, "%s %s with %q from the store", ctx.Method(), ctx.Path(), ctx.PostBody())
	}
}

func (a *app) Reject(ctx *fasthttp.RequestCtx, err error) {
	a.rejected.Add(1)
	var tooLarge *fasthttp.ErrSmallBuffer
	var netErr net.Error
	var framing *service.FramingError
	switch {
	case errors.As(err, &framing):
		ctx.SetStatusCode(framing.Status)
	case errors.As(err, &tooLarge):
		ctx.SetStatusCode(fasthttp.StatusRequestHeaderFieldsTooLarge)
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		ctx.SetStatusCode(fasthttp.StatusRequestEntityTooLarge)
	case errors.As(err, &netErr) && netErr.Timeout():
		ctx.SetStatusCode(fasthttp.StatusRequestTimeout)
	default:
		ctx.SetStatusCode(fasthttp.StatusBadRequest)
	}
}

// site is a server under test.
type site struct {
	*app
	addr    string
	cfg     eventloop.Config
	grace   time.Duration
	ln      net.Listener
	metrics *metrics.Set
	log     testkit.Buffer
	stuck   bool                    // Serve is to return ErrStuck
	stop    func()                  // and wait until Serve has returned
	beside  func(*eventloop.Server) // starts what else it serves; nil: nothing
	secure  func(*tls.Config)       // changes the settings of HTTPS; nil: nothing
}

// start serves on loopback until the test ends, if it is not stopped before. change may alter the settings.
func start(t testing.TB, loops int, change func(*site)) *site {
	t.Helper()
	s := &site{
		app:     &app{gate: make(chan struct{}), awaiting: make(chan *eventloop.Waiter, 100)},
		cfg:     eventloop.DefaultConfig(),
		grace:   testkit.Patience,
		metrics: metrics.NewSet(),
	}
	s.cfg.Loops = loops
	if change != nil {
		change(s)
	}
	if err := s.cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	if s.ln == nil {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s.ln = ln
	}
	s.addr = s.ln.Addr().String()
	server := eventloop.New(s.cfg, s.app, s.metrics, s.log.Logger())
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, s.ln, s.grace) }()
	if s.beside != nil {
		s.beside(server)
	}
	s.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-served:
			if err != nil && !s.stuck || s.stuck && !errors.Is(err, eventloop.ErrStuck) {
				t.Errorf("Serve returned %v", err)
			}
		case <-time.After(2 * testkit.Patience):
			t.Error("Serve does not return")
		}
	})
	t.Cleanup(s.stop)
	return s
}

// dial connects; what the test does with the connection has to be done within Patience.
func (s *site) dial(t testing.TB) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(testkit.Patience)); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

// awaitMetric waits until a metric has a value: a client may see an event before it is counted.
func (s *site) awaitMetric(t testing.TB, name string, want int) {
	t.Helper()
	testkit.Succeeds(t, func() error { return testkit.Mismatch(name, s.metric(t, name), want) })
}

// metric returns the value of a metric.
func (s *site) metric(t testing.TB, name string) int {
	t.Helper()
	var text bytes.Buffer
	s.metrics.WritePrometheus(&text)
	for line := range strings.Lines(text.String()) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.Atoi(strings.TrimSpace(value))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no metric %q in\n%s", name, &text)
	return 0
}

const (
	metricOpen    = "linkstream_edge_connections"
	metricHanded  = "linkstream_edge_connections_handed_over_total"
	metricShed    = "linkstream_edge_connections_shed_total"
	metricFull    = `linkstream_edge_connections_refused_total{reason="full"}`
	metricAddress = `linkstream_edge_connections_refused_total{reason="address"}`
)

// get is a request for a path on a lasting connection.
func get(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: a.example\r\n\r\n" }

// ask sends a request and returns the answer, whose connection stays.
func ask(t testing.TB, conn net.Conn, request string) *fasthttp.Response {
	t.Helper()
	resp, err := tryAsk(conn, request)
	if err != nil {
		t.Fatalf("no answer to %q: %v", request, err)
	}
	return resp
}

func tryAsk(conn net.Conn, request string) (*fasthttp.Response, error) {
	if _, err := io.WriteString(conn, request); err != nil {
		return nil, err
	}
	return readAnswer(conn)
}

func readAnswer(conn net.Conn) (*fasthttp.Response, error) {
	resp := new(fasthttp.Response)
	// One byte at a time, so that nothing of the next answer is taken.
	err := resp.Read(newByteReader(conn))
	return resp, err
}

// talk sends pieces one after another, says that no more follows, and returns everything the server says until it
// closes the connection, without the dates.
func (s *site) talk(t testing.TB, pieces ...string) string {
	t.Helper()
	conn := s.dial(t)
	for i, piece := range pieces {
		if i > 0 {
			time.Sleep(pieceGap)
		}
		if _, err := io.WriteString(conn, piece); err != nil {
			break // the server has closed the connection
		}
	}
	_ = conn.CloseWrite()
	said, err := io.ReadAll(conn)
	var netErr net.Error
	if errors.As(err, &netErr) && netErr.Timeout() {
		t.Errorf("the server does not close the connection after %q", pieces)
	}
	text, dates := withoutDates(said)
	dated := slices.DeleteFunc(strings.Fields(statuses(text)), func(status string) bool { return status == "100" })
	if dates != len(dated) {
		t.Errorf("%d dates in %q", dates, said)
	}
	return text
}

// withoutDates returns what a server said without the lines of its dates, and how many they are. Regular
// expressions would take most of the CPU time of the tests that call it.
func withoutDates(said []byte) (text string, dates int) {
	var rest []byte
	for {
		before, after, found := bytes.Cut(said, []byte("\nDate: "))
		rest = append(rest, before...)
		if !found {
			return string(rest), dates
		}
		date, _, _ := bytes.Cut(after, []byte("\n"))
		if said = after[len(date):]; bytes.HasSuffix(date, []byte("GMT\r")) && len(said) > 0 {
			dates++
		} else {
			rest = append(append(rest, "\nDate: "...), date...)
		}
	}
}

// pieceGap makes it likely that pieces arrive apart. Tests hold if they do not.
const pieceGap = time.Millisecond
