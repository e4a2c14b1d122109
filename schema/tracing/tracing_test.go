package tracing_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"linkstream/schema/service"
	"linkstream/schema/span"
	"linkstream/schema/testkit"
	"linkstream/schema/tracing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// program is a program that traces.
type program struct {
	*tracing.Tracer
	ctx     context.Context
	log     *testkit.Buffer
	metrics func() string
}

func start(t testing.TB, cfg tracing.Config) *program {
	t.Helper()
	p := &program{log: new(testkit.Buffer)}
	log := slog.New(slog.NewTextHandler(p.log, nil))
	var sets []*metrics.Set
	var err error
	p.Tracer, err = tracing.Start(cfg, "test", func(set *metrics.Set) { sets = append(sets, set) }, log)
	testkit.Must(t, err)
	t.Cleanup(p.Close)
	p.ctx = p.Context(context.Background())
	p.metrics = func() string {
		var text bytes.Buffer
		for _, set := range sets {
			set.WritePrometheus(&text)
		}
		return text.String()
	}
	return p
}

func config(endpoint string) tracing.Config {
	cfg := tracing.DefaultConfig()
	cfg.Endpoint = endpoint
	return cfg
}

// record records a span without anything below it.
func (p *program) record(ctx context.Context, name string) {
	_, s := span.Root(ctx, name, trace.SpanKindServer, time.Now())
	s.End()
}

// request records the span of a request with the client's headers.
func (p *program) request(traceparent, tracestate string, trusted bool, name string) {
	_, s := p.Request(context.Background(), traceparent, tracestate, trusted)
	s.SetName(name)
	s.End()
}

func named(name string) func(sentSpan) bool {
	return func(s sentSpan) bool { return s.Name == name }
}

func TestTracer(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=staging")
	collector := startCollector(t)
	cfg := config(collector.URL)
	cfg.Headers = "authorization=Bearer%20secret, x-team = links"
	p := start(t, cfg)

	began := time.Now().Add(-time.Second)
	ctx, root := span.Root(p.ctx, "request", trace.SpanKindServer, began)
	_, child := span.Start(ctx, "query", trace.SpanKindClient)
	child.SetAttributes(attribute.String("text", strings.Repeat("x", 5000)))
	child.SetAttributes(attribute.String("hostile", "a\xffb"))
	child.SetAttributes(attribute.Int64("rows", 7))
	span.Fail(child, errors.New("away"))
	child.End()
	root.SetName("GET /links\xff")
	root.End()

	query := collector.Await(t, "query", named("query"))
	request := collector.Await(t, "request", func(s sentSpan) bool { return s.Parent == "" })
	t.Run("sends a span with its attributes, its error and its times", func(t *testing.T) {
		testkit.Equal(t, "trace", query.Trace, request.Trace)
		testkit.Equal(t, "parent", query.Parent, request.ID)
		testkit.Equal(t, "kinds", request.Kind+" "+query.Kind, "server client")
		testkit.Equal(t, "failure", query.Failure, "away")
		testkit.Equal(t, "no failure", request.Failure, "")
		testkit.Equal(t, "rows", query.Attributes["rows"], "7")
		testkit.Equal(t, "length of a long text", len(query.Attributes["text"]), 2048)
		testkit.Equal(t, "begin", request.Began.UnixNano(), began.UnixNano())
		if request.Ended.Before(query.Ended) || query.Ended.Before(query.Began) || query.Began.Before(request.Began) {
			t.Errorf("the times are %v and %v", request, query)
		}
	})
	t.Run("makes UTF-8 of every text", func(t *testing.T) {
		testkit.Equal(t, "attribute", query.Attributes["hostile"], "a\uFFFDb")
		testkit.Equal(t, "name", request.Name, "GET /links\uFFFD")
	})
	t.Run("names the program, and the attributes of the environment", func(t *testing.T) {
		testkit.Equal(t, "service", request.Program["service.name"], "linkstream-test")
		testkit.Equal(t, "version", request.Program["service.version"], service.Version())
		testkit.Equal(t, "environment", request.Program["deployment.environment.name"], "staging")
	})
	t.Run("sends the headers", func(t *testing.T) {
		header := collector.Requests()[0]
		testkit.Equal(t, "authorization", header.Get("Authorization"), "Bearer secret")
		testkit.Equal(t, "team", header.Get("X-Team"), "links")
	})
	t.Run("counts the spans that were sent", func(t *testing.T) {
		testkit.Eventually(t, "two spans are counted", func() bool {
			return strings.Contains(p.metrics(),
				"linkstream_trace_spans_sent_total 2\n")
		})
	})
	if p.log.Contains("secret") {
		t.Errorf("the log has a secret:\n%s", p.log)
	}
}

func TestOff(t *testing.T) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
		t.Setenv(name, "")
	}
	p := start(t, tracing.DefaultConfig())
	if p.Tracer != nil || span.Enabled(p.ctx) || strings.Contains(p.metrics(), "linkstream_trace") {
		t.Error("something is traced")
	}
}

const client = "4bf92f3577b34da6a3ce929d0e0e4736"

func TestContinue(t *testing.T) {
	t.Parallel()
	collector := startCollector(t)
	cfg := config(collector.URL)
	cfg.Sample = 0
	never := start(t, cfg)
	cfg.Sample = 1
	always := start(t, cfg)
	header := func(trace, flags string) string { return "00-" + trace + "-00f067aa0ba902b7-" + flags }

	always.request(header(client, "01"), "", true, "trusted")
	always.request(header(client, "00"), "", true, "trusted and not to be recorded")
	always.request(header(client, "01"), "", false, "not trusted")
	always.request("no-trace", "", true, "invalid")
	always.request("", "", true, "none")
	never.request(header(client, "01"), "", false, "not trusted and not sampled")
	never.request(header(client, "01"), "a=b", true, "trusted and recorded")
	always.Close()
	never.Close()

	got := map[string]string{}
	for _, s := range collector.Spans() {
		got[s.Name] = fmt.Sprint("same=", s.Trace == client, " parent=", s.Parent, " links=", s.Links)
	}
	testkit.Equal(t, "spans", got, map[string]string{
		"trusted":              "same=true parent=00f067aa0ba902b7 links=[]",
		"not trusted":          "same=false parent= links=[" + client + "]",
		"invalid":              "same=false parent= links=[]",
		"none":                 "same=false parent= links=[]",
		"trusted and recorded": "same=true parent=00f067aa0ba902b7 links=[]",
	})
}

func FuzzContinue(f *testing.F) {
	f.Add("00-"+client+"-00f067aa0ba902b7-01", "a=b,c=d", true)
	f.Add("00-"+client+"-00f067aa0ba902b7-01", "", false)
	f.Add("ff-00-00-00", "=,=", true)
	collector := startCollector(f)
	p := start(f, config(collector.URL))
	f.Fuzz(func(t *testing.T, traceparent, tracestate string, trusted bool) {
		ctx, s := p.Request(t.Context(), traceparent, tracestate, trusted)
		defer s.End()
		if !span.Active(ctx) {
			t.Error("the headers change whether spans are begun")
		}
	})
}

// refuse makes the collector answer with a status.
func refuse(status int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { w.WriteHeader(status) }
}

func TestFailures(t *testing.T) {
	t.Parallel()
	t.Run("a collector that is busy gets the spans again", func(t *testing.T) {
		t.Parallel()
		collector := startCollector(t)
		collector.Answer(refuse(http.StatusServiceUnavailable))
		p := start(t, config(collector.URL))
		p.record(p.ctx, "late")
		testkit.Eventually(t, "a second request", func() bool { return len(collector.Requests()) > 1 })
		collector.Answer(nil)
		collector.Await(t, "span", named("late"))
		p.Close()
		if !strings.Contains(p.metrics(), "linkstream_trace_spans_sent_total 1\n") {
			t.Error(p.metrics())
		}
	})
	t.Run("a collector that refuses spans gets them once", func(t *testing.T) {
		t.Parallel()
		collector := startCollector(t)
		collector.Answer(refuse(http.StatusUnauthorized))
		p := start(t, config(collector.URL))
		p.record(p.ctx, "refused")
		p.Close()
		testkit.Equal(t, "requests", len(collector.Requests()), 1)
		if !strings.Contains(p.metrics(), `linkstream_trace_spans_dropped_total{reason="failed"} 1`) ||
			!p.log.Contains("401 Unauthorized") {
			t.Errorf("%s\n%s", p.metrics(), p.log)
		}
	})
	t.Run("a collector that hangs blocks nobody, and bounds the queue", func(t *testing.T) {
		t.Parallel()
		listener, err := net.Listen("tcp", "127.0.0.1:0") // accepts and never answers
		testkit.Must(t, err)
		defer listener.Close()
		cfg := config("http://" + listener.Addr().String())
		cfg.Queue, cfg.Timeout = 10, 300*time.Millisecond
		const spans = 2000
		var p *program
		testkit.Takes(t, 10*time.Second, func(int) {
			p = start(t, cfg)
			for range spans {
				p.record(p.ctx, "lost")
			}
			p.Close()
		})
		var full, failed int
		for line := range strings.Lines(p.metrics()) {
			_, _ = fmt.Sscanf(line, `linkstream_trace_spans_dropped_total{reason="full"} %d`, &full)
			_, _ = fmt.Sscanf(line, `linkstream_trace_spans_dropped_total{reason="failed"} %d`, &failed)
		}
		if full+failed != spans || full == 0 || failed == 0 {
			t.Errorf("%d spans did not fit and %d failed, of %d", full, failed, spans)
		}
		testkit.Equal(t, "warnings", p.log.Count("cannot send traces"), 1)
	})
}
