package rest_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"linkstream/api/auth"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

const (
	readLinks   = schema.ScopeReadLinks
	writeLinks  = schema.ScopeWriteLinks
	readReports = schema.ScopeReadReports
	webhooks    = schema.ScopeWebhooks
	anyScopes   = ""
)

// scopeCase is a request, and which scopes permit it.
type scopeCase struct {
	operation, path, body string
	may                   []string // lists of scopes, each of which is enough
}

// scopeCases has each operation of the description. An ID of 0 does not exist, which callers with the scopes learn.
var scopeCases = []scopeCase{
	{"GET /api/v1/account", "", "", []string{anyScopes}},
	{"GET /api/v1/openapi.json", "", "", []string{anyScopes}},
	{"GET /api/v1/docs", "", "", []string{anyScopes}},
	{"POST /api/v1/mcp", "", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, []string{anyScopes}}, // which lists fewer
	{"GET /api/v1/links", "", "", []string{readLinks}},
	{"GET /api/v1/links", "/api/v1/links?deleted=true", "", []string{readLinks}},
	{"GET /api/v1/links", "/api/v1/links?updated_since=2026-11-21T09:30:15Z", "", []string{readLinks}},
	{"GET /api/v1/export", "/api/v1/export?format=csv", "", []string{readLinks}},
	{"GET /api/v1/links/{hash}", "/api/v1/links/HASH", "", []string{readLinks}},
	{"GET /api/v1/links/{hash}/qr", "/api/v1/links/HASH/qr", "", []string{readLinks}},
	{"GET /api/v1/tags", "", "", []string{readLinks}},
	{"GET /api/v1/domains", "", "", []string{readLinks}},
	{"POST /api/v1/shorten", "", `{"long_url":"https://example.com/"}`, []string{writeLinks}},
	{"POST /api/v1/links/bulk", "", `{"links":[{"long_url":"https://example.com/"}]}`, []string{writeLinks}},
	{"POST /api/v1/links/bulk/edit", "", `{"links":[{"hash":"none"}],"add_tags":["x"]}`, []string{writeLinks}},
	{"POST /api/v1/links/bulk/delete", "", `{"links":[{"hash":"none"}]}`, []string{writeLinks}},
	{"PATCH /api/v1/links/{hash}", "/api/v1/links/HASH", `{"title":"x"}`, []string{writeLinks}},
	{"PUT /api/v1/links/{hash}", "/api/v1/links/ext:id", `{"long_url":"https://example.com/"}`, []string{writeLinks}},
	{"DELETE /api/v1/links/{hash}", "/api/v1/links/none", "", []string{writeLinks}},
	{"POST /api/v1/links/{hash}/restore", "/api/v1/links/none/restore", "", []string{writeLinks}},
	{"GET /api/v1/stats/{hash}", "/api/v1/stats/HASH", "", []string{readReports}},
	{"PUT /api/v1/links/{hash}/history/{source}", "/api/v1/links/HASH/history/bitly", `{"days":[]}`,
		[]string{writeLinks}},
	{"GET /api/v1/links/{hash}/history/{source}", "/api/v1/links/HASH/history/bitly", "", []string{readReports}},
	{"DELETE /api/v1/links/{hash}/history/{source}", "/api/v1/links/none/history/bitly", "", []string{writeLinks}},
	{"GET /api/v1/report", "", "", []string{readReports}},
	{"GET /api/v1/links/{hash}/report", "/api/v1/links/HASH/report", "", []string{readReports}},
	{"GET /api/v1/live", "", "", []string{readReports}},
	{"GET /api/v1/metrics", "", "", []string{readReports}},
	{"GET /api/v1/links/{hash}/live", "/api/v1/links/HASH/live", "", []string{readReports}},

	// Who reads reports shares them. Targets are shown by tokens that read links.
	{"GET /api/v1/shares", "", "", []string{readReports}},
	{"GET /api/v1/shares/{id}", "/api/v1/shares/0", "", []string{readReports}},
	{"POST /api/v1/shares", "", `{}`, []string{readReports}},
	{"POST /api/v1/shares", "", `{"hash":"HASH"}`, []string{readReports}},
	{"POST /api/v1/shares", "", `{"hide_targets":true}`, []string{readReports}},
	{"POST /api/v1/shares", "", `{"hide_targets":false}`, []string{readReports + " " + readLinks}},
	{"DELETE /api/v1/shares/{id}", "/api/v1/shares/0", "", []string{readReports}},
	{"DELETE /api/v1/shares/{id}", "/api/v1/shares/OWN", "", []string{readReports}},
	{"DELETE /api/v1/shares/{id}", "/api/v1/shares/OTHER", "", []string{readReports + " " + writeLinks}},
	{"DELETE /api/v1/shares/{id}", "/api/v1/shares/OWNER", "", []string{readReports + " " + writeLinks}},

	// A webhook hears what its token may read.
	{"GET /api/v1/webhooks", "", "", []string{webhooks}},
	{"POST /api/v1/webhooks", "", hookOf("link.clicked"), []string{webhooks + " " + readReports}},
	{"POST /api/v1/webhooks", "", hookOf("link.created"), []string{webhooks + " " + readLinks}},
	{"POST /api/v1/webhooks", "", hookOf("link.updated"), []string{webhooks + " " + readLinks}},
	{"POST /api/v1/webhooks", "", hookOf("link.deleted"), []string{webhooks + " " + readLinks}},
	{"POST /api/v1/webhooks", "", hookOf("domain.changed"), []string{webhooks + " " + readLinks}},
	{"POST /api/v1/webhooks", "", hookOf(`link.deleted","link.clicked`), []string{webhooks + " " + readLinks + " " +
		readReports}},
	{"GET /api/v1/webhooks/{id}", "/api/v1/webhooks/CLICKS", "", []string{webhooks}},
	{"PATCH /api/v1/webhooks/{id}", "/api/v1/webhooks/CLICKS", `{"url":"https://other.example.invalid/"}`,
		[]string{webhooks + " " + readReports}},
	{"PATCH /api/v1/webhooks/{id}", "/api/v1/webhooks/CLICKS", `{"is_active":true}`,
		[]string{webhooks + " " + readReports}},
	{"PATCH /api/v1/webhooks/{id}", "/api/v1/webhooks/CHANGES", `{"url":"https://other.example.invalid/"}`,
		[]string{webhooks + " " + readLinks}},
	{"PATCH /api/v1/webhooks/{id}", "/api/v1/webhooks/CHANGES", `{"events":["link.clicked"]}`,
		[]string{webhooks + " " + readReports}},
	{"PATCH /api/v1/webhooks/{id}", "/api/v1/webhooks/0", `{"is_active":true}`, []string{webhooks}},
	{"DELETE /api/v1/webhooks/{id}", "/api/v1/webhooks/CLICKS", "", []string{webhooks}},
	{"POST /api/v1/webhooks/{id}/test", "/api/v1/webhooks/CLICKS/test", "", []string{webhooks}},
	{"POST /api/v1/webhooks/{id}/rotate", "/api/v1/webhooks/CLICKS/rotate", "", []string{webhooks}},
	{"GET /api/v1/webhooks/{id}/deliveries", "/api/v1/webhooks/CLICKS/deliveries", "", []string{webhooks}},
	{"POST /api/v1/webhooks/{id}/deliveries/{delivery}/resend", "/api/v1/webhooks/CLICKS/deliveries/msg_1/resend", "",
		[]string{webhooks}},
}

func hookOf(events string) string {
	return `{"url":"https://hooks.example.invalid/","events":["` + events + `"]}`
}

// permits reports whether scopes permit the request.
func (c scopeCase) permits(scopes []string) bool {
	for _, may := range c.may {
		missing := false
		for scope := range strings.FieldsSeq(may) {
			missing = missing || !strings.Contains(strings.Join(scopes, " "), scope)
		}
		if !missing {
			return true
		}
	}
	return false
}

// TestScopes makes each request with each set of scopes.
func TestScopes(t *testing.T) {
	t.Parallel()
	s := start(t)
	operations := readDescription(t, "openapi.json").operations()
	for _, c := range scopeCases {
		delete(operations, c.operation)
	}
	for operation := range operations {
		t.Errorf("%s has no case", operation)
	}
	for set := range 1 << len(schema.Scopes()) {
		owner := s.caller(t, fmt.Sprintf("%d@example.org", set))
		hash := owner.link(t, map[string]any{"long_url": anyURL})
		var scopes []string
		for i, scope := range schema.Scopes() {
			if set>>i&1 == 1 {
				scopes = append(scopes, scope)
			}
		}
		joined, _ := schema.JoinScopes(scopes)
		limited, token := s.token(t, owner, joined)
		if set == 0 {
			scopes = schema.Scopes() // a token without scopes may do all
		}
		_, other := s.token(t, owner, "")
		for i, c := range scopeCases {
			share := func(token int64) string {
				made := schema.Share{AccountID: owner.account.ID, TokenID: token, CreatedAt: time.Now(),
					Digest: auth.Digest(fmt.Sprint(set, " ", i, " ", token))}
				testkit.Must(t, s.links.CreateShare(t.Context(), &made))
				return fmt.Sprint(made.ID)
			}
			hook := func(event string) string {
				made := schema.Webhook{AccountID: owner.account.ID, URL: "https://hooks.example.invalid/",
					Events: []string{event},
					Active: true, Secret: "whsec_bmV3", CreatedAt: time.Now().Add(time.Hour)}
				testkit.Must(t, s.links.CreateWebhook(t.Context(), &made))
				return fmt.Sprint(made.ID)
			}
			path := c.path
			method, operationPath, _ := strings.Cut(c.operation, " ")
			if path == "" {
				path = operationPath
			}
			for name, make := range map[string]func() string{"OWN": func() string { return share(token.ID) },
				"OTHER": func() string { return share(other.ID) }, "OWNER": func() string { return share(0) },
				"CLICKS":  func() string { return hook(schema.EventLinkClicked) },
				"CHANGES": func() string { return hook(schema.EventLinkUpdated) },
				"HASH":    func() string { return hash }} {
				if strings.HasSuffix(path, "/"+name) || strings.Contains(path, "/"+name+"/") {
					path = strings.Replace(path, "/"+name, "/"+make(), 1)
				}
			}
			a := limited.begin(t, method, path, strings.ReplaceAll(c.body, "HASH", hash))
			refused := a.status == http.StatusForbidden && strings.Contains(a.raw, "missing_scope")
			if refused == c.permits(scopes) || a.status >= 500 || a.status == http.StatusBadRequest || a.status == 401 {
				t.Errorf("%s %s %s with %q: %d %s", method, path, c.body, joined, a.status, a.raw)
			}
			for _, made := range s.hooksOf(t, owner) {
				testkit.Must(t, s.links.DeleteWebhook(t.Context(), owner.account.ID, made.ID))
			}
		}
	}
}

// begin returns the answer to a request, of a stream only its status.
func (c caller) begin(t *testing.T, method, path, body string) answer {
	t.Helper()
	if !strings.HasSuffix(path, "/live") {
		return c.request(t, method, path, body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, c.base+path, nil)
	testkit.Must(t, err)
	req.Header.Set("Authorization", "Bearer "+c.token)
	res, err := http.DefaultTransport.RoundTrip(req)
	testkit.Must(t, err)
	defer res.Body.Close()
	text := ""
	if res.StatusCode != http.StatusOK {
		all, err := io.ReadAll(res.Body)
		testkit.Must(t, err)
		text = string(all)
	}
	return answer{status: res.StatusCode, raw: text}
}

// token returns a caller with another token of the owner's account.
func (s *testService) token(t *testing.T, owner caller, scopes string) (caller, schema.Token) {
	t.Helper()
	secret, token := auth.NewToken(owner.account.ID, "scoped")
	token.Scopes = scopes
	testkit.Must(t, s.links.CreateToken(t.Context(), &token))
	owner.token = secret
	return owner, token
}

func (s *testService) hooksOf(t *testing.T, owner caller) []schema.Webhook {
	t.Helper()
	hooks, err := s.links.Webhooks(t.Context(), owner.account.ID)
	testkit.Must(t, err)
	return hooks
}

// What a token has made ends with it.
func TestMadeByTokens(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := s.caller(t, "a@example.org")
	hides := func(c caller, body string) any {
		a := c.request(t, http.MethodPost, "/api/v1/shares", body)
		a.want(t, http.StatusCreated)
		return a.body["share"].(map[string]any)["hide_targets"]
	}
	reader, token := s.token(t, owner, readReports)
	testkit.Equal(t, "hidden by default, to a token that does not see targets", hides(reader, `{}`), any(true))
	both, _ := s.token(t, owner, readReports+" "+readLinks)
	testkit.Equal(t, "hidden by default, to one that does", hides(both, `{}`), any(false))

	hooker, second := s.token(t, owner, webhooks+" "+readLinks)
	hooker.request(t, http.MethodPost, "/api/v1/webhooks", hookOf("link.created")).want(t, http.StatusCreated)
	shares, err := s.links.Shares(t.Context(), owner.account.ID)
	testkit.Must(t, err)
	testkit.Equal(t, "token of the share", shares[1].TokenID, token.ID)
	testkit.Equal(t, "token of the webhook", s.hooksOf(t, owner)[0].TokenID, second.ID)
	path := fmt.Sprint("/api/v1/webhooks/", s.hooksOf(t, owner)[0].ID)

	for _, ended := range []int64{token.ID, second.ID} {
		testkit.Must(t, s.links.RevokeToken(t.Context(), ended, time.Now(), false))
	}
	both.get(t, fmt.Sprint("/api/v1/shares/", shares[1].ID)).want(t, http.StatusNotFound)
	owner.get(t, path).want(t, http.StatusOK)
	wantLink(t, owner.get(t, path).body["webhook"].(map[string]any), map[string]any{"is_active": false,
		"off_reason": nil})
	owner.request(t, http.MethodPatch, path, `{"is_active":true}`).want(t, http.StatusOK)
	wantLink(t, owner.get(t, path).body["webhook"].(map[string]any), map[string]any{"is_active": true})
}

// A share ends with its token at the latest.
func TestShareOfExpiringToken(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := s.caller(t, "a@example.org")
	secret, token := auth.NewToken(owner.account.ID, "expiring")
	token.ExpiresAt = time.Now().UTC().Add(time.Hour).Truncate(time.Second)
	testkit.Must(t, s.links.CreateToken(t.Context(), &token))
	as := owner
	as.token = secret
	const layout = "2006-01-02T15:04:05+00:00"
	end, earlier := token.ExpiresAt.Format(layout), token.ExpiresAt.Add(-time.Minute).Format(layout)
	for body, want := range map[string]string{`{}`: end, `{"expires_at":null}`: end,
		`{"expires_at":"2099-01-01T00:00:00+00:00"}`: end, `{"expires_at":"` + earlier + `"}`: earlier} {
		a := as.request(t, http.MethodPost, "/api/v1/shares", body)
		a.want(t, http.StatusCreated)
		testkit.Equal(t, "end of "+body, a.body["share"].(map[string]any)["expires_at"], any(want))
	}
}
