package resttest

import (
	"fmt"
	"net/http"
	"testing"

	"linkstream/schema/testkit"
)

// goodHook is a valid request. The receiver is a documentation name that has no address, so nothing is delivered.
const goodHook = `{"url":"https://hooks.example.invalid/","events":["link.updated","link.created"]}`

// hookPath creates a webhook and returns its path.
func hookPath(t *testing.T, owner Caller, body string) string {
	t.Helper()
	a := owner.Call(t, http.MethodPost, "/api/v1/webhooks", body)
	testkit.Equal(t, "status of "+body, a.Status, http.StatusCreated)
	return "/api/v1/webhooks/" + fmt.Sprint(a.Body["webhook"].(Object)["id"])
}

func testWebhooks(t *testing.T, s System) {
	owner, alias := s.account(t), label()
	owner.Call(t, http.MethodPost, "/api/v1/shorten", `{"long_url":"https://example.com/","custom_alias":"`+alias+`"}`)
	path := hookPath(t, owner.Caller, goodHook)
	t.Run("a webhook is created, read, changed and deleted", func(t *testing.T) {
		a := owner.Get(t, path)
		testkit.Equal(t, "status", a.Status, http.StatusOK)
		got := a.Body["webhook"].(Object)
		for name, want := range map[string]any{"url": "https://hooks.example.invalid/",
			"events": []any{"link.created", "link.updated"},
			"hash":   nil, "domain_id": nil, "tag": nil, "people_only": true, "is_active": true, "off_reason": nil,
			"failing_since": nil} {
			testkit.Equal(t, name, got[name], want)
		}
		if a.Body["secret"] != nil {
			t.Error("the secret is shown again")
		}
		got = owner.Call(t, http.MethodPatch, path, `{"hash":"`+alias+
			`","people_only":false,"events":["link.deleted"]}`).Body["webhook"].(Object)
		testkit.Equal(t, "hash", got["hash"], any(alias))
		testkit.Equal(t, "events", got["events"], any([]any{"link.deleted"}))
		got = owner.Call(t, http.MethodPatch, path, `{"hash":null,"tag":"spring","is_active":false}`).Body["webhook"].(Object)
		testkit.Equal(t, "hash", got["hash"], nil)
		testkit.Equal(t, "tag", got["tag"], any("spring"))
		testkit.Equal(t, "is_active", got["is_active"], any(false))
		for _, action := range []string{"/test", "/deliveries/msg_1/resend"} {
			testkit.Equal(t, action+" of a webhook that is off", owner.Call(t, http.MethodPost, path+action, "").Status,
				http.StatusUnprocessableEntity)
		}
		owner.Call(t, http.MethodPatch, path, `{"is_active":true}`)
	})
	t.Run("a test waits, and is listed", func(t *testing.T) {
		testkit.Equal(t, "status", owner.Call(t, http.MethodPost, path+"/test", "").Status, http.StatusAccepted)
		data := owner.Get(t, path+"/deliveries").Body["data"].([]any)
		testkit.Equal(t, "deliveries", len(data), 1)
		testkit.Equal(t, "event", data[0].(Object)["event"], any("webhook.test"))
		id := data[0].(Object)["id"].(string)
		testkit.Equal(t, "resend", owner.Call(t, http.MethodPost, path+"/deliveries/"+id+"/resend", "").Status,
			http.StatusAccepted)
		testkit.Equal(t, "resend an unknown one", owner.Call(t, http.MethodPost, path+"/deliveries/msg_1/resend", "").Status,
			http.StatusNotFound)
	})
	t.Run("a new secret is shown once", func(t *testing.T) {
		a := owner.Call(t, http.MethodPost, path+"/rotate", "")
		testkit.Equal(t, "status", a.Status, http.StatusOK)
		if secret, _ := a.Body["secret"].(string); len(secret) < 40 || secret[:6] != "whsec_" {
			t.Errorf("secret %q", secret)
		}
	})
}

func testWebhooksOfOthers(t *testing.T, s System) {
	owner, other := s.account(t), s.account(t)
	path := hookPath(t, owner.Caller, goodHook)
	t.Run("nobody else has it", func(t *testing.T) {
		for _, e := range []endpoint{{http.MethodGet, path, "", 0}, {http.MethodPatch, path, `{"is_active":false}`, 0},
			{http.MethodDelete, path, "", 0},
			{http.MethodPost, path + "/test", "", 0}, {http.MethodPost, path + "/rotate", "", 0},
			{http.MethodGet, path + "/deliveries", "", 0},
			{http.MethodPost, path + "/deliveries/msg_1/resend", "", 0}, {http.MethodGet, "/api/v1/webhooks/none", "", 0}} {
			a := other.Call(t, e.method, e.path, e.body)
			testkit.Equal(t, e.String(), a.Status, http.StatusNotFound)
			testkit.Equal(t, "error", a.Body["error"], any("not_found"))
		}
	})
	t.Run("an account has at most ten", func(t *testing.T) {
		for range 9 {
			hookPath(t, owner.Caller, goodHook)
		}
		testkit.Equal(t, "status", owner.Call(t, http.MethodPost, "/api/v1/webhooks", goodHook).Status,
			http.StatusUnprocessableEntity)
		a := owner.Get(t, "/api/v1/webhooks")
		testkit.Equal(t, "webhooks", len(a.Body["data"].([]any)), 10)
		testkit.Equal(t, "deleted", owner.Call(t, http.MethodDelete, path, "").Status, http.StatusOK)
		testkit.Equal(t, "deleted again", owner.Call(t, http.MethodDelete, path, "").Status, http.StatusNotFound)
		testkit.Equal(t, "others", len(other.Get(t, "/api/v1/webhooks").Body["data"].([]any)), 0)
	})
}

func testInvalidWebhooks(t *testing.T, s System) {
	owner, alias := s.account(t), label()
	owner.Alias(t, alias, "https://example.com/")
	path := hookPath(t, owner.Caller, goodHook)
	for body, fields := range map[string][]string{
		`{}`:                         {"url", "events"},
		`{"url":null,"events":null}`: {"url", "events"},
		`{"url":"ftp://example.com","events":[]}`:                                                   {"url", "events"},
		`{"url":"https://127.0.0.1/","events":["link.viewed"]}`:                                     {"url", "events"},
		`{"url":"https://[64:ff9b::a00:1]/","events":["link.clicked"]}`:                             {"url"},
		`{"url":"https://a:b@example.com/","events":["link.created"],"people_only":1}`:              {"url", "people_only"},
		`{"url":"https://localhost/","events":["link.created"],"is_active":"x"}`:                    {"url", "is_active"},
		`{"url":"https://example.com/","events":["link.created"],"hash":"none-of-mine"}`:            {"hash"},
		`{"url":"https://example.com/","events":["link.created"],"tag":"A b","domain_id":1}`:        {"tag", "domain_id"},
		`{"url":"https://example.com/","events":["link.created"],"hash":"` + alias + `","tag":"x"}`: {"tag"},
	} {
		a := owner.Call(t, http.MethodPost, "/api/v1/webhooks", body)
		testkit.Equal(t, "status of "+body, a.Status, http.StatusUnprocessableEntity)
		problems, _ := a.Body["errors"].(Object)
		for _, field := range fields {
			if problems[field] == nil {
				t.Errorf("%s: no problem with %s in %s", body, field, a.Raw)
			}
		}
		testkit.Equal(t, "problems of "+body, len(problems), len(fields))
	}
	testkit.Equal(t, "status of an empty change", owner.Call(t, http.MethodPatch, path, `{}`).Status,
		http.StatusUnprocessableEntity)
}
