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
	api, err := r.startNode(ctx, s, "api", "api", "-postgres.dsn", r.postgres, "-clickhouse.dsn", r.clickhouse,
		"-api.listen", s.API.Addr(), "-api.trusted-proxies", ProxyAddr, "-api.webhook-allow", "127.0.0.0/8",
		"-ops.listen", s.ops.api, "-bootstrap.email", "")
	if err != nil {
		return nil, err
	}
	s.AtAPI = []proc.Process{api}
	edge, err := r.startNode(ctx, s, "edge", "edge",
		append(r.launcher.secureFlags(s), "-postgres.dsn", r.postgres, "-edge.listen", s.Edge,
			"-ops.listen", s.ops.edge, "-edge.url", "http://"+s.Edge, "-spool.dir", r.launcher.group.Path("spool"))...)
	s.AtEdge = []proc.Process{edge, ingest}
	s.Processes = append([]proc.Process{edge, ingest, s.AtAPI[0]}, r.processes...)
	return s, err
}

// topics returns the topics that all nodes share.
func (r *realEngines) topics() stream.Config { return r.broker.Topics("service") }

// startNode starts one of the programs of a service, under a name of its own.
func (r *realEngines) startNode(ctx context.Context, s *Service, program, name string,
	args ...string) (proc.Process, error) {
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
