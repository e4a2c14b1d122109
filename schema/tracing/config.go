package tracing

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"linkstream/schema"
)

// Config says where spans are sent. OpenTelemetry's standard variables replace settings that are empty:
// OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS, and their forms for traces.
type Config struct {
	Endpoint string        // URL that takes OTLP by HTTP; "": nothing is traced
	Headers  string        // of each request: name=value, separated by commas
	Sample   float64       // share of the traces that are recorded, from 0 to 1
	Timeout  time.Duration // of a batch of spans, and of sending the rest when the program stops; not a flag
	Queue    int           // most spans that wait to be sent; others are dropped; not a flag
}

// DefaultConfig returns a configuration that traces nothing.
func DefaultConfig() Config { return Config{Sample: 1, Timeout: 5 * time.Second, Queue: 4096} }

// RegisterFlags binds the settings to flags.
func (c *Config) RegisterFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.Endpoint, "trace.endpoint", c.Endpoint,
		"`URL` of a collector that takes OTLP by HTTP, such as http://127.0.0.1:4318/v1/traces; without it nothing is traced")
	schema.SecretVar(fs, &c.Headers, "trace.headers",
		"`headers` that the collector asks for: name=value, separated by commas, values as in a URL")
	fs.Float64Var(&c.Sample, "trace.sample", c.Sample,
		"`share` of the traces that are recorded, from 0 to 1, unless a trusted proxy decides")
}

// Validate returns every invalid setting.
func (c *Config) Validate() error {
	var errs []error
	if _, err := c.endpoint(); err != nil {
		errs = append(errs, fmt.Errorf("-trace.endpoint: %w", err))
	}
	if _, err := c.headers(); err != nil {
		errs = append(errs, fmt.Errorf("-trace.headers: %w", err))
	}
	if !(c.Sample >= 0 && c.Sample <= 1) { // NaN is refused, too
		errs = append(errs, fmt.Errorf("-trace.sample: %v is not between 0 and 1", c.Sample))
	}
	return errors.Join(errs...)
}

// tracesPath is appended to an endpoint for all signals.
const tracesPath = "/v1/traces"

// endpoint returns the URL to which spans are posted, "" for none.
func (c *Config) endpoint() (string, error) {
	text := cmp.Or(c.Endpoint, os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"))
	if base := os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"); text == "" && base != "" {
		text = strings.TrimSuffix(base, "/") + tracesPath
	}
	if text == "" {
		return "", nil
	}
	protocol := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"))
	if c.Endpoint == "" && protocol != "" && protocol != "http/protobuf" {
		return "", fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q, and only http/protobuf is spoken", protocol)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "", errors.New("is no URL") // the error would quote a password
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", fmt.Errorf("%q is no URL with http or https and a host", u.Redacted())
	case u.User != nil:
		return "", fmt.Errorf("%q has a user: use -trace.headers", u.Redacted())
	}
	return text, nil
}

// headers returns the headers of each request.
func (c *Config) headers() (map[string]string, error) {
	text := cmp.Or(c.Headers, os.Getenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS"), os.Getenv("OTEL_EXPORTER_OTLP_HEADERS"))
	headers := map[string]string{}
	for pair := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' }) {
		name, value, found := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if !found || err != nil || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(decoded) {
			return nil, errors.New("is not of the form name=value,name=value") // the values are secret
		}
		headers[name] = decoded
	}
	return headers, nil
}
