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

// explainTimeout bounds how long explain looks for the cause of an error.
const explainTimeout = 3 * time.Second

func (c *Client) dialer() *kafka.Dialer {
	return &kafka.Dialer{ClientID: clientID, Timeout: requestTimeout, TLS: c.security.tls, SASLMechanism: c.security.sasl}
}

// explain returns the cause of a request's error. kafka-go's transport may not say why it has no connection; then
// explain opens one.
func (c *Client) explain(ctx context.Context, err error) error {
	if !errors.Is(err, kafka.BrokerNotAvailable) {
		return hint(err)
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

// connect returns nil if the broker answers a request.
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

// hint adds the flag to check to a connection's error, if the error points to one.
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
		return fmt.Errorf("the broker closed the connection, check -kafka.tls and -kafka.sasl: %w", err)
	}
	return err
}
