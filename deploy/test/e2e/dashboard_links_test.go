package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"linkstream/api/customdomain/dnstest"
	"linkstream/schema/testkit"
)

// User-Agent headers of ordinary browsers. That of a headless browser is classified as a bot.
const (
	phone = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 " +
		"Mobile Safari/537.36"
	desktop = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"
)

// targetHost leads the browser to this machine. Links cannot lead to 127.0.0.1.
const targetHost = "target.example"

func TestDashboardLinks(t *testing.T) {
	t.Parallel()
	onBothKinds(t, func(t *testing.T, s *system) {
		target := strings.Replace(serve(t, "<title>Target</title><h1>You are there</h1>"), "127.0.0.1", targetHost, 1)
		b := s.tab(t).signIn(s)
		b.shows("Create your first link")
		b.run("errors are shown beside the fields, which keep their text", func(t *testing.T) {
			s.owner().Alias(t, "taken", target)
			b.sees("Links", "1 link")
			b.press("Create link")
			b.fill("Long URL", "ftp://example.com/")
			b.fill("Alias optional", "taken")
			if status := b.follow("Create link"); status != http.StatusUnprocessableEntity {
				t.Errorf("answered with %d", status)
			}
			b.shows("Please correct the marked fields")
			if url, alias := b.value("Long URL"), b.value("Alias optional"); url != "ftp://example.com/" || alias != "taken" {
				t.Errorf("the fields hold %q and %q now", url, alias)
			}
			b.fill("Long URL", target+"/")
			b.follow("Create link")
			b.shows("taken")
			b.fill("Alias optional", "tried")
			b.sees("Create link", "Your link is ready", s.edge+"/tried", "leads to "+target)
			b.press("Copy")
			b.find("Copied")
			b.press("Copy " + address(s.edge) + "/tried")
			b.shows("Copied")
			if said := evaluate[string](b, `document.getElementById("said").textContent`); said != "Copied" {
				t.Errorf("screen readers hear %q", said)
			}
		})
		b.run("the click of a visitor is counted on the open page", func(t *testing.T) { b.countsClicks(t, s, target) })
		b.run("a link is deactivated and activated", func(t *testing.T) { b.togglesLink(t, s) })
		b.run("files of a link are downloaded", func(t *testing.T) { b.downloadsFiles(t, s) })
		b.run("the clicks of each period", func(t *testing.T) {
			for _, period := range []string{"7 days", "30 days", "90 days", "All"} {
				b.sees(period, "Clicks per day", "4 clicks since")
				current := evaluate[string](b, `document.querySelector("nav.tabs [aria-current]").textContent`)
				if current != period {
					t.Errorf("the period is %q, want %q", current, period)
				}
			}
			b.press("Show as a table")
			b.shows("Day People Bots Total")
			b.readsChart(t)
		})
		b.run("the overview", func(t *testing.T) {
			b.sees("Overview", "7 days 4", "Top links, 30 days", address(s.edge)+"/tried", "2 links")
		})
		b.run("an update of the counts does not move the keyboard's focus", func(t *testing.T) {
			for i, place := range []string{"th a[href$=tried]", ".chart-table > summary", ".chart-scroll", ".chart-plot"} {
				evaluate[*struct{}](b, `document.querySelector(".chart-table").open = true, null`)
				evaluate[*struct{}](b, "document.querySelector('"+place+"').focus(), null")
				s.click(t, "tried")
				b.shows(fmt.Sprintf("7 days %d", 5+i))
				if !evaluate[bool](b, "document.activeElement.matches('"+place+"')") {
					t.Errorf("the focus went from %s to %s", place, evaluate[string](b, "document.activeElement.outerHTML"))
				}
			}
		})
		b.run("a link is edited and deleted", func(t *testing.T) { b.editsLink(t, s, target) })
		b.run("long lists have pages and can be searched", func(t *testing.T) { b.searchesLinks(t, s, target) })
		b.run("many links are created, imported and exported", func(t *testing.T) { b.importsLinks(t, s, target) })
	})
}

// readsChart reads the bars by the keyboard and by a tap.
func (b *tab) readsChart(t *testing.T) {
	value := func(what string) string {
		return evaluate[string](b, "(() => { const plot = document.querySelector('.chart-plot'); "+what+"; return document.querySelector('.chart-value').textContent; })()")
	}
	press := func(key string) string {
		return "plot.dispatchEvent(new KeyboardEvent('keydown', {key: '" + key + "'}))"
	}
	// The newest day is first in the table. The four clicks are on the last two days if midnight was between them and now.
	days := evaluate[[]string](b, `[...document.querySelectorAll(".chart-table tbody tr")].map((row) => ": " + row.cells[1].innerText + " people, " + row.cells[2].innerText + " bots")`)
	people := 0
	for _, day := range days[:2] {
		n := 0
		if _, err := fmt.Sscanf(day, ": %d people, 0 bots", &n); err != nil {
			t.Errorf("the table has %q: %v", day, err)
		}
		people += n
	}
	testkit.Equal(t, "clicks of the last two days", people, 4)
	for _, step := range []struct{ name, what, ends string }{
		{"last bar", "plot.focus()", days[0]},
		{"bar before", press("ArrowLeft"), days[1]},
		{"end", press("End"), days[0]},
		{"first bar", "plot.querySelector(':scope > svg > rect').dispatchEvent(new PointerEvent('pointerdown', {bubbles: true}))", days[len(days)-1]},
	} {
		if got := value(step.what); !strings.HasSuffix(got, step.ends) {
			t.Errorf("the %s has %q, want %q", step.name, got, step.ends)
		}
	}
}

// countsClicks leaves the tab on the page of a link with four clicks.
func (b *tab) countsClicks(t *testing.T, s *system, target string) {
	visitor := newTab(t, s.edge, allowing(address(target)), withAgent(phone))
	b.sees(address(s.edge)+"/tried", "0 clicks since")
	evaluate[bool](b, "window.notReloaded = true")
	if status := visitor.open("/tried"); status != http.StatusOK {
		t.Errorf("the visitor's page answers %d", status)
	}
	visitor.shows("You are there")
	if faults := visitor.takeFaults(); len(faults) > 0 {
		t.Error(faults)
	}
	b.shows("1 click since")
	for range 3 {
		s.click(t, "tried", "User-Agent", desktop, "Referer", "https://news.example.org/today")
	}
	b.shows("4 clicks since", "Mobile", "Chrome", "news.example.org", "All clicks counted")
	if !evaluate[bool](b, "window.notReloaded === true") {
		t.Error("the page was reloaded")
	}
}

func (b *tab) togglesLink(t *testing.T, s *system) {
	b.sees("Switch off", "is switched off", "off", "Switch on")
	answers := func(status int) {
		testkit.SucceedsWithin(t, pageWithin, func() error { return s.visit(t, http.MethodHead, "/tried").IsStatus(status) })
	}
	answers(http.StatusGone)
	b.sees("Undo", "is switched on.", "Switch off")
	answers(http.StatusFound)
}

// editsLink creates a link of its own, since a link that was edited has other clicks.
func (b *tab) editsLink(t *testing.T, s *system, target string) {
	s.owner().Alias(t, "changing", target+"/before")
	leads := func(want answer) {
		testkit.SucceedsWithin(t, pageWithin, func() error {
			if got := s.visit(t, http.MethodHead, "/changing?seat=7"); got.Status != want.Status || got.Header.Get("Location") != want.Header.Get("Location") {
				return fmt.Errorf("the link answers %d %q", got.Status, got.Header.Get("Location"))
			}
			return nil
		})
	}
	leads(answer{Status: http.StatusFound, Header: http.Header{"Location": {target + "/before"}}})
	b.page("/dashboard/links/0/changing")
	b.sees("Edit", "Edit the link")
	b.fill("Long URL", target+"/after#end")
	b.fill("Title optional", "It changes")
	b.fill("Tags optional", "Two, one")
	b.fill("Source", "poster")
	b.press("Pass the visitor's query string on to the long URL")
	b.sees("Save", "was saved.", "It changes", "one two", "leads to "+target+"/after?utm_source=poster#end")
	leads(answer{Status: http.StatusFound, Header: http.Header{"Location": {target + "/after?utm_source=poster&seat=7#end"}}})
	b.sees("Edit", "Edit the link")
	b.sees("Delete link", "was deleted.", "2 links")
	leads(answer{Status: http.StatusGone})
	b.sees("Undo", "is back, with its clicks", "3 links")
	leads(answer{Status: http.StatusFound, Header: http.Header{"Location": {target + "/after?utm_source=poster&seat=7#end"}}})
	b.page("/dashboard/links/0/changing/edit")
	b.sees("Delete link", "was deleted.", "2 links")
	leads(answer{Status: http.StatusGone})
}

func (b *tab) downloadsFiles(t *testing.T, s *system) {
	dir := t.TempDir()
	id := chromedp.FromContext(b.ctx).BrowserContextID
	_, err := chromedp.CallBrowser(b.ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllow, BrowserContextID: id, DownloadPath: dir})
	if err != nil {
		t.Fatal(err)
	}
	name := strings.ReplaceAll(address(s.edge), ":", "-") + "-tried"
	for link, want := range map[string]struct{ file, begins string }{
		"PNG":          {name + ".png", "\x89PNG\r\n"},
		"SVG":          {name + ".svg", "<svg"},
		"Download CSV": {name + "-????-??-??-????-??-??.csv", "date,"},
	} {
		b.press(link)
		testkit.SucceedsWithin(t, pageWithin, func() error {
			found, err := filepath.Glob(filepath.Join(dir, want.file))
			if err != nil || len(found) != 1 {
				entries, _ := os.ReadDir(dir)
				return fmt.Errorf("%q, %w; the folder holds %v", found, err, entries)
			}
			content, err := os.ReadFile(found[0])
			if err != nil {
				return err
			}
			if !strings.HasPrefix(string(content), want.begins) {
				return fmt.Errorf("%s begins with %.20q", want.file, content)
			}
			return nil
		})
	}
}

func (b *tab) searchesLinks(t *testing.T, s *system, target string) {
	for i := range 24 {
		s.owner().Alias(t, fmt.Sprintf("page-%02d", i), fmt.Sprintf("%s/a/%02d?q=%%25", target, i))
	}
	b.sees("Links", "26 links", "Page 1 of 2", "page-23")
	b.hides("page-03")
	b.sees("Next", "Page 2 of 2", "page-03", "tried")
	b.sees("Previous", "Page 1 of 2")
	b.fill("Search links", "/a/1")
	b.sees("Search", "10 links with “/a/1”", "page-19")
	b.hides("page-23")
	b.fill("Search links", "nowhere%")
	b.sees("Search", "No links match “nowhere%”")
	b.sees("Show all", "26 links")
}

func TestDashboardDomains(t *testing.T) {
	t.Parallel()
	resolver := dnstest.Start(t)
	s := newSystem(t, longCaches, "LINKSTREAM_API_RESOLVER="+resolver.Addr())
	s.programs[0].args = append(s.programs[0].args, "-edge.url", "http://sho.example:8080")
	s.start(t)
	b := s.tab(t).signIn(s)
	b.run("an unusable name is rejected", func(t *testing.T) {
		b.sees("Domains", "No domains yet")
		for _, name := range []string{"sho.example", hostile} {
			b.fill("Add a domain", name)
			if status := b.follow("Add"); status != http.StatusUnprocessableEntity {
				t.Errorf("%s is answered with %d", name, status)
			}
			if host := b.value("Add a domain"); host != name {
				t.Errorf("the field holds %q now", host)
			}
		}
	})
	b.run("a domain is verified when both records exist", func(t *testing.T) {
		b.fill("Add a domain", "go.example.com")
		b.sees("Add", "go.example.com was added", "Not verified", "CNAME record", "TXT record")
		b.sees("Verify", "The domain is not verified yet", "Not found")
		record := func(part string) string {
			return evaluate[string](b, `document.getElementById("`+part+`").textContent`)
		}
		resolver.Add(t, fmt.Sprintf("%s. TXT %q", record("name-TXT"), hostile))
		b.sees("Verify", "The domain is not verified yet", "<img/src=x/onerror=canary(1)><script>canary(2)</script>")
		resolver.Remove(record("name-TXT") + ".")
		resolver.Add(t, fmt.Sprintf("%s. CNAME %s.", record("name-CNAME"), record("value-CNAME")),
			fmt.Sprintf("%s. TXT %q", record("name-TXT"), record("value-TXT")))
		b.sees("Verify", "go.example.com is verified.", "Verified")
	})
	b.run("a link on it works on this domain only", func(t *testing.T) {
		b.sees("Links", "No links yet")
		b.fill("Long URL", "https://example.org/")
		b.fill("Alias optional", "own")
		b.choose("Domain", "go.example.com")
		b.sees("Create link", "Your link is ready", "http://go.example.com/own")
		for host, status := range map[string]int{"go.example.com": http.StatusFound, "sho.example": http.StatusNotFound} {
			testkit.SucceedsWithin(t, pageWithin, func() error {
				return s.visit(t, http.MethodGet, "/own", "Host", host).IsStatus(status)
			})
		}
		b.sees("go.example.com/own", "leads to https://example.org/")
	})
	b.run("a domain with links cannot be removed", func(t *testing.T) {
		b.sees("Domains", "Your domains")
		b.sees("go.example.com", "Remove the domain")
		b.press("Remove…")
		if status := b.follow("Remove domain"); status != http.StatusConflict {
			t.Errorf("answered with %d", status)
		}
	})
}

func TestDashboardWithoutScript(t *testing.T) {
	t.Parallel()
	s := startSystem(t, longCaches)
	b := s.tab(t, withoutScript).signIn(s)
	if title := evaluate[string](b, "document.querySelector('script') ? document.title : ''"); title == "" {
		t.Error("the page has no script, so this test proves nothing")
	}
	b.sees("API settings", "Create a token")
	b.fill("Name", "no script")
	b.sees("Create token", "Your new token")
	by := caller{API: s.api, Token: b.value("Token")}
	by.Page(t, "") // requires status 200
	b.sees("Links", "No links yet")
	b.fill("Long URL", "https://example.org/")
	b.fill("Alias optional", "plain")
	b.press("Title, tags, expiry, campaign")
	b.sees("Create link", "Your link is ready", s.edge+"/plain")
	b.page("/dashboard/links/0/plain/edit")
	b.fill("Title optional", "Without a script")
	b.sees("Save", "was saved.", "Without a script")
	b.page("/dashboard/links")
	s.click(t, "plain")
	by.WaitTotal(t, "plain", 1)
	b.sees("Without a script", "1 click since")
	b.sees("Switch off", "is switched off")
	testkit.SucceedsWithin(t, pageWithin, func() error { return s.visit(t, http.MethodHead, "/plain").IsStatus(http.StatusGone) })
	b.page("/dashboard/import")
	b.chooseFile("plain.csv", "alias,long_url,tags\nplain-2,https://example.org/,old\n")
	b.sees("Upload and check", "plain.csv")
	b.reloads("/dashboard/import", "Ready to import")
	b.sees("Import 1 link", "plain.csv")
	b.reloads("/dashboard/import", "was imported")
	b.page("/dashboard/tags/old")
	b.fill("New name", "new")
	b.sees("Rename", "The tag “old” is now “new” on 1 link.")
	b.page("/dashboard/bulk")
	b.fill("Long URLs, one per line", "https://example.org/ plain-3")
	b.sees("Create links", "1 link is ready", address(s.edge)+"/plain-3")
	b.sees("API settings", "no script")
	b.press("Revoke no script")
	b.sees("Revoke it", "was revoked")
	testkit.Succeeds(t, func() error { return by.Get(t, "/api/v1/links").IsStatus(http.StatusUnauthorized) })
	b.sees("Sign out", "You are signed out.")
	b.page("/dashboard/links")
	b.shows("Sign in")
}
