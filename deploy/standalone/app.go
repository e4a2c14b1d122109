package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"linkstream/api/apiservice"
	"linkstream/api/dashboard"
	"linkstream/api/invalidation"
	apilinks "linkstream/api/links"
	"linkstream/edge/edgeservice"
	"linkstream/ingest/count"
	"linkstream/ingest/ingestservice"
	"linkstream/schema"
	"linkstream/schema/filelock"
	"linkstream/schema/linkstore"
	linksqlite "linkstream/schema/linkstore/sqlite"
	"linkstream/schema/service"
	"linkstream/schema/sqlite"
	"linkstream/schema/tracing"
)

const (
	readyPoll    = 50 * time.Millisecond
	waitingEvery = time.Minute // between two logs of what is not ready
)

// App is the stores and the three services in one process. There is no broker: the edge's shipper sends clicks to a
// writer that counts them, and the edge reads changes of links from the outbox of the link store.
type App struct {
	cfg     Config
	out     io.Writer
	log     *slog.Logger
	ops     *service.Ops
	tracer  *tracing.Tracer
	edge    *edgeservice.Service
	api     *apiservice.Service
	ingest  *ingestservice.Local
	relay   *invalidation.Relay
	engines []func() error // close the stores and the lock, in the order in which they were opened

	firstAccount string // what to tell of the account that the first start has created, or ""
}

// Start opens the stores, creates the services, which listen from then on, and on the first start creates an account,
// whose secrets Run prints to out. The caller must call Run.
func Start(ctx context.Context, cfg Config, out io.Writer, log *slog.Logger) (*App, error) {
	app := &App{cfg: cfg, out: out, log: log}
	if err := app.start(ctx, log); err != nil {
		return nil, errors.Join(err, app.abort(ctx))
	}
	return app, nil
}

func (a *App) start(ctx context.Context, log *slog.Logger) error {
	lock, err := filelock.TryAcquire(a.cfg.dir().Lock())
	if err != nil {
		return fmt.Errorf("lock data directory: %w", err)
	}
	a.onClose(lock.Release)
	if err := a.cfg.target().Finish(); err != nil { // a restore that was killed
		return err
	}
	if a.ops, err = service.ListenOps(a.cfg.Ops, log); err != nil {
		return err
	}
	if a.tracer, err = tracing.Start(a.cfg.Traces, "standalone", a.ops.AddMetrics, log); err != nil {
		return err
	}
	a.cfg.API.Tracer = a.tracer
	service.AllowConnections(log, &a.cfg.Edge.Connections.MaxConnections, &a.cfg.API.MaxConnections)
	links, err := linksqlite.Open(ctx, a.cfg.dir().Links())
	if err != nil {
		return err
	}
	a.onClose(links.Close)
	clicks, err := sqlite.OpenClickStore(ctx, a.cfg.dir().Clicks())
	if err != nil {
		return err
	}
	a.onClose(clicks.Close)
	return a.createServices(ctx, links, clicks, log)
}

func (a *App) createServices(
	ctx context.Context, links *linkstore.Store, clicks *sqlite.ClickStore, log *slog.Logger,
) (err error) {
	if a.ingest, err = ingestservice.NewLocal(a.cfg.Ingest, clicks, links, log.With("service", "ingest")); err != nil {
		return err
	}
	topics := struct {
		*count.Writer
		changes
	}{Writer: a.ingest.Writer}
	if a.cfg.Edge.GeoIP == "" {
		a.cfg.Edge.Redirect.Countries = a.ingest.Countries()
	}
	a.cfg.Edge.Spool.BatchBytes, a.cfg.Edge.Spool.Await = count.BatchBytes, a.ingest.Writer.Await
	a.cfg.Edge.Passwords = func(ctx context.Context, attempt schema.PasswordAttempt) (schema.PasswordVerdict, error) {
		return a.api.CheckPassword(ctx, attempt)
	}
	a.cfg.Edge.ChangesPushed = true // by the relay
	if a.edge, err = edgeservice.New(a.cfg.Edge, links, topics, log.With("service", "edge")); err != nil {
		return err
	}
	if a.cfg.API.Private, err = apilinks.ParseAddresses(a.ops.Addr(), a.edge.Addr(), a.edge.TLSAddr()); err != nil {
		return err
	}
	drop := dropper{a.edge, log}
	a.relay = invalidation.NewRelay(links, 0, drop.publish, log)
	published := invalidation.Wrap(links, drop.changed)
	if a.api, err = apiservice.New(a.cfg.API, published, clicks, clickLog{a.edge},
		log.With("service", "api")); err != nil {
		return err
	}
	if a.firstAccount, err = a.cfg.FirstAccount.CreateAndReport(ctx, links, a.api.URL()); err != nil {
		return err
	}
	a.ops.Add(a.counting, a.ingest.Metrics())
	a.ops.Add(a.api.Ready, a.api.Metrics())
	a.edge.Operate(a.ops)
	return nil
}

// clickLog says how many clicks wait in the spool.
type clickLog struct{ edge *edgeservice.Service }

// Lag implements clickreport.ClickLog.
func (l clickLog) Lag(context.Context) (clicks int64, oldest time.Time, err error) {
	waiting, oldest := l.edge.Waiting()
	if waiting > 0 && oldest.IsZero() { // recorded a moment ago
		oldest = time.Now()
	}
	return int64(waiting), oldest, nil
}

func (a *App) onClose(f func() error) { a.engines = append(a.engines, f) }

// closeEngines closes the engines, the last opened first.
func (a *App) closeEngines() error {
	var errs []error
	for len(a.engines) > 0 {
		last := len(a.engines) - 1
		errs = append(errs, a.engines[last]())
		a.engines = a.engines[:last]
	}
	return errors.Join(errs...)
}

// abort closes everything that a failed start has opened. A service closes its own parts when its Run ends.
func (a *App) abort(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	var services errgroup.Group
	if a.api != nil {
		services.Go(func() error { return a.api.Run(ctx) })
	}
	if a.edge != nil {
		services.Go(func() error { return a.edge.Run(ctx) })
	}
	err := services.Wait()
	a.tracer.Close()
	if a.ops != nil {
		a.ops.Close()
	}
	return errors.Join(err, a.closeEngines())
}

// Run serves until ctx is done or a service fails. Then it stops in the order that loses nothing:
//
//  1. The edge and the API answer the requests under way, and the edge's clicks are counted. Clicks for which there is
//     no time wait in the spool.
//  2. The traces are sent, and the operators' endpoints stop. Until now they have shown a slow shutdown.
//  3. The stores are closed. The lock on the data is released last.
func (a *App) Run(ctx context.Context) error {
	background := a.tracer.Context(context.WithoutCancel(ctx))
	stopCounting := service.RunInBackground(background, a.ingest.Run)
	stopPublishing := service.RunInBackground(background, a.relay.Run)
	serving, ctx := errgroup.WithContext(ctx)
	serving.Go(func() error { return a.edge.Run(ctx) })
	serving.Go(func() error { return a.api.Run(ctx) })
	serving.Go(func() error { a.printWhenReady(ctx); return nil })
	// 1.
	err := serving.Wait()
	stopPublishing()
	stopCounting()
	// 2.
	a.tracer.Close()
	a.ops.Close()
	// 3.
	return errors.Join(err, a.closeEngines())
}

// counting is the readiness of ingest. When the data has moved to other engines, nothing is counted here any more, but
// visitors are redirected.
func (a *App) counting(ctx context.Context) error {
	err := a.ingest.Ready(ctx)
	if errors.Is(err, schema.ErrMoved) {
		return nil
	}
	return err
}

// printWhenReady waits until all services are ready, returns the memory that only the start has used, and prints the
// addresses. It waits as long as ctx allows and logs what is missing, because a service that is not ready still does
// what it can: links are redirected, for example, while clicks cannot be counted. The secrets of the first account come
// last, in any case.
func (a *App) printWhenReady(ctx context.Context) {
	defer func() { fmt.Fprint(a.out, a.firstAccount) }()
	logAt := time.Now().Add(waitingEvery)
	for {
		err := errors.Join(a.edge.Ready(ctx), a.api.Ready(ctx), a.counting(ctx))
		if err == nil {
			break
		}
		if now := time.Now(); now.After(logAt) {
			a.log.Warn("waiting until the service is ready", "error", err)
			logAt = now.Add(waitingEvery)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(readyPoll):
		}
	}
	debug.FreeOSMemory()
	fmt.Fprintf(a.out, addresses, a.cfg.EdgeURL, a.api.URL().String()+dashboard.Root, a.api.URL(), a.ops.Addr(),
		a.cfg.Data)
}

const addresses = `linkstream is ready

  short links  %s
  dashboard    %s
  API          %s
  operators    http://%s/readyz
  data         %s
`
