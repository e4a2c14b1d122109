package stream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/segmentio/kafka-go"
)

// explainTimeout bounds the search for why brokers cannot be reached.
const explainTimeout = 3 * time.Second

func (c *Client) dialer() *kafka.Dialer {
	return &kafka.Dialer{ClientID: clientID, Timeout: requestTimeout, TLS: c.security.tls, SASLMechanism: c.security.sasl}
}

// explain returns err, from a request, with its cause. The transport does not tell why it has no connection, so a new
// one is made to find out.
func (c *Client) explain(ctx context.Context, err error) error {
	if !errors.Is(err, kafka.BrokerNotAvailable) {
		return err
	}
	deadline := time.Now().Add(explainTimeout)
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	for _, broker := range c.cfg.brokers() {
		if cause := c.connect(ctx, broker, deadline); cause != nil {
			return fmt.Errorf("connect to %s: %w", broker, hint(cause))
		}
	}
	return err
}

// connect returns why a broker does not take requests, nil if it does.
func (c *Client) connect(ctx context.Context, broker string, deadline time.Time) error {
	conn, err := c.dialer().DialContext(ctx, "tcp", broker)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	_, err = conn.Brokers()
	return err
}

// hint names the flag to look at, where an error of a connection points to one.
func hint(err error) error {
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.As(err, &untrusted):
		return fmt.Errorf("-kafka.tls-ca: %w", err)
	case errors.Is(err, kafka.SASLAuthenticationFailed):
		return fmt.Errorf("-kafka.username, -kafka.password: %w", err)
	case errors.Is(err, kafka.UnsupportedSASLMechanism):
		return fmt.Errorf("-kafka.sasl: %w", err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("the broker hung up: -kafka.tls or -kafka.sasl may not be what it asks for at this port: %w", err)
	}
	return err
}
