package e2e_test

import (
	"fmt"
	"net/http"
	"testing"
)

func TestSection4Links(t *testing.T) { t.Parallel(); onBothKinds(t, testSection4Links) }

func testSection4Links(t *testing.T, s *system) {
	owner := s.owner()
	id := s.domain(t, s.email, "links.example.org")

	t.Run("a caller without links has an empty list", func(t *testing.T) {
		items, meta := owner.page(t, "")
		if len(items) != 0 || number(t, meta, "total") != 0 || number(t, meta, "current_page") != 1 {
			t.Errorf("items %v, meta %v", items, meta)
		}
	})
	const links = 45
	var made []object // newest first
	for i := range links {
		fields := object{"long_url": fmt.Sprintf("https://example.com/%d", i)}
		if i%3 == 0 {
			fields["domain_id"] = id
		}
		made = append([]object{owner.link(t, fields)}, made...)
	}
	t.Run("success is 200 with the fields of the tables", func(t *testing.T) {
		body := owner.get(t, "/api/v1/links").want(t, http.StatusOK).body
		linkList.check(t, body)
		pagination.check(t, body["meta"].(object))
		for _, item := range body["data"].([]any) {
			linkItem.check(t, item.(object))
		}
	})
	t.Run("links are listed once, newest first, 20 per page", func(t *testing.T) {
		var all []object
		for page, size := range map[int]int{1: 20, 2: 20, 3: 5} {
			if items, _ := owner.page(t, fmt.Sprintf("?page=%d", page)); len(items) != size {
				t.Errorf("page %d has %d items, want %d", page, len(items), size)
			}
		}
		for page := 1; page <= 3; page++ {
			items, meta := owner.page(t, fmt.Sprintf("?page=%d", page))
			all = append(all, items...)
			want := map[string]int64{"current_page": int64(page), "last_page": 3, "per_page": 20, "total": links}
			for name, value := range want {
				if number(t, meta, name) != value {
					t.Errorf("page %d: %s is %v, want %d", page, name, meta[name], value)
				}
			}
		}
		if len(all) != links {
			t.Fatalf("%d items on all pages, want %d", len(all), links)
		}
		for i, item := range all {
			for _, name := range []string{"hash", "short_url", "original_url", "created_at"} {
				if item[name] != made[i][name] {
					t.Errorf("item %d: %s is %v, want %v", i, name, item[name], made[i][name])
				}
			}
		}
	})
}

func TestSection4LinksPage(t *testing.T) { t.Parallel(); onBothKinds(t, testSection4LinksPage) }

func testSection4LinksPage(t *testing.T, s *system) {
	owner := s.owner()
	const links = 41
	for range links {
		owner.link(t, object{"long_url": "https://example.com/"})
	}

	t.Run("page is 1 by default", func(t *testing.T) {
		if a, b := owner.get(t, "/api/v1/links"), owner.get(t, "/api/v1/links?page=1"); a.raw != b.raw {
			t.Errorf("%v\ndiffers from %v", a, b)
		}
	})
	for _, page := range []string{"4", "1000000", "9223372036854775807"} {
		t.Run("a page beyond the last is empty: "+page, func(t *testing.T) {
			items, meta := owner.page(t, "?page="+page)
			if len(items) != 0 || number(t, meta, "last_page") != 3 || number(t, meta, "total") != links ||
				fmt.Sprint(meta["current_page"]) != page {
				t.Errorf("items %v, meta %v", items, meta)
			}
		})
	}
	for _, page := range []string{"0", "-1", "1.5", "x", "", "1x", "0x1", "%202", "+1"} {
		t.Run("a page that is not a positive integer is 422: "+page, func(t *testing.T) {
			owner.get(t, "/api/v1/links?page="+page).wantError(t, http.StatusUnprocessableEntity, "page")
		})
	}
}

func TestLinksAndStatsHaveTheSameClicks(t *testing.T) {
	t.Parallel()
	onBothKinds(t, testLinksAndStatsHaveTheSameClicks)
}

func testLinksAndStatsHaveTheSameClicks(t *testing.T, s *system) {
	owner := s.owner()
	id := s.domain(t, s.email, "links.example.org")
	owner.alias(t, "same", "https://example.com/default")
	owner.link(t, object{"long_url": "https://example.com/custom", "custom_alias": "same", "domain_id": id})
	owner.alias(t, "none", "https://example.com/none")
	for range 3 {
		s.click(t, "same")
	}
	for range 5 {
		s.click(t, "same", "Host", "links.example.org")
	}
	owner.waitTotal(t, "same", 3)
	owner.waitTotal(t, fmt.Sprintf("same?domain_id=%v", id), 5)

	items, _ := owner.page(t, "")
	for i, want := range []int64{0, 5, 3} {
		if got := number(t, items[i], "clicks"); got != want {
			t.Errorf("%v has %d clicks in the list, want %d as in its stats", items[i]["short_url"], got, want)
		}
	}
}
