package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestFilters(t *testing.T) {
	s := start(t)
	domain := s.addDomain(t, "go.example.com", true)
	var links []schema.Link
	for i, l := range []schema.Link{
		{Hash: "first", Tags: []string{"print"}, Active: true}, {Hash: "second", Tags: []string{"print", "web"}},
		{Hash: "third", DomainID: domain.ID, Title: "Spring Sale", Active: true},
	} {
		l.AccountID, l.URL, l.CreatedAt = s.account.ID, "https://example.org/", time.Now().Add(time.Duration(i)*time.Second)
		testkit.Must(t, s.links.CreateLink(t.Context(), &l))
		links = append(links, l)
	}
	storetest.SetActive(t, s.links, 0, "second", false)
	s.count(t, click{link: links[1], at: time.Now(), times: 5}, click{link: links[0], at: time.Now(), times: 2})
	b := s.signedIn(t)
	for query, want := range map[string]string{
		"": "third second first", "tag=print": "second first", "tag=web": "second", "tag=none": "", "state=on": "third first",
		"state=off": "second", "domain=0": "second first", fmt.Sprint("domain=", domain.ID): "third", "sort=created_at": "first second third",
		"sort=-clicks": "second first third", "tag=print&state=on&sort=-clicks": "first", "q=spring+sale": "third",
		"q=" + url.QueryEscape("https://GO.example.com/third"): "third", "q=sho.rt/first": "first", "q=first&state=off": "",
		"domain=x&state=x&sort=x": "third second first",
	} {
		page := b.get("/dashboard/links?" + query)
		page.want(t, http.StatusOK)
		var found []string
		for _, part := range strings.Split(page.body, `<span class="alias">`)[1:] {
			found = append(found, part[:strings.IndexByte(part, '<')])
		}
		if got := strings.Join(found, " "); got != want {
			t.Errorf("%q lists %q, want %q", query, got, want)
		}
		if want == "" && !strings.Contains(page.text(), "No link") {
			t.Errorf("%q does not say that there is none: %s", query, page.text())
		}
	}
	t.Run("are named beside a search that they narrow", func(t *testing.T) {
		page := b.get("/dashboard/links?q=first&state=off")
		page.want(t, http.StatusOK, "No link with this filter has “ first ” Search all links")
		if !strings.Contains(page.body, `href="/dashboard/links?q=first"`) {
			t.Errorf("no way to search all links:\n%s", page.body)
		}
		b.get("/dashboard/links?q=first&tag=print").want(t, http.StatusOK, "1 link with “ first ” and this filter")
	})
	t.Run("stay with the next action", func(t *testing.T) {
		page := b.get("/dashboard/links?tag=print&sort=created_at")
		const self = `value="/dashboard/links?page=1&amp;sort=created_at&amp;tag=print"`
		if n := strings.Count(page.body, self); n != 2 { // the form for a new link, and that of all links
			t.Errorf("%d forms lead back to the list", n)
		}
		if !strings.Contains(page.body, `href="/dashboard/links?tag=web"`) || !strings.Contains(page.body, `<option value="created_at" selected>`) {
			t.Errorf("no way to other tags, or the order is not shown:\n%s", page.body)
		}
		b.post("/dashboard/links", "long_url", "nothing", "back", "/dashboard/links?page=1&tag=web").want(t,
			http.StatusUnprocessableEntity, "1 link")
	})
	t.Run("say what is wrong with them", func(t *testing.T) {
		b.get("/dashboard/links?tag=No+Tag").want(t, http.StatusUnprocessableEntity, "A tag has 1 to 32 characters")
		b.get("/dashboard/links?q="+url.QueryEscape("a b c d e f g h i")).want(t, http.StatusUnprocessableEntity, "A search has at most 8 words")
	})
}
