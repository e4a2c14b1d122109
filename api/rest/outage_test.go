package rest_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
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

// wantOutage requires 503 with a message that names the failed action, and not the cause.
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
	s := startFaulty(t, storetest.FaultOf(down, "Links", "OwnedLinks", "CreateLink"))
	owner := s.caller(t, "a@example.org")
	wantOutage(t, owner.get(t, "/api/v1/links"), "Links cannot be read")
	wantOutage(t, owner.get(t, "/api/v1/stats/known"), "Links cannot be read")
	wantOutage(t, owner.shorten(t, map[string]any{"long_url": "https://example.com/"}), "Links cannot be created")
	t.Run("invalid requests are still answered as such", func(t *testing.T) {
		owner.shorten(t, map[string]any{"long_url": "ftp://example.com/"}).wantInvalid(t, "long_url")
	})
}

func TestOutageOfTokensAndRateLimit(t *testing.T) {
	for method, what := range map[string]string{
		"TokenByDigest": "API tokens cannot be checked", "LeaseRequests": "The rate limit cannot be checked",
	} {
		s := startFaulty(t, storetest.FaultOf(down, method))
		a := s.caller(t, "a@example.org").get(t, "/api/v1/links")
		wantOutage(t, a, what)
		if method == "LeaseRequests" {
			testkit.Equal(t, "requests left", remaining(t, a), 0)
		}
	}
}

func TestOutageOfClicks(t *testing.T) {
	for name, fail := range map[string]func(context.Context) error{"down": down, "hanging": hang} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startFaulty(t, storetest.FaultOf(fail, "LinkStats", "ClickCounts"))
			owner := s.caller(t, "a@example.org")
			hash := owner.link(t, map[string]any{"long_url": "https://example.com/"})
			for _, path := range []string{"/api/v1/links", "/api/v1/stats/" + hash} {
				testkit.Takes(t, storetest.Promptly, func(int) { wantOutage(t, owner.get(t, path), "Clicks cannot be read") })
			}
			if !strings.Contains(s.log.String(), "secret cause") {
				t.Errorf("log %s", s.log)
			}
			owner.get(t, "/api/v1/stats/unknown").want(t, http.StatusNotFound)
		})
	}
}
