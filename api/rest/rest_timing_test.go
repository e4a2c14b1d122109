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
	"linkstream/api/httpmetrics"
	"linkstream/api/ratelimit"
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

// BenchmarkShorten measures a request without its network and its store.
func BenchmarkShorten(b *testing.B) {
	log := slog.New(slog.DiscardHandler)
	tokens, err := auth.NewAuthenticator(instant{})
	testkit.Must(b, err)
	defer tokens.Close()
	blocked, err := blocklist.Open("", log)
	testkit.Must(b, err)
	shortener := shorten.New(schema.MustParseBaseURL(edgeURL), instant{}, instant{}, blocked)
	testkit.Must(b, err)
	api := rest.New(tokens, ratelimit.NewRequestLimiter(instant{}), shortener, instant{}, nil, rest.Reports{}, httpmetrics.NewRecorder(metrics.NewSet()), log)
	secret, _ := auth.NewToken(1, "")
	gate := admission.NewGate(metrics.NewSet())
	var http fasthttp.RequestCtx
	http.Request.Header.SetMethod(fasthttp.MethodPost)
	http.Request.SetRequestURI("/api/v1/shorten")
	http.Request.Header.SetContentType("application/json")
	http.Request.Header.Set("Authorization", "Bearer "+secret)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		http.ResetUserValues()
		http.Response.Reset()
		http.Request.SetBody(fmt.Appendf(nil, `{"long_url": "https://example.org/a/path/of/some/length?with=a&n=%d"}`, n))
		pass, err := gate.Enter(api.Credential(&http), netip.Addr{})
		testkit.Must(b, err)
		api.Handle(&http, pass)
		pass.Leave()
		if status := http.Response.StatusCode(); status != fasthttp.StatusCreated {
			b.Fatalf("status %d: %s", status, http.Response.Body())
		}
	}
}
