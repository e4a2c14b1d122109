package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// hashes returns the hashes of a list and requires their number as the total.
func (a answer) hashes(t *testing.T) string {
	t.Helper()
	a.wantKeys(t, http.StatusOK, "success", "data", "meta")
	var hashes []string
	for _, item := range a.body["data"].([]any) {
		hashes = append(hashes, item.(map[string]any)["hash"].(string))
	}
	if total := a.body["meta"].(map[string]any)["total"]; total != json.Number(fmt.Sprint(len(hashes))) {
		t.Errorf("total %v of %q", total, hashes)
	}
	return strings.Join(hashes, " ")
}

func TestFilteredList(t *testing.T) {
	s := start(t)
	owner, other := s.caller(t, "a@example.org"), s.caller(t, "b@example.org")
	domain, others := owner.addDomain(t, "xn--bcher-kva.example", true), other.addDomain(t, "other.example.org", true)
	for _, fields := range []map[string]any{
		{"custom_alias": "spring", "long_url": "https://shop.example/offers", "title": "Spring sale",
			"tags": []string{"sale", "2026"}},
		{"custom_alias": "summer", "long_url": "https://xn--mnchen-3ya.example/", "title": "\u00c4rger",
			"tags": []string{"sale"}},
		{"custom_alias": "spring", "long_url": "https://m\u00fcnchen.example/stra\u00dfe", "domain_id": domain},
		{"custom_alias": "quiet", "long_url": "https://example.com/spring"},
	} {
		owner.link(t, fields)
	}
	other.link(t, map[string]any{"custom_alias": "foreign", "long_url": "https://shop.example/spring",
		"domain_id": others})
	owner.patch(t, "/api/v1/links/quiet", `{"is_active":false}`).want(t, http.StatusOK)
	for hash, clicks := range map[string]int{"summer": 3, "quiet": 1} {
		link, err := schema.FindLink(t.Context(), s.links, 0, hash)
		testkit.Must(t, err)
		s.click(t, link.ID, clicks)
	}
	onDomain := fmt.Sprint(domain)
	for name, c := range map[string]struct{ query, want string }{
		"no filter":                     {"", "quiet spring summer spring"},
		"newest first":                  {"sort=-created_at", "quiet spring summer spring"},
		"oldest first":                  {"sort=created_at", "spring summer spring quiet"},
		"most clicks first":             {"sort=-clicks", "summer quiet spring spring"},
		"fewest clicks first":           {"sort=clicks", "spring spring quiet summer"},
		"most clicks first, filtered":   {"sort=-clicks&q=spring", "quiet spring spring"},
		"a word":                        {"q=OFFERS", "spring"},
		"words":                         {"q=sale+shop", "spring"},
		"words of different links":      {"q=sale+quiet", ""},
		"a title in another case":       {"q=%C3%A4RGER", "summer"},
		"a tag":                         {"tag=sale", "summer spring"},
		"a tag that is part of another": {"tag=202", ""},
		"a domain":                      {"domain_id=" + onDomain, "spring"},
		"the default domain":            {"domain_id=0", "quiet summer spring"},
		"active ones":                   {"is_active=true", "spring summer spring"},
		"inactive ones":                 {"is_active=false", "quiet"},
		"all filters":                   {"q=spring&tag=sale&domain_id=0&is_active=true&sort=created_at", "spring"},
		"a page beyond the last":        {"", "quiet spring summer spring"},
	} {
		t.Run("GET links filters and sorts: "+name, func(t *testing.T) {
			testkit.Equal(t, "hashes", owner.get(t, "/api/v1/links?"+c.query).hashes(t), c.want)
		})
	}
	for pasted, want := range map[string]string{
		edgeURL + "/summer": "summer", "SHO.RT/Summer": "summer", "sho.rt/summer+": "summer",
		"http://sho.rt:80/summer?x=y#z":      "summer",
		"https://b\u00fccher.example/spring": "spring", "B\u00dcCHER.example/SPRING": "spring",
		"xn--bcher-kva.example/spring": "spring",
		"xn--bcher-kva.example/summer": "", "other.example.org/foreign": "", "https://sho.rt/": "", "sho.rt/unknown": "",
		"m\u00dcnchen.example": "spring summer", "https://xn--mnchen-3ya.example": "spring summer", "stra\u00dfe": "spring",
	} {
		t.Run("GET links finds a pasted URL: "+pasted, func(t *testing.T) {
			testkit.Equal(t, "hashes", owner.get(t, "/api/v1/links?q="+url.QueryEscape(pasted)).hashes(t), want)
		})
	}
	t.Run("GET links: all invalid parameters give one 422", func(t *testing.T) {
		owner.get(t, "/api/v1/links?page=0&domain_id=x&is_active=1&sort=hits&tag=A&q="+strings.Repeat("1+2+", 76)).
			wantInvalid(t, "page", "domain_id", "is_active", "sort", "tag", "q")
		owner.get(t, "/api/v1/links?q="+strings.Repeat("x", 2049)).wantInvalid(t, "q")
		for _, path := range []string{"/api/v1/links", "/api/v1/report"} {
			owner.get(t, fmt.Sprintf("%s?domain_id=%v", path, others)).wantInvalid(t, "domain_id")
		}
	})
	t.Run("GET links has pages of links sorted by clicks", func(t *testing.T) {
		many := s.caller(t, "many@example.org")
		for i := range 21 {
			many.link(t, map[string]any{"long_url": anyURL, "custom_alias": fmt.Sprintf("many-%d", i)})
		}
		for page, want := range []int{20, 1, 0} {
			a := many.get(t, fmt.Sprintf("/api/v1/links?sort=-clicks&page=%d", page+1))
			if got := len(a.body["data"].([]any)); got != want || a.body["meta"].(map[string]any)["total"] != json.Number("21") {
				t.Errorf("page %d has %d links: %s", page+1, got, a.raw)
			}
		}
		many.get(t, "/api/v1/links?sort=-clicks&page=9223372036854775807").want(t, http.StatusOK)
	})
	t.Run("GET tags counts links and clicks by name, without deleted links", func(t *testing.T) {
		want := []any{map[string]any{"tag": "2026", "links": json.Number("1"), "clicks": json.Number("0")},
			map[string]any{"tag": "sale", "links": json.Number("2"), "clicks": json.Number("3")}}
		a := owner.get(t, "/api/v1/tags")
		a.wantKeys(t, http.StatusOK, "success", "data")
		testkit.Equal(t, "tags", a.body["data"].([]any), want)
		testkit.Equal(t, "tags after one", owner.get(t, "/api/v1/tags?after=2026").body["data"].([]any), want[1:])
		owner.get(t, "/api/v1/tags?after=A").wantInvalid(t, "after")
		owner.request(t, http.MethodDelete, "/api/v1/links/spring?domain_id=0", "").want(t, http.StatusOK)
		testkit.Equal(t, "tags", owner.get(t, "/api/v1/tags").body["data"].([]any)[0].(map[string]any)["tag"], any("sale"))
		testkit.Equal(t, "tags of another", len(other.get(t, "/api/v1/tags").body["data"].([]any)), 0)
	})
}
