package resttest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"linkstream/schema/testkit"
)

func testStats(t *testing.T, s System) {
	owner, other, mine := s.account(t), s.account(t), label()
	made := owner.Alias(t, mine, "https://example.com/mine?<&>")

	t.Run("success is 200 with the fields of the table", func(t *testing.T) {
		body := owner.Get(t, "/api/v1/stats/"+mine).Want(t, http.StatusOK).Body
		linkStats.Check(t, body)
		for _, name := range []string{"hash", "short_url", "original_url"} {
			testkit.Equal(t, name, body[name], made[name])
		}
	})
	t.Run("the statistics of a link without clicks are empty, not missing", func(t *testing.T) {
		raw := owner.Get(t, "/api/v1/stats/"+mine).Raw
		if want := `"stats":{"total_clicks":0,"clicks_by_day":[],"devices":{},"browsers":{}}`; !strings.Contains(raw, want) {
			t.Errorf("got %s, want %s", raw, want)
		}
	})
	t.Run("the hash may be a short code, and is percent-decoded", func(t *testing.T) {
		hash := owner.Link(t, Object{"long_url": "https://example.com/"})["hash"].(string)
		for _, path := range []string{hash, fmt.Sprintf("%%%02x%s", hash[0], hash[1:])} {
			testkit.Equal(t, "hash", owner.Get(t, "/api/v1/stats/"+path).Want(t, http.StatusOK).Body["hash"], any(hash))
		}
	})
	answers := map[string]string{}
	for name, hash := range map[string]string{"unknown": "unknown", "too short": "x",
		"in another case": strings.ToUpper(mine),
		"too long":        strings.Repeat("y", 1000), "a zero byte": "%00", "with a slash": mine + "%2F",
		"not ASCII": "%C3%A4bc", "not UTF-8": "%ff",
		"with a dot": "a.b", "not on that domain": mine + "?domain_id=4711"} {
		t.Run("rule 1: a hash that does not exist is 404: "+name, func(t *testing.T) {
			answers[owner.Get(t, "/api/v1/stats/"+hash).WantError(t, http.StatusNotFound).Raw] = name
		})
	}
	t.Run("rule 1: another's link is the same 404 as one that does not exist", func(t *testing.T) {
		answers[other.Get(t, "/api/v1/stats/"+mine).WantError(t, http.StatusNotFound).Raw] = "another's"
		if len(answers) != 1 {
			t.Errorf("answers differ: %v", answers)
		}
	})
	t.Run("another's link on the default domain does not hide the caller's own link", func(t *testing.T) {
		id, _ := s.domain(t, other)
		other.Link(t, Object{"long_url": "https://example.com/theirs", "custom_alias": mine, "domain_id": id})
		testkit.Equal(t, "theirs", other.Get(t, "/api/v1/stats/"+mine).Want(t, 200).Body["original_url"],
			any("https://example.com/theirs"))
		testkit.Equal(t, "mine", owner.Get(t, "/api/v1/stats/"+mine).Want(t, 200).Body["original_url"], made["original_url"])
	})
}

// testStatsOfDomains tests which link GET /stats/{hash} selects if several have the hash.
func testStatsOfDomains(t *testing.T, s System) {
	owner, hash := s.account(t), label()
	first, _ := s.domain(t, owner)
	second, _ := s.domain(t, owner)
	// The newer domain has the older link: the link's age decides.
	owner.Link(t, Object{"long_url": "https://example.com/second", "custom_alias": hash, "domain_id": second})
	owner.Link(t, Object{"long_url": "https://example.com/first", "custom_alias": hash, "domain_id": first})
	wantTarget := func(t *testing.T, query, want string) {
		t.Helper()
		got := owner.Get(t, "/api/v1/stats/"+hash+query).Want(t, http.StatusOK).Body["original_url"]
		testkit.Equal(t, "original_url", got, any("https://example.com/"+want))
	}

	t.Run("the caller's oldest link is selected if none is on the default domain",
		func(t *testing.T) { wantTarget(t, "", "second") })
	t.Run("the link on the default domain is selected first", func(t *testing.T) {
		owner.Alias(t, hash, "https://example.com/default")
		wantTarget(t, "", "default")
	})
	t.Run("domain_id selects the domain", func(t *testing.T) {
		wantTarget(t, "?domain_id="+first.String(), "first")
		wantTarget(t, "?domain_id="+second.String(), "second")
		single := label()
		owner.Alias(t, single, "https://example.com/")
		for _, id := range []string{first.String(), "4711"} {
			owner.Get(t, "/api/v1/stats/"+single+"?domain_id="+id).WantError(t, http.StatusNotFound)
		}
	})
	t.Run("domain_id that is not an integer gives 422", func(t *testing.T) {
		for _, id := range []string{"", "x", "1.5", "9223372036854775808"} {
			owner.Get(t, "/api/v1/stats/"+hash+"?domain_id="+id).WantError(t, http.StatusUnprocessableEntity, "domain_id")
		}
	})
}
