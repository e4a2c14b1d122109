// Package streamtest gives tests a real protocol server: the embedded broker on a port of its own, with a data
// directory, so that it can be stopped and started again in the midst of a test.
package streamtest

import (
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"linkstream/schema/stream"
)

// Broker is a broker on the loopback interface. It keeps its address and its data while it is stopped.
type Broker struct {
	*kfake.Cluster // nil while it is stopped
	Addr           string
	Dir            string // its data

	t    testing.TB
	port int
}

// StartBroker starts a broker that has no topics. It is stopped when the test ends.
func StartBroker(t testing.TB) *Broker {
	t.Helper()
	b := &Broker{Dir: t.TempDir(), t: t}
	b.Start()
	t.Cleanup(b.Stop)
	return b
}

// Start starts a stopped broker on the port it had before.
func (b *Broker) Start() {
	b.t.Helper()
	cluster, err := kfake.NewCluster(kfake.Ports(b.port), kfake.DataDir(b.Dir))
	if err != nil {
		b.t.Fatalf("start broker: %v", err)
	}
	b.Cluster, b.Addr = cluster, cluster.ListenAddrs()[0]
	_, port, _ := net.SplitHostPort(b.Addr)
	b.port, _ = strconv.Atoi(port)
}

// Stop closes the broker's connections and its files.
func (b *Broker) Stop() {
	if b.Cluster != nil {
		b.Close()
		b.Cluster = nil
	}
}

// Config returns the configuration of a client for topics with that many partitions of clicks.
func (b *Broker) Config(partitions int) stream.Config {
	cfg := stream.DefaultConfig()
	cfg.Brokers, cfg.Partitions = b.Addr, partitions
	return cfg
}

// NewClient returns a client that logs nothing and is closed when the test ends.
func NewClient(t testing.TB, cfg stream.Config) *stream.Client {
	client, err := stream.New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// Topics returns a client like NewClient does, and creates the topics.
func (b *Broker) Topics(partitions int) *stream.Client {
	b.t.Helper()
	client := NewClient(b.t, b.Config(partitions))
	if err := client.EnsureTopics(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	return client
}

// patience bounds what a test waits for: far more than anything takes on a busy machine.
const patience = 30 * time.Second

// Eventually waits until state returns "", and fails the test if it says what is missing for too long.
func Eventually(t testing.TB, state func() (missing string)) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(patience); ; <-ticker.C {
		missing := state()
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v: %s", patience, missing)
		}
	}
}

// Succeeds waits until do returns nil.
func Succeeds(t testing.TB, do func() error) {
	t.Helper()
	Eventually(t, func() string {
		if err := do(); err != nil {
			return fmt.Sprint("still failing: ", err)
		}
		return ""
	})
}
