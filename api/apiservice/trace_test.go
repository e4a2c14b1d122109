package apiservice_test

import (
	"log/slog"
	"net/http"
	"testing"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"linkstream/api/apiservice"
	"linkstream/schema/testkit"
	"linkstream/schema/tracing/tracingtest"
)

func TestTraces(t *testing.T) {
	const client = "4bf92f3577b34da6a3ce929d0e0e4736"
	links, clicks := openStores(t)
	recorder := tracingtest.New(t)
	log := slog.New(slog.DiscardHandler)
	token := addToken(t, links)

	// serve serves behind proxies that are trusted, and returns how to ask and to stop.
	serve := func(proxies string) (ask func(method, path, id string), stop func()) {
		cfg := config()
		cfg.Tracer = recorder.Tracer
		testkit.Must(t, cfg.TrustedProxies.Set(proxies))
		s, err := apiservice.New(cfg, links, clicks, nil, log)
		testkit.Must(t, err)
		end := run(s)
		return func(method, path, id string) {
			req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Addr()+path, nil)
			testkit.Must(t, err)
			req.Header.Set("Authorization", "Bearer "+token)
			req.Header.Set("X-Request-Id", id)
			req.Header.Set("Traceparent", "00-"+client+"-00f067aa0ba902b7-01")
			res, err := http.DefaultClient.Do(req)
			testkit.Must(t, err)
			res.Body.Close()
		}, func() { testkit.Must(t, end()) }
	}
	requests := []struct{ id, method, path, name, status string }{
		{"links", http.MethodGet, "/api/v1/links", "GET /api/v1/links", "200"},
		{"stats", http.MethodGet, "/api/v1/stats/nothing", "GET /api/v1/stats/{hash}", "404"},
		{"nowhere", http.MethodGet, "/nowhere", "GET other", "404"},
		{"page", http.MethodGet, "/dashboard/sign-in", "GET /dashboard/sign-in", "200"},
		{"method", "PURGE", "/dashboard/sign-in", "_OTHER other", "405"},
	}
	ask, stop := serve("")
	for _, r := range requests {
		ask(r.method, r.path, r.id)
	}
	behind, stopBehind := serve("127.0.0.1")
	behind(http.MethodGet, "/api/v1/links", "behind")
	testkit.Must(t, clicks.Close())
	ask(http.MethodGet, "/api/v1/report", "fails")
	stop()
	stopBehind()

	of := func(t *testing.T, id string) tracetest.SpanStub {
		return recorder.Await(t, id, func(s tracetest.SpanStub) bool {
			return tracingtest.Attribute(s, "linkstream.request_id") == id
		})
	}
	const status = "http.response.status_code"
	for _, r := range requests {
		t.Run(r.method+" "+r.path, func(t *testing.T) {
			s := of(t, r.id)
			testkit.Equal(t, "name", s.Name, r.name)
			testkit.Equal(t, "kind", s.SpanKind, trace.SpanKindServer)
			testkit.Equal(t, "status", tracingtest.Attribute(s, status), r.status)
			testkit.Equal(t, "failed", s.Status.Code, codes.Unset)
			id := s.SpanContext.TraceID().String()
			if id == client || len(s.Links) != 1 || s.Links[0].SpanContext.TraceID().String() != client {
				t.Errorf("a client that is not trusted decides: trace %s, links %v", id, s.Links)
			}
		})
	}
	t.Run("the trace of a proxy goes on", func(t *testing.T) {
		s := of(t, "behind")
		testkit.Equal(t, "trace", s.SpanContext.TraceID().String(), client)
		testkit.Equal(t, "parent", s.Parent.SpanID().String(), "00f067aa0ba902b7")
	})
	t.Run("an error of the service is an error of the span", func(t *testing.T) {
		if s := of(t, "fails"); tracingtest.Attribute(s, status) < "500" || s.Status.Code != codes.Error {
			t.Errorf("%+v", s)
		}
	})
}
