//go:build linux

// Command chserver serves ClickHouse on the loopback interface where there is no ClickHouse server: the engine is
// libchdb.so, ClickHouse as a library, and this program speaks the native protocol and HTTP in front of it, as far as
// clickhouse-go uses them. It is for tests, benchmarks and trying out.
//
// Differences from a server: one user, without a password, who may read all system tables; results are held in memory
// before they are sent; a query's settings end with the query, and so do temporary tables; inserts are never
// asynchronous; no external tables, progress or query log; and query_id means something in KILL QUERY only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	var cfg config
	flag.StringVar(&cfg.library, "library", "libchdb.so", "`path` of the engine's library")
	flag.StringVar(&cfg.data, "data", "data", "`folder` of the data, of one process at a time")
	flag.StringVar(&cfg.shards, "shards", "", "native `addresses` of the shards of the cluster \"shards\", separated by "+
		"commas")
	flag.StringVar(&cfg.grants, "grants", "", "`statements` GRANT … ON … (without TO) about the user, separated by "+
		"semicolons (default everything)")
	flag.StringVar(&cfg.http, "http", "127.0.0.1:8123", "`address` for HTTP")
	flag.StringVar(&cfg.native, "native", "127.0.0.1:9000", "`address` for the native protocol")
	flag.Parse()
	signal.Ignore(syscall.SIGPIPE) // of connections that the engine has to other nodes
	if err := run(ctx, cfg); err != nil {
		fmt.Fprintln(os.Stderr, "chserver:", err)
		os.Exit(1)
	}
}

type config struct{ library, data, shards, grants, http, native string }

// run serves until ctx ends. Then it kills the queries that run and closes the engine.
func run(ctx context.Context, cfg config) (err error) {
	lib, err := loadLibrary(cfg.library)
	if err != nil {
		return err
	}
	e, err := openEngine(lib, cfg)
	if err != nil {
		return err
	}
	defer e.close()
	httpListener, err := net.Listen("tcp", cfg.http)
	if err != nil {
		return err
	}
	nativeListener, err := net.Listen("tcp", cfg.native)
	if err != nil {
		return errors.Join(err, httpListener.Close())
	}

	group, ctx := errgroup.WithContext(ctx)
	web := &http.Server{Handler: e, ReadHeaderTimeout: 10 * time.Second}
	group.Go(func() error { return web.Serve(httpListener) })
	group.Go(func() error { return e.serveNative(ctx, nativeListener) })
	group.Go(func() error {
		<-ctx.Done()
		return errors.Join(web.Close(), nativeListener.Close()) // ends the requests' contexts, and so their queries
	})
	if err := group.Wait(); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
