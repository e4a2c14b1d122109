package rest_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"linkstream/api/admission"
	"linkstream/api/auth"
	"linkstream/api/ratelimit"
	"linkstream/api/request"
	"linkstream/api/rest"
	"linkstream/api/shorten"
	"linkstream/schema"
	"linkstream/schema/blocklist"
	"linkstream/schema/testkit"
)

// instant is a database that answers at once. What a store costs is measured by the stores' benchmarks.
type instant struct{ schema.Database }

func (instant) TokenByDigest(context.Context, [32]byte) (schema.Token, schema.Account, error) {
	return schema.Token{ID: 1, AccountID: 1}, schema.Account{ID: 1}, nil
}

func (instant) LeaseRequests(context.Context, int64, time.Time, int) (granted, left int, err error) {
	return 1 << 60, 1 << 60, nil
}

func (instant) VerifiedDomain(context.Context, string) (schema.Domain, error) {
	return schema.Domain{}, schema.Errorf(schema.CodeNotFound, "none")
}

func (instant) CreateLink(context.Context, *schema.Link) error { return nil }

func (instant) VerifiedHosts(context.Context, []string) ([]string, error) { return nil, nil }

func (instant) CreateLinks(_ context.Context, batch *schema.LinkBatch) error {
	batch.Errs = make([]error, len(batch.Links))
	for i := range batch.Links {
		batch.Links[i].Hash = batch.NewHash()
	}
	return nil
}

// BenchmarkShorten measures a request without its network and its store.
func BenchmarkShorten(b *testing.B) {
	post := newBenchmark(b, "/api/v1/shorten", fasthttp.StatusCreated)
	for n := 0; b.Loop(); n++ {
		post(fmt.Appendf(nil, `{"long_url": "https://example.org/a/path/of/some/length?with=a&n=%d"}`, n))
	}
}

// BenchmarkBulk measures a request for a thousand links without its network and its store.
func BenchmarkBulk(b *testing.B) {
	post := newBenchmark(b, pathBulk, fasthttp.StatusOK)
	body := []byte(`{"links":[`)
	for n := range schema.MaxLinkBatch {
		body = fmt.Appendf(body, `{"long_url": "https://example.org/a/path/of/some/length?with=a&n=%d"},`, n)
	}
	body = append(body[:len(body)-1], "]}"...)
	for b.Loop() {
		post(body)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/schema.MaxLinkBatch, "µs/link")
}

// newBenchmark returns a function that sends a request with a body.
func newBenchmark(b *testing.B, path string, status int) (post func(body []byte)) {
	log := slog.New(slog.DiscardHandler)
	tokens, err := auth.NewAuthenticator(instant{})
	testkit.Must(b, err)
	b.Cleanup(tokens.Close)
	blocked, err := blocklist.Open("", log)
	testkit.Must(b, err)
	shortener := shorten.New(schema.MustParseBaseURL(edgeURL), instant{}, instant{}, blocked)
	api := rest.New(tokens, ratelimit.NewRequestLimiter(instant{}), shortener, instant{}, nil, nil, nil, nil, nil,
		request.NewRecorder(metrics.NewSet()), log)
	secret, _ := auth.NewToken(1, "")
	gate := admission.NewGate(metrics.NewSet())
	var http fasthttp.RequestCtx
	http.Request.Header.SetMethod(fasthttp.MethodPost)
	http.Request.SetRequestURI(path)
	http.Request.Header.SetContentType("application/json")
	http.Request.Header.Set("Authorization", "Bearer "+secret)
	b.ReportAllocs()
	return func(body []byte) {
		http.ResetUserValues()
		http.Response.Reset()
		http.Request.SetBody(body)
		pass, err := gate.Enter(api.Credential(&http), netip.Addr{})
		testkit.Must(b, err)
		api.Handle(&http, pass)
		pass.Leave()
		if got := http.Response.StatusCode(); got != status {
			b.Fatalf("status %d: %s", got, http.Response.Body())
		}
	}
}
