package resttest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"linkstream/schema/testkit"
)

// Share shares a report and returns the path of the share and the URL of the report.
func (c Caller) Share(t *testing.T, body string) (path, url string) {
	t.Helper()
	share, _ := c.Call(t, http.MethodPost, "/api/v1/shares", body).Want(t, http.StatusCreated).Body["share"].(Object)
	url, _ = share["url"].(string)
	return "/api/v1/shares/" + fmt.Sprint(share["id"]), url
}

// read reads a shared report.
func (s System) read(t *testing.T, url string) Answer {
	t.Helper()
	_, path, found := strings.Cut(url, "/dashboard/")
	if !found {
		t.Fatalf("the URL is %q", url)
	}
	return Call(t, http.MethodGet, s.API+"/dashboard/"+path, "")
}

func testShares(t *testing.T, s System) {
	owner, other, alias := s.account(t), s.account(t), label()
	owner.Alias(t, alias, "https://example.com/target")
	scopes := map[string]string{
		"a link": `{"hash":"` + alias + `","domain_id":null,"expires_at":"2099-01-31T12:00:00+01:00","password":"open ` +
			`sesame","hide_targets":true}`,
		"a tag":     `{"tag":"spring","hash":null}`,
		"a domain":  `{"domain_id":0,"password":null,"expires_at":null}`,
		"all links": `{}`,
	}
	for name, body := range scopes {
		t.Run("the report of "+name+" is shared, read and revoked", func(t *testing.T) {
			path, url := owner.Share(t, body)
			got := owner.Get(t, path).Want(t, http.StatusOK).Body["share"].(Object)
			want := map[string]any{"hash": nil, "domain_id": nil, "tag": nil, "expires_at": nil, "has_password": false,
				"hide_targets": false, "url": nil}
			text := "Report"
			switch name {
			case "a link":
				want["hash"], want["expires_at"], want["has_password"], want["hide_targets"] = alias, "2099-01-31T11:00:00+00:00",
					true, true
				text = "This report is protected"
			case "a tag":
				want["tag"], text = "spring", "links with the tag"
			case "a domain":
				want["domain_id"], text = got["domain_id"], "links on"
				testkit.Equal(t, "domain_id", fmt.Sprint(got["domain_id"]), "0")
			}
			for field, value := range want {
				testkit.Equal(t, field, got[field], value)
			}
			page := s.read(t, url)
			testkit.Equal(t, "status of the report", page.Status, http.StatusOK)
			if !strings.Contains(page.Raw, text) || strings.Contains(page.Raw, owner.email) {
				t.Errorf("%v", page)
			}
			for _, e := range []endpoint{{http.MethodGet, path, "", 0}, {http.MethodDelete, path, "", 0},
				{http.MethodGet, "/api/v1/shares/none", "", 0}} {
				testkit.Equal(t, e.String()+" of another account", other.Call(t, e.method, e.path, e.body).Want(t,
					http.StatusNotFound).Body["error"], any("not_found"))
			}
			owner.Call(t, http.MethodDelete, path, "").Want(t, http.StatusOK)
			owner.Call(t, http.MethodDelete, path, "").Want(t, http.StatusNotFound)
			testkit.Equal(t, "status of the revoked report", s.read(t, url).Status, http.StatusNotFound)
		})
	}
	t.Run("are listed by pages, and an account has at most 100", func(t *testing.T) { testPagesOfShares(t, owner, other) })
}

func testPagesOfShares(t *testing.T, owner, other account) {
	var newest string
	for range 100 {
		newest, _ = owner.Share(t, `{}`)
	}
	owner.Call(t, http.MethodPost, "/api/v1/shares", `{}`).Want(t, http.StatusUnprocessableEntity)
	a := owner.Get(t, "/api/v1/shares?page=1").Want(t, http.StatusOK)
	data := a.Body["data"].([]any)
	testkit.Equal(t, "shares on a page", len(data), 20)
	testkit.Equal(t, "newest", "/api/v1/shares/"+fmt.Sprint(data[0].(Object)["id"]), newest)
	testkit.Equal(t, "total", fmt.Sprint(a.Body["meta"].(Object)["total"]), "100")
	testkit.Equal(t, "shares on page 6",
		len(owner.Get(t, "/api/v1/shares?page=6").Want(t, http.StatusOK).Body["data"].([]any)), 0)
	owner.Get(t, "/api/v1/shares?page=0").Want(t, http.StatusUnprocessableEntity)
	testkit.Equal(t, "shares of another account",
		len(other.Get(t, "/api/v1/shares").Want(t, http.StatusOK).Body["data"].([]any)), 0)
}

func testInvalidShares(t *testing.T, s System) {
	owner, other, alias := s.account(t), s.account(t), label()
	other.Alias(t, alias, "https://example.com/")
	for body, fields := range map[string][]string{
		`{"hash":"` + alias + `","expires_at":"2020-01-01T00:00:00+00:00","password":"abc"}`: {"hash", "expires_at",
			"password"},
		`{"hash":7,"tag":7,"domain_id":"x","expires_at":"tomorrow","password":7,"hide_targets":"x"}`: {"hash", "tag",
			"domain_id", "expires_at", "password", "hide_targets"},
		`{"tag":"A b","hide_targets":null}`:   {"tag", "hide_targets"},
		`{"domain_id":9223372036854775807}`:   {"domain_id"},
		`{"tag":"spring","domain_id":987654}`: {"domain_id"},
		`{"hash":"none-of-mine","tag":"x"}`:   {"hash", "tag"},
	} {
		problems, _ := owner.Call(t, http.MethodPost, "/api/v1/shares", body).Want(t,
			http.StatusUnprocessableEntity).Body["errors"].(Object)
		for _, field := range fields {
			if problems[field] == nil {
				t.Errorf("%s: no problem with %s in %v", body, field, problems)
			}
		}
		testkit.Equal(t, "problems of "+body, len(problems), len(fields))
	}
}
