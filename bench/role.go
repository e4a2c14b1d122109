package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/valyala/fasthttp"

	"linkstream/edge/edgeservice"
	"linkstream/schema/service"
	"linkstream/schema/sqlite"
	"linkstream/schema/stream"
)

// roles are what this program is as a child of itself: servers in processes of their own, so that the CPU time of each
// can be told from the others'. Each prints the address it listens on, and runs until it is told to stop.
var roles = map[string]func(ctx context.Context, args []string, stdout, stderr io.Writer) error{
	"serve-bare":   serveBare,
	"serve-edge":   serveEdge,
	"serve-broker": serveBroker,
}

// serveBare answers every request with the redirect of an edge, and does nothing else.
func serveBare(ctx context.Context, _ []string, stdout, _ io.Writer) error {
	listener, err := service.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	location, cacheControl := []byte("Location"), []byte("Cache-Control")
	target, privateNoStore := []byte(someURL), []byte("private, no-store")
	server := &fasthttp.Server{NoDefaultServerHeader: true, NoDefaultContentType: true}
	server.Handler = func(http *fasthttp.RequestCtx) {
		http.SetStatusCode(fasthttp.StatusFound)
		http.Response.Header.SetCanonical(location, target)
		http.Response.Header.SetCanonical(cacheControl, privateNoStore)
	}
	fmt.Fprintln(stdout, listener.Addr())
	return service.Serve(ctx, server, listener, stopGrace)
}

// edgeSettings are those of an edge whose links are in SQLite.
type edgeSettings struct {
	edgeservice.Config
	links string
}

// RegisterFlags binds the settings to flags.
func (s *edgeSettings) RegisterFlags(fs *flag.FlagSet) {
	s.Config.RegisterFlags(fs)
	service.EdgeURLVar(fs, &s.Resolve.URL)
	fs.StringVar(&s.Spool.Dir, "spool.dir", "", "`directory` of clicks that wait for the broker")
	fs.StringVar(&s.links, "links", "", "`file` of the links")
}

// serveEdge is the edge's own program, but for the store of its links.
func serveEdge(ctx context.Context, args []string, _, stderr io.Writer) error {
	cfg, topics, logs := edgeSettings{Config: edgeservice.DefaultConfig()}, stream.DefaultConfig(), service.LogConfig{}
	if _, err := service.ParseArgs("bench serve-edge", "", args, stderr, &cfg, &topics, &logs); err != nil {
		return err
	}
	edgeservice.BoundGarbage()
	log := logs.Logger(stderr)
	client, err := stream.New(topics, log)
	if err != nil {
		return err
	}
	defer client.Close()
	links, err := sqlite.Open(ctx, cfg.links)
	if err != nil {
		return err
	}
	node, err := edgeservice.New(cfg.Config, links, client, log)
	if err != nil {
		return errors.Join(err, links.Close())
	}
	return errors.Join(node.Run(ctx), links.Close())
}

// serveBroker is the embedded broker with its log in a directory, as deploy/standalone has it.
func serveBroker(ctx context.Context, args []string, stdout, _ io.Writer) error {
	if len(args) != 1 {
		return errors.New("serve-broker: name a directory")
	}
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DataDir(args[0]), kfake.SyncWrites())
	if err != nil {
		return fmt.Errorf("start broker: %w", err)
	}
	defer broker.Close()
	fmt.Fprintln(stdout, broker.ListenAddrs()[0])
	<-ctx.Done()
	return nil
}
