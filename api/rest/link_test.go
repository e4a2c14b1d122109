package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// isoTime is ISO 8601 with a numeric UTC offset, so not Z.
var isoTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$`)

func TestShorten(t *testing.T) {
	s := start(t)
	owner := s.caller(t, "a@example.org")
	domain := owner.addDomain(t, "go.example.org", true)
	const longURL = "https://example.com/<a>?b=c&d='\"#é💩"

	t.Run("4 POST shorten: success is 201 with exactly the fields of the table", func(t *testing.T) {
		began := time.Now().Truncate(time.Second)
		a := owner.shorten(t, map[string]any{"long_url": longURL})
		a.wantKeys(t, http.StatusCreated, "success", "short_url", "original_url", "hash", "created_at")
		hash := a.body["hash"].(string)
		if !regexp.MustCompile(`^[0-9A-Za-z]{7}$`).MatchString(hash) {
			t.Errorf("hash %q", hash)
		}
		if a.body["success"] != true || a.body["original_url"] != longURL || a.body["short_url"] != edgeURL+"/"+hash {
			t.Error(a.raw)
		}
		createdAt := a.body["created_at"].(string)
		at, err := time.Parse(time.RFC3339, createdAt)
		if err != nil || !isoTime.MatchString(createdAt) || at.Before(began) || at.After(time.Now()) {
			t.Errorf("created_at %q: %v", createdAt, err)
		}
	})
	t.Run("4 POST shorten: URLs have no more escapes than JSON needs", func(t *testing.T) {
		a := owner.shorten(t, map[string]any{"long_url": "https://example.com/<a>?b&c"})
		if !strings.Contains(a.raw, `"https://example.com/<a>?b&c"`) {
			t.Error(a.raw)
		}
	})
	t.Run("4 POST shorten, rule 1: with custom_alias, hash equals the alias", func(t *testing.T) {
		a := owner.shorten(t, map[string]any{"long_url": longURL, "custom_alias": "my_alias-1"})
		a.want(t, http.StatusCreated)
		if a.body["hash"] != "my_alias-1" || a.body["short_url"] != edgeURL+"/my_alias-1" {
			t.Error(a.raw)
		}
	})
	t.Run("4 POST shorten, rule 2: with domain_id, short_url uses that custom domain", func(t *testing.T) {
		a := owner.shorten(t, map[string]any{"long_url": longURL, "custom_alias": "ruled", "domain_id": domain})
		a.want(t, http.StatusCreated)
		if a.body["short_url"] != "https://go.example.org/ruled" {
			t.Error(a.raw)
		}
	})
	t.Run("2 Custom domain, 3: a domain must be verified before it can be used", func(t *testing.T) {
		id := owner.addDomain(t, "new.example.org", false)
		fields := map[string]any{"long_url": longURL, "domain_id": id}
		owner.shorten(t, fields).wantInvalid(t, "domain_id")
		testkit.Must(t, s.links.VerifyDomain(t.Context(), id, time.Now()))
		owner.link(t, fields)
	})
	t.Run("2 Link: the same alias may exist on a custom domain and on the default domain", func(t *testing.T) {
		owner.link(t, map[string]any{"long_url": longURL, "custom_alias": "both"})
		owner.link(t, map[string]any{"long_url": longURL, "custom_alias": "both", "domain_id": domain})
	})
	t.Run("4 POST shorten, rule 3: an alias in use on the chosen domain gives 422", func(t *testing.T) {
		other := s.caller(t, "b@example.org")
		owner.link(t, map[string]any{"long_url": longURL, "custom_alias": "used"})
		for _, c := range []caller{owner, other} {
			c.shorten(t, map[string]any{"long_url": longURL, "custom_alias": "used"}).wantInvalid(t, "custom_alias")
		}
	})
	t.Run("4 POST shorten, rule 5: an unsafe long_url gives 422 with error = unsafe_url", func(t *testing.T) {
		a := owner.shorten(t, map[string]any{"long_url": "http://www.BAD.example:8080/"})
		a.wantKeys(t, http.StatusUnprocessableEntity, "error", "message")
		if a.body["error"] != "unsafe_url" {
			t.Error(a.raw)
		}
	})
	t.Run("4 POST shorten, rules 4 and 5: invalid fields are reported before an unsafe long_url", func(t *testing.T) {
		owner.shorten(t, map[string]any{"long_url": "http://bad.example", "custom_alias": "X"}).wantInvalid(t, "custom_alias")
	})
}

func TestShortenInvalidFields(t *testing.T) {
	s := start(t)
	owner, other := s.caller(t, "a@example.org"), s.caller(t, "b@example.org")
	unverified := owner.addDomain(t, "new.example.org", false)
	others := other.addDomain(t, "other.example.org", true)
	const valid = `"long_url":"https://example.com/"`
	for _, c := range []struct {
		name, body string
		fields     []string
	}{
		{"long_url is missing", `{}`, []string{"long_url"}},
		{"long_url is null", `{"long_url":null}`, []string{"long_url"}},
		{"long_url is empty", `{"long_url":""}`, []string{"long_url"}},
		{"long_url is invalid", `{"long_url":"nonsense"}`, []string{"long_url"}},
		{"long_url is a number", `{"long_url":5}`, []string{"long_url"}},
		{"long_url is an object", `{"long_url":{}}`, []string{"long_url"}},
		{"long_url has half a surrogate pair", `{"long_url":"https://example.com/\ud800"}`, []string{"long_url"}},
		{"long_url is not UTF-8", "{\"long_url\":\"https://example.com/\xff\"}", []string{"long_url"}},
		{"long_url is spelled Long_URL", `{"Long_URL":"https://example.com/"}`, []string{"long_url"}},
		{"the last of two long_url is invalid", `{` + valid + `,"long_url":"x"}`, []string{"long_url"}},
		{"custom_alias is a number", `{` + valid + `,"custom_alias":123}`, []string{"custom_alias"}},
		{"custom_alias is empty", `{` + valid + `,"custom_alias":""}`, []string{"custom_alias"}},
		{"custom_alias has 2 characters", `{` + valid + `,"custom_alias":"ab"}`, []string{"custom_alias"}},
		{"custom_alias has 21 characters", `{` + valid + `,"custom_alias":"abcdefghijklmnopqrstu"}`, []string{"custom_alias"}},
		{"custom_alias has upper case", `{` + valid + `,"custom_alias":"Abc"}`, []string{"custom_alias"}},
		{"custom_alias is reserved", `{` + valid + `,"custom_alias":"dashboard"}`, []string{"custom_alias"}},
		{"domain_id is a string", `{` + valid + `,"domain_id":"1"}`, []string{"domain_id"}},
		{"domain_id is a fraction", `{` + valid + `,"domain_id":1.5}`, []string{"domain_id"}},
		{"domain_id is out of range", `{` + valid + `,"domain_id":9223372036854775808}`, []string{"domain_id"}},
		{"domain_id is zero", `{` + valid + `,"domain_id":0}`, []string{"domain_id"}},
		{"domain_id is unknown", `{` + valid + `,"domain_id":4711}`, []string{"domain_id"}},
		{"domain_id is not verified", fmt.Sprintf(`{`+valid+`,"domain_id":%d}`, unverified), []string{"domain_id"}},
		{"domain_id is another account's", fmt.Sprintf(`{`+valid+`,"domain_id":%d}`, others), []string{"domain_id"}},
		{"all fields have wrong types", `{"long_url":5,"custom_alias":[],"domain_id":"x"}`,
			[]string{"long_url", "custom_alias", "domain_id"}},
		{"all fields are invalid, some by type", `{"long_url":"ftp://x","custom_alias":"-","domain_id":true}`,
			[]string{"long_url", "custom_alias", "domain_id"}},
	} {
		t.Run("4 POST shorten, rule 4: "+c.name, func(t *testing.T) {
			owner.request(t, http.MethodPost, "/api/v1/shorten", c.body).wantInvalid(t, c.fields...)
		})
	}
	t.Run("unknown, unverified and other accounts' domains give the same answer", func(t *testing.T) {
		answers := map[string]bool{}
		for _, id := range []int64{4711, unverified, others} {
			a := owner.shorten(t, map[string]any{"long_url": "https://example.com/", "domain_id": id})
			answers[a.raw] = true
		}
		if len(answers) != 1 {
			t.Errorf("answers differ: %v", answers)
		}
	})
}

func TestShortenAcceptsValidRequests(t *testing.T) {
	s := start(t)
	owner := s.caller(t, "a@example.org")
	const valid = `"long_url":"https://example.com/"`
	for name, body := range map[string]string{
		"null counts as missing":               `{` + valid + `,"custom_alias":null,"domain_id":null}`,
		"unknown fields are ignored":           `{` + valid + `,"title":"x","LONG_URL":5}`,
		"the last of two fields counts":        `{"long_url":5,` + valid + `}`,
		"white space around the object":        " \r\n{" + valid + "}\t\n",
		"8. long_url has 2048 characters":      `{"long_url":"https://example.com/` + strings.Repeat("a", 2028) + `"}`,
		"8. long_url has 2048 of 4 bytes each": `{"long_url":"https://example.com/` + strings.Repeat("💩", 2028) + `"}`,
		"8. custom_alias has 3 characters":     `{` + valid + `,"custom_alias":"a-_"}`,
		"8. custom_alias has 20 characters":    `{` + valid + `,"custom_alias":"abcdefghij0123456789"}`,
		"JSON escapes":                         `{"long\u005furl":"https:\/\/example.com\/\ud83d\udca9"}`,
		"a body of 64 KiB":                     `{` + valid + `}` + strings.Repeat(" ", 64<<10-len(valid)-2),
		"only the required field":              `{` + valid + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			owner.request(t, http.MethodPost, "/api/v1/shorten", body).want(t, http.StatusCreated)
		})
	}
	t.Run("8. long_url of 2049 characters gives 422", func(t *testing.T) {
		longURL := "https://example.com/" + strings.Repeat("ä", 2029)
		owner.shorten(t, map[string]any{"long_url": longURL}).wantInvalid(t, "long_url")
	})
}

func TestShortenGivesAnAliasToOneOfConcurrentRequests(t *testing.T) {
	s := start(t)
	owner := s.caller(t, "a@example.org")
	const body = `{"long_url":"https://example.com/","custom_alias":"wanted"}`
	answers, errs := make([]answer, 40), make([]error, 40)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i], errs[i] = owner.try(t.Context(), http.MethodPost, "/api/v1/shorten", body) })
	}
	wg.Wait()
	created := 0
	for i, a := range answers {
		testkit.Must(t, errs[i])
		if a.status == http.StatusCreated {
			created++
			continue
		}
		a.wantInvalid(t, "custom_alias")
	}
	if created != 1 {
		t.Errorf("%d requests created the link", created)
	}
}

func TestLinks(t *testing.T) {
	s := start(t)
	owner, other := s.caller(t, "a@example.org"), s.caller(t, "b@example.org")
	domain := owner.addDomain(t, "go.example.org", true)

	t.Run("4 GET links: without links the list is one empty page", func(t *testing.T) {
		a := owner.get(t, "/api/v1/links")
		a.wantKeys(t, http.StatusOK, "success", "data", "meta")
		want := `{"success":true,"data":[],"meta":{"current_page":1,"last_page":1,"per_page":20,"total":0}}`
		if strings.TrimSpace(a.raw) != want {
			t.Errorf("got %s, want %s", a.raw, want)
		}
	})
	var hashes []string // oldest first
	for i := range 2*schema.PageSize + 1 {
		fields := map[string]any{"long_url": fmt.Sprintf("https://example.com/%d?<&>", i)}
		if i == 40 {
			fields["domain_id"] = domain
		}
		hashes = append(hashes, owner.link(t, fields))
	}
	other.link(t, map[string]any{"long_url": "https://example.com/"})

	t.Run("4 GET links: all links of the caller, newest first, 20 per page", func(t *testing.T) {
		var listed []string
		for page, want := range map[int]int{1: 20, 2: 20, 3: 1} {
			if _, n := owner.page(t, fmt.Sprintf("?page=%d", page), page, 3, 41); n != want {
				t.Errorf("page %d has %d links", page, n)
			}
		}
		for page := 1; page <= 3; page++ {
			items, _ := owner.page(t, fmt.Sprintf("?page=%d", page), page, 3, 41)
			for _, item := range items {
				listed = append([]string{item["hash"].(string)}, listed...)
			}
		}
		testkit.Equal(t, "listed hashes", listed, hashes)
	})
	t.Run("4 GET links: page is 1 by default", func(t *testing.T) {
		if first, second := owner.get(t, "/api/v1/links").raw, owner.get(t, "/api/v1/links?page=1").raw; first != second {
			t.Errorf("%s differs from %s", first, second)
		}
	})
	t.Run("4 GET links: each item has exactly the fields of the table", func(t *testing.T) {
		link, err := s.links.Link(t.Context(), domain, hashes[40])
		testkit.Must(t, err)
		s.click(t, link.ID, 3)
		items, _ := owner.page(t, "", 1, 3, 41)
		createdAt, _ := items[0]["created_at"].(string)
		delete(items[0], "created_at")
		want := map[string]any{"hash": link.Hash, "short_url": "https://go.example.org/" + link.Hash,
			"original_url": "https://example.com/40?<&>", "clicks": json.Number("3"), "is_active": true}
		if fmt.Sprint(items[0]) != fmt.Sprint(want) || !isoTime.MatchString(createdAt) {
			t.Errorf("got %v, %q, want %v", items[0], createdAt, want)
		}
		if items[1]["clicks"] != json.Number("0") {
			t.Errorf("link without clicks: %v", items[1])
		}
	})
	t.Run("2 Link: is_active is false for an inactive link", func(t *testing.T) {
		link, err := s.links.Link(t.Context(), domain, hashes[40])
		testkit.Must(t, err)
		storetest.SetActive(t, s.links, link.DomainID, link.Hash, false)
		if items, _ := owner.page(t, "", 1, 3, 41); items[0]["is_active"] != false {
			t.Errorf("got %v", items[0])
		}
	})
	t.Run("4 GET links: a page beyond the last is empty", func(t *testing.T) {
		for _, page := range []string{"4", "1000000", "9223372036854775807"} {
			a := owner.get(t, "/api/v1/links?page="+page)
			a.want(t, http.StatusOK)
			want := fmt.Sprintf(`{"success":true,"data":[],"meta":{"current_page":%s,"last_page":3,"per_page":20,"total":41}}`, page)
			if strings.TrimSpace(a.raw) != want {
				t.Errorf("got %s, want %s", a.raw, want)
			}
		}
	})
	t.Run("4 GET links: page is a positive integer", func(t *testing.T) {
		for _, page := range []string{"0", "-1", "1.5", "x", "", "+1", "%2B1", "1%202", "9223372036854775808"} {
			owner.get(t, "/api/v1/links?page="+page).wantInvalid(t, "page")
		}
		owner.get(t, "/api/v1/links?page").wantInvalid(t, "page")
	})
}

// page returns the items of a page and their number, and checks the meta.
func (c caller) page(t *testing.T, query string, page, lastPage, total int) (items []map[string]any, n int) {
	t.Helper()
	a := c.get(t, "/api/v1/links"+query)
	a.wantKeys(t, http.StatusOK, "success", "data", "meta")
	want := fmt.Sprintf("map[current_page:%d last_page:%d per_page:20 total:%d]", page, lastPage, total)
	if got := fmt.Sprint(a.body["meta"]); got != want {
		t.Errorf("meta %s, want %s", got, want)
	}
	for _, item := range a.body["data"].([]any) {
		items = append(items, item.(map[string]any))
	}
	return items, len(items)
}
