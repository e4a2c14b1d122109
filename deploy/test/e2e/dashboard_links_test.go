//go:build engines

package e2e_test

import (
	"fmt"
	"linkstream/schema/testkit"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// targetHost leads the browser to this machine. Links cannot lead to 127.0.0.1.
const targetHost = "target.example"

// TestDashboardLinks creates a link, copies it, and watches its clicks come in.
func TestDashboardLinks(t *testing.T) {
	t.Parallel()
	s := startSystem(t)
	target := strings.Replace(serve(t, "<title>Target</title><h1>You are there</h1>"), "127.0.0.1", targetHost, 1)
	b := s.tab(t).signIn(s)
	b.run("new links are copied", func(t *testing.T) {
		b.page("/dashboard/bulk")
		b.fill("Destinations, one per line", target+"/many/1\n"+target+"/many/2 many-2\n")
		b.sees("Create links", "2 links are ready", address(s.edge)+"/many-2")
		b.press("Copy all")
		b.find("Copied")
		b.page("/dashboard/links")
		b.press("Create link")
		b.fill("Destination", target+"/")
		b.fill("Alias optional", "tried")
		b.press("Create link")
		b.shows("Your link is ready", s.edge+"/tried", "leads to "+target)
		b.press("Copy")
		b.find("Copied")
		b.press("Close")
		b.press("Copy " + address(s.edge) + "/tried")
		b.shows("Copied")
		said := evaluate[string](b, `document.getElementById("said").textContent`)
		testkit.Equal(t, "text for screen readers", said, "Copied")
	})
	b.run("the click of a visitor is counted on the open page", func(t *testing.T) { b.countsClicks(t, s, target) })
	b.run("the chart is a table, too", func(t *testing.T) {
		b.press("Show as a table")
		b.shows("Day People Bots Total")
	})
	b.run("an update of the counts keeps the chosen hour", func(t *testing.T) { b.keepsHour(t, s) })
	b.run("an update of the counts does not move the keyboard's focus", func(t *testing.T) {
		b.sees("Overview", "7 days 5", "Top links, 30 days", address(s.edge)+"/tried", "3 links")
		for i, place := range []string{"th a[href$=tried]", ".chart-table > summary", ".chart-scroll", ".chart-plot"} {
			evaluate[*struct{}](b, `document.querySelector(".chart-table").open = true, null`)
			evaluate[*struct{}](b, "document.querySelector('"+place+"').focus(), null")
			s.click(t, "tried")
			b.shows(fmt.Sprintf("7 days %d", 6+i))
			if !evaluate[bool](b, "document.activeElement.matches('"+place+"')") {
				t.Errorf("the focus went from %s to %s", place, evaluate[string](b, "document.activeElement.outerHTML"))
			}
		}
	})
}

// keepsHour chooses an hour of the week by the keyboard, which stays chosen when a click comes in.
func (b *tab) keepsHour(t *testing.T, s *system) {
	const hour = `document.querySelector(".heat-value").textContent`
	evaluate[*struct{}](b, `document.querySelector(".heat-cells").focus(), null`)
	if got := evaluate[string](b, hour); !strings.HasSuffix(got, " people") {
		t.Errorf("the busiest hour has %q", got)
	}
	for _, press := range []struct{ key, says string }{
		{kb.Home, "Monday, 00:00 to 01:00: "}, {kb.ArrowDown, "Tuesday, 00:00 to 01:00: "},
		{kb.ArrowRight, "Tuesday, 01:00 to 02:00: "}, {kb.ArrowLeft, "Tuesday, 00:00 to 01:00: "},
		{kb.End, "Sunday, 23:00 to 24:00: "}, {kb.ArrowRight, "Sunday, 23:00 to 24:00: "},
		{kb.ArrowUp, "Saturday, 23:00 to 24:00: "},
	} {
		b.key(press.key)
		if got := evaluate[string](b, hour); !strings.HasPrefix(got, press.says) {
			t.Errorf("after %q the hour is %q, want %q", press.key, got, press.says)
		}
	}
	s.click(t, "tried")
	b.shows("5 clicks since")
	if got := evaluate[string](b, hour); !strings.HasPrefix(got, "Saturday, 23:00") {
		t.Errorf("after an update the hour is %q", got)
	}
	if !evaluate[bool](b, `document.activeElement.matches(".heat-cells")`) {
		t.Error("the focus went elsewhere")
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
	b.shows("4 clicks since", "Mobile", "news.example.org", "Up to date")
	b.press("Browsers")
	b.shows("Chrome")
	if !evaluate[bool](b, "window.notReloaded === true") {
		t.Error("the page was reloaded")
	}
}
