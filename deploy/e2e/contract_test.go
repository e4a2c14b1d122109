package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// The tests of the contract follow the sections of the API's document. This file tests sections 1, 2, 3, 6 and 9,
// shorten_test.go, stats_test.go and links_test.go test 4, access_test.go tests 5 and 7, and limit_test.go tests 8.

// The objects of section 2 and of the answers in section 4.
var (
	createdLink = shape{"success": yes, "short_url": link, "original_url": link, "hash": text, "created_at": moment}
	linkStats   = shape{"success": yes, "hash": text, "short_url": link, "original_url": link, "is_active": boolean,
		"stats": structure}
	statistics = shape{"total_clicks": integer, "clicks_by_day": array, "devices": structure, "browsers": structure}
	dayCount   = shape{"date": text, "total": integer}
	linkList   = shape{"success": yes, "data": array, "meta": structure}
	linkItem   = shape{"hash": text, "short_url": link, "original_url": link, "clicks": integer, "is_active": boolean,
		"created_at": moment}
	pagination = shape{"current_page": integer, "last_page": integer, "per_page": integer, "total": integer}
)

// endpoints are the requests of section 4, for tests of rules that apply to all of them.
var endpoints = []struct{ method, path, body string }{
	{http.MethodPost, "/api/v1/shorten", `{"long_url":"https://example.com/"}`},
	{http.MethodGet, "/api/v1/stats/known", ""},
	{http.MethodGet, "/api/v1/links", ""},
}

func TestSection1WhatTheServiceDoes(t *testing.T) {
	t.Parallel()
	onBothKinds(t, testSection1WhatTheServiceDoes)
}

func testSection1WhatTheServiceDoes(t *testing.T, s *system) {
	owner := s.owner()
	other, _ := s.another(t, "other")
	owner.alias(t, "known", "https://example.com/long")

	t.Run("shortens long URLs into short links and returns them as JSON", func(t *testing.T) {
		made := owner.link(t, object{"long_url": "https://example.com/a/long/address"})
		if to := s.click(t, made["hash"].(string)).header.Get("Location"); to != "https://example.com/a/long/address" {
			t.Errorf("the short link leads to %q", to)
		}
	})
	t.Run("reports total clicks, clicks per day, a device split and a browser split", func(t *testing.T) {
		s.click(t, "known")
		owner.waitTotal(t, "known", 1)
		statistics.check(t, owner.stats(t, "known"))
	})
	t.Run("lists all links created by the caller", func(t *testing.T) {
		if _, meta := owner.page(t, ""); number(t, meta, "total") != 2 {
			t.Errorf("the caller has two links: %v", meta)
		}
	})
	for _, e := range endpoints {
		t.Run("requires a bearer token and returns JSON: "+e.method+" "+e.path, func(t *testing.T) {
			caller{api: s.api}.call(t, e.method, e.path, e.body).wantError(t, http.StatusUnauthorized)
			if a := owner.call(t, e.method, e.path, e.body).wantJSON(t); a.status >= 400 {
				t.Error(a)
			}
		})
	}
	t.Run("every request acts for the token's owner", func(t *testing.T) {
		if items, meta := other.page(t, ""); len(items) != 0 || number(t, meta, "total") != 0 {
			t.Errorf("another account sees links: %v", items)
		}
		other.link(t, object{"long_url": "https://example.com/other", "custom_alias": "others"})
		if items, _ := other.page(t, ""); len(items) != 1 || items[0]["hash"] != "others" {
			t.Errorf("another account has one link: %v", items)
		}
	})
	t.Run("stats are available for the caller's own links only", func(t *testing.T) {
		other.get(t, "/api/v1/stats/known").wantError(t, http.StatusNotFound)
	})
}

func TestSection2Link(t *testing.T) { t.Parallel(); onBothKinds(t, testSection2Link) }

func testSection2Link(t *testing.T, s *system) {
	owner := s.owner()
	made := owner.alias(t, "fields", "https://example.com/fields")
	id := s.domain(t, s.email, "links.example.org")

	t.Run("a link has the fields of the table", func(t *testing.T) {
		createdLink.check(t, made)
		items, _ := owner.page(t, "")
		linkItem.check(t, items[0])
		linkStats.check(t, owner.get(t, "/api/v1/stats/fields").body)
	})
	t.Run("short_url is the domain plus the hash", func(t *testing.T) {
		if want := s.edge + "/fields"; made["short_url"] != want {
			t.Errorf("short_url is %v, want %q", made["short_url"], want)
		}
	})
	t.Run("a hash is unique per domain: an alias may exist on a custom and on the default domain", func(t *testing.T) {
		both := owner.link(t, object{"long_url": "https://example.com/2", "custom_alias": "fields", "domain_id": id})
		if want := "http://links.example.org/fields"; both["short_url"] != want {
			t.Errorf("short_url is %v, want %q", both["short_url"], want)
		}
	})
	t.Run("created_at is ISO 8601 with a numeric UTC offset, the same in every answer", func(t *testing.T) {
		items, _ := owner.page(t, "")
		if got := items[len(items)-1]["created_at"]; got != made["created_at"] {
			t.Errorf("the list says %v, the answer to shorten said %v", got, made["created_at"])
		}
	})
	t.Run("a new link is active", func(t *testing.T) {
		items, _ := owner.page(t, "")
		if stats := owner.get(t, "/api/v1/stats/fields").body; items[0]["is_active"] != true || stats["is_active"] != true {
			t.Errorf("not active: %v, %v", items[0], stats)
		}
	})
}

func TestSection2Statistics(t *testing.T) { t.Parallel(); onBothKinds(t, testSection2Statistics) }

func testSection2Statistics(t *testing.T, s *system) {
	owner := s.owner()
	owner.alias(t, "fields", "https://example.com/fields")

	t.Run("the statistics of a link without clicks are empty, not missing", func(t *testing.T) {
		stats := owner.stats(t, "fields")
		statistics.check(t, stats)
		days, _ := stats["clicks_by_day"].([]any)
		devices, _ := stats["devices"].(object)
		browsers, _ := stats["browsers"].(object)
		if number(t, stats, "total_clicks") != 0 || len(days)+len(devices)+len(browsers) != 0 {
			t.Errorf("want all empty: %v", stats)
		}
	})
	t.Run("clicks_by_day has a date and a total in each item", func(t *testing.T) {
		before := time.Now().UTC().Format(time.DateOnly)
		s.click(t, "fields")
		owner.waitTotal(t, "fields", 1)
		after := time.Now().UTC().Format(time.DateOnly)
		days := owner.stats(t, "fields")["clicks_by_day"].([]any)
		if len(days) != 1 {
			t.Fatalf("want one day: %v", days)
		}
		day := days[0].(object)
		dayCount.check(t, day)
		if date := day["date"]; date != before && date != after {
			t.Errorf("date is %v, want %s", date, after)
		}
	})
}

func TestSection3CustomDomain(t *testing.T) { t.Parallel(); onBothKinds(t, testSection3CustomDomain) }

func testSection3CustomDomain(t *testing.T, s *system) {
	owner := s.owner()
	id := number(t, object{"id": decode(s.admin(t, "domain", "add", s.email, "go.example.org"))}, "id")
	fields := object{"long_url": "https://example.com/", "custom_alias": "state", "domain_id": id}

	t.Run("a new domain is not verified and cannot be used", func(t *testing.T) {
		owner.shorten(t, fields).wantError(t, http.StatusUnprocessableEntity, "domain_id")
	})
	t.Run("the id of a verified domain can be used as domain_id", func(t *testing.T) {
		testkit.Follows(t, 2*time.Second, func(try int) func() error {
			host := "go.example.org"
			if try > 0 {
				host = fmt.Sprintf("go-%d.example.org", try)
				fields["domain_id"] = decode(s.admin(t, "domain", "add", s.email, host))
			}
			s.admin(t, "domain", "verify", host)
			return func() error { return owner.shorten(t, fields).isStatus(http.StatusCreated) }
		})
	})
}

func TestSection9Versioning(t *testing.T) { t.Parallel(); onBothKinds(t, testSection9Versioning) }

func testSection9Versioning(t *testing.T, s *system) {
	owner := s.owner()
	owner.alias(t, "known", "https://example.com/")
	for _, e := range endpoints {
		for _, version := range []string{"", "/api", "/api/v2"} {
			path := version + strings.TrimPrefix(e.path, "/api/v1")
			t.Run("the version is part of every path: "+e.method+" "+path, func(t *testing.T) {
				owner.call(t, e.method, path, e.body).wantError(t, http.StatusNotFound)
			})
		}
	}
	t.Run("an OpenAPI document describes version 1", func(t *testing.T) {
		doc := owner.get(t, "/api/v1/openapi.json").want(t, http.StatusOK).body
		if v, _ := doc["openapi"].(string); !strings.HasPrefix(v, "3.1") {
			t.Errorf("openapi is %v, want 3.1", doc["openapi"])
		}
		paths := fmt.Sprint(doc["paths"])
		for _, path := range []string{"/shorten", "/stats/{hash}", "/links"} {
			if !strings.Contains(paths, path) {
				t.Errorf("the document has no path %s", path)
			}
		}
	})
}
