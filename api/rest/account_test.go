package rest_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"testing"
	"time"

	"linkstream/api/auth"
	"linkstream/schema/testkit"
)

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
