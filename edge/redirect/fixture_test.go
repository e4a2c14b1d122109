package redirect_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"
	"go.uber.org/goleak"

	"linkstream/edge/eventloop"
	"linkstream/edge/limit"
	"linkstream/edge/password"
	"linkstream/edge/redirect"
	"linkstream/edge/resolve"
	"linkstream/edge/spool"
	"linkstream/edge/visitorhash"
	"linkstream/schema"
	"linkstream/schema/blocklist"
	"linkstream/schema/linkstore"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/storetest"
	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// fasthttp updates its Date header as long as the process runs, and the cleaner of a stopped server sleeps for 10 s.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// edge is a handler with a link store and a spool. Its default domain is sho.rt.
type edge struct {
	cfg       redirect.Config
	conns     eventloop.Config
	store     *faultyStore
	accountID int64
	unknown   int             // resolve.Config.MaxUnknownRate; 0: the default
	site      schema.Site     // of the default domain
	appLinks  schema.AppLinks // of the default domain
	spoolCfg  spool.Config
	spool     *spool.Spool
	metrics   *metrics.Set
	log       *testkit.Buffer
	check     password.Checker // nil: none can be asked
	limits    *limit.Limits
	resolver  *resolve.Resolver
	handler   *redirect.Handler
}

// newEdge returns an edge. If change is not nil it may change the settings first.
func newEdge(t testing.TB, change func(*edge)) *edge {
	t.Helper()
	e := &edge{conns: eventloop.DefaultConfig(), spoolCfg: spool.DefaultConfig(),
		metrics: metrics.NewSet(), log: new(testkit.Buffer)}
	e.spoolCfg.Dir = t.TempDir()
	e.spoolCfg.SegmentBytes = 1 << 20
	if change != nil {
		change(e)
	}
	testkit.Must(t, e.conns.Validate())
	log := e.log.Logger()
	e.store = newFaultyStore(t)
	account := schema.Account{Email: "owner@example.com", CreatedAt: time.Now()}
	testkit.Must(t, e.store.CreateAccount(t.Context(), &account))
	e.accountID = account.ID
	var err error
	e.spool, err = spool.Open(e.spoolCfg, log)
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Close(t, e.spool) })
	cfg := resolve.DefaultConfig()
	// a busy machine may take long
	cfg.URL, cfg.CacheBytes, cfg.LookupTimeout = schema.MustParseBaseURL("https://sho.rt"), 8<<20, time.Minute
	cfg.Site, cfg.AppLinks = e.site, e.appLinks
	if e.unknown > 0 {
		cfg.MaxUnknownRate = e.unknown
	}
	blocked := filepath.Join(t.TempDir(), "hosts")
	testkit.Must(t, os.WriteFile(blocked, []byte("unsafe.example"), 0o600))
	cfg.Blocklist, err = blocklist.Open(blocked, log)
	testkit.Must(t, err)
	resolver, err := resolve.New(cfg, e.store, e.store, e.metrics, log)
	testkit.Must(t, err)
	t.Cleanup(resolver.Close)
	e.resolver = resolver
	e.limits = limit.New(e.store, e.spool, log)
	e.cfg.Limits = e.limits
	if e.cfg.Visitors == nil {
		e.cfg.Visitors = visitorhash.New(e.store, log)
		testkit.Must(t, e.cfg.Visitors.Update(t.Context(), time.Now()))
	}
	e.cfg.Passwords = password.New(e.store, e.check, schema.BaseURL{})
	e.handler = redirect.NewHandler(e.cfg, resolver, e.spool, e.metrics, log)
	return e
}

// link creates a link and returns its ID. Domain 0 is the default domain.
func (e *edge) link(t testing.TB, domainID int64, hash, url string) int64 {
	t.Helper()
	link := schema.Link{
		AccountID: e.accountID, DomainID: domainID, Hash: hash, URL: url, Active: true, CreatedAt: time.Now(),
	}
	testkit.Must(t, e.store.CreateLink(t.Context(), &link))
	return link.ID
}

// create creates a link with these fields on the default domain.
func (e *edge) create(t testing.TB, link schema.Link) schema.Link {
	t.Helper()
	link.AccountID, link.Active = e.accountID, true
	if link.CreatedAt.IsZero() {
		link.CreatedAt = time.Now()
	}
	testkit.Must(t, e.store.CreateLink(t.Context(), &link))
	return link
}

// domain creates a domain and returns its ID.
func (e *edge) domain(t testing.TB, host string, verified bool) int64 {
	t.Helper()
	domain := schema.Domain{AccountID: e.accountID, Host: host, CreatedAt: time.Now()}
	if verified {
		domain.VerifiedAt = time.Now()
	}
	testkit.Must(t, e.store.CreateDomain(t.Context(), &domain))
	return domain.ID
}

// eachWay runs test with connections on event loops, and on goroutines.
func eachWay(t *testing.T, test func(t *testing.T, loops int)) {
	for name, loops := range map[string]int{"event loops": 2, "goroutines": 0} {
		t.Run(name, func(t *testing.T) { test(t, loops) })
	}
}

// serve serves on the loopback interface until the test ends and returns the address.
func (e *edge) serve(t testing.TB, loops int) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	e.conns.Loops = loops
	server := eventloop.New(e.conns, e.handler, e.metrics, e.log.Logger())
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, ln, testkit.Patience) }()
	t.Cleanup(func() { cancel(); testkit.Must(t, <-served) })
	return ln.Addr().String()
}

// send sends a request to addr and returns the response and its body. fields are names and values of header fields.
func send(t testing.TB, addr, method, url string, fields ...string) (*http.Response, string) {
	t.Helper()
	return sendBody(t, addr, method, url, "", fields...)
}

// sendBody is send with the text of a form.
func sendBody(t testing.TB, addr, method, url, body string, fields ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	testkit.Must(t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(fields); i += 2 {
		req.Header.Add(fields[i], fields[i+1])
	}
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	testkit.Must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	testkit.Must(t, err)
	return resp, string(text)
}

// clicks returns the clicks that were recorded since the last call.
func (e *edge) clicks(t testing.TB) []schema.Click {
	t.Helper()
	var clicks []schema.Click
	for _, lane := range e.spool.Lanes() {
		var batch stream.Batch
		lane.Read(&batch, 1<<30)
		for i := range batch.Len() {
			var click schema.Click
			testkit.Must(t, schema.DecodeClick(batch.Value(i), &click))
			clicks = append(clicks, click)
		}
	}
	return clicks
}

// faultyStore is a link store whose look-ups fail on command.
type faultyStore struct {
	*linkstore.Store
	fault atomic.Pointer[func() error]
}

func newFaultyStore(t testing.TB) *faultyStore {
	s := new(faultyStore)
	begin := func(context.Context) error { return s.begin() }
	s.Store = storetest.Faulty(sqlitetest.New(t), storetest.FaultOf(begin, "EdgeLinks", "LinksByHash",
		"VerifiedDomain", "AppLinks", "TakeLease"))
	return s
}

// inject makes every look-up call fault, and fail with its error. Nil makes the store work again.
func (s *faultyStore) inject(fault func() error) {
	if fault == nil {
		fault = func() error { return nil }
	}
	s.fault.Store(&fault)
}

func (s *faultyStore) begin() error {
	if fault := s.fault.Load(); fault != nil {
		return (*fault)()
	}
	return nil
}

// request returns a request as fasthttp passes it to a handler. fields are names and values of header fields.
func request(url string, peer net.Addr, fields ...string) *fasthttp.RequestCtx {
	var req fasthttp.Request
	req.SetRequestURI(url)
	for i := 0; i < len(fields); i += 2 {
		req.Header.Add(fields[i], fields[i+1])
	}
	ctx := &fasthttp.RequestCtx{}
	ctx.Init(&req, peer, nil)
	return ctx
}
