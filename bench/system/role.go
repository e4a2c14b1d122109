package system

import (
	"context"
	"errors"
	"flag"
	"io"

	"linkstream/bench/proc"
	"linkstream/edge/edgeservice"
	"linkstream/schema/linkstore/sqlite"
	"linkstream/schema/service"
	"linkstream/schema/stream"
)

const edgeRole = "serve-edge"

// Roles returns the parts of an embedded system that run in processes of their own.
func Roles() []proc.Role { return []proc.Role{{Name: edgeRole, Run: serveEdge}} }

// edgeConfig is the configuration of an edge whose links are in SQLite.
type edgeConfig struct {
	edgeservice.Config
	links string
}

// RegisterFlags binds the configuration to flags.
func (c *edgeConfig) RegisterFlags(fs *flag.FlagSet) {
	c.Config.RegisterFlags(fs)
	service.EdgeURLVar(fs, &c.Resolve.URL)
	fs.StringVar(&c.Spool.Dir, "spool.dir", "", "`directory` of clicks that wait for the broker")
	fs.StringVar(&c.links, "links", "", "`file` of the links")
}

// serveEdge is the program edge with SQLite as the store of links.
func serveEdge(ctx context.Context, args []string, _, stderr io.Writer) error {
	cfg, topics, logs := edgeConfig{Config: edgeservice.DefaultConfig()}, stream.DefaultConfig(), service.LogConfig{}
	operators := service.OpsConfig{Listen: "127.0.0.1:0"}
	if _, err := service.ParseArgs("bench "+edgeRole, "", args, stderr, &cfg, &topics, &logs, &operators); err != nil {
		return err
	}
	edgeservice.BoundGarbage()
	cfg.Connections.ReserveCPUs()
	log := logs.Logger(stderr)
	ops, err := service.ListenOps(operators, log)
	if err != nil {
		return err
	}
	defer ops.Close()
	client, err := stream.New(topics, log)
	if err != nil {
		return err
	}
	defer client.Close()
	links, err := sqlite.Open(ctx, cfg.links)
	if err != nil {
		return err
	}
	edge, err := edgeservice.New(cfg.Config, links, client, log)
	if err != nil {
		return errors.Join(err, links.Close())
	}
	ops.Add(edge.Ready, edge.Metrics())
	return errors.Join(edge.Run(ctx), links.Close())
}
