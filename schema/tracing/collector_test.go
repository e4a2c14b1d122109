package tracing_test

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"linkstream/schema/testkit"
)

// sentSpan is a span as the collector gets it.
type sentSpan struct {
	Trace, ID, Parent string // in hexadecimal; Parent is "" for the first span of a trace
	Name, Kind        string
	Attributes        map[string]string
	Program           map[string]string // attributes of the resource
	Failure           string            // "" if the span has not failed
	Links             []string          // traces
	Began, Ended      time.Time
}

// collectorServer is a server that keeps the spans it gets.
type collectorServer struct {
	URL string

	mu      sync.Mutex
	spans   []sentSpan
	headers []http.Header
	answer  func(http.ResponseWriter) // nil: 200
}

// startCollector returns a collector that serves until the test ends.
func startCollector(t testing.TB) *collectorServer {
	t.Helper()
	c := new(collectorServer)
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.URL = server.URL + "/v1/traces"
	return c
}

// Answer makes the collector answer by f from now on, and keep nothing. With nil it works again.
func (c *collectorServer) Answer(f func(http.ResponseWriter)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = f
}

func (c *collectorServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	c.mu.Lock()
	c.headers = append(c.headers, req.Header)
	answer := c.answer
	c.mu.Unlock()
	if answer != nil {
		answer(w)
		return
	}
	spans, err := decode(body)
	if err != nil || req.URL.Path != "/v1/traces" || req.Method != http.MethodPost ||
		req.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, fmt.Sprint("no OTLP: ", err), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	c.spans = append(c.spans, spans...)
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// Spans returns the spans so far.
func (c *collectorServer) Spans() []sentSpan {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Requests returns the headers of the requests so far.
func (c *collectorServer) Requests() []http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.headers)
}

// Await waits for a span that matches, and returns it.
func (c *collectorServer) Await(t testing.TB, what string, matches func(sentSpan) bool) (found sentSpan) {
	t.Helper()
	testkit.Succeeds(t, func() error {
		spans := c.Spans()
		i := slices.IndexFunc(spans, matches)
		if i < 0 {
			return fmt.Errorf("no %s among %+v", what, spans)
		}
		found = spans[i]
		return nil
	})
	return found
}

func decode(body []byte) (spans []sentSpan, err error) {
	var req collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &req); err != nil {
		return nil, err
	}
	for _, resource := range req.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				decoded := sentSpan{Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId),
					Parent: hex.EncodeToString(s.ParentSpanId),
					Name:   s.Name, Kind: strings.ToLower(strings.TrimPrefix(s.Kind.String(), "SPAN_KIND_")),
					Attributes: attributes(s.Attributes),
					Program:    attributes(resource.Resource.Attributes), Began: time.Unix(0, int64(s.StartTimeUnixNano)),
					Ended: time.Unix(0, int64(s.EndTimeUnixNano))}
				if s.Status.GetCode() == otlp.Status_STATUS_CODE_ERROR {
					decoded.Failure = s.Status.Message
				}
				for _, link := range s.Links {
					decoded.Links = append(decoded.Links, hex.EncodeToString(link.TraceId))
				}
				spans = append(spans, decoded)
			}
		}
	}
	return spans, nil
}

func attributes(pairs []*common.KeyValue) map[string]string {
	decoded := map[string]string{}
	for _, a := range pairs {
		value := a.Value.GetStringValue()
		if _, number := a.Value.Value.(*common.AnyValue_IntValue); number {
			value = strconv.FormatInt(a.Value.GetIntValue(), 10)
		}
		decoded[a.Key] = value
	}
	return decoded
}
