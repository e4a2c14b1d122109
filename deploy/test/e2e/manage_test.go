package e2e_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
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
		if link["title"] != "Managed" || link["original_url"] != "https://example.com/after" || len(link["tags"].([]any)) != 2 {
			t.Errorf("%v", link)
		}
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
	t.Run("a link forwards the visitor's query string", func(t *testing.T) {
		owner.Link(t, object{"long_url": "https://example.com/?own=1#part", "custom_alias": "forwards", "forward_query": true})
		s.redirects(t, "/forwards?a=%20b", "https://example.com/?own=1&a=%20b#part")
		edit(t, "forwards", `{"forward_query":false}`)
		s.redirects(t, "/forwards?a=%20b", "https://example.com/?own=1#part")
	})
	t.Run("a short URL with + shows where it leads, and is not counted", func(t *testing.T) {
		owner.Link(t, object{"long_url": "https://example.com/shown", "custom_alias": "shown", "title": "A page"})
		s.answers(t, "/shown+", http.StatusOK, "A page")
		testkit.Must(t, s.answer(t, "/shown+", http.StatusOK, "https://example.com/shown"))
		s.click(t, "shown")
		owner.WaitTotal(t, "shown", 1)
	})
	t.Run("links that one call creates are listed by tag and clicks, and found by their short URL", func(t *testing.T) {
		a := owner.Call(t, http.MethodPost, "/api/v1/links/bulk", `{"links":[{"long_url":"https://example.com/1","custom_alias":"many-1",
			"tags":["many"]},{"long_url":"https://example.com/2","custom_alias":"many-2","tags":["many"]},{"long_url":"x"}]}`)
		if a.Want(t, http.StatusOK); number(t, a.Body, "created") != 2 || number(t, a.Body, "failed") != 1 {
			t.Fatal(a)
		}
		s.click(t, "many-1")
		owner.WaitTotal(t, "many-1", 1)
		for query, want := range map[string]string{"tag=many": "many-2", "tag=many&sort=-clicks": "many-1",
			"q=" + url.QueryEscape(strings.ToUpper(s.edge)+"/MANY-1"): "many-1"} {
			if items, _ := owner.Page(t, "?"+query); len(items) == 0 || items[0]["hash"] != want {
				t.Errorf("%s: %v, want %s first", query, items, want)
			}
		}
		tags := owner.Get(t, "/api/v1/tags").Want(t, http.StatusOK).Body["data"].([]any)
		if !slices.ContainsFunc(tags, func(tag any) bool {
			tagged := tag.(object)
			return tagged["tag"] == "many" && number(t, tagged, "links") == 2 && number(t, tagged, "clicks") == 1
		}) {
			t.Errorf("%v", tags)
		}
	})
}
