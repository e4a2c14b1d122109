package rest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// click stores n clicks of a link: by Chrome on a desktop on 20 November 2026, the last by Firefox on a mobile a day later.
func (s *testService) click(t *testing.T, linkID int64, n int) {
	t.Helper()
	position, err := s.clicks.Position(t.Context(), 0)
	testkit.Must(t, err)
	var batch schema.ClickBatch
	batch.Reset(0, position.Next)
	for i := range n {
		at, device, browser := time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC), schema.Desktop, "Chrome"
		if i == n-1 {
			at, device, browser = at.AddDate(0, 0, 1), schema.Mobile, "Firefox"
		}
		batch.Offset = append(batch.Offset, batch.Next)
		batch.Lane = append(batch.Lane, schema.Lane{Number: 1})
		batch.Seq = append(batch.Seq, uint64(batch.Next)+1)
		batch.LinkID = append(batch.LinkID, linkID)
		batch.ClickedAt = append(batch.ClickedAt, at)
		batch.Device = append(batch.Device, device)
		batch.Browser = append(batch.Browser, browser)
		batch.AccountID = append(batch.AccountID, 1)
		batch.Referrer, batch.Country = append(batch.Referrer, ""), append(batch.Country, "")
		batch.OS, batch.Language = append(batch.OS, ""), append(batch.Language, "")
		batch.Next++
	}
	testkit.Must(t, s.clicks.InsertClicks(t.Context(), &batch))
}

func TestStats(t *testing.T) {
	s := start(t)
	owner, other := s.caller(t, "a@example.org"), s.caller(t, "b@example.org")
	hash := owner.link(t, map[string]any{"long_url": "https://example.com/?<&>"})
	link, err := s.links.Link(t.Context(), 0, hash)
	testkit.Must(t, err)

	t.Run("4 GET stats: a link without clicks has empty counts, not null", func(t *testing.T) {
		a := owner.get(t, "/api/v1/stats/"+hash)
		a.want(t, http.StatusOK)
		if !strings.Contains(a.raw, `"stats":{"total_clicks":0,"clicks_by_day":[],"devices":{},"browsers":{}}`) {
			t.Error(a.raw)
		}
	})
	t.Run("4 GET stats: success is 200 with exactly the fields of the table", func(t *testing.T) {
		s.click(t, link.ID, 3)
		a := owner.get(t, "/api/v1/stats/"+hash)
		a.wantKeys(t, http.StatusOK, "success", "hash", "short_url", "original_url", "is_active", "stats")
		want := fmt.Sprintf(`{"success":true,"hash":%q,"short_url":"https://sho.rt/%s","original_url":"https://example.com/?<&>",`+
			`"is_active":true,"stats":{"total_clicks":3,"clicks_by_day":[{"date":"2026-11-20","total":2},`+
			`{"date":"2026-11-21","total":1}],"devices":{"desktop":2,"mobile":1},"browsers":{"Chrome":2,"Firefox":1}}}`, hash, hash)
		if strings.TrimSpace(a.raw) != want {
			t.Errorf("got  %s\nwant %s", a.raw, want)
		}
	})
	t.Run("4 GET stats: is_active is false for an inactive link", func(t *testing.T) {
		storetest.SetActive(t, s.links, link.DomainID, link.Hash, false)
		if a := owner.get(t, "/api/v1/stats/"+hash); a.body["is_active"] != false {
			t.Error(a.raw)
		}
	})
	t.Run("4 GET stats: the hash is percent-decoded", func(t *testing.T) {
		owner.get(t, fmt.Sprintf("/api/v1/stats/%%%02x%s", hash[0], hash[1:])).want(t, http.StatusOK)
	})
	owner.link(t, map[string]any{"long_url": "https://example.com/", "custom_alias": "alias"})
	notFound := map[string]string{}
	for name, path := range map[string]string{
		"does not exist":             "none",
		"differs in case":            "ALIAS",
		"cannot be a hash":           "a.b",
		"is too long":                strings.Repeat("a", 1000),
		"has a slash":                "alias%2F",
		"has a zero byte":            "alias%00",
		"is not UTF-8":               "%ff",
		"is not on the given domain": "alias?domain_id=4711",
	} {
		t.Run("4 GET stats, rule 1: 404 with error = not_found if the hash "+name, func(t *testing.T) {
			a := owner.get(t, "/api/v1/stats/"+path)
			a.wantKeys(t, http.StatusNotFound, "error", "message")
			if a.body["error"] != "not_found" {
				t.Error(a.raw)
			}
			notFound[a.raw] = name
		})
	}
	t.Run("4 GET stats, rules 1 and 2: a link of another account gives the same 404", func(t *testing.T) {
		a := other.get(t, "/api/v1/stats/alias")
		a.wantKeys(t, http.StatusNotFound, "error", "message")
		notFound[a.raw] = "belongs to another account"
		if len(notFound) != 1 {
			t.Errorf("answers differ: %v", notFound)
		}
	})
}

func TestStatsPicksTheDomain(t *testing.T) {
	s := start(t)
	owner, other := s.caller(t, "a@example.org"), s.caller(t, "b@example.org")
	first := owner.addDomain(t, "first.example.org", true)
	second := owner.addDomain(t, "second.example.org", true)
	other.link(t, map[string]any{"long_url": "https://example.com/", "custom_alias": "same"})
	for _, id := range []int64{first, second} {
		owner.link(t, map[string]any{"long_url": "https://example.com/", "custom_alias": "same", "domain_id": id})
	}
	shortURL := func(t *testing.T, query string) any {
		t.Helper()
		a := owner.get(t, "/api/v1/stats/same"+query)
		a.want(t, http.StatusOK)
		return a.body["short_url"]
	}
	t.Run("without domain_id: the oldest, if the default domain has none", func(t *testing.T) {
		if got := shortURL(t, ""); got != "https://first.example.org/same" {
			t.Errorf("got %v", got)
		}
	})
	t.Run("domain_id selects the domain", func(t *testing.T) {
		if got := shortURL(t, fmt.Sprintf("?domain_id=%d", second)); got != "https://second.example.org/same" {
			t.Errorf("got %v", got)
		}
		owner.get(t, "/api/v1/stats/same?domain_id=0").wantKeys(t, http.StatusNotFound, "error", "message")
	})
	t.Run("domain_id that is not an integer gives 422", func(t *testing.T) {
		for _, id := range []string{"", "x", "1.5", "9223372036854775808"} {
			owner.get(t, "/api/v1/stats/same?domain_id="+id).wantInvalid(t, "domain_id")
		}
	})
}
