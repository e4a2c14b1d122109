package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"golang.org/x/sync/errgroup"

	"linkstream/api/apiservice"
	"linkstream/api/invalidation"
	"linkstream/edge/edgeservice"
	"linkstream/ingest/ingestservice"
	"linkstream/schema/filelock"
	"linkstream/schema/service"
	"linkstream/schema/sqlite"
	"linkstream/schema/stream"
)

// startTimeout bounds how long the embedded broker may take to create its topics.
const startTimeout = time.Minute

// App is the whole service: engines and nodes. What is opened is closed in the opposite order.
type App struct {
	cfg       Config
	out       io.Writer
	ops       *service.Ops
	log       *slog.Logger
	broker    *kfake.Cluster
	client    *stream.Client
	publisher *stream.InvalidationPublisher
	edge      *edgeservice.Service
	api       *apiservice.Service
	ingest    *ingestservice.Service
	close     []func() error
}

// Start opens the engines and prepares the nodes, on the first start with an account.
func Start(ctx context.Context, cfg Config, out io.Writer, log *slog.Logger) (*App, error) {
	app := &App{cfg: cfg, out: out, log: log}
	if err := app.start(ctx, log); err != nil {
		return nil, errors.Join(err, app.Close())
	}
	return app, nil
}

func (a *App) start(ctx context.Context, log *slog.Logger) error {
	cfg := a.cfg
	if err := a.lock(cfg.Data); err != nil {
		return err
	}
	var err error
	if a.ops, err = service.ListenOps(cfg.Ops, log); err != nil {
		return err
	}
	a.onClose(func() error { a.ops.Close(); return nil })
	service.AllowConnections(cfg.Edge.Connections.MaxConnections+apiservice.MaxConnections, log)
	links, err := sqlite.Open(ctx, cfg.linksPath())
	if err != nil {
		return err
	}
	a.onClose(links.Close)
	clicks, err := sqlite.OpenClickStore(ctx, cfg.clicksPath())
	if err != nil {
		return err
	}
	a.onClose(clicks.Close)
	if err := a.openTopics(ctx, log); err != nil {
		return err
	}
	client := a.client
	a.publisher = stream.NewInvalidationPublisher(client, log)
	if a.ingest, err = ingestservice.New(cfg.Ingest, clicks, client, log.With("service", "ingest")); err != nil {
		return err
	}
	if a.api, err = apiservice.New(cfg.API, invalidation.Wrap(links, a.publisher), clicks, client, log.With("service", "api")); err != nil {
		return err
	}
	if a.edge, err = edgeservice.New(cfg.Edge, links, client, log.With("service", "edge")); err != nil {
		return err
	}
	a.ops.Add(a.ingest.Ready, a.ingest.Metrics())
	a.ops.Add(a.api.Ready, a.api.Metrics())
	a.ops.Add(a.edge.Ready, a.edge.Metrics())
	return cfg.FirstAccount.CreateAndPrint(ctx, links, a.api.URL(), a.out)
}

// lock makes sure that one process at a time has the data.
func (a *App) lock(dir string) error {
	lock, err := filelock.TryAcquire(filepath.Join(dir, "lock"))
	if err != nil {
		return fmt.Errorf("lock data directory: %w", err)
	}
	a.onClose(lock.Release)
	return nil
}

func (a *App) openTopics(ctx context.Context, log *slog.Logger) error {
	secret, err := brokerSecret(a.cfg.brokerSecretPath())
	if err != nil {
		return err
	}
	a.broker, err = startBroker(a.cfg.brokerDir(), secret, log.With("service", "broker"))
	if err != nil {
		return err
	}
	a.onClose(func() error { a.broker.Close(); return nil })
	a.client, err = stream.New(streamConfig(a.broker.ListenAddrs(), secret), log)
	if err != nil {
		return err
	}
	a.onClose(func() error { a.client.Close(); return nil })
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := a.client.EnsureTopics(ctx); err != nil {
		return err
	}
	return a.client.KeepClicks(ctx)
}

func (a *App) onClose(f func() error) { a.close = append(a.close, f) }

// Close closes the engines. Run does it; it is for an App that never ran.
func (a *App) Close() error {
	var errs []error
	for len(a.close) > 0 {
		last := len(a.close) - 1
		errs = append(errs, a.close[last]())
		a.close = a.close[:last]
	}
	return errors.Join(errs...)
}

// Run runs the nodes until ctx is done or one of them fails. Counting stops last, when no click comes any more.
func (a *App) Run(ctx context.Context) error {
	nodes, serving := errgroup.WithContext(ctx)
	counting, stopCounting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopCounting()
	var takers sync.WaitGroup
	takers.Add(2)
	nodes.Go(func() error { defer takers.Done(); return a.edge.Run(serving) })
	nodes.Go(func() error { defer takers.Done(); return a.api.Run(serving) })
	nodes.Go(func() error { takers.Wait(); stopCounting(); return nil })
	nodes.Go(func() error { return a.ingest.Run(counting) })
	nodes.Go(func() error { a.publisher.Run(counting); return nil })
	nodes.Go(func() error { a.trimLog(counting); return nil })
	nodes.Go(func() error { a.announce(serving); return nil })
	return errors.Join(nodes.Wait(), a.Close())
}
