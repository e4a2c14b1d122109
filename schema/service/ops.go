package service

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/pprofhandler"

	"linkstream/schema"
)

const (
	readyTimeout   = 2 * time.Second // of all checks together: an engine that hangs is not ready
	readyTTL       = time.Second     // the result of the checks is reused for this long, to bound the load on the engines
	opsTimeout     = 5 * time.Second // to read a request, and to write its answer
	opsConnections = 64
	opsGrace       = time.Second // for requests under way when the program stops

	metricsPatience = 200 * time.Millisecond // longest wait of a request for metrics for the checks that it starts
)

// Defaults of -ops.listen.
const (
	OpsListen       = "127.0.0.1:9080" // of standalone and edge
	OpsListenAPI    = "127.0.0.1:9081"
	OpsListenIngest = "127.0.0.1:9082"
)

// OpsConfig is the Section of the operators' listener.
type OpsConfig struct {
	Listen string // address
	Pprof  bool   // whether profiles are served
	Public bool   // whether public ports answer /healthz, too
	Hosts  string // names of this program that requests may have, separated by commas
}

// RegisterFlags binds the settings to flags.
func (c *OpsConfig) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.Listen, "ops.listen", c.Listen,
		"`address` to serve /healthz, /readyz and /metrics on, for operators only")
	fs.BoolVar(&c.Pprof, "ops.pprof", c.Pprof, "serve profiles at /debug/pprof/ on -ops.listen")
	fs.BoolVar(&c.Public, "ops.public", c.Public,
		"also answer /healthz on public ports, for load balancers that cannot reach -ops.listen")
	fs.StringVar(&c.Hosts, "ops.hosts", c.Hosts,
		"`names`, separated by commas, at which operators reach -ops.listen, in addition to its own, addresses and "+
			"localhost")
}

// Validate returns every invalid setting.
func (c *OpsConfig) Validate() error {
	var errs []error
	if err := CheckAddr(c.Listen); err != nil {
		errs = append(errs, fmt.Errorf("-ops.listen: %w", err))
	}
	if _, err := c.hosts(); err != nil {
		errs = append(errs, fmt.Errorf("-ops.hosts: %w", err))
	}
	return errors.Join(errs...)
}

// hosts returns the names in Hosts, and the one in Listen if it has one.
func (c *OpsConfig) hosts() (names []schema.Host, err error) {
	for name := range strings.FieldsFuncSeq(c.Hosts, func(r rune) bool { return r == ',' || r == ' ' }) {
		host, err := schema.ParseHost(name)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		names = append(names, host)
	}
	name, _ := schema.CutPort(c.Listen)
	if host, err := schema.ParseHost(name); err == nil { // not "", which stands for all addresses
		names = append(names, host)
	}
	return names, nil
}

// Unready is the error of a service that cannot do its work.
type Unready struct {
	What  string // the missing condition; may be shown to anyone
	Cause error  // for the log
}

func (e *Unready) Error() string { return fmt.Sprintf("%s: %v", e.What, e.Cause) }

func (e *Unready) Unwrap() error { return e.Cause }

// Ops serves operators: /healthz (the program runs), /readyz (all its services can do their work), /metrics (of the
// process and of all services) and profiles. It starts before the program waits for its engines and stops after its
// services.
type Ops struct {
	listener net.Listener
	log      *slog.Logger
	hosts    []schema.Host
	pprof    bool
	close    func()

	mu       sync.Mutex
	waiting  string // the engine that the program waits for; used until the first service is added
	services int
	checks   []func(context.Context) error
	misses   []miss
	sets     []*metrics.Set
	handlers map[string]fasthttp.RequestHandler // by path

	checking  sync.Mutex // held while the checks run, so that concurrent requests share one run
	checkedAt time.Time  // the time of the last run, whose results the next fields have
	checked   int        // number of checks
	unready   []string   // missing engines and services
	logged    string     // text of the error

	known      atomic.Pointer[[]string] // result of the last call of missing; nil before the first
	background sync.WaitGroup           // checks that requests for metrics have started
}

// ListenOps listens on cfg.Listen and serves until Close.
func ListenOps(cfg OpsConfig, log *slog.Logger) (*Ops, error) {
	hosts, err := cfg.hosts()
	if err != nil {
		return nil, fmt.Errorf("-ops.hosts: %w", err)
	}
	listener, err := Listen(cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("-ops.listen: %w", err)
	}
	o := &Ops{listener: listener, log: log, hosts: hosts, pprof: cfg.Pprof, waiting: "its start",
		sets: []*metrics.Set{metrics.NewSet()}}
	o.sets[0].RegisterMetricsWriter(o.writeReadiness)
	server := &fasthttp.Server{
		Handler: o.handle, ReadTimeout: opsTimeout, WriteTimeout: opsTimeout, IdleTimeout: time.Minute,
		Concurrency:     opsConnections,
		CloseOnShutdown: true, NoDefaultServerHeader: true, SecureErrorLogMessage: true, Logger: ConnLogger(log),
	}
	CheckRequests(server, refusePlainly)
	o.close = RunInBackground(context.Background(), func(ctx context.Context) {
		if err := Serve(ctx, server, listener, opsGrace); err != nil {
			log.Error("cannot serve operators any more", "error", err)
		}
	})
	return o, nil
}

// Addr returns the address of the listener.
func (o *Ops) Addr() string { return o.listener.Addr().String() }

// Close stops the listener.
func (o *Ops) Close() {
	o.close()
	o.background.Wait()
}

// Report returns a WaitReport that logs each failed attempt. Until the first Add, /readyz names what the program waits
// for.
func (o *Ops) Report() WaitReport {
	logged := ReportToLog(o.log)
	return func(what string, err error) {
		o.mu.Lock()
		o.waiting = what
		o.mu.Unlock()
		logged(what, err)
	}
}

// Require adds a condition for the readiness of the program. ready returns nil, or an Unready that names the missing
// condition.
func (o *Ops) Require(ready func(context.Context) error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.checks = append(o.checks, ready)
}

// miss is something that the program may lack and is ready without.
type miss struct {
	what    string
	missing func() bool
}

// Miss makes /readyz and the metrics name what the program is ready without while missing returns true.
func (o *Ops) Miss(what string, missing func() bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.misses = append(o.misses, miss{what, missing})
}

// missed returns what the program is ready without.
func (o *Ops) missed() (all []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.misses {
		if m.missing() {
			all = append(all, m.what)
		}
	}
	return all
}

// Add adds a service with its readiness, as for Require, and its metrics.
func (o *Ops) Add(ready func(context.Context) error, set *metrics.Set) {
	o.Require(ready)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sets = append(o.sets, set)
	o.services++
}

// AddMetrics adds metrics of a part of the program that is not a service.
func (o *Ops) AddMetrics(set *metrics.Set) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sets = append(o.sets, set)
}

// Handle makes handler answer requests for a path.
func (o *Ops) Handle(path string, handler fasthttp.RequestHandler) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.handlers == nil {
		o.handlers = map[string]fasthttp.RequestHandler{}
	}
	o.handlers[path] = handler
}

func (o *Ops) handler(path string) fasthttp.RequestHandler {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.handlers[path]
}

func (o *Ops) handle(ctx *fasthttp.RequestCtx) {
	ctx.Response.Header.Set("Cache-Control", "no-store")
	switch path := string(ctx.Path()); {
	case !o.named(string(ctx.Host())):
		ctx.Error("use an address, localhost or a name in -ops.listen or -ops.hosts\n", fasthttp.StatusMisdirectedRequest)
	case AnswerHealth(ctx):
	case path == "/readyz":
		ctx.SetContentType("text/plain; charset=utf-8")
		if unready := o.Unready(); unready != "" {
			ctx.SetStatusCode(fasthttp.StatusServiceUnavailable)
			fmt.Fprintf(ctx, "not ready: %s\n", unready)
			return
		}
		ctx.SetBodyString("ready\n")
		if missed := o.missed(); len(missed) > 0 {
			ctx.SetBodyString("ready, without " + strings.Join(missed, ", ") + "\n")
		}
	case path == "/metrics":
		ctx.SetContentType("text/plain; version=0.0.4; charset=utf-8")
		o.mu.Lock()
		sets := slices.Clone(o.sets)
		o.mu.Unlock()
		writeMetrics(ctx, sets)
	// flags may have secrets
	case o.pprof && strings.HasPrefix(path, "/debug/pprof/") && !strings.HasPrefix(path, "/debug/pprof/cmdline"):
		pprofhandler.PprofHandler(ctx)
	default:
		if handler := o.handler(path); handler != nil {
			handler(ctx)
			return
		}
		ctx.Error("not found\n", fasthttp.StatusNotFound)
	}
}

// named reports whether a request may have a Host header. The pages of a website whose name resolves to this listener
// (DNS rebinding) may read its answers, but their requests have the website's name. Browsers always send a host.
func (o *Ops) named(header string) bool {
	name, _ := schema.CutPort(header)
	host, err := schema.ParseHost(name)
	return header == "" || err == nil && (host.IsAddr() || host.IsLocal() || slices.Contains(o.hosts, host))
}

// writeReadiness writes the result of /readyz as metrics. While a check hangs, it writes the previous result, if there
// is one.
func (o *Ops) writeReadiness(w io.Writer) {
	checked := make(chan struct{})
	o.background.Go(func() { o.missing(); close(checked) })
	patience := time.NewTimer(metricsPatience)
	defer patience.Stop()
	select {
	case <-checked:
	case <-patience.C:
	}
	known := o.known.Load()
	if known == nil {
		return
	}
	missing, ready := *known, 0
	if len(missing) == 0 {
		ready = 1
	}
	fmt.Fprintf(w, "# HELP linkstream_ready Whether the program can do its work: 1, or 0 as long as something is "+
		"missing.\n"+
		"# TYPE linkstream_ready gauge\nlinkstream_ready %d\n", ready)
	fmt.Fprint(w, "# HELP linkstream_missing What the program is missing to do its work, by what.\n# TYPE "+
		"linkstream_missing gauge\n")
	for _, what := range append(slices.Clip(missing), o.missed()...) {
		fmt.Fprintf(w, "linkstream_missing{what=%q} 1\n", what)
	}
}

// AnswerHealth answers a request for /healthz. It reports whether the request was one.
func AnswerHealth(ctx *fasthttp.RequestCtx) bool {
	if string(ctx.Path()) != "/healthz" {
		return false
	}
	ctx.SetContentType("text/plain; charset=utf-8")
	ctx.SetBodyString("ok\n")
	return true
}

// Unready returns a list of the missing engines and services, "" if the program is ready. The text has no addresses,
// users or errors: the log has these.
func (o *Ops) Unready() string {
	started, missing := o.missing()
	text := strings.Join(missing, ", ")
	if !started {
		text = "waiting for " + text
	}
	return text
}

// missing returns the names of missing engines and services. started is false while the program waits for its engines.
func (o *Ops) missing() (started bool, missing []string) {
	o.checking.Lock()
	defer o.checking.Unlock()
	defer func() { o.known.Store(&missing) }()
	o.mu.Lock()
	services, waiting, checks := o.services, o.waiting, slices.Clone(o.checks)
	o.mu.Unlock()
	if services == 0 {
		return false, []string{waiting}
	}
	if o.checked == len(checks) && time.Since(o.checkedAt) < readyTTL {
		return true, o.unready
	}
	missing, err := runChecks(checks)
	o.checkedAt, o.checked, o.unready = time.Now(), len(checks), missing
	o.logChange(err)
	return true, missing
}

// runChecks returns the names of missing engines and services, without duplicates, and the errors.
func runChecks(checks []func(context.Context) error) (missing []string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	var errs []error
	for _, check := range checks {
		err := check(ctx)
		if err == nil {
			continue
		}
		what := "a service"
		if unready := new(Unready); errors.As(err, &unready) {
			what = unready.What
		}
		if !slices.Contains(missing, what) {
			missing, errs = append(missing, what), append(errs, err)
		}
	}
	return missing, errors.Join(errs...)
}

// logChange logs err if it differs from the last error, and the return to readiness.
func (o *Ops) logChange(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case text == o.logged:
	case err != nil:
		o.log.Warn("not ready", "error", err)
	default:
		o.log.Info("ready again")
	}
	o.logged = text
}
