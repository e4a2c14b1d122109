// Package stream speaks to the click log: topics, batches, a producer and a consumer on kafka-go. It knows Kafka's
// protocol and nothing of what stands behind it: Kafka, Redpanda and the embedded broker are the same here.
package stream

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
)

// Config says where the brokers are and what the topics are called.
type Config struct {
	Brokers    string // addresses of some brokers, separated by commas
	Clicks     string // topic of click events
	Dead       string // topic of what could not be read as a click event
	Group      string // consumer group that counts
	Partitions int    // of the topic Clicks where it is created
}

// DefaultConfig returns a configuration for a broker on this machine.
func DefaultConfig() Config {
	return Config{Brokers: "127.0.0.1:9092", Clicks: "clicks", Dead: "clicks.dead", Group: "linkstream.ingest", Partitions: 4}
}

// RegisterFlags binds the configuration to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.Brokers, "kafka.brokers", c.Brokers, "`addresses` of some Kafka brokers, separated by commas")
	fs.StringVar(&c.Clicks, "kafka.clicks-topic", c.Clicks, "`topic` of click events")
	fs.StringVar(&c.Dead, "kafka.dead-topic", c.Dead, "`topic` of what could not be read as a click event")
	fs.StringVar(&c.Group, "kafka.group", c.Group, "consumer `group` that counts clicks")
	fs.IntVar(&c.Partitions, "kafka.partitions", c.Partitions, "`number` of partitions of a clicks topic that has yet to be created")
}

// Validate returns every invalid setting.
func (c *Config) Validate() error {
	var errs []error
	for _, b := range c.brokers() {
		if _, port, err := net.SplitHostPort(b); err != nil || port == "" {
			errs = append(errs, fmt.Errorf("-kafka.brokers: %q is not host:port", b))
		}
	}
	if c.Clicks == "" || c.Dead == "" || c.Clicks == c.Dead {
		errs = append(errs, errors.New("-kafka.clicks-topic and -kafka.dead-topic: need two different names"))
	}
	if c.Group == "" {
		errs = append(errs, errors.New("-kafka.group: is empty"))
	}
	if c.Partitions < 1 || c.Partitions > 10000 {
		errs = append(errs, fmt.Errorf("-kafka.partitions: %d is not 1 to 10000", c.Partitions))
	}
	return errors.Join(errs...)
}

func (c *Config) brokers() []string { return strings.Split(c.Brokers, ",") }

const (
	// requestTimeout bounds a request, also one that is sent while the broker is away.
	requestTimeout = 10 * time.Second
	// metadataTTL bounds how long a change of leaders goes unnoticed.
	metadataTTL = 3 * time.Second
	// retention is how long click events stay in topics that are created here.
	retention = 7 * 24 * time.Hour
)

// Client is a connection pool to the brokers. It is safe for concurrent use.
type Client struct {
	cfg       Config
	log       *slog.Logger
	transport *kafka.Transport
	client    *kafka.Client
	codec     kafka.Compression
}

// New returns a client. It connects when it is first used.
func New(cfg Config, log *slog.Logger) *Client {
	// One transport for all requests: each caches the metadata by itself, and a topic created through one would be
	// unknown to another for seconds.
	transport := &kafka.Transport{ClientID: "linkstream", MetadataTTL: metadataTTL}
	return &Client{cfg: cfg, log: log, transport: transport, codec: kafka.Zstd,
		client: &kafka.Client{Addr: kafka.TCP(cfg.brokers()...), Timeout: requestTimeout, Transport: transport}}
}

// Close closes the connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// EnsureTopics creates the topics that do not exist yet.
func (c *Client) EnsureTopics(ctx context.Context) error {
	keep := []kafka.ConfigEntry{{ConfigName: "retention.ms", ConfigValue: fmt.Sprint(retention.Milliseconds())}}
	res, err := c.client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{
		{Topic: c.cfg.Clicks, NumPartitions: c.cfg.Partitions, ReplicationFactor: -1, ConfigEntries: keep},
		{Topic: c.cfg.Dead, NumPartitions: 1, ReplicationFactor: -1, ConfigEntries: keep},
	}})
	if err != nil {
		return fmt.Errorf("create topics: %w", err)
	}
	for topic, err := range res.Errors {
		if err != nil && !errors.Is(err, kafka.TopicAlreadyExists) {
			return fmt.Errorf("create topic %q: %w", topic, err)
		}
	}
	return nil
}

// Partitions returns how many partitions the topic of clicks has.
func (c *Client) Partitions(ctx context.Context) (int, error) {
	res, err := c.client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{c.cfg.Clicks}})
	if err != nil {
		return 0, fmt.Errorf("read metadata: %w", err)
	}
	for _, t := range res.Topics {
		if t.Name == c.cfg.Clicks && t.Error == nil {
			return len(t.Partitions), nil
		}
	}
	return 0, fmt.Errorf("topic %q: %w", c.cfg.Clicks, kafka.UnknownTopicOrPartition)
}
