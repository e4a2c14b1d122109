package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"golang.org/x/sync/errgroup"

	"linkstream/api/apiservice"
	"linkstream/api/dashboard"
	"linkstream/api/invalidation"
	"linkstream/deploy/standalone/embedded"
	"linkstream/edge/edgeservice"
	"linkstream/ingest/ingestservice"
	"linkstream/schema"
	"linkstream/schema/filelock"
	"linkstream/schema/service"
	"linkstream/schema/sqlite"
	"linkstream/schema/stream"
	"linkstream/schema/tracing"
)

const (
	startTimeout = time.Minute // for the embedded broker to create its topics
	readyPoll    = 50 * time.Millisecond
	waitingEvery = time.Minute // between two logs of what is not ready
)

// App is the embedded engines and the three services in one process.
type App struct {
	cfg       Config
	out       io.Writer
	log       *slog.Logger
	ops       *service.Ops
	tracer    *tracing.Tracer
	broker    *kfake.Cluster
	client    *stream.Client
	publisher *stream.InvalidationPublisher
	edge      *edgeservice.Service
	api       *apiservice.Service
	ingest    *ingestservice.Service
	engines   []func() error // close the engines, in the order in which they were opened
}

// Start opens the engines, creates the services, which listen from then on, and on the first start creates an account,
// whose secrets it prints to out. The caller must call Run.
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
	service.AllowConnections(a.cfg.Edge.Connections.MaxConnections+a.cfg.API.MaxConnections, log)
	links, err := sqlite.Open(ctx, a.cfg.dir().Links())
	if err != nil {
		return err
	}
	a.onClose(links.Close)
	clicks, err := sqlite.OpenClickStore(ctx, a.cfg.dir().Clicks())
	if err != nil {
		return err
	}
	a.onClose(clicks.Close)
	if err := a.openTopics(ctx, log); err != nil {
		return err
	}
	return a.createServices(ctx, links, clicks, log)
}

func (a *App) createServices(ctx context.Context, links *sqlite.Store, clicks *sqlite.ClickStore, log *slog.Logger) (err error) {
	a.publisher = stream.NewInvalidationPublisher(a.client, log)
	if a.ingest, err = ingestservice.New(a.cfg.Ingest, clicks, a.client, log.With("service", "ingest")); err != nil {
		return err
	}
	if a.api, err = apiservice.New(a.cfg.API, invalidation.Wrap(links, a.publisher), clicks, a.client, log.With("service", "api")); err != nil {
		return err
	}
	if a.edge, err = edgeservice.New(a.cfg.Edge, links, a.client, log.With("service", "edge")); err != nil {
		return err
	}
	a.ops.Add(a.counting, a.ingest.Metrics())
	a.ops.Add(a.api.Ready, a.api.Metrics())
	a.edge.Operate(a.ops)
	return a.cfg.FirstAccount.CreateAndPrint(ctx, links, a.api.URL(), a.out)
}

// openTopics starts the broker and opens a client of it.
func (a *App) openTopics(ctx context.Context, log *slog.Logger) error {
	secret, err := a.cfg.dir().Secret()
	if err != nil {
		return err
	}
	a.broker, err = a.cfg.dir().StartBroker(secret, log.With("service", "broker"))
	if err != nil {
		return err
	}
	a.onClose(func() error { a.broker.Close(); return nil })
	addrs := a.broker.ListenAddrs()
	a.client, err = stream.New(embedded.StreamConfig(addrs, secret), log)
	if err != nil {
		return err
	}
	a.onClose(func() error { a.client.Close(); return nil })
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := a.client.EnsureTopics(ctx); err != nil {
		return err
	}
	if err := a.client.KeepClicks(ctx); err != nil {
		return err
	}
	if err := os.WriteFile(a.cfg.dir().BrokerAddr(), []byte(addrs[0]), 0o600); err != nil {
		return fmt.Errorf("write broker address: %w", err)
	}
	a.onClose(func() error { return os.Remove(a.cfg.dir().BrokerAddr()) })
	return nil
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

// abort releases what a failed start has opened. A service releases its own when its Run ends.
func (a *App) abort(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	var services errgroup.Group
	if a.ingest != nil {
		services.Go(func() error { return a.ingest.Run(ctx) })
	}
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
//  1. The edge and the API answer the requests under way, and the edge ships its pending clicks to the broker.
//  2. Ingest completes the batches under way. Clicks that it has not fetched yet wait in the broker's log.
//  3. The changes of links that are still queued are published.
//  4. The traces are sent, and the operators' endpoints stop. Until now they have shown a slow shutdown.
//  5. The engines are closed: client, broker, click store, link store, and at last the lock on the data.
func (a *App) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	background := a.tracer.Context(context.WithoutCancel(ctx))
	stopPublishing := service.RunInBackground(background, a.publisher.Run)
	stopTrimming := service.RunInBackground(background, a.trimLog)
	counting, stopCounting := context.WithCancel(background)
	defer stopCounting()
	counted := make(chan error, 1)
	go func() {
		defer stop() // if ingest fails, everything stops
		counted <- a.ingest.Run(counting)
	}()
	serving, ctx := errgroup.WithContext(ctx)
	serving.Go(func() error { return a.edge.Run(ctx) })
	serving.Go(func() error { return a.api.Run(ctx) })
	serving.Go(func() error { a.printWhenReady(ctx); return nil })
	// 1.
	err := serving.Wait()
	// 2.
	stopCounting()
	err = errors.Join(err, <-counted)
	stopTrimming()
	// 3.
	stopPublishing()
	// 4.
	a.tracer.Close()
	a.ops.Close()
	// 5.
	return errors.Join(err, a.closeEngines())
}

// counting is the readiness of ingest. When the data has moved to other engines, nothing is counted here any more, but visitors are
// redirected.
func (a *App) counting(ctx context.Context) error {
	err := a.ingest.Ready(ctx)
	if errors.Is(err, schema.ErrMoved) {
		return nil
	}
	return err
}

// printWhenReady waits until all services are ready and prints their addresses. It waits as long as ctx allows and logs what
// is missing, because a service that is not ready still does what it can: links are redirected, for example, while a
// partition cannot be counted.
func (a *App) printWhenReady(ctx context.Context) {
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
	fmt.Fprintf(a.out, addresses, a.cfg.EdgeURL, a.api.URL().String()+dashboard.Root, a.api.URL(), a.ops.Addr(), a.cfg.Data)
}

const addresses = `linkstream is ready

  short links  %s
  dashboard    %s
  API          %s
  operators    http://%s/readyz
  data         %s
`
