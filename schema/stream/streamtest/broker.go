// Package streamtest runs kfake, a broker for tests: on its own port and with a data directory, so a test can stop
// and restart it.
package streamtest

import (
	"log/slog"
	"net/netip"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"linkstream/schema/stream"
	"linkstream/schema/testkit"
)

// Broker is a broker on the loopback interface. It keeps its address and its data across restarts.
type Broker struct {
	*kfake.Cluster // nil while stopped
	Addr           string
	Dir            string // data directory

	t       testing.TB
	port    int
	brokers int
}

// StartBroker starts a broker without topics. It stops when the test ends.
func StartBroker(t testing.TB) *Broker {
	t.Helper()
	return StartBrokers(t, 1)
}

// StartBrokers is StartBroker for a cluster of several brokers, which may not be restarted.
func StartBrokers(t testing.TB, brokers int) *Broker {
	t.Helper()
	b := &Broker{Dir: t.TempDir(), t: t, brokers: brokers}
	b.Start()
	t.Cleanup(b.Stop)
	return b
}

// Start starts a stopped broker on its previous port.
func (b *Broker) Start() {
	b.t.Helper()
	options := []kfake.Opt{kfake.DataDir(b.Dir), kfake.NumBrokers(b.brokers)}
	if b.brokers == 1 {
		if b.port == 0 {
			b.port = int(netip.MustParseAddrPort(testkit.FreeAddress(b.t)).Port())
		}
		options = append(options, kfake.Ports(b.port))
	}
	cluster, err := kfake.NewCluster(options...)
	if err != nil {
		b.t.Fatalf("start broker: %v", err)
	}
	b.Cluster, b.Addr = cluster, cluster.ListenAddrs()[0]
}

// Stop closes the broker's connections and files. It does nothing if the broker is stopped.
func (b *Broker) Stop() {
	if b.Cluster != nil {
		b.Close()
		b.Cluster = nil
	}
}

// Config returns the configuration of a client of this broker. The clicks topic gets partitions partitions.
func (b *Broker) Config(partitions int) stream.Config {
	cfg := stream.DefaultConfig()
	cfg.Brokers, cfg.Partitions = b.Addr, partitions
	return cfg
}

// NewClient returns a client that discards its log. It is closed when the test ends.
func NewClient(t testing.TB, cfg stream.Config) *stream.Client {
	t.Helper()
	client, err := stream.New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// CreateTopics creates the topics and returns a client.
func (b *Broker) CreateTopics(partitions int) *stream.Client {
	b.t.Helper()
	client := NewClient(b.t, b.Config(partitions))
	if err := client.EnsureTopics(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	return client
}
