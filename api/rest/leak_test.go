package rest_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"linkstream/schema"
	"linkstream/schema/storetest"
)

func TestDomainDeletedBeforeTheLinkIsStored(t *testing.T) {
	var s *testService
	var domain int64
	s = startFaulty(t, func(ctx context.Context, method string) error {
		if method == "CreateLink" {
			return s.links.DeleteDomain(ctx, domain)
		}
		return nil
	})
	owner := s.caller(t, "a@example.org")
	for _, alias := range []string{"", "chosen"} {
		domain = owner.addDomain(t, "go.example.org", true)
		fields := map[string]any{"long_url": "https://example.com/", "domain_id": domain}
		if alias != "" {
			fields["custom_alias"] = alias
		}
		owner.shorten(t, fields).wantInvalid(t, "domain_id")
	}
}

var codes = []schema.Code{schema.CodeInvalid, schema.CodeUnauthorized, schema.CodeForbidden, schema.CodeNotFound,
	schema.CodeConflict, schema.CodeUnsafeURL, schema.CodeUnavailable, schema.CodeInternal}

// TestStoreErrorsStayInside lets each method of the stores fail with each code.
func TestStoreErrorsStayInside(t *testing.T) {
	const secret = "secret cause"
	type failure struct {
		method string
		err    error
	}
	var failing atomic.Pointer[failure]
	var failed atomic.Bool
	var called sync.Map // methods
	s := startFaulty(t, func(_ context.Context, method string) error {
		called.Store(method, true)
		if f := failing.Load(); f != nil && f.method == method {
			failed.Store(true)
			return f.err
		}
		return nil
	})
	owner := s.caller(t, "a@example.org")
	requests := requestsOf(t, &owner)
	// A request that does not call a method is answered alike whether or not the method fails.
	calls := map[string][]exchange{}
	for _, send := range requests {
		owner.addToken(t) // so that it is looked up
		called.Clear()
		send(t)
		called.Range(func(method, _ any) bool {
			calls[method.(string)] = append(calls[method.(string)], send)
			return true
		})
	}
	reached := map[string]bool{}
	methods := append(storetest.Methods[schema.Database](), storetest.Methods[schema.ClickStore]()...)
	for _, code := range codes {
		t.Run(string(code), func(t *testing.T) {
			for _, method := range methods {
				if calls[method] == nil {
					continue
				}
				owner.addToken(t) // the last one may be remembered as unknown
				failed.Store(false)
				failing.Store(&failure{method, schema.Errorf(code, secret)})
				for _, send := range calls[method] {
					if a := send(t); strings.Contains(a.raw+fmt.Sprint(a.header), secret) {
						t.Errorf("%s fails: %d %s", method, a.status, a.raw)
					}
				}
				failing.Store(nil)
				if failed.Load() {
					reached[method] = true
				}
			}
		})
	}
	for _, method := range []string{"TokenByDigest", "VerifiedDomain", "Domain", "CreateLink", "CreateLinks",
		"RecordedCall", "VerifiedHosts", "Links", "UpdateLink", "DeleteLink", "OwnedLinks", "ChangeLinks", "RestoreLink",
		"CreateShare", "Shares", "Share", "DeleteShare", "LinkIDs", "TagCounts", "TaggedLinks", "LinksByID", "Domains",
		"LimitUse", "LinkStats", "ClickCounts"} {
		if !reached[method] {
			t.Errorf("%s never failed", method)
		}
	}
	if !strings.Contains(s.log.String(), secret) {
		t.Error("the log does not have the cause")
	}
	owner.addToken(t)
	owner.get(t, "/api/v1/links").want(t, http.StatusOK)
}

// exchange sends a request. It makes what it needs, so it may be sent often.
type exchange func(t *testing.T) answer

// requestsOf returns requests that call all methods of stores that the API calls.
func requestsOf(t *testing.T, owner *caller) (requests []exchange) {
	t.Helper()
	domain := owner.addDomain(t, "go.example.org", true)
	hash := owner.link(t, map[string]any{"long_url": "https://example.com/", "tags": []string{"tag"}})
	limited := owner.link(t, map[string]any{"long_url": "https://example.com/", "max_clicks": 5})
	for _, path := range []string{"/api/v1/links", "/api/v1/links/" + limited, "/api/v1/links?page=2", "/api/v1/links?q=x",
		"/api/v1/links?sort=-clicks", "/api/v1/tags", "/api/v1/stats/" + hash,
		fmt.Sprintf("/api/v1/stats/%s?domain_id=%d", hash, domain)} {
		requests = append(requests, func(t *testing.T) answer { return owner.get(t, path) })
	}
	sent := 0
	next := func() (longURL string) { // each host is looked up once in a while
		sent++
		return fmt.Sprintf("https://host%d.example/", sent)
	}
	for _, fields := range []func() map[string]any{
		func() map[string]any { return map[string]any{"long_url": next()} },
		func() map[string]any {
			return map[string]any{"long_url": next(), "custom_alias": fmt.Sprintf("alias-%d", sent)}
		},
		func() map[string]any { return map[string]any{"long_url": next(), "domain_id": domain} },
	} {
		requests = append(requests, func(t *testing.T) answer { return owner.shorten(t, fields()) })
	}
	return append(requests,
		func(t *testing.T) answer {
			unknown := *owner
			sent++
			unknown.token = fmt.Sprintf("ls_unknown%d", sent)
			return unknown.get(t, "/api/v1/links")
		},
		func(t *testing.T) answer {
			return owner.request(t, http.MethodPost, pathBulk, fmt.Sprintf(`{"links":[{"long_url":%q,"domain_id":%d}]}`, next(),
				domain))
		},
		func(t *testing.T) answer {
			return owner.keyed(t, pathShorten, next(), fmt.Sprintf(`{"long_url":%q}`, next()))
		},
		func(t *testing.T) answer { return owner.patch(t, "/api/v1/links/"+hash, `{"title":"x"}`) },
		func(t *testing.T) answer {
			made := owner.request(t, http.MethodPost, "/api/v1/shares", "{}")
			share, _ := made.body["share"].(map[string]any)
			path := fmt.Sprintf("/api/v1/shares/%v", share["id"])
			owner.get(t, path)
			made.raw += owner.request(t, http.MethodDelete, path, "").raw
			return made
		},
		func(t *testing.T) answer { return owner.get(t, "/api/v1/shares") },
		func(t *testing.T) answer { return owner.get(t, "/api/v1/shares/1") },
		func(t *testing.T) answer {
			doomed, _ := owner.shorten(t, map[string]any{"long_url": "https://example.com/"}).body["hash"].(string)
			return owner.request(t, http.MethodDelete, "/api/v1/links/"+doomed, "")
		},
		func(t *testing.T) answer {
			return owner.request(t, http.MethodPost, pathBulk+"/edit", fmt.Sprintf(`{"links":[{"hash":%q}],"set":{"title":"x"}}`,
				hash))
		},
		func(t *testing.T) answer {
			doomed, _ := owner.shorten(t, map[string]any{"long_url": "https://example.com/"}).body["hash"].(string)
			owner.request(t, http.MethodDelete, "/api/v1/links/"+doomed, "")
			return owner.request(t, http.MethodPost, "/api/v1/links/"+doomed+"/restore", "")
		})
}
