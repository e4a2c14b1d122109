package resttest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

func testLink(t *testing.T, s System) {
	owner, alias := s.account(t), label()
	made := owner.Alias(t, alias, "https://example.com/fields")
	id, host := s.domain(t, owner)

	t.Run("a link has the fields of the table", func(t *testing.T) {
		createdLink.Check(t, made)
		items, _ := owner.Page(t, "")
		linkItem.Check(t, items[0])
		linkStats.Check(t, owner.Get(t, "/api/v1/stats/"+alias).Body)
	})
	t.Run("short_url is the domain plus the hash", func(t *testing.T) {
		testkit.Equal(t, "short_url", made["short_url"], any(s.Short+"/"+alias))
	})
	t.Run("a hash is unique per domain: an alias may exist on a custom and on the default domain", func(t *testing.T) {
		both := owner.Link(t, Object{"long_url": "https://example.com/2", "custom_alias": alias, "domain_id": id})
		if got := both["short_url"]; got != s.custom(host, alias) {
			t.Errorf("short_url is %v", got)
		}
	})
	t.Run("created_at is ISO 8601 with a numeric UTC offset, the same in every answer", func(t *testing.T) {
		items, _ := owner.Page(t, "")
		testkit.Equal(t, "created_at in the list", items[len(items)-1]["created_at"], made["created_at"])
	})
	t.Run("a new link is active", func(t *testing.T) {
		items, _ := owner.Page(t, "")
		if stats := owner.Get(t, "/api/v1/stats/"+alias).Body; items[0]["is_active"] != true || stats["is_active"] != true {
			t.Errorf("not active: %v, %v", items[0], stats)
		}
	})
	t.Run("every request acts for the token's owner", func(t *testing.T) {
		other := s.account(t)
		if items, meta := other.Page(t, ""); len(items) != 0 || Number(t, meta, "total") != 0 {
			t.Errorf("another account sees links: %v", items)
		}
		hash := other.Link(t, Object{"long_url": "https://example.com/other"})["hash"]
		if items, _ := other.Page(t, ""); len(items) != 1 || items[0]["hash"] != hash {
			t.Errorf("another account has one link: %v", items)
		}
	})
}

// custom returns a short URL on a custom domain, which has the scheme of the default one and no port.
func (s System) custom(host, hash string) string {
	scheme := "http"
	if s.Short[:5] == "https" {
		scheme = "https"
	}
	return fmt.Sprintf("%s://%s/%s", scheme, host, hash)
}

func testDomain(t *testing.T, s System) {
	owner, host := s.account(t), newHost()
	fields := Object{"long_url": "https://example.com/", "domain_id": s.addDomain(t, owner, host)}

	t.Run("a new domain is not verified and cannot be used", func(t *testing.T) {
		owner.Shorten(t, fields).WantError(t, http.StatusUnprocessableEntity, "domain_id")
	})
	t.Run("the id of a verified domain can be used as domain_id", func(t *testing.T) {
		testkit.Follows(t, 2*time.Second, func(try int) func() error {
			if try > 0 {
				host = newHost()
				fields["domain_id"] = s.addDomain(t, owner, host)
			}
			s.Admin(t, "domain", "verify", host)
			return func() error { return owner.Shorten(t, fields).IsStatus(http.StatusCreated) }
		})
	})
}

func testDomains(t *testing.T, s System) {
	owner := s.account(t)
	list := func(t *testing.T, query string) (items []any, meta Object) {
		t.Helper()
		body := owner.Get(t, "/api/v1/domains"+query).Want(t, http.StatusOK).Body
		linkList.Check(t, body)
		return body["data"].([]any), body["meta"].(Object)
	}
	t.Run("a caller without domains has an empty list", func(t *testing.T) {
		items, got := list(t, "")
		testkit.Equal(t, "items", len(items), 0)
		testkit.Equal(t, "meta", got, pageMeta(1, 1, 0))
	})
	s.domain(t, s.account(t)) // another's
	const domains = 22
	ids := map[any]any{} // by host
	for i := range domains {
		host := fmt.Sprintf("d%02d.%s", i, newHost())
		if i == 0 {
			ids[host] = s.addDomain(t, owner, host)
		} else {
			ids[host] = s.addDomain(t, owner, host, "--verified")
		}
	}
	for page, want := range []int{20, 2, 0} {
		t.Run(fmt.Sprintf("domains are listed by host, 20 per page: %d", page+1), func(t *testing.T) {
			items, got := list(t, fmt.Sprintf("?page=%d", page+1))
			testkit.Equal(t, "items", len(items), want)
			testkit.Equal(t, "meta", got, pageMeta(page+1, 2, domains))
			for i, item := range items {
				domain := item.(Object)
				Shape{"id": integer, "host": text, "verified": boolean, "created_at": moment}.Check(t, domain)
				testkit.Equal(t, "id", domain["id"], ids[domain["host"]])
				testkit.Equal(t, "verified", domain["verified"], any(page > 0 || i > 0))
				if number := fmt.Sprintf("d%02d.", page*20+i); !strings.HasPrefix(domain["host"].(string), number) {
					t.Errorf("%v, want %s", domain["host"], number)
				}
			}
		})
	}
	t.Run("a page that is no positive integer is 422", func(t *testing.T) {
		for _, page := range []string{"0", "-1", "x", ""} {
			owner.Get(t, "/api/v1/domains?page="+page).WantError(t, http.StatusUnprocessableEntity, "page")
		}
	})
}

func testLinks(t *testing.T, s System) {
	owner := s.account(t)
	id, _ := s.domain(t, owner)
	const links, pages = 45, 3

	t.Run("a caller without links has an empty list", func(t *testing.T) {
		items, got := owner.Page(t, "")
		testkit.Equal(t, "items", len(items), 0)
		testkit.Equal(t, "meta", got, pageMeta(1, 1, 0))
	})
	var made []Object // newest first
	for i := range links {
		fields := Object{"long_url": fmt.Sprintf("https://example.com/%d?<&>", i)}
		if i%3 == 0 {
			fields["domain_id"] = id
		}
		made = append([]Object{owner.Link(t, fields)}, made...)
	}
	t.Run("success is 200 with the fields of the tables", func(t *testing.T) {
		body := owner.Get(t, "/api/v1/links").Want(t, http.StatusOK).Body
		linkList.Check(t, body)
		for _, item := range body["data"].([]any) {
			linkItem.Check(t, item.(Object))
		}
	})
	t.Run("links are listed once, newest first, 20 per page", func(t *testing.T) {
		var all []Object
		for page := 1; page <= pages; page++ {
			items, got := owner.Page(t, fmt.Sprintf("?page=%d", page))
			if want := min(20, links-len(all)); len(items) != want {
				t.Errorf("page %d has %d items, want %d", page, len(items), want)
			}
			testkit.Equal(t, "meta", got, pageMeta(page, pages, links))
			all = append(all, items...)
		}
		testkit.Equal(t, "items on all pages", len(all), links)
		for i, item := range all {
			for _, name := range []string{"hash", "short_url", "original_url", "created_at"} {
				if item[name] != made[i][name] {
					t.Errorf("item %d: %s is %v, want %v", i, name, item[name], made[i][name])
				}
			}
		}
	})
	testPages(t, owner, pages, links)
}

// pageMeta is the meta of a page.
func pageMeta(page any, last, total int) Object {
	return Decode(fmt.Sprintf(`{"current_page":%v,"last_page":%d,"per_page":20,"total":%d}`, page, last, total)).(Object)
}

// testPages asks for pages of a list with some pages of links.
func testPages(t *testing.T, owner account, pages, links int) {
	t.Run("page is 1 by default", func(t *testing.T) {
		testkit.Equal(t, "page 1", owner.Get(t, "/api/v1/links?page=1").Raw, owner.Get(t, "/api/v1/links").Raw)
	})
	for _, page := range []string{"4", "1000000", "9223372036854775807"} {
		t.Run("a page beyond the last is empty: "+page, func(t *testing.T) {
			items, got := owner.Page(t, "?page="+page)
			testkit.Equal(t, "items", len(items), 0)
			testkit.Equal(t, "meta", got, pageMeta(page, pages, links))
		})
	}
	for _, page := range []string{"=0", "=-1", "=1.5", "=x", "=", "", "=1x", "=0x1", "=%202", "=1%202", "=+1", "=%2B1",
		"=9223372036854775808"} {
		t.Run("a page that is not a positive integer is 422: "+page, func(t *testing.T) {
			owner.Get(t, "/api/v1/links?page"+page).WantError(t, http.StatusUnprocessableEntity, "page")
		})
	}
}
