package system

import (
	"context"

	"linkstream/bench/proc"
	"linkstream/schema/stream"
)

func (r *realEngines) start(ctx context.Context) (*Service, error) {
	s, err := newService("services", false)
	if err != nil {
		return nil, err
	}
	ingest, err := r.startNode(ctx, s, "ingest", "ingest", "-clickhouse.dsn", r.clickhouse, "-ops.listen", s.ops.ingest,
		"-kafka.group", r.topics().Group)
	if err != nil {
		return nil, err
	}
	if err := r.startAPI(ctx, s, "api", r.clickhouse); err != nil {
		return nil, err
	}
	edge, err := r.startNode(ctx, s, "edge", "edge", append(r.launcher.secureFlags(s), "-postgres.dsn", r.postgres, "-edge.listen", s.Edge,
		"-ops.listen", s.ops.edge, "-edge.url", "http://"+s.Edge, "-spool.dir", r.launcher.group.Path("spool"))...)
	s.AtEdge = []proc.Process{edge, ingest}
	return s, err
}

// topics returns the topics that all nodes share.
func (r *realEngines) topics() stream.Config { return r.broker.Topics("service") }

// startAPI starts an api of a service on a database of clicks.
func (r *realEngines) startAPI(ctx context.Context, s *Service, name, clicks string) error {
	api, err := r.startNode(ctx, s, "api", name, "-postgres.dsn", r.postgres, "-clickhouse.dsn", clicks, "-api.listen", s.API.Addr(),
		"-api.trusted-proxies", ProxyAddr, "-ops.listen", s.ops.api, "-bootstrap.email", "")
	s.AtAPI, s.ReadClicks = []proc.Process{api}, func(ctx context.Context) error { return eachLinkFile(ctx, clicks, readFile) }
	return err
}

// startNode starts one of the programs of a service, under a name of its own.
func (r *realEngines) startNode(ctx context.Context, s *Service, program, name string, args ...string) (proc.Process, error) {
	path, err := r.launcher.program(ctx, program)
	if err != nil {
		return proc.Process{}, err
	}
	args = append(append(args, TopicFlags(r.topics())...), "-log.level", "warn")
	child, err := r.launcher.group.Start(name, nil, path, args...)
	if err != nil {
		return proc.Process{}, err
	}
	s.children = append(s.children, child)
	return proc.Process{Name: name, Usage: child.Usage}, nil
}
