package contender

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"linkstream/bench/proc"
	"linkstream/bench/system"
	"linkstream/bench/workload"
	"linkstream/schema/stream"
)

// The names of edges in reports.
const (
	spoolingName = "edge, spooling"
	ruledName    = "edge, spooling, links with rules"
	shippingName = "edge, shipping"
)

const startTimeout = time.Minute

// SpoolingEdge starts an edge without a broker: it measures the redirect itself, with its click in the spool. flags are added
// to those of the edge.
func (s *Starter) SpoolingEdge(ctx context.Context, flags ...string) (*Contender, *system.Counter, error) {
	return s.spoolingEdge(ctx, spoolingName, flags...)
}

// RuledEdge is SpoolingEdge for visits to other links, which have rules.
func (s *Starter) RuledEdge(ctx context.Context, links workload.Links) (*Contender, *system.Counter, error) {
	ruled := *s
	ruled.Visits = workload.NewVisits(links, links.Count)
	return ruled.spoolingEdge(ctx, ruledName)
}

func (s *Starter) spoolingEdge(ctx context.Context, name string, flags ...string) (*Contender, *system.Counter, error) {
	nowhere := system.Broker{Addrs: "127.0.0.1:1"} // nothing listens there
	return s.edge(ctx, name, nowhere.Topics("spooling"), "linkstream_edge_clicks_recorded_total", flags...)
}

// ShippingEdge starts an edge that sends its clicks to a broker, where no worker counts them. flags are added to those
// of the edge.
func (s *Starter) ShippingEdge(ctx context.Context, flags ...string) (*Contender, *system.Counter, error) {
	broker, err := s.Engines.Broker(ctx)
	if err != nil {
		return nil, nil, err
	}
	topics := broker.Topics("shipping")
	client, err := CreateTopics(ctx, topics)
	if err != nil {
		return nil, nil, err
	}
	client.Close()
	edge, shipped, err := s.edge(ctx, shippingName, topics, "linkstream_edge_clicks_shipped_total", flags...)
	if err != nil {
		return nil, nil, err
	}
	edge.Processes = append(edge.Processes, broker.Processes...)
	return edge, shipped, nil
}

// edge starts an edge on the links of the system. It has settled when the metric has counted all clicks.
func (s *Starter) edge(ctx context.Context, name string, topics stream.Config, metric string, flags ...string) (
	*Contender, *system.Counter, error,
) {
	e, err := s.newEdge(ctx, name, topics, flags...)
	if err != nil {
		return nil, nil, err
	}
	if err := e.Start(ctx); err != nil {
		return nil, nil, err
	}
	counter := &system.Counter{Name: name, Base: e.Ops, Metric: metric}
	edge := s.Load.Server(name, e.Addr, s.Visits.Uncounted(e.Addr), proc.Process{Name: "edge", Usage: e.child.Usage})
	edge.Settle = counter.Settle
	return edge, counter, nil
}

// Edge is an edge that can be stopped and started again.
type Edge struct {
	Name, Addr string
	Ops        string // base URL of its metrics

	group   *proc.Group
	program string
	args    []string
	spool   string
	cpu     int         // that it runs on, or proc.AnyCPU
	child   *proc.Child // nil while it does not run
}

// Edges returns edges that ship to one broker. The caller starts them.
func (s *Starter) Edges(ctx context.Context, count int, flags ...string) (edges []*Edge, err error) {
	broker, err := s.Engines.Broker(ctx)
	if err != nil {
		return nil, err
	}
	topics := broker.Topics("edges")
	client, err := CreateTopics(ctx, topics)
	if err != nil {
		return nil, err
	}
	client.Close()
	for i := range count {
		e, err := s.newEdge(ctx, fmt.Sprint("edge ", i+1), topics, flags...)
		if err != nil {
			return nil, err
		}
		edges = append(edges, e)
	}
	return edges, nil
}

func (s *Starter) newEdge(ctx context.Context, name string, topics stream.Config, flags ...string) (*Edge, error) {
	addrs, err := system.FreeAddrs(2)
	if err != nil {
		return nil, err
	}
	program, args, err := s.Engines.EdgeCommand(ctx)
	if err != nil {
		return nil, err
	}
	addr, ops, spool := addrs[0], addrs[1], s.Group.Path(name)
	args = slices.Concat(args, flags, system.TopicFlags(topics), []string{"-spool.dir", spool,
		"-spool.max-bytes", fmt.Sprint(16 << 30), "-edge.listen", addr, "-ops.listen", ops, "-edge.url", "http://" + addr, "-log.level", "error"})
	return &Edge{Name: name, Addr: addr, Ops: "http://" + ops, group: s.Group, program: program, args: args, spool: spool,
		cpu: proc.AnyCPU}, nil
}

// Start starts the edge and waits until it answers. An edge without a broker answers, but it is never ready.
func (e *Edge) Start(ctx context.Context) (err error) {
	if e.child, err = e.group.StartOn(e.cpu, e.Name, nil, e.program, e.args...); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return e.child.Await(ctx, func(ctx context.Context) error { return system.Answers(ctx, "http://"+e.Addr+"/robots.txt") })
}

// Stop stops the edge, and with forget removes what it has cached.
func (e *Edge) Stop(forget bool) error {
	if err := e.child.Stop(); err != nil || !forget {
		return err
	}
	return os.Remove(filepath.Join(e.spool, "links.snapshot"))
}

// CreateTopics creates topics on a broker, and returns a client once every partition accepts records. Kafka needs a moment, and
// other clients may not know the topics for a while. The caller closes the client.
func CreateTopics(ctx context.Context, topics stream.Config) (*stream.Client, error) {
	client, err := stream.New(topics, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	if err := createTopics(ctx, client, topics.Partitions); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

func createTopics(ctx context.Context, client *stream.Client, partitions int) error {
	if err := client.EnsureTopics(ctx); err != nil {
		return err
	}
	pause := backoff.NewExponentialBackOff()
	for partition := range partitions {
		_, err := backoff.Retry(ctx, func() (int64, error) {
			_, next, err := client.Offsets(ctx, partition)
			return next, err
		}, backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(startTimeout))
		if err != nil {
			return err
		}
	}
	return nil
}
