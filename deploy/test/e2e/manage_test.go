package e2e_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// testManage edits and deletes links whose targets the edge has cached for an hour.
func testManage(t *testing.T, s *system) {
	owner := s.owner()
	other, _ := s.another(t, "manage")
	edit := func(t *testing.T, hash, body string) object {
		t.Helper()
		a := owner.Call(t, http.MethodPatch, "/api/v1/links/"+hash, body, "Content-Type", "application/json")
		return a.Want(t, http.StatusOK).Body["link"].(object)
	}
	t.Run("an edited target is where visitors are sent, on every edge", func(t *testing.T) {
		owner.Alias(t, "managed", "https://example.com/before")
		s.answers(t, "/managed", http.StatusFound, "")
		link := edit(t, "managed", `{"long_url":"https://example.com/after","title":"Managed","tags":["b","a"]}`)
		s.redirects(t, "/managed", "https://example.com/after")
		testkit.Equal(t, "title and tags", fmt.Sprint(link["title"], link["tags"]), "Managed[a b]")
	})
	t.Run("a deleted link is gone, its hash is reserved, and made anew it counts from 0", func(t *testing.T) {
		owner.Alias(t, "doomed", "https://example.com/doomed")
		s.click(t, "doomed")
		owner.WaitTotal(t, "doomed", 1)
		owner.Call(t, http.MethodDelete, "/api/v1/links/doomed", "").Want(t, http.StatusOK)
		s.answers(t, "/doomed", http.StatusGone, "")
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			owner.Call(t, method, "/api/v1/links/doomed", "").WantError(t, http.StatusNotFound)
		}
		owner.Get(t, "/api/v1/stats/doomed").WantError(t, http.StatusNotFound)
		again := object{"long_url": "https://example.com/again", "custom_alias": "doomed"}
		other.Shorten(t, again).WantError(t, http.StatusUnprocessableEntity, "custom_alias")
		owner.Link(t, again)
		s.redirects(t, "/doomed", "https://example.com/again")
		owner.WaitTotal(t, "doomed", 1)
	})
	t.Run("an expired link is gone, or leads elsewhere, at the second of its expiry", func(t *testing.T) {
		owner.Alias(t, "expiring", "https://example.com/")
		s.answers(t, "/expiring", http.StatusFound, "")
		at := time.Now().Add(3 * time.Second).Truncate(time.Second)
		edit(t, "expiring", fmt.Sprintf(`{"expires_at":%q}`, at.Format(time.RFC3339)))
		s.answers(t, "/expiring", http.StatusGone, "expired")
		if time.Now().Before(at) {
			t.Errorf("expired before %v", at)
		}
		edit(t, "expiring", `{"expired_url":"https://example.com/late"}`)
		s.redirects(t, "/expiring", "https://example.com/late")
		edit(t, "expiring", `{"expires_at":null}`)
		s.redirects(t, "/expiring", "https://example.com/")
	})
}
