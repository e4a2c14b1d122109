package stream_test

import (
	"errors"
	"flag"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"linkstream/schema/stream"
	"linkstream/schema/stream/streamtest"
	"linkstream/schema/testkit"
)

func TestConfig(t *testing.T) {
	t.Run("the default is valid", func(t *testing.T) {
		cfg := stream.DefaultConfig()
		if err := cfg.Validate(); err != nil {
			t.Error(err)
		}
	})
	t.Run("flags set every field", func(t *testing.T) {
		cfg := stream.DefaultConfig()
		fs := flag.NewFlagSet("test", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		cfg.RegisterFlags(fs)
		err := fs.Parse([]string{"-kafka.brokers=a:1,b:2", "-kafka.clicks-topic=c", "-kafka.dead-topic=d",
			"-kafka.changes-topic=e", "-kafka.group=g", "-kafka.partitions=9", "-kafka.retention=48h", "-kafka.replicas=3",
			"-kafka.session-timeout=30s",
			"-kafka.tls", "-kafka.sasl=scram-sha-512", "-kafka.username=u", "-kafka.password=p"})
		want := stream.Config{Brokers: "a:1,b:2", Clicks: "c", Dead: "d", Changes: "e", Group: "g", Partitions: 9,
			Retention: 48 * time.Hour, Replicas: 3,
			Session: 30 * time.Second, TLS: true, SASL: "scram-sha-512", Username: "u", Password: "p"}
		if err != nil || cfg != want {
			t.Errorf("got %+v, error %v", cfg, err)
		}
		if err := cfg.Validate(); err != nil {
			t.Error(err)
		}
	})
	t.Run("every invalid field is reported by its flag", func(t *testing.T) {
		cfg := stream.Config{Brokers: "a:1,nowhere", Clicks: "same", Dead: "same", SASL: "unknown", TLS: true,
			CAFile: "missing.pem", CertFile: "missing.crt", Retention: time.Minute, Replicas: 1000}
		err := cfg.Validate()
		if err == nil {
			t.Fatal("got no error")
		}
		for _, name := range []string{`-kafka.brokers: "nowhere"`, "-kafka.dead-topic", "-kafka.group",
			"-kafka.session-timeout: 0s", "-kafka.partitions: 0",
			"-kafka.retention: 1m0s", "-kafka.replicas: 1000", `-kafka.sasl: "unknown"`, "-kafka.tls-ca", "-kafka.tls-cert"} {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("%q does not name %s", err, name)
			}
		}
	})
	t.Run("an empty list of brokers is invalid", func(t *testing.T) {
		cfg := stream.DefaultConfig()
		cfg.Brokers = ""
		if err := cfg.Validate(); err == nil {
			t.Error("got no error")
		}
	})
}

func TestEnsureTopics(t *testing.T) {
	t.Parallel()
	t.Run("creates the topics, and does nothing if they exist", func(t *testing.T) {
		t.Parallel()
		broker := streamtest.StartBroker(t)
		client := streamtest.NewClient(t, broker.Config(3))
		if n, err := client.Partitions(t.Context()); !errors.Is(err, kafka.UnknownTopicOrPartition) {
			t.Fatalf("before: got %d partitions, error %v", n, err)
		}
		for range 3 {
			testkit.Must(t, client.EnsureTopics(t.Context()))
			wantPartitions(t, client, 3)
		}
		produce(t, client, 2, "value")
	})
	t.Run("keeps the partitions of an existing topic", func(t *testing.T) {
		t.Parallel()
		broker := streamtest.StartBroker(t)
		broker.CreateTopics(3)
		other := broker.CreateTopics(5)
		wantPartitions(t, other, 3)
	})
	t.Run("may be called concurrently", func(t *testing.T) {
		t.Parallel()
		broker := streamtest.StartBroker(t)
		var calls sync.WaitGroup
		for range 8 {
			client := streamtest.NewClient(t, broker.Config(4))
			calls.Go(func() {
				if err := client.EnsureTopics(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		wantPartitions(t, streamtest.NewClient(t, broker.Config(1)), 4)
	})
	t.Run("the error names the topic that cannot be created", func(t *testing.T) {
		t.Parallel()
		cfg := streamtest.StartBroker(t).Config(0)
		err := streamtest.NewClient(t, cfg).EnsureTopics(t.Context())
		if err == nil || !strings.Contains(err.Error(), `topic "clicks"`) {
			t.Errorf("got %v", err)
		}
	})
}

func wantPartitions(t testing.TB, client *stream.Client, want int) {
	t.Helper()
	if n, err := client.Partitions(t.Context()); err != nil || n != want {
		t.Errorf("got %d partitions, error %v; want %d", n, err, want)
	}
}
