package eventloop

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"linkstream/schema/service"
	"linkstream/schema/turns"
)

const (
	// maxBodyBytes bounds the body of a request: the form with a link's password, up to 128 characters that take 12
	// bytes each.
	maxBodyBytes = 1600
	// logEvery is the pause between two log lines of the same message about connections.
	logEvery = 10 * time.Second
	// shedPerShortage is how many idle connections are closed when descriptors run out.
	shedPerShortage = 8
	// maxKept is how many requests after the first one a goroutine waits for on a connection of a loop. Then an answer
	// ends the connection, and the client's next one is a loop's.
	maxKept = 32
	// maxHanded is how many connections of loops goroutines keep for further requests. Beyond it each answer of a
	// goroutine ends its connection, so that clients with unusual requests do not occupy a goroutine each while they
	// are idle.
	maxHanded = 1 << 10
	// endGrace is how long loops may take to end after the grace for requests under way.
	endGrace = time.Second
)

// Server serves a Handler on event loops or, without them, on goroutines.
type Server struct {
	cfg       Config
	handler   Handler
	log       *slog.Logger
	fast      *fasthttp.Server
	secure    secure
	waiting   waiting
	addresses *turns.Bound // connections
	larges    *turns.Bound // requests with large headers
	started   time.Time

	loops    []*loop
	looping  atomic.Pointer[[]*loop] // loops, for other goroutines; nil before Serve
	handed   atomic.Int64            // connections that loops have left to goroutines
	open     atomic.Int64            // of clients
	stopping atomic.Bool             // answers are the last ones of their connections
	nextLogs sync.Map                // by message, *atomic.Int64 in nanoseconds since started

	handedOver, shed, refusedFull, refusedAddress, acceptErrors *metrics.Counter
}

// New returns a server that has yet to Serve. Its metrics go to set.
func New(cfg Config, handler Handler, set *metrics.Set, log *slog.Logger) *Server {
	const refused = "linkstream_edge_connections_refused_total"
	s := &Server{
		cfg:       cfg,
		handler:   handler,
		log:       log,
		addresses: turns.NewBound(0, cfg.MaxConnectionsPerAddress),
		larges:    turns.NewBound(maxLarge, maxLargePerAddress),
		started:   time.Now(),

		handedOver: service.NewCounter(set, "linkstream_edge_connections_handed_over_total",
			"Connections that an event loop left to a goroutine."),
		shed: service.NewCounter(set, "linkstream_edge_connections_shed_total",
			"Idle connections that were closed to make room for others."),
		acceptErrors: service.NewCounter(set, "linkstream_edge_accept_errors_total",
			"Connections that could not be accepted, and attempts for want of files or memory."),
		refusedFull:    service.NewCounter(set, refused+`{reason="full"}`, "Connections that were refused, by reason."),
		refusedAddress: set.NewCounter(refused + `{reason="address"}`),
	}
	s.fast = s.newFast(s.serveHTTP)
	s.initSecure(set)
	service.NewGauge(set, "linkstream_edge_connections", "Open connections of clients.",
		func() float64 { return float64(s.open.Load()) })
	return s
}

// client returns whose bound counts a connection from addr. Exempt addresses have none.
func (s *Server) client(addr netip.Addr) turns.Client {
	if s.cfg.Exempt != nil && s.cfg.Exempt(addr) {
		return turns.Client{}
	}
	return turns.Subnet(addr)
}

// newFast returns the server of connections on goroutines.
func (s *Server) newFast(handler fasthttp.RequestHandler) *fasthttp.Server {
	fast := &fasthttp.Server{
		Handler:   handler,
		ConnState: noteState,
		Logger:    service.ConnLogger(s.log),

		ReadTimeout:        s.cfg.ReadTimeout,
		WriteTimeout:       s.cfg.WriteTimeout,
		IdleTimeout:        s.cfg.IdleTimeout,
		ReadBufferSize:     s.cfg.MaxHeaderBytes,
		MaxRequestBodySize: maxBodyBytes,
		// The listeners bound connections: fasthttp would write to refused clients on the goroutine that accepts.
		Concurrency: math.MaxInt32,

		SecureErrorLogMessage:        true, // no headers in logs
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		DisablePreParseMultipartForm: true,
		CloseOnShutdown:              true,
	}
	service.CheckRequests(fast, s.handler.Reject)
	return fast
}

// serve is the handler of the goroutines.
func (s *Server) serve(ctx *fasthttp.RequestCtx) {
	if c := boundedOf(ctx.Conn()); c.large != nil {
		s.serveLarge(ctx, c)
		return
	}
	s.handler.Serve(ctx)
	if s.stopping.Load() {
		ctx.SetConnectionClose()
	}
}

// serveHTTP is serve without TLS.
func (s *Server) serveHTTP(ctx *fasthttp.RequestCtx) {
	s.serve(ctx)
	if c := boundedOf(ctx.Conn()); c.handed && (c.kept >= maxKept || s.handed.Load() > maxHanded) {
		ctx.SetConnectionClose()
	}
}

// ErrStuck means that a loop did not end, because its handler does not return. The handler may still use everything
// that it was given.
var ErrStuck = errors.New("event loops are stuck")

// Serve serves the connections of ln until ctx is done. Then it answers received requests, gives requests under way
// up to grace to finish, and closes ln. It returns nil after such a stop, also if grace runs out, and ErrStuck if a
// loop does not end endGrace later. Serve is called once.
//
// Loops accept from a kernel's listener by a descriptor of their own, and ln is closed at once. Goroutines serve
// any other listener, and all connections with Config.ProxyProtocol.
func (s *Server) Serve(ctx context.Context, ln net.Listener, grace time.Duration) error {
	if s.cfg.Loops != 0 && !s.cfg.ProxyProtocol {
		if served, err := s.serveLoops(ctx, ln, grace); served {
			return err
		}
	}
	defer context.AfterFunc(ctx, func() { s.stopping.Store(true) })()
	return service.Serve(ctx, s.fast, &boundedListener{ln, s}, grace)
}

// complain logs a warning about connections, once per logEvery for each message.
func (s *Server) complain(message string, args ...any) {
	now := int64(time.Since(s.started))
	entry, known := s.nextLogs.Load(message)
	if !known {
		entry, _ = s.nextLogs.LoadOrStore(message, new(atomic.Int64))
	}
	nextLog := entry.(*atomic.Int64)
	if next := nextLog.Load(); now >= next && nextLog.CompareAndSwap(next, now+int64(logEvery)) {
		s.log.Warn(message, args...)
	}
}

const (
	tooManyPerAddress = "HTTP/1.1 429 Too Many Requests" + retrySoon
	tooMany           = "HTTP/1.1 503 Service Unavailable" + retrySoon

	retrySoon = "\r\nContent-Length: 0\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
)

func (s *Server) refuseFull() {
	s.refusedFull.Inc()
	s.complain("connections refused: all are in use", "flag", "-edge.max-connections", "max", s.cfg.MaxConnections)
}

func (s *Server) refuseAddress(addr string) {
	s.refusedAddress.Inc()
	s.complain("connections refused: one address has all it may have", "address", addr,
		"flag", "-edge.max-connections-per-address", "max", s.cfg.MaxConnectionsPerAddress)
}
