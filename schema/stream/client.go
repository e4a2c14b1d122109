// Package stream speaks to the click log: topics, batches, a producer and a consumer on kafka-go. It knows Kafka's
// protocol and nothing of what stands behind it: Kafka, Redpanda and the embedded broker are the same here.
package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/segmentio/kafka-go"
)

const (
	clientID = "linkstream"
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
	security  security
	transport *kafka.Transport
	client    *kafka.Client

	compressor *compressor
}

// New returns a client of a valid configuration. It connects when it is first used.
func New(cfg Config, log *slog.Logger) (*Client, error) {
	security, err := cfg.security()
	if err != nil {
		return nil, err
	}
	compressor, err := newCompressor(codecs[cfg.Compression])
	if err != nil {
		return nil, fmt.Errorf("make compressor: %w", err)
	}
	// One transport for all requests: each caches the metadata by itself, and a topic created through one would be
	// unknown to another for seconds.
	transport := &kafka.Transport{ClientID: clientID, MetadataTTL: metadataTTL, TLS: security.tls, SASL: security.sasl}
	return &Client{cfg: cfg, log: log, security: security, transport: transport, compressor: compressor,
		client: &kafka.Client{Addr: kafka.TCP(cfg.brokers()...), Timeout: requestTimeout, Transport: transport}}, nil
}

// Close closes the connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// EnsureTopics creates the topics that do not exist yet.
func (c *Client) EnsureTopics(ctx context.Context) error {
	keep := []kafka.ConfigEntry{{ConfigName: "retention.ms", ConfigValue: fmt.Sprint(retention.Milliseconds())}}
	compact := []kafka.ConfigEntry{{ConfigName: "cleanup.policy", ConfigValue: "compact"}}
	replicas := c.cfg.Replicas
	res, err := c.client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{
		{Topic: c.cfg.Clicks, NumPartitions: c.cfg.Partitions, ReplicationFactor: replicas, ConfigEntries: keep},
		{Topic: c.cfg.Dead, NumPartitions: 1, ReplicationFactor: replicas, ConfigEntries: keep},
		{Topic: c.cfg.Changes, NumPartitions: 1, ReplicationFactor: replicas, ConfigEntries: compact},
	}})
	if err != nil {
		return fmt.Errorf("create topics: %w", c.explain(ctx, err))
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
