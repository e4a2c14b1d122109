package tracing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.opentelemetry.io/otel/sdk/trace"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	firstPause  = 200 * time.Millisecond // before a batch is sent again
	maxAnswer   = 64 << 10               // bytes of an answer that are read
	idleTimeout = time.Minute
)

// newClient returns a client with a connection of its own. The context of a request bounds its time.
func newClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxConnsPerHost, transport.IdleConnTimeout = 1, idleTimeout
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

// sender posts spans to a collector.
type sender struct {
	url     string
	headers map[string]string
	client  *http.Client
}

// send posts the spans. It repeats the request while the collector is away or asks for a repetition, until ctx is done.
func (s *sender) send(ctx context.Context, spans []trace.ReadOnlySpan) error {
	body, err := proto.Marshal(encode(spans))
	if err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval = firstPause
	var cause error // of the last failure before ctx ended
	_, err = backoff.Retry(ctx, func() (struct{}, error) {
		err := s.post(ctx, body)
		if err != nil && (ctx.Err() == nil || cause == nil) {
			cause = err
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(0))
	if err != nil && cause != nil {
		return cause
	}
	return err
}

// close closes the connection.
func (s *sender) close() { s.client.CloseIdleConnections() }

// post sends a request. It returns a backoff.PermanentError if a repetition cannot succeed.
func (s *sender) post(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return backoff.Permanent(err)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	for name, value := range s.headers {
		req.Header.Set(name, value)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch res.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		if err != nil {
			return nil // the spans have arrived
		}
		return refused(answer)
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout: // as OTLP says
		return fmt.Errorf("the collector answers %s", res.Status)
	}
	return backoff.Permanent(fmt.Errorf("the collector answers %s", res.Status))
}

// refused returns an error if the collector has accepted the request and rejected spans.
func refused(answer []byte) error {
	var res collector.ExportTraceServiceResponse
	if err := proto.Unmarshal(answer, &res); err != nil {
		return nil // some collectors answer with something else
	}
	if rejected := res.GetPartialSuccess().GetRejectedSpans(); rejected > 0 {
		return backoff.Permanent(errors.New("the collector has refused spans"))
	}
	return nil
}
