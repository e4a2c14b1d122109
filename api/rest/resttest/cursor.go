package resttest

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// cursorList is a page that follows a cursor.
var cursorList = Shape{"success": yes, "data": array, "meta": structure}

// follow reads a list by cursors from a query on, until the last page, or of changes until an empty one. It returns the
// hashes, deleted ones with a minus sign, and the last cursor.
func (c Caller) follow(t *testing.T, query, after string, meanwhile func()) (hashes []string, next any) {
	t.Helper()
	next = after
	for range 1000 {
		body := c.Get(t, "/api/v1/links?"+query+"&after="+url.QueryEscape(next.(string))).Want(t, http.StatusOK).Body
		cursorList.Check(t, body)
		meta := body["meta"].(Object)
		if _, ok := meta["next"]; !ok || len(meta) != 1 {
			t.Fatalf("meta is %v", meta)
		}
		items := body["data"].([]any)
		for _, item := range items {
			hash := item.(Object)["hash"].(string)
			if at, deleted := item.(Object)["deleted_at"]; deleted {
				if _, err := time.Parse(time.RFC3339, fmt.Sprint(at)); err != nil {
					t.Errorf("deleted_at is %v", at)
				}
				hash = "-" + hash
			} else {
				linkItem.Check(t, item.(Object))
			}
			hashes = append(hashes, hash)
		}
		if next = meta["next"]; next == nil || len(items) == 0 {
			return hashes, next
		}
		if meanwhile != nil {
			meanwhile()
		}
	}
	t.Fatal("the list does not end")
	return nil, nil
}

// testCursors tests lists that are read by cursors.
func testCursors(t *testing.T, s System) {
	owner := s.account(t)
	id, _ := s.domain(t, owner)
	var made []string // oldest first
	add := func(tag string) {
		fields := Object{"long_url": "https://example.com/" + tag, "custom_alias": label(), "tags": []string{tag}}
		if len(made)%3 == 0 {
			fields["domain_id"] = id
		}
		made = append(made, owner.Link(t, fields)["hash"].(string))
	}
	for i := range 23 {
		add([]string{"even", "odd"}[i%2])
	}
	throughout := slices.Clone(made)
	newest := slices.Clone(made)
	slices.Reverse(newest)

	for _, limit := range []int{1, 7, 23, 1000} {
		t.Run(fmt.Sprintf("each link comes once while others are made: %d", limit), func(t *testing.T) {
			orders := map[string][]string{"": newest, "&sort=-created_at": newest, "&sort=created_at": throughout}
			for sort, want := range orders {
				left := 4
				got, next := owner.follow(t, fmt.Sprintf("limit=%d%s", limit, sort), "", func() {
					if left--; left >= 0 {
						add("new")
					}
				})
				got = slices.DeleteFunc(got, func(hash string) bool { return !slices.Contains(throughout, hash) })
				testkit.Equal(t, "links with "+sort, got, want)
				testkit.Equal(t, "next", next, nil)
			}
		})
	}
	t.Run("every filter applies", func(t *testing.T) {
		for query, want := range map[string]int{"tag=odd": 11, "q=EVEN": 12, "domain_id=" + id.String() + "&tag=odd": 4,
			"is_active=true&tag=even": 12, "is_active=false": 0, "tag=none": 0} {
			for _, limit := range []string{"&limit=2", "&limit=300", ""} {
				got, _ := owner.follow(t, query+limit, "", nil)
				testkit.Equal(t, "links with "+query+limit, len(got), want)
			}
		}
	})
	t.Run("the trash, the last deleted first", func(t *testing.T) {
		trash := s.account(t)
		var want []string
		for range 5 {
			hash := trash.Link(t, Object{"long_url": "https://example.com/"})["hash"].(string)
			trash.Call(t, http.MethodDelete, "/api/v1/links/"+hash, "").Want(t, http.StatusOK)
			want = append([]string{"-" + hash}, want...)
		}
		got, _ := trash.follow(t, "deleted=true&limit=2", "", nil)
		testkit.Equal(t, "links", got, want)
	})
}

// testInvalidCursors tests parameters of lists that are read by cursors.
func testInvalidCursors(t *testing.T, s System) {
	owner, other := s.account(t), s.account(t)
	for range 2 {
		owner.Link(t, Object{"long_url": "https://example.com/", "tags": []string{"odd"}})
	}
	const since, before = "updated_since=2026-01-02T00:00:00Z", "updated_since=2026-01-01T00:00:00Z"
	first := func(query string) string {
		meta := owner.Get(t, "/api/v1/links?"+query).Want(t, http.StatusOK).Body["meta"].(Object)
		return "after=" + meta["next"].(string)
	}
	next, changes := first("limit=1&tag=odd"), first(before)
	for field, queries := range map[string][]string{
		"limit": {"limit=0", "limit=1001", "limit=", "limit=x", "limit=1.5", "limit=-1", "limit=99999999999999999999"},
		"page":  {"limit=1&page=1", "after=&page=1", before + "&page=1"},
		"sort":  {"limit=1&sort=-clicks", "limit=1&sort=clicks", "limit=1&sort=x", before + "&sort=created_at"},
		"after": {"after=x", next, "tag=even&" + next, "tag=odd&" + next[:15], "tag=odd&" + next + "A",
			"tag=odd&sort=created_at&" + next, "tag=odd&deleted=true&" + next, "tag=odd&q=x&" + next,
			"tag=odd&domain_id=0&" + next, "tag=odd&is_active=true&" + next, changes + "&tag=odd", changes + "&" + since,
			"tag=odd&" + before + "&" + next},
		"updated_since": {"updated_since=yesterday", "updated_since=", "updated_since=2026-01-01"},
		"deleted":       {before + "&deleted=true", "limit=1&deleted=x"},
	} {
		for _, query := range queries {
			t.Run("422: "+query, func(t *testing.T) {
				owner.Get(t, "/api/v1/links?"+query).WantError(t, http.StatusUnprocessableEntity, field)
			})
		}
	}
	t.Run("422: a cursor of another account", func(t *testing.T) {
		for _, query := range []string{"tag=odd&" + next, changes} {
			other.Get(t, "/api/v1/links?"+query).WantError(t, http.StatusUnprocessableEntity, "after")
		}
	})
}

// testChanges tests updated_since.
func testChanges(t *testing.T, s System) {
	owner := s.account(t)
	path := func(hash string) string { return "/api/v1/links/" + hash }
	var made []string
	for range 5 {
		made = append(made, owner.Alias(t, label(), "https://example.com/")["hash"].(string))
	}
	first, next := owner.follow(t, "updated_since=2020-01-01T00:00:00Z&limit=2", "", nil)
	testkit.Equal(t, "all links", first, made)
	wantChanges := func(t *testing.T, want ...string) {
		t.Helper()
		var got []string
		got, next = owner.follow(t, "limit=2", next.(string), nil)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("changes %v, want %v", got, want)
		}
	}
	wantBoth := func(t *testing.T, one, two string) { // in any order
		t.Helper()
		var got []string
		got, next = owner.follow(t, "limit=2", next.(string), nil)
		slices.Sort(got)
		testkit.Equal(t, "changes", got, slices.Sorted(slices.Values([]string{one, two})))
	}
	pause := func() { time.Sleep(3 * time.Millisecond) } // changes have their order by milliseconds
	t.Run("nothing has changed", func(t *testing.T) { wantChanges(t) })
	t.Run("edits, new and deleted links in their order", func(t *testing.T) {
		owner.Call(t, http.MethodPatch, path(made[3]), `{"title":"T"}`).Want(t, http.StatusOK)
		pause()
		added := owner.Link(t, Object{"long_url": "https://example.com/"})["hash"].(string)
		pause()
		owner.Call(t, http.MethodDelete, path(made[0]), "").Want(t, http.StatusOK)
		pause()
		owner.Call(t, http.MethodPatch, path(made[1]), `{"is_active":false}`).Want(t, http.StatusOK)
		wantChanges(t, made[3], added, "-"+made[0], made[1])
		wantChanges(t)
	})
	t.Run("a link comes again after each change", func(t *testing.T) {
		for range 2 {
			owner.Call(t, http.MethodPatch, path(made[3]), `{"title":"T"}`).Want(t, http.StatusOK)
			wantChanges(t, made[3])
		}
	})
	t.Run("changes of many, renamed tags and restored links", func(t *testing.T) {
		named := fmt.Sprintf(`{"links":[{"hash":%q},{"hash":%q}]`, made[1], made[2])
		owner.Call(t, http.MethodPost, "/api/v1/links/bulk/edit", named+`,"add_tags":["x"]}`).Want(t, http.StatusOK)
		wantBoth(t, made[1], made[2])
		owner.Call(t, http.MethodPost, path(made[0])+"/restore", "").Want(t, http.StatusOK)
		wantChanges(t, made[0])
		owner.Call(t, http.MethodPost, "/api/v1/links/bulk/delete", named+`}`).Want(t, http.StatusOK)
		wantBoth(t, "-"+made[1], "-"+made[2])
		wantChanges(t)
	})
	t.Run("clicks and refused edits are no changes", func(t *testing.T) {
		owner.Call(t, http.MethodPatch, path(made[3]), `{"title":7}`).Want(t, http.StatusUnprocessableEntity)
		owner.Get(t, path(made[3])).Want(t, http.StatusOK)
		wantChanges(t)
	})
}

// testSince tests from when on updated_since has changes.
func testSince(t *testing.T, s System) {
	owner := s.account(t)
	edited, deleted := owner.Alias(t, label(), "https://example.com/"), owner.Alias(t, label(), "https://example.com/")
	path := "/api/v1/links/" + edited["hash"].(string)
	owner.Call(t, http.MethodPatch, path, `{"title":"T"}`).Want(t, http.StatusOK)
	owner.Call(t, http.MethodDelete, "/api/v1/links/"+deleted["hash"].(string), "").Want(t, http.StatusOK)
	both := []string{"-" + deleted["hash"].(string), edited["hash"].(string)}
	updated := owner.link(t, edited["hash"])["updated_at"].(string)
	for _, since := range []string{url.QueryEscape(updated), updated, "0000-01-01T00:00:00%2B14:00",
		"2020-01-01T00:00:00Z"} {
		t.Run("changes since "+since, func(t *testing.T) {
			got, _ := owner.follow(t, "updated_since="+since, "", nil)
			slices.Sort(got)
			testkit.Equal(t, "changes", got, slices.Sorted(slices.Values(both)))
		})
	}
	later := time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05Z")
	for _, since := range []string{later, "9999-12-31T23:59:59-14:00"} {
		t.Run("changes since "+since, func(t *testing.T) {
			got, next := owner.follow(t, "updated_since="+since, "", nil)
			testkit.Equal(t, "changes", len(got), 0)
			owner.Call(t, http.MethodPatch, path, `{"title":"U"}`).Want(t, http.StatusOK)
			got, _ = owner.follow(t, "updated_since="+since, next.(string), nil)
			testkit.Equal(t, "later changes", fmt.Sprint(got), fmt.Sprint([]any{edited["hash"]}))
		})
	}
}

// testExport tests exports in both formats.
func testExport(t *testing.T, s System) {
	owner := s.account(t)
	id, host := s.domain(t, owner)
	var want []Object
	for i := range 5 {
		fields := Object{"long_url": fmt.Sprintf("https://example.com/%d?a=b,\"c\"", i), "custom_alias": label(),
			"title": "=T\u00e4", "tags": []string{"b", "a"}, "expires_at": "2099-01-01T00:00:00Z", "forward_query": i%2 == 0,
			"max_clicks": 5}
		if i%2 > 0 {
			fields["domain_id"], fields["tags"] = id, []string{"odd"}
		}
		hash := owner.Link(t, fields)["hash"].(string)
		want = append(want, owner.link(t, hash))
		want[i]["clicks"], want[i]["clicks_left"] = json.Number("0"), json.Number("5") // null in a late answer about a link
	}
	gone := owner.Link(t, Object{"long_url": "https://example.com/"})["hash"].(string)
	owner.Call(t, http.MethodDelete, "/api/v1/links/"+gone, "").Want(t, http.StatusOK)
	t.Run("ndjson has the full links, the oldest first", func(t *testing.T) {
		a := owner.Get(t, "/api/v1/export?format=ndjson")
		testkit.Equal(t, "status and type", fmt.Sprint(a.Status, a.Header.Get("Content-Type")), "200application/x-ndjson")
		lines := strings.SplitAfter(a.Raw, "\n")
		testkit.Equal(t, "lines", len(lines), len(want)+1)
		for i, line := range lines[:len(want)] {
			testkit.Equal(t, "link", Decode(line), any(want[i]))
		}
	})
	t.Run("csv has a row for each link", func(t *testing.T) {
		a := owner.Get(t, "/api/v1/export?format=csv")
		testkit.Equal(t, "status and type", fmt.Sprint(a.Status, a.Header.Get("Content-Type")),
			"200text/csv; charset=utf-8; header=present")
		rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(a.Raw, "\ufeff"))).ReadAll()
		testkit.Must(t, err)
		testkit.Equal(t, "rows", len(rows), len(want)+1)
		for i, row := range rows[1:] {
			domain := []string{"", host}[i%2]
			testkit.Equal(t, "row", fmt.Sprint(row[0], row[1], row[2], row[3]),
				fmt.Sprint(want[i]["short_url"], want[i]["hash"], domain, want[i]["original_url"]))
		}
	})
	testFilteredExport(t, s, owner, want[2]["hash"])
}

// testFilteredExport tests exports of five links, two of them with a tag and on a domain, and of a deleted one.
func testFilteredExport(t *testing.T, s System, owner account, hash any) {
	t.Run("filters apply", func(t *testing.T) {
		for query, n := range map[string]int{"tag=odd": 2, "domain_id=0": 3, "q=" + fmt.Sprint(hash): 1,
			"is_active=true": 5, "is_active=false": 0, "deleted=true": 1, "tag=none": 0} {
			a := owner.Get(t, "/api/v1/export?format=ndjson&"+query)
			testkit.Equal(t, "links with "+query, strings.Count(a.Raw, "\n"), n)
			if query == "deleted=true" && !strings.Contains(a.Raw, `"deleted_at":"20`) {
				t.Errorf("deleted link %s", a.Raw)
			}
			testkit.Equal(t, "rows with "+query, len(records(t, owner.Get(t, "/api/v1/export?format=csv&"+query).Raw)), n+1)
		}
	})
	t.Run("422", func(t *testing.T) {
		for query, fields := range map[string][]string{"": {"format"}, "format=xml": {"format"},
			"format=csv&page=1&sort=created_at&tag=A&domain_id=x&is_active=1&deleted=x": {"page", "sort", "tag", "domain_id",
				"is_active", "deleted"}} {
			owner.Get(t, "/api/v1/export?"+query).WantError(t, http.StatusUnprocessableEntity, fields...)
		}
	})
	t.Run("an account without links", func(t *testing.T) {
		none := s.account(t)
		testkit.Equal(t, "body", none.Get(t, "/api/v1/export?format=ndjson").Raw, "")
		testkit.Equal(t, "rows", len(records(t, none.Get(t, "/api/v1/export?format=csv").Raw)), 1)
	})
}

func records(t *testing.T, text string) [][]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	testkit.Must(t, err)
	return rows
}
