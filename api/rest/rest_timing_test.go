package rest_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"linkstream/api/auth"
	"linkstream/api/ratelimit"
	"linkstream/api/rest"
	"linkstream/api/shorten"
	"linkstream/schema"
)

// idle is a database whose answers take no time: what they cost are the stores' benchmarks.
type idle struct{ schema.Database }

func (idle) TokenByDigest(context.Context, [32]byte) (schema.Token, schema.Account, error) {
	return schema.Token{ID: 1, AccountID: 1}, schema.Account{ID: 1}, nil
}

func (idle) LeaseRequests(context.Context, int64, time.Time, int) (granted, left int, err error) {
	return 1 << 60, 1 << 60, nil
}

func (idle) VerifiedDomain(context.Context, string) (schema.Domain, error) {
	return schema.Domain{}, schema.Errorf(schema.CodeNotFound, "none")
}

func (idle) CreateLink(context.Context, *schema.Link) error { return nil }

// BenchmarkShorten is what the API adds to the storing of a link, besides reading the request and sending the answer.
func BenchmarkShorten(b *testing.B) {
	log := slog.New(slog.DiscardHandler)
	tokens, err := auth.NewAuthenticator(idle{})
	if err != nil {
		b.Fatal(err)
	}
	defer tokens.Close()
	blocklist, err := shorten.OpenBlocklist(nil, log)
	if err != nil {
		b.Fatal(err)
	}
	shortener := shorten.New(schema.MustParseBaseURL(edgeURL), idle{}, idle{}, blocklist)
	if err != nil {
		b.Fatal(err)
	}
	api := rest.New(tokens, ratelimit.NewRequestLimiter(idle{}), shortener, idle{}, nil, metrics.NewSet(), log)
	secret, _ := auth.NewToken(1, "")
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
		api.Handle(&http)
		if status := http.Response.StatusCode(); status != fasthttp.StatusCreated {
			b.Fatalf("status %d: %s", status, http.Response.Body())
		}
	}
}
