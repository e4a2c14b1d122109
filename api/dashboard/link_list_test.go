package dashboard_test

import (
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"linkstream/api/apiservice"
	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// addLink stores a link of the service's account on the default domain.
func (s *testService) addLink(t *testing.T, hash, longURL string) schema.Link {
	t.Helper()
	return s.addLinkAt(t, hash, longURL, s.now())
}

func (s *testService) addLinkAt(t *testing.T, hash, longURL string, created time.Time) schema.Link {
	t.Helper()
	link := schema.Link{AccountID: s.account.ID, Hash: hash, URL: longURL, Active: true, CreatedAt: created.UTC()}
	testkit.Must(t, s.links.CreateLink(t.Context(), &link))
	return link
}

// addForeign stores a link of another account.
func (s *testService) addForeign(t *testing.T) schema.Link {
	t.Helper()
	other := s.addAccount(t, "other@example.org")
	link := schema.Link{AccountID: other.ID, Hash: "theirs", URL: "https://other.example/", Active: true}
	link.CreatedAt = s.now().UTC()
	testkit.Must(t, s.links.CreateLink(t.Context(), &link))
	return link
}

func (s *testService) addDomain(t *testing.T, host string, verified bool) schema.Domain {
	t.Helper()
	domain := schema.Domain{AccountID: s.account.ID, Host: host, Challenge: "x", CreatedAt: time.Now()}
	if verified {
		domain.VerifiedAt = domain.CreatedAt
	}
	testkit.Must(t, s.links.CreateDomain(t.Context(), &domain))
	return domain
}

// click is clicks of one kind.
type click struct {
	link                       schema.Link
	at                         time.Time
	times                      int
	device                     schema.Device
	browser, referrer, country string
	os, language, route        string
	campaign                   string
	visitor                    uint64
}

// count has the store count clicks.
func (s *testService) count(t *testing.T, clicks ...click) {
	t.Helper()
	marks, err := s.clicks.LaneMarks(t.Context(), []schema.Lane{{Number: 1}})
	testkit.Must(t, err)
	var b schema.ClickBatch
	b.Reset(0, int64(marks[0]))
	b.Time = time.Now()
	for _, c := range clicks {
		if c.device == "" {
			c.device = schema.Desktop
		}
		for range max(1, c.times) {
			b.Offset, b.Lane = append(b.Offset, b.Next), append(b.Lane, schema.Lane{Number: 1})
			b.Next++
			b.Seq, b.LinkID = append(b.Seq, uint64(b.Next)), append(b.LinkID, c.link.ID)
			b.AccountID, b.ClickedAt = append(b.AccountID, c.link.AccountID), append(b.ClickedAt, c.at.UTC())
			b.Device, b.Browser = append(b.Device, c.device), append(b.Browser, c.browser)
			b.Referrer, b.Country = append(b.Referrer, c.referrer), append(b.Country, c.country)
			b.OS, b.Language = append(b.OS, c.os), append(b.Language, c.language)
			b.Route, b.Visitor = append(b.Route, c.route), append(b.Visitor, c.visitor)
			b.Campaign = append(b.Campaign, c.campaign)
		}
	}
	testkit.Must(t, s.clicks.InsertClicks(t.Context(), storetest.NoNames(&b)))
}

func TestShortenForm(t *testing.T) {
	blocklist := filepath.Join(t.TempDir(), "hosts")
	testkit.Must(t, os.WriteFile(blocklist, []byte("0.0.0.0 bad.example\n"), 0o600))
	s := start(t, func(cfg *apiservice.Config) { cfg.Blocklist = blocklist })
	verified, claimed := s.addDomain(t, "go.example.com", true), s.addDomain(t, "not-yet.example.com", false)
	b := s.signedIn(t)

	t.Run("leads on from a list without links", func(t *testing.T) {
		b.get("/dashboard/links").want(t, http.StatusOK, "No links yet", "Create your first link")
	})
	t.Run("offers the default domain and verified ones", func(t *testing.T) {
		page := b.get("/dashboard/links/new")
		page.want(t, http.StatusOK, "Destination", "Alias", "sho.rt go.example.com")
		if strings.Contains(page.body, claimed.Host) {
			t.Error("it offers a domain that is not verified")
		}
	})
	t.Run("makes links, with and without an alias", func(t *testing.T) {
		b.post("/dashboard/links", "long_url", " https://example.org/a ", "custom_alias", "", "domain_id", "0").
			want(t, http.StatusSeeOther)
		link, _, err := s.links.Links(t.Context(), s.account.ID, schema.LinkFilter{}, 1)
		testkit.Must(t, err)
		b.seen.wantTo(t, "/dashboard/links/new?made=0."+link[0].Hash)
		b.follow().want(t, http.StatusOK, "http://sho.rt/ "+link[0].Hash+" leads to https://example.org/a")
		b.post("/dashboard/links", "long_url", "https://example.org/b", "custom_alias", "launch", "domain_id",
			fmt.Sprint(verified.ID)).wantTo(t, fmt.Sprintf("/dashboard/links/new?made=%d.launch", verified.ID))
		b.follow().want(t, http.StatusOK, "http://go.example.com/ launch")
		if got, err := schema.FindLink(t.Context(), s.links, verified.ID, "launch"); err != nil ||
			got.URL != "https://example.org/b" ||
			got.AccountID != s.account.ID || !got.Active {
			t.Errorf("got %+v, error %v", got, err)
		}
	})
	for name, c := range map[string]struct{ longURL, alias, domain, field, problem string }{
		"no URL":             {"", "", "0", "long_url", "Enter a destination"},
		"no URL at all":      {"javascript:alert(1)", "", "0", "long_url", "The destination"},
		"an unsafe URL":      {"https://bad.example/x", "", "0", "long_url", "known as unsafe"},
		"the service itself": {"http://sho.rt/x", "", "0", "long_url", "must not lead to this service itself"},
		"a bad alias": {"https://example.org/", "No Good\"><script>", "0", "custom_alias",
			"The alias must have 1 to 128"},
		"a reserved alias":     {"https://example.org/", "dashboard", "0", "custom_alias", "reserved"},
		"an alias in use":      {"https://example.org/", "launch", fmt.Sprint(verified.ID), "custom_alias", "already in use"},
		"a domain not his own": {"https://example.org/", "", "99999", "domain_id", "verified domain of yours"},
		"no domain":            {"https://example.org/", "", "x", "domain_id", "verified domain of yours"},
		"an unverified domain": {"https://example.org/", "", fmt.Sprint(claimed.ID), "domain_id", "verified domain of yours"},
	} {
		t.Run("names at the field the problem of "+name, func(t *testing.T) {
			page := b.post("/dashboard/links", "long_url", c.longURL, "custom_alias", c.alias, "domain_id", c.domain)
			page.want(t, http.StatusUnprocessableEntity, c.problem)
			beside := regexp.MustCompile(`id="` + c.field + `-problem">[^<]*` + regexp.QuoteMeta(c.problem))
			if !beside.MatchString(page.body) || !strings.Contains(page.body, `aria-describedby="`+c.field+`-problem"`) {
				t.Errorf("it is not beside %s:\n%s", c.field, page.body)
			}
			if typed := `value="` + template.HTMLEscapeString(c.alias) + `"`; !strings.Contains(page.body, typed) {
				t.Errorf("what was typed is gone: no %s", typed)
			}
			wantHarmless(t, page)
		})
	}
	if _, total, err := s.links.Links(t.Context(), s.account.ID, schema.LinkFilter{}, 1); err != nil || total != 2 {
		t.Errorf("there are %d links, want 2, error %v", total, err)
	}
}

var inline = regexp.MustCompile(`(?i)<script>|<[^>]*\s(style|on[a-z]+)=|(href|src|action)="?javascript:`)

// wantHarmless fails if the page has scripts or styles of its own, which could only come from users' input.
func wantHarmless(t *testing.T, page answer) {
	t.Helper()
	if found := inline.FindString(page.body); found != "" {
		t.Errorf("the page has %q", found)
	}
}

// usualBehaviours are the behaviours of links on a usual page of the list.
var usualBehaviours = []*schema.Behaviour{nil, {MaxClicks: 100}, {Password: 1}, {Variants: []schema.Variant{
	{Name: "a", URL: "https://example.org/a", Weight: 60}, {Name: "b", URL: "https://example.org/b", Weight: 40}}}}

func TestListOfLinks(t *testing.T) {
	s := start(t)
	s.addForeign(t)
	var links []schema.Link
	for i := range 45 {
		links = append(links, s.addLink(t, fmt.Sprintf("link-%02d", i), fmt.Sprintf("https://example.org/%d", i)))
	}
	odd := s.addLink(t, "odd", `https://example.org/100%_off?q='<b>"&x=`+"\u202e")
	storetest.SetActive(t, s.links, 0, "link-44", false)
	s.count(t, click{link: links[44], at: s.now(), times: 1234},
		click{link: links[43], at: s.now(), device: schema.Bot}, click{link: links[42], at: s.now(), times: 4},
		click{link: links[42], at: s.now().AddDate(0, 0, -1)}, click{link: links[42], at: s.now().AddDate(0, 0, -14),
			times: 9})
	b := s.signedIn(t)

	t.Run("has the newest first, with clicks, states and pages", func(t *testing.T) {
		page := b.get("/dashboard/links")
		page.want(t, http.StatusOK, "46 links", "sho.rt/ odd", "sho.rt/ link-44", "1,234", "off", "Page 1 of 3")
		if strings.Contains(page.body, "link-25") || strings.Contains(page.body, "theirs") {
			t.Error("it has links of another page or account")
		}
		if !strings.Contains(page.body, fmt.Sprintf(`<td class=number id=clicks-%d>1<`, links[43].ID)) {
			t.Error("a bot's click does not count")
		}
		wantPages(t, page, "", "/dashboard/links?page=2")
		wantPages(t, b.get("/dashboard/links?page=2"), "/dashboard/links?page=1", "/dashboard/links?page=3")
		wantPages(t, b.get("/dashboard/links?page=3"), "/dashboard/links?page=2", "")
		wantHarmless(t, page)
	})
	t.Run("draws the clicks of the last days", func(t *testing.T) {
		page := b.get("/dashboard/links")
		for _, want := range []string{`<title>5 in 14 days</title><path d="M1 22l4 0 4 0 4 0 4 0 4 0 4 0 4 0 4 0 4 0 4 0 4 ` +
			`0 4-5 4-15"/>`, `<title>1 in 14 days</title>`} {
			if !strings.Contains(page.body, want) {
				t.Errorf("the page does not have %s", want)
			}
		}
		if n := strings.Count(page.body, " in 14 days</title>"); n != 3 {
			t.Errorf("%d links have bars", n)
		}
	})
	t.Run("is small", func(t *testing.T) {
		for i := range 20 {
			link := schema.Link{AccountID: s.account.ID, Hash: fmt.Sprintf("usual-%02d", i), Active: true,
				CreatedAt: time.Now().UTC(),
				URL:       "https://www.example.org/articles/2026/11/a-common-address?utm_source=newsletter",
				Title:     "An article with a title of fifty or so characters", Tags: []string{"newsletter", "november"}}
			link.Behaviour = usualBehaviours[i%len(usualBehaviours)]
			testkit.Must(t, s.links.CreateLink(t.Context(), &link))
			for day := range 14 {
				s.count(t, click{link: link, at: s.now().AddDate(0, 0, -day), times: 50 + day})
			}
			defer func() { testkit.Must(t, s.links.DeleteLink(t.Context(), link, time.Now())) }()
		}
		if n := len(b.get("/dashboard/links").body); n > 40<<10 {
			t.Errorf("the page has %d bytes", n)
		}
	})
	t.Run("has 20, 50 or 100 rows", func(t *testing.T) {
		for query, rows := range map[string]int{"": 20, "?rows=50": 50, "?rows=100": 100, "?rows=7": 20} {
			page := b.get("/dashboard/links" + query)
			if n := strings.Count(page.body, "<tr id=link-"); n != min(rows, 46) {
				t.Errorf("%q has %d rows", query, n)
			}
		}
	})
	t.Run("says that a page is beyond the last", func(t *testing.T) {
		for _, n := range []string{"4", "9223372036854775807"} {
			page := b.get("/dashboard/links?page=" + n)
			page.want(t, http.StatusOK, "Page "+n+" does not exist", "The last page is 3")
			wantPages(t, page, "/dashboard/links?page=3", "")
		}
		for _, n := range []string{"", "0", "-1", "x", "99999999999999999999"} {
			b.get("/dashboard/links?page="+n).want(t, http.StatusOK, "Page 1 of 3")
		}
	})
	t.Run("finds by hash and URL, and keeps the search on its pages", func(t *testing.T) {
		for query, want := range map[string]string{"LINK-07": "1 link", "example.org/4": "6 links", "%_": "1 link",
			"'<B>\"": "1 link", "100%_off": "1 link", "\\": "No links match", "_": "1 link", "%": "1 link",
			"nothing": "No links match", " odd ": "1 link"} {
			page := b.get("/dashboard/links?q=" + url.QueryEscape(query))
			page.want(t, http.StatusOK, want)
			wantHarmless(t, page)
		}
		page := b.get("/dashboard/links?q=link-%25&page=1")
		page.want(t, http.StatusOK, "No links match “ link-% ”")
		page = b.get("/dashboard/links?q=link-&page=2")
		page.want(t, http.StatusOK, "45 links with “ link- ”", "Page 2 of 3")
		wantPages(t, page, "/dashboard/links?page=1&q=link-", "/dashboard/links?page=3&q=link-")
	})
	t.Run("shows any URL as it is", func(t *testing.T) {
		page := b.get("/dashboard/links?q=odd")
		page.want(t, http.StatusOK, odd.URL)
	})
	t.Run("gives the script the numbers alone", func(t *testing.T) {
		page := b.get("/dashboard/links?page=1&part=counts")
		page.want(t, http.StatusOK, "1,234", "Counting progress unknown")
		if strings.Contains(page.body, "<html") || strings.Contains(page.body, "csrf") {
			t.Errorf("got more than that:\n%s", page.body)
		}
		if !strings.Contains(b.get("/dashboard/links").body, `data-live="/dashboard/links?page=1&amp;part=counts"`) {
			t.Error("the list does not say where they are")
		}
	})
}

var pageLink = regexp.MustCompile(`rel="(prev|next)" href="([^"]+)"`)

func wantPages(t *testing.T, page answer, previous, next string) {
	t.Helper()
	got := map[string]string{}
	for _, m := range pageLink.FindAllStringSubmatch(page.body, -1) {
		got[m[1]] = strings.ReplaceAll(m[2], "&amp;", "&")
	}
	if got["prev"] != previous || got["next"] != next {
		t.Errorf("the pages beside it are %q, want %q and %q", got, previous, next)
	}
}
