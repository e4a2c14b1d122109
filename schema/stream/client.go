package stream

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/segmentio/kafka-go"
)

const (
	clientID = "linkstream"
	// requestTimeout bounds a request, including the time to connect.
	requestTimeout = 10 * time.Second
	// metadataTTL is the age at which the client refreshes the partitions' leaders.
	metadataTTL = 3 * time.Second
)

// Client is a connection pool to the brokers. It is safe for concurrent use.
type Client struct {
	cfg       Config
	log       *slog.Logger
	security  security
	transport *kafka.Transport
	client    *kafka.Client
	encoder   *encoder
}

// New returns a client. cfg is valid. The client connects on its first request.
func New(cfg Config, log *slog.Logger) (*Client, error) {
	security, err := cfg.security()
	if err != nil {
		return nil, err
	}
	encoder, err := newEncoder()
	if err != nil {
		return nil, fmt.Errorf("create zstd encoder: %w", err)
	}
	// All requests share one transport: each transport caches metadata, and would not see for seconds a topic that was
	// created through another.
	transport := &kafka.Transport{ClientID: clientID, MetadataTTL: metadataTTL, TLS: security.tls, SASL: security.sasl}
	return &Client{cfg: cfg, log: log, security: security, transport: transport, encoder: encoder,
		client: &kafka.Client{Addr: kafka.TCP(cfg.brokers()...), Timeout: requestTimeout, Transport: transport}}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Partitions returns the number of partitions of the clicks topic. kafka.UnknownTopicOrPartition if it does not exist.
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
