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
	var called sync.Map // methods: the others cannot fail
	s := startFaulty(t, func(_ context.Context, method string) error {
		called.Store(method, true)
		if f := failing.Load(); f != nil && f.method == method {
			failed.Store(true)
			return f.err
		}
		return nil
	})
	owner := s.caller(t, "a@example.org")
	domain := owner.addDomain(t, "go.example.org", true)
	hash := owner.link(t, map[string]any{"long_url": "https://example.com/", "tags": []string{"tag"}})
	hosts := 0 // each is looked up once in a while
	requests := func(t *testing.T) (answers []answer) {
		for _, path := range []string{"/api/v1/links", "/api/v1/links?page=2", "/api/v1/links?q=x", "/api/v1/links?sort=-clicks", "/api/v1/tags", "/api/v1/stats/" + hash,
			fmt.Sprintf("/api/v1/stats/%s?domain_id=%d", hash, domain)} {
			answers = append(answers, owner.get(t, path))
		}
		unknown := owner
		unknown.token = fmt.Sprintf("ls_unknown%d", hosts)
		answers = append(answers, unknown.get(t, "/api/v1/links"))
		for _, fields := range []map[string]any{{}, {"custom_alias": fmt.Sprintf("alias-%d", hosts)}, {"domain_id": domain}} {
			hosts++
			fields["long_url"] = fmt.Sprintf("https://host%d.example/", hosts)
			answers = append(answers, owner.shorten(t, fields))
		}
		hosts++
		answers = append(answers, owner.request(t, http.MethodPost, pathBulk,
			fmt.Sprintf(`{"links":[{"long_url":"https://host%d.example/","domain_id":%d}]}`, hosts, domain)))
		answers = append(answers, owner.keyed(t, pathShorten, fmt.Sprint(hosts), fmt.Sprintf(`{"long_url":"https://host%d.example/"}`, hosts)))
		answers = append(answers, owner.patch(t, "/api/v1/links/"+hash, `{"title":"x"}`))
		doomed, _ := owner.shorten(t, map[string]any{"long_url": "https://example.com/"}).body["hash"].(string)
		answers = append(answers, owner.request(t, http.MethodDelete, "/api/v1/links/"+doomed, ""))
		return answers
	}
	requests(t)
	reached := map[string]bool{}
	methods := append(storetest.Methods[schema.Database](), storetest.Methods[schema.ClickStore]()...)
	for _, code := range codes {
		t.Run(string(code), func(t *testing.T) {
			for _, method := range methods {
				if _, ok := called.Load(method); !ok {
					continue
				}
				owner.addToken(t) // the last one may be remembered as unknown
				failed.Store(false)
				failing.Store(&failure{method, schema.Errorf(code, secret)})
				for _, a := range requests(t) {
					if strings.Contains(a.raw+fmt.Sprint(a.header), secret) {
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
	for _, method := range []string{"TokenByDigest", "VerifiedDomain", "Domain", "CreateLink", "CreateLinks", "RecordedCall", "VerifiedHosts", "Links", "OwnedLink", "UpdateLink", "DeleteLink", "FindLinks",
		"FindLinkIDs", "TagCounts", "TaggedLinks", "LinksByID", "Domains",
		"LinkStats", "ClickCounts"} {
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
