package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"testing"
	"time"

	"linkstream/api/auth"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestScopes(t *testing.T) {
	s := start(t)
	owner := s.caller(t, "a@example.org")
	hash := owner.link(t, map[string]any{"long_url": anyURL})
	scoped := func(scopes ...string) caller {
		secret, token := auth.NewToken(owner.account.ID, "scoped")
		token.Scopes, _ = schema.JoinScopes(scopes)
		testkit.Must(t, s.links.CreateToken(t.Context(), &token))
		as := owner
		as.token = secret
		return as
	}
	requests := []struct{ scope, method, path, body string }{
		{schema.ScopeReadLinks, http.MethodGet, "/api/v1/links", ""},
		{schema.ScopeReadLinks, http.MethodGet, "/api/v1/links/" + hash, ""},
		{schema.ScopeReadLinks, http.MethodGet, "/api/v1/tags", ""},
		{schema.ScopeReadLinks, http.MethodGet, "/api/v1/links/" + hash + "/qr", ""},
		{schema.ScopeReadLinks, http.MethodGet, "/api/v1/domains", ""},
		{schema.ScopeWriteLinks, http.MethodPost, "/api/v1/shorten", `{"long_url":"https://example.com/"}`},
		{schema.ScopeWriteLinks, http.MethodPost, pathBulk, `{"links":[{"long_url":"https://example.com/"}]}`},
		{schema.ScopeWriteLinks, http.MethodPatch, "/api/v1/links/" + hash, `{"title":"x"}`},
		{schema.ScopeWriteLinks, http.MethodPost, pathBulk + "/edit", `{"links":[{"hash":"x"}],"add_tags":["x"]}`},
		{schema.ScopeReadReports, http.MethodGet, "/api/v1/stats/" + hash, ""},
		{schema.ScopeReadReports, http.MethodGet, "/api/v1/report", ""},
		{schema.ScopeReadReports, http.MethodGet, "/api/v1/links/" + hash + "/report", ""},
		{schema.ScopeReadReports, http.MethodPost, "/api/v1/shares", "{}"},
		{schema.ScopeReadReports, http.MethodGet, "/api/v1/shares/1", ""},
		{schema.ScopeWebhooks, http.MethodGet, "/api/v1/webhooks", ""},
	}
	for _, scope := range schema.Scopes() {
		only := scoped(scope)
		for _, r := range requests {
			a := only.request(t, r.method, r.path, r.body)
			if r.scope == scope {
				if a.status/100 != 2 {
					t.Errorf("%s %s with %s: %d %s", r.method, r.path, scope, a.status, a.raw)
				}
				continue
			}
			testkit.Equal(t, fmt.Sprint(r.method, r.path, " with ", scope), a.status, http.StatusForbidden)
			testkit.Equal(t, "error", a.body["error"], any("missing_scope"))
		}
		testkit.Equal(t, "own account", only.get(t, "/api/v1/account").status, http.StatusOK)
	}
	both := scoped(schema.ScopeWriteLinks, schema.ScopeReadLinks)
	for _, r := range requests {
		if may := r.scope == schema.ScopeReadLinks ||
			r.scope == schema.ScopeWriteLinks; (both.request(t, r.method, r.path, r.body).status/100 == 2) != may {
			t.Errorf("%s %s with two scopes", r.method, r.path)
		}
	}
}

func TestAccount(t *testing.T) {
	s := start(t)
	owner := s.caller(t, "a@example.org")
	account := func(c caller) (account, token, rate map[string]any) {
		a := c.get(t, "/api/v1/account")
		a.wantKeys(t, http.StatusOK, "success", "account", "token", "rate")
		return a.body["account"].(map[string]any), a.body["token"].(map[string]any), a.body["rate"].(map[string]any)
	}
	got, token, rate := account(owner)
	wantLink(t, got, map[string]any{"email": "a@example.org", "time_zone": nil})
	example := readDescription(t, "openapi.json").operations()["GET /api/v1/account"].object("responses", "200", "content",
		"application/json", "example", "account")
	as := s.caller(t, example["email"].(string))
	profile := reflect.ValueOf(&as.account.Profile).Elem()
	for _, field := range reflect.VisibleFields(profile.Type()) {
		profile.FieldByIndex(field.Index).SetString(example[testkit.SnakeCase(field.Name)].(string))
	}
	testkit.Must(t, s.links.SetProfile(t.Context(), as.account.ID, as.account.Profile))
	got, _, _ = account(as)
	testkit.Equal(t, "account of the example", got, map[string]any(example))
	wantLink(t, token, map[string]any{"scopes": []any{"links.read", "links.write", "reports.read", "webhooks"},
		"expires_at": nil})
	wantLink(t, rate, map[string]any{"limit": json.Number("2000")})
	secret, ending := auth.NewToken(owner.account.ID, "ending")
	ending.Scopes, ending.ExpiresAt = "webhooks", time.Now().UTC().Add(2*time.Second)
	testkit.Must(t, s.links.CreateToken(t.Context(), &ending))
	as = owner
	as.token = secret
	_, token, _ = account(as)
	wantLink(t, token, map[string]any{"name": "ending", "scopes": []any{"webhooks"},
		"expires_at": ending.ExpiresAt.Format("2006-01-02T15:04:05+00:00")})
	testkit.Eventually(t, "an ended token is refused",
		func() bool { return as.get(t, "/api/v1/account").status == http.StatusUnauthorized })
}
