package rest_test

import (
	"encoding/json"
	"net/http"
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
		for _, query := range []string{"deleted=true&sort=created_at", "deleted=yes", "deleted="} {
			testkit.Equal(t, query, owner.get(t, "/api/v1/links?"+query).status, http.StatusUnprocessableEntity)
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
	t.Run("restore: 404 if a link is not in the trash, 422 if it was made anew", func(t *testing.T) {
		testkit.Equal(t, "never made", restore(owner, "none/restore").status, http.StatusNotFound)
		testkit.Equal(t, "on another domain", restore(owner, "two/restore?domain_id=7").status, http.StatusNotFound)
		testkit.Equal(t, "not an id", restore(owner, "two/restore?domain_id=x").status, http.StatusUnprocessableEntity)
		owner.link(t, map[string]any{"long_url": anyURL, "custom_alias": "two"})
		a := restore(owner, "two/restore")
		testkit.Equal(t, "made anew", a.status, http.StatusUnprocessableEntity)
		if a.body["errors"].(map[string]any)["hash"] == nil {
			t.Errorf("made anew: %v", a.raw)
		}
	})
}
