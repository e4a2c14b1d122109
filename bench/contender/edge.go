package contender

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"linkstream/bench/proc"
	"linkstream/bench/system"
	"linkstream/bench/workload"
	"linkstream/schema/stream"
)

const (
	spoolingName = "edge, spooling"
	startTimeout = time.Minute
)

// noBroker is an address on which nothing listens.
var noBroker = system.Broker{Addrs: "127.0.0.1:1"}

// StartEdge starts an edge with additional flags, and returns the counter of its clicks as well.
type StartEdge = func(ctx context.Context, flags ...string) (*Contender, *system.Counter, error)

// SpoolingEdge starts an edge without a broker, whose clicks stay in its spool.
func (s *Starter) SpoolingEdge(ctx context.Context, flags ...string) (*Contender, *system.Counter, error) {
	return s.startEdge(ctx, spoolingName, noBroker.Topics("spooling"), "linkstream_edge_clicks_recorded_total", flags...)
}

// SecureEdge is SpoolingEdge for visitors by HTTPS.
func (s *Starter) SecureEdge(ctx context.Context, cert system.Certificate) (*Contender, *system.Counter, error) {
	addrs, err := system.FreeAddrs(1)
	if err != nil {
		return nil, nil, err
	}
	edge, recorded, err := s.startEdge(ctx, spoolingName+", TLS", noBroker.Topics("spooling"),
		"linkstream_edge_clicks_recorded_total", cert.Flags(addrs[0])...)
	if err != nil {
		return nil, nil, err
	}
	secure := s.redirects(spoolingName, addrs[0], edge.Sources, edge.Processes...)
	secure.Drain = edge.Drain
	return secure, recorded, nil
}

// ShippingEdge starts an edge that sends its clicks to a broker, where no worker counts them.
func (s *Starter) ShippingEdge(ctx context.Context, flags ...string) (*Contender, *system.Counter, error) {
	topics := s.Engines.Broker().Topics("shipping")
	client, err := CreateTopics(ctx, topics)
	if err != nil {
		return nil, nil, err
	}
	client.Close()
	return s.startEdge(ctx, "edge, shipping", topics, "linkstream_edge_clicks_shipped_total", flags...)
}

// startEdge starts an edge on the links of the system. Its Drain waits until the metric has counted all clicks.
func (s *Starter) startEdge(ctx context.Context, name string, topics stream.Config, metric string, flags ...string) (
	*Contender, *system.Counter, error,
) {
	addrs, err := system.FreeAddrs(2)
	if err != nil {
		return nil, nil, err
	}
	program, args, err := s.Engines.EdgeCommand(ctx)
	if err != nil {
		return nil, nil, err
	}
	addr := addrs[0]
	args = slices.Concat(args, flags, system.TopicFlags(topics),
		[]string{"-spool.dir", s.Group.Path(name), "-spool.max-bytes",
			fmt.Sprint(16 << 30), "-edge.listen", addr, "-ops.listen", addrs[1], "-edge.url", "http://" + addr,
			"-log.level", "error"})
	child, err := s.Group.Start(name, nil, program, args...)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	// Without a broker an edge answers, but it is never ready.
	err = child.Await(ctx, func(ctx context.Context) error { return system.Answers(ctx, "http://"+addr+"/robots.txt") })
	counter := &system.Counter{Name: name, Base: "http://" + addrs[1], Metric: metric}
	uncounted := func(v *workload.Visits) Source { return v.Uncounted(addr) }
	edge := s.redirects(name, addr, uncounted, proc.Process{Name: "edge", Usage: child.Usage})
	edge.Drain = counter.Await
	return edge, counter, err
}

// CreateTopics creates topics on a broker, and returns a client once every partition accepts records. Kafka needs a
// moment, and other clients may not see the topics at once. The caller closes the client.
func CreateTopics(ctx context.Context, topics stream.Config) (*stream.Client, error) {
	client, err := stream.New(topics, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	err = client.EnsureTopics(ctx)
	for partition := range topics.Partitions {
		if err == nil {
			_, err = backoff.Retry(ctx, func() (int64, error) {
				_, next, err := client.Offsets(ctx, partition)
				return next, err
			}, backoff.WithBackOff(backoff.NewExponentialBackOff()), backoff.WithMaxElapsedTime(startTimeout))
		}
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}
