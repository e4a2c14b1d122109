package rest_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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

func TestOutageOfImportedClicks(t *testing.T) {
	s := startFaulty(t, storetest.FaultOf(down, "SetHistories", "DeleteHistory", "History"))
	owner := s.caller(t, "a@example.org")
	path := "/api/v1/links/" + owner.link(t, map[string]any{"long_url": "https://example.com/"}) + "/history/bitly"
	wantOutage(t, owner.request(t, http.MethodPut, path, `{"days":[]}`), "Clicks cannot be changed")
	wantOutage(t, owner.request(t, http.MethodDelete, path, ""), "Clicks cannot be changed")
	wantOutage(t, owner.get(t, path), "Clicks cannot be read")
}

// TestOutageAfterCommit has stores that fail as soon as a call has done its work: the call succeeds, and is prompt.
func TestOutageAfterCommit(t *testing.T) {
	for name, fail := range map[string]func(context.Context) error{"down": down, "hanging": hang} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testkit.Promptly(t, func(within testkit.Within) { failAfterCommit(t, fail, within) })
		})
	}
}

func failAfterCommit(t *testing.T, fail func(context.Context) error, within testkit.Within) {
	t.Helper()
	var commit atomic.Pointer[string] // the method of the store that does the work
	var done atomic.Bool
	s := startFaulty(t, func(ctx context.Context, method string) error {
		switch work := commit.Load(); {
		case work == nil:
		case *work == method:
			done.Store(true)
		case done.Load():
			return fail(ctx)
		}
		return nil
	})
	owner := s.caller(t, "a@example.org")
	owner.link(t, map[string]any{"long_url": anyURL, "custom_alias": "one", "max_clicks": 5})
	webhook := owner.request(t, http.MethodPost, "/api/v1/webhooks", newWebhook).body["webhook"].(map[string]any)
	share := owner.request(t, http.MethodPost, "/api/v1/shares", "{}").body["share"].(map[string]any)
	hook, link := fmt.Sprint("/api/v1/webhooks/", webhook["id"]), "/api/v1/links/one"
	const one = `{"links":[{"hash":"one"}]`
	for _, c := range []struct {
		work, method, path, body string
		status                   int
	}{
		{"CreateLink", http.MethodPost, "/api/v1/shorten", `{"long_url":"https://example.com/"}`, 201},
		{"CreateLinks", http.MethodPost, "/api/v1/links/bulk", `{"links":[{"long_url":"https://example.com/"}]}`, 200},
		{"UpdateLink", http.MethodPatch, link, `{"title":"new"}`, 200},
		{"ChangeLinks", http.MethodPost, "/api/v1/links/bulk/edit", one + `,"set":{"title":"newer"}}`, 200},
		{"ChangeLinks", http.MethodPost, "/api/v1/links/bulk/delete", one + `}`, 200},
		{"RestoreLink", http.MethodPost, link + "/restore", "", 200},
		{"RestoreLink", http.MethodPost, link + "/restore", "", 200},
		{"DeleteLink", http.MethodDelete, link, "", 200},
		{"CreateWebhook", http.MethodPost, "/api/v1/webhooks", newWebhook, 201},
		{"UpdateWebhook", http.MethodPatch, hook, `{"people_only":false}`, 200},
		{"TestWebhook", http.MethodPost, hook + "/test", "", 202},
		{"RotateSecret", http.MethodPost, hook + "/rotate", "", 200},
		{"DeleteWebhook", http.MethodDelete, hook, "", 200},
		{"CreateShare", http.MethodPost, "/api/v1/shares", "{}", 201},
		{"DeleteShare", http.MethodDelete, fmt.Sprint("/api/v1/shares/", share["id"]), "", 200},
	} {
		commit.Store(&c.work)
		var a answer
		within(c.method+" "+c.path, time.Second, func() { a = owner.request(t, c.method, c.path, c.body) })
		commit.Store(nil)
		if a.status != c.status || !done.Swap(false) {
			t.Errorf("%s %s: %d %s", c.method, c.path, a.status, a.raw)
		}
		if full, _ := a.body["link"].(map[string]any); full != nil {
			wantLink(t, full, map[string]any{"hash": "one", "clicks": nil, "clicks_left": nil})
		}
	}
}

const newWebhook = `{"url":"https://example.com/hook","events":["link.created"]}`
