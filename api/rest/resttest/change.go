package resttest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"linkstream/schema/testkit"
)

func testBulkChanges(t *testing.T, s System) {
	owner, other, one, two := s.account(t), s.account(t), label(), label()
	for _, alias := range []string{one, two} {
		owner.Alias(t, alias, "https://example.com/"+alias)
	}
	links := fmt.Sprintf(`"links":[{"hash":%q},{"hash":"%s-none"},{"hash":%q}]`, one, one, two)
	outcome := func(a Answer, changed, failed int64) {
		t.Helper()
		testkit.Equal(t, "changed", Number(t, a.Want(t, http.StatusOK).Body, "changed"), changed)
		testkit.Equal(t, "failed", Number(t, a.Body, "failed"), failed)
		testkit.Equal(t, "results", len(a.Body["results"].([]any)), 3)
	}
	edit := `{` + links + `,"set":{"is_active":false},"add_tags":["spring"]}`
	outcome(other.Call(t, http.MethodPost, "/api/v1/links/bulk/edit", edit), 0, 3)
	outcome(owner.Call(t, http.MethodPost, "/api/v1/links/bulk/edit", edit), 2, 1)
	for _, alias := range []string{one, two} {
		link := owner.Get(t, "/api/v1/links/"+alias).Want(t, http.StatusOK).Body["link"].(Object)
		testkit.Equal(t, "link", fmt.Sprint(link["is_active"], link["tags"]), "false [spring]")
	}
	owner.Call(t, http.MethodPost, "/api/v1/links/bulk/edit", `{`+links+`,"set":{}}`).WantError(t,
		http.StatusUnprocessableEntity, "set")

	outcome(other.Call(t, http.MethodPost, "/api/v1/links/bulk/delete", `{`+links+`}`), 0, 3)
	outcome(owner.Call(t, http.MethodPost, "/api/v1/links/bulk/delete", `{`+links+`}`), 2, 1)
	owner.Get(t, "/api/v1/links/"+one).WantError(t, http.StatusNotFound)
	testkit.Equal(t, "links in the trash",
		len(owner.Get(t, "/api/v1/links?deleted=true").Want(t, http.StatusOK).Body["data"].([]any)), 2)

	other.Call(t, http.MethodPost, "/api/v1/links/"+one+"/restore", "").WantError(t, http.StatusNotFound)
	link := owner.Call(t, http.MethodPost, "/api/v1/links/"+one+"/restore", "").Want(t,
		http.StatusOK).Body["link"].(Object)
	testkit.Equal(t, "restored link", fmt.Sprint(link["hash"], link["tags"]), one+"[spring]")
	owner.Alias(t, two, "https://example.com/anew")
	owner.Call(t, http.MethodPost, "/api/v1/links/"+two+"/restore", "").WantError(t, http.StatusUnprocessableEntity,
		"hash")
}

func testQR(t *testing.T, s System) {
	owner, other, alias := s.account(t), s.account(t), label()
	owner.Alias(t, alias, "https://example.com/")
	path := "/api/v1/links/" + alias + "/qr"
	for query, starts := range map[string]string{"": "<svg", "?format=svg&size=64&margin=0&level=H": "<svg",
		"?format=png&foreground=101010&background=FAFAFA": "\x89PNG"} {
		if a := owner.Get(t, path+query); a.Status != http.StatusOK || !strings.HasPrefix(a.Raw, starts) {
			t.Errorf("%q: %d, %.20q", query, a.Status, a.Raw)
		}
	}
	for query, field := range map[string]string{"format=gif": "format", "size=63": "size", "size=2049": "size",
		"margin=17": "margin", "level=X": "level",
		"foreground=red": "foreground", "foreground=777777&background=888888": "foreground"} {
		owner.Get(t, path+"?"+query).WantError(t, http.StatusUnprocessableEntity, field)
	}
	other.Get(t, path).WantError(t, http.StatusNotFound)
}

func testAccount(t *testing.T, s System) {
	owner := s.account(t)
	body := owner.Get(t, "/api/v1/account").Want(t, http.StatusOK).Body
	testkit.Equal(t, "email", fmt.Sprint(body["account"].(Object)["email"]), owner.email)
	testkit.Equal(t, "limit", Number(t, body["rate"].(Object), "limit"), 2000)

	reader := s.caller(s.Admin(t, "token", "add", owner.email, "--scope", "links.read", "--expires",
		"2099-01-31T12:00:00+01:00"))
	token := reader.Get(t, "/api/v1/account").Want(t, http.StatusOK).Body["token"].(Object)
	testkit.Equal(t, "token", fmt.Sprint(token["scopes"], token["expires_at"]), "[links.read]2099-01-31T11:00:00+00:00")
	reader.Get(t, "/api/v1/links").Want(t, http.StatusOK)
	testkit.Equal(t, "error", reader.Shorten(t, Object{"long_url": "https://example.com/"}).Want(t,
		http.StatusForbidden).Body["error"], any("missing_scope"))
}
