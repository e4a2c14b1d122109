package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"linkstream/schema/testkit"
)

func TestTrash(t *testing.T) {
	s := start(t)
	owner, other := s.caller(t, "a@example.org"), s.caller(t, "b@example.org")
	restore := func(c caller, path string) answer {
		t.Helper()
		return c.request(t, http.MethodPost, "/api/v1/links/"+path, "")
	}
	trash := func(c caller) []any {
		t.Helper()
		return c.get(t, "/api/v1/links?deleted=true").body["data"].([]any)
	}
	for _, alias := range []string{"one", "two", "kept"} {
		owner.link(t, map[string]any{"long_url": anyURL, "custom_alias": alias, "title": "Of " + alias})
	}
	before := owner.get(t, "/api/v1/links/one").fullLink(t)
	for _, alias := range []string{"one", "two"} {
		testkit.Equal(t, "status", owner.request(t, http.MethodDelete, "/api/v1/links/"+alias, "").status, http.StatusOK)
	}
	t.Run("GET links?deleted=true lists deleted links and when they were deleted", func(t *testing.T) {
		items := trash(owner)
		testkit.Equal(t, "items", len(items), 2)
		for _, item := range items {
			item := item.(map[string]any)
			if at, _ := item["deleted_at"].(string); !isoTime.MatchString(at) || len(item) != 7 || item["is_active"] != false {
				t.Errorf("item %v", item)
			}
		}
		testkit.Equal(t, "items of another account", len(trash(other)), 0)
		list := owner.get(t, "/api/v1/links?deleted=false").body["data"].([]any)
		testkit.Equal(t, "links", len(list), 1)
		if list[0].(map[string]any)["deleted_at"] != nil {
			t.Errorf("a link that exists: %v", list[0])
		}
	})
	t.Run("a list of deleted links has one order, and deleted is true or false", func(t *testing.T) {
		for _, query := range []string{"deleted=true&sort=x", "deleted=yes", "deleted="} {
			testkit.Equal(t, query, owner.get(t, "/api/v1/links?"+query).status, http.StatusUnprocessableEntity)
		}
		for _, sort := range []string{"created_at", "-created_at", "-clicks"} { // which generated clients send unasked
			testkit.Equal(t, sort, owner.get(t, "/api/v1/links?deleted=true&sort="+sort).body["data"], any(trash(owner)))
		}
	})
	t.Run("POST links/{hash}/restore restores a link as it was", func(t *testing.T) {
		testkit.Equal(t, "of another account", restore(other, "one/restore").status, http.StatusNotFound)
		link := restore(owner, "one/restore").fullLink(t)
		delete(link, "updated_at")
		delete(before, "updated_at")
		wantLink(t, link, before)
		wantLink(t, owner.get(t, "/api/v1/links/one").fullLink(t), before)
		testkit.Equal(t, "items", len(trash(owner)), 1)
		testkit.Equal(t, "total", owner.get(t, "/api/v1/links").body["meta"].(map[string]any)["total"], any(json.Number("2")))
	})
	t.Run("restore: 404 if a link is not in the trash, 422 if its address is in use again", func(t *testing.T) {
		testkit.Equal(t, "never made", restore(owner, "none/restore").status, http.StatusNotFound)
		testkit.Equal(t, "never deleted", restore(owner, "kept/restore").status, http.StatusNotFound)
		wantLink(t, restore(owner, "one/restore").fullLink(t), before) // the call is repeated
		testkit.Equal(t, "items", len(trash(owner)), 1)
		testkit.Equal(t, "on another domain", restore(owner, "two/restore?domain_id=7").status, http.StatusNotFound)
		testkit.Equal(t, "not an id", restore(owner, "two/restore?domain_id=x").status, http.StatusUnprocessableEntity)
		owner.link(t, map[string]any{"long_url": anyURL, "custom_alias": "two"})
		a := restore(owner, "two/restore")
		testkit.Equal(t, "made again", a.status, http.StatusUnprocessableEntity)
		if a.body["errors"].(map[string]any)["hash"] == nil {
			t.Errorf("made again: %v", a.raw)
		}
	})
}

func TestBulkChanges(t *testing.T) {
	s := start(t)
	owner, other := s.caller(t, "a@example.org"), s.caller(t, "b@example.org")
	domain := owner.addDomain(t, "go.example.org", true)
	for _, alias := range []string{"one", "two", "full", "both"} {
		owner.link(t, map[string]any{"long_url": anyURL, "custom_alias": alias, "tags": []string{"old"}})
	}
	owner.link(t, map[string]any{"long_url": anyURL, "custom_alias": "both", "domain_id": domain})
	owner.patch(t, "/api/v1/links/full", `{"tags":["a","b","c","d","e","f","g","h","i","j"]}`)
	other.link(t, map[string]any{"long_url": anyURL, "custom_alias": "foreign"})
	change := func(c caller, kind, body string) answer {
		t.Helper()
		return c.request(t, http.MethodPost, pathBulk+"/"+kind, body)
	}
	t.Run("POST links/bulk/edit changes links and has an outcome for each, in order", func(t *testing.T) {
		a := change(owner, "edit",
			fmt.Sprintf(`{"links":[{"hash":"one"},{"hash":"foreign"},{"hash":"full"},{"hash":"both","domain_id":%d},7,{"hash":1},
			{"hash":"one","domain_id":null}],"set":{"title":"New","is_active":false,"password":"open sesame"},
			"add_tags":["new"],"remove_tags":["old","absent"]}`, domain))
		a.wantKeys(t, http.StatusOK, "success", "changed", "failed", "results")
		wantLink(t, a.body, map[string]any{"success": true, "changed": json.Number("2"), "failed": json.Number("5")})
		for i, want := range []string{`{"success":true,"hash":"one","domain_id":null}`, `"error":"not_found"`,
			`"links.2.add_tags"`, fmt.Sprintf(`{"success":true,"hash":"both","domain_id":%d}`, domain), `"links.4"`,
			`"links.5.hash"`, `"links.6"`} {
			result, err := json.Marshal(a.body["results"].([]any)[i])
			testkit.Must(t, err)
			var wanted map[string]any
			if json.Unmarshal([]byte(want), &wanted) == nil {
				again, err := json.Marshal(wanted)
				testkit.Must(t, err)
				want = string(again)
			}
			if !strings.Contains(string(result), want) {
				t.Errorf("result %d: %s, want %s", i, result, want)
			}
		}
		changed := map[string]any{"title": "New", "is_active": false, "has_password": true, "tags": []any{"new"}}
		wantLink(t, owner.get(t, "/api/v1/links/one").fullLink(t), changed)
		wantLink(t, owner.get(t, fmt.Sprintf("/api/v1/links/both?domain_id=%d", domain)).fullLink(t), changed)
		for _, hash := range []string{"two", "both", "full"} {
			wantLink(t, owner.get(t, "/api/v1/links/"+hash).fullLink(t), map[string]any{"title": "", "is_active": true})
		}
	})
	t.Run("POST links/bulk/edit names the problems of all links", func(t *testing.T) {
		for body, fields := range map[string][]string{
			`{}`: {"links"}, `{"links":[{"hash":"one"}]}`: {"set"}, `{"links":[{"hash":"one"}],"set":{}}`: {"set"},
			`{"links":[{"hash":"one"}],"set":[]}`: {"set"}, `{"links":[]}`: {"links"}, `{"links":[` +
				strings.Repeat(`{"hash":"one"},`, 1000) + `{}]}`: {"links"},
			`{"links":[{"hash":"one"}],"set":{"long_url":"x","title":1},"add_tags":["A"],"remove_tags":null}`: {"set.long_url",
				"set.title", "add_tags", "remove_tags"},
			`{"links":[{"hash":"one"}],"set":{"rules":[{"name":"a"}]}}`: {"set.rules.0.if", "set.rules.0.url"},
		} {
			change(owner, "edit", body).wantInvalid(t, fields...)
		}
		a := change(owner, "edit", `{"links":[{"hash":"one"}],"set":{"long_url":"http://bad.example/"}}`)
		testkit.Equal(t, "unsafe", a.body["error"], any("unsafe_url"))
	})
	t.Run("POST links/bulk/delete deletes links", func(t *testing.T) {
		a := change(owner, "delete", `{"links":[{"hash":"two"},{"hash":"none"},{"hash":"both"}]}`)
		wantLink(t, a.body, map[string]any{"success": true, "changed": json.Number("2"), "failed": json.Number("1")})
		owner.get(t, "/api/v1/links/two").want(t, http.StatusNotFound)
		wantLink(t, change(owner, "delete", `{"links":[{"hash":"two"}]}`).body, map[string]any{"changed": json.Number("0")})
		testkit.Equal(t, "items in the trash", len(owner.get(t, "/api/v1/links?deleted=true").body["data"].([]any)), 2)
	})
	t.Run("a call with an Idempotency-Key changes links once", func(t *testing.T) {
		owner.link(t, map[string]any{"long_url": anyURL, "custom_alias": "again"})
		for _, kind := range []string{"edit", "delete"} {
			body := `{"links":[{"hash":"again"}],"add_tags":["x"]}`
			first := owner.keyed(t, pathBulk+"/"+kind, kind, body)
			wantLink(t, first.body, map[string]any{"changed": json.Number("1")})
			owner.keyed(t, pathBulk+"/"+kind, kind, body).wantReplay(t, first)
			owner.keyed(t, pathBulk+"/"+kind, kind, `{"links":[{"hash":"one"}],"add_tags":["y"]}`).wantInvalid(t,
				"Idempotency-Key")
		}
	})
}
