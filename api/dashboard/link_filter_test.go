package dashboard_test

import (
	"cmp"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

var heading = regexp.MustCompile(`<th scope="col" class="[a-z]+"(?: aria-sort=("[a-z]+"))?><a href="([^"]+)">(\w+)</a>`)

func TestFilters(t *testing.T) {
	s := start(t)
	domain := s.addDomain(t, "go.example.com", true)
	var links []schema.Link
	for i, l := range []schema.Link{
		{Hash: "first", Tags: []string{"print"}, Active: true}, {Hash: "second", Tags: []string{"print", "web"}},
		{Hash: "third", DomainID: domain.ID, Title: "Spring Sale", Active: true},
	} {
		l.AccountID, l.URL, l.CreatedAt = s.account.ID, "https://example.org/",
			time.Date(2026, 11, 1+i, 23, 30, 0, 0, time.UTC)
		if l.Hash == "first" {
			l.ExpiresAt = l.CreatedAt.Add(time.Hour)
		}
		testkit.Must(t, s.links.CreateLink(t.Context(), &l))
		links = append(links, l)
	}
	storetest.SetActive(t, s.links, 0, "second", false)
	s.count(t, click{link: links[1], at: s.now(), times: 5}, click{link: links[0], at: s.now(), times: 2})
	b := s.signedIn(t)
	for query, want := range map[string]string{
		"": "third second first", "tag=print": "second first", "tag=web": "second", "tag=none": "",
		"tag=Print": "second first", "tag=%EF%BC%B7%EF%BC%A5%EF%BC%A2": "second", "q=%EF%BC%B3pring": "third",
		"state=on":  "third first",
		"state=off": "second", "domain=0": "second first", fmt.Sprint("domain=", domain.ID): "third",
		"sort=created_at": "first second third",
		"sort=-clicks":    "second first third", "sort=clicks": "third first second",
		"tag=print&state=on&sort=-clicks": "first", "q=spring+sale": "third",
		"q=" + url.QueryEscape("https://GO.example.com/third"): "third", "q=sho.rt/first": "first", "q=first&state=off": "",
		"domain=x&state=x&sort=x": "third second first", "state=expired": "first", "from=2026-11-02": "third second",
		"to=2026-11-02":                 "second first",
		"from=2026-11-02&to=2026-11-02": "second", "from=x&to=2026-13-01": "third second first",
	} {
		page := b.get("/dashboard/links?" + query)
		page.want(t, http.StatusOK)
		var found []string
		for _, part := range strings.Split(page.body, `<span class=alias>`)[1:] {
			found = append(found, part[:strings.IndexByte(part, '<')])
		}
		if got := strings.Join(found, " "); got != want {
			t.Errorf("%q lists %q, want %q", query, got, want)
		}
		if want == "" && !strings.Contains(page.text(), "No matching links") && !strings.Contains(page.text(), "No links") {
			t.Errorf("%q does not say that there is none: %s", query, page.text())
		}
	}
	t.Run("are shown with the search that they narrow", func(t *testing.T) {
		page := b.get("/dashboard/links?q=first&state=off")
		page.want(t, http.StatusOK, "No links with this filter match “ first ” Search all links")
		if !strings.Contains(page.body, `href="/dashboard/links?q=first"`) {
			t.Errorf("no way to search all links:\n%s", page.body)
		}
		b.get("/dashboard/links?q=first&tag=print").want(t, http.StatusOK, "1 link with “ first ” and this filter")
	})
	t.Run("stay with the next action", func(t *testing.T) {
		page := b.get("/dashboard/links?tag=print&sort=created_at")
		const self = `value="/dashboard/links?page=1&amp;sort=created_at&amp;tag=print"`
		if n := strings.Count(page.body, self); n != 2 { // the form of a row, and the form of selected links
			t.Errorf("%d forms lead back to the list", n)
		}
		if !strings.Contains(page.body, `href="/dashboard/links?tag=web"`) ||
			!strings.Contains(page.body, `name="sort" value="created_at"`) {
			t.Errorf("no way to other tags, or the search has another order:\n%s", page.body)
		}
	})
	t.Run("are kept by the headings, which sort in both directions", func(t *testing.T) {
		for sort, want := range map[string]string{
			"":           `clicks: -clicks, created descending: created_at`,
			"created_at": `clicks: -clicks, created ascending: newest`,
			"-clicks":    `clicks descending: clicks, created: newest`,
			"clicks":     `clicks ascending: -clicks, created: newest`,
		} {
			page := b.get("/dashboard/links?tag=print&page=2&sort=" + sort)
			page.want(t, http.StatusOK, "Page 2 does not exist")
			page = b.get("/dashboard/links?tag=print&sort=" + sort)
			var found []string
			for _, m := range heading.FindAllStringSubmatch(page.body, -1) {
				to, err := url.Parse(html.UnescapeString(m[2]))
				testkit.Must(t, err)
				if query := to.Query(); query.Get("tag") != "print" || query.Get("page") != "1" {
					t.Errorf("a heading leads to %s", to)
				}
				found = append(found, strings.TrimSpace(strings.ToLower(m[3])+" "+m[1])+": "+
					cmp.Or(to.Query().Get("sort"), "newest"))
			}
			if got := strings.ReplaceAll(strings.Join(found, ", "), `"`, ""); got != want {
				t.Errorf("sorted by %q the headings are %q, want %q", sort, got, want)
			}
		}
	})
	t.Run("name their problems", func(t *testing.T) {
		b.get("/dashboard/links?tag=No+Tag").want(t, http.StatusUnprocessableEntity, "A tag has 1 to 32 characters")
		long := url.QueryEscape("a b c d e f g h " + strings.Repeat("i", 285))
		b.get("/dashboard/links?q="+long).want(t, http.StatusUnprocessableEntity, "A search has at most 300 characters")
	})
}
