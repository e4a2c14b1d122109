package rest_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"linkstream/api/apiservice"
	"linkstream/schema"
	"linkstream/schema/sqlite"
)

// down is a store that is unavailable.
func down(context.Context) error {
	return schema.Errorf(schema.CodeUnavailable, "secret cause")
}

// hang is a store that does not answer before the deadline.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return down(ctx)
}

// Stores of which some methods fail.
type failingClicks struct {
	*sqlite.ClickStore
	fail func(context.Context) error
}

func (s failingClicks) LinkStats(ctx context.Context, _ int64) (schema.Stats, error) {
	return schema.Stats{}, s.fail(ctx)
}

func (s failingClicks) ClickCounts(ctx context.Context, _ []int64) (map[int64]int64, error) {
	return nil, s.fail(ctx)
}

type failingLinks struct{ linkStore }

func (failingLinks) Links(ctx context.Context, _, _ int64) ([]schema.Link, int64, error) {
	return nil, 0, down(ctx)
}

func (failingLinks) OwnedLink(ctx context.Context, _ int64, _ string, _ *int64) (schema.Link, error) {
	return schema.Link{}, down(ctx)
}

func (failingLinks) CreateLink(ctx context.Context, _ *schema.Link) error { return down(ctx) }

type failingTokens struct{ linkStore }

func (failingTokens) TokenByDigest(ctx context.Context, _ [32]byte) (schema.Token, schema.Account, error) {
	return schema.Token{}, schema.Account{}, down(ctx)
}

func sameLinks(links *sqlite.Store) schema.Database { return links }

// wantOutage requires 503 with a message that says what cannot be done, and nothing about the cause.
func wantOutage(t *testing.T, a answer, what string) {
	t.Helper()
	a.wantKeys(t, http.StatusServiceUnavailable, "message")
	if want := what + " at the moment: try again in 5 seconds."; a.body["message"] != want {
		t.Errorf("message %q, want %q", a.body["message"], want)
	}
	if a.header.Get("Retry-After") != "5" {
		t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
	}
}

func TestOutageOfLinks(t *testing.T) {
	s := startOn(t, func(links *sqlite.Store) schema.Database { return failingLinks{links} })
	owner := s.caller(t, "a@example.org")
	wantOutage(t, owner.get(t, "/api/v1/links"), "Links cannot be read")
	wantOutage(t, owner.get(t, "/api/v1/stats/known"), "Links cannot be read")
	wantOutage(t, owner.shorten(t, map[string]any{"long_url": "https://example.com/"}), "Links cannot be created")
	t.Run("invalid requests are still answered as such", func(t *testing.T) {
		owner.shorten(t, map[string]any{"long_url": "ftp://example.com/"}).wantInvalid(t, "long_url")
	})
}

func TestOutageOfTokensAndRateLimit(t *testing.T) {
	for what, wrap := range map[string]func(*sqlite.Store) schema.Database{
		"API tokens cannot be checked":     func(links *sqlite.Store) schema.Database { return failingTokens{links} },
		"The rate limit cannot be checked": func(links *sqlite.Store) schema.Database { return noLeases{links} },
	} {
		s := startOn(t, wrap)
		wantOutage(t, s.caller(t, "a@example.org").get(t, "/api/v1/links"), what)
	}
}

func TestOutageOfClicks(t *testing.T) {
	for name, fail := range map[string]func(context.Context) error{"down": down, "hanging": hang} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startOnBoth(t, sameLinks, func(clicks *sqlite.ClickStore) apiservice.Clicks { return failingClicks{clicks, fail} })
			owner := s.caller(t, "a@example.org")
			hash := owner.link(t, map[string]any{"long_url": "https://example.com/"})
			for _, path := range []string{"/api/v1/links", "/api/v1/stats/" + hash} {
				begin := time.Now()
				wantOutage(t, owner.get(t, path), "Clicks cannot be read")
				if took := time.Since(begin); took > 8*time.Second {
					t.Errorf("answered after %v", took)
				}
			}
			if !strings.Contains(s.log.String(), "secret cause") {
				t.Errorf("log %s", s.log)
			}
			owner.get(t, "/api/v1/stats/unknown").want(t, http.StatusNotFound)
		})
	}
}
