package dashboard_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"linkstream/api/apiservice"
	"linkstream/api/clickreport"
	"linkstream/api/dashboard"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestOverview(t *testing.T) {
	noon := time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)
	s := start(t, func(cfg *apiservice.Config) { cfg.Now = func() time.Time { return noon } })
	s.now = func() time.Time { return noon }
	b := s.signedIn(t)
	t.Run("leads to the first link", func(t *testing.T) {
		page := b.get("/dashboard")
		page.want(t, http.StatusOK, "Three steps to your first click", "Destination")
		if strings.Contains(page.text(), "Today") || !strings.Contains(page.body, ` name="long_url"`) {
			t.Errorf("it has figures, or no field:\n%s", page.body)
		}
		s.addLink(t, "first", "https://example.org/first")
	})
	t.Run("has no figures while there are no clicks", func(t *testing.T) {
		page := b.get("/dashboard")
		page.want(t, http.StatusOK, "1 link", "No clicks in 30 days", "Recent links", "sho.rt/ first")
		if strings.Contains(page.text(), "Today") || strings.Contains(page.text(), "Three steps") {
			t.Errorf("it has figures, or the steps of a new account:\n%s", page.text())
		}
	})
	first, err := schema.FindLink(t.Context(), s.links, 0, "first")
	testkit.Must(t, err)
	second := s.addLink(t, "second", "https://example.org/<b>second")
	theirs := s.addForeign(t)
	now := s.now().UTC()
	s.count(t, click{link: first, at: now, times: 30}, click{link: second, at: now, times: 12, device: schema.Bot},
		click{link: second, at: now.AddDate(0, 0, -1).Add(-time.Hour), times: 21},
		click{link: second, at: now.AddDate(0, 0, -8), times: 84}, click{link: first, at: now.AddDate(0, 0, -31), times: 273},
		// After the same time of the last day before, which is not compared:
		click{link: first, at: now.AddDate(0, 0, -7).Add(time.Hour), times: 21},
		click{link: first, at: now.AddDate(0, 0, -30).Add(time.Hour), times: 500},
		click{link: theirs, at: now, times: 1000})

	t.Run("counts the account's clicks and compares them", func(t *testing.T) {
		page := b.get("/dashboard")
		page.want(t, http.StatusOK, "2 links",
			"Today 42 +100% from 21 yesterday, up to the same time 30 by people, 12 by bots",
			"7 days 63 −25% from 84 in the previous 7 days, up to the same time",
			"30 days 168 −38% from 273 in the previous 30 days, up to the same time", "156 by people, 12 by bots")
		if bars := barsOn(page.body); bars != 30 {
			t.Errorf("%d bars, want 30", bars)
		}
		wantHarmless(t, page)
	})
	t.Run("compares nothing with days on which the account did not exist", func(t *testing.T) {
		young := s.addAccount(t, "young@example.org")
		link := schema.Link{AccountID: young.ID, Hash: "young", URL: "https://example.org/", Active: true, CreatedAt: now}
		testkit.Must(t, s.links.CreateLink(t.Context(), &link))
		s.count(t, click{link: link, at: now, times: 3})
		b := s.browser(t)
		b.signIn(young.Email, password)
		page := b.get("/dashboard")
		page.want(t, http.StatusOK, "Today 3 3 by people, 0 by bots 7 days 3 3 by people, 0 by bots 30 days 3 3 by people")
	})
	t.Run("compares as every report of the same days does", func(t *testing.T) {
		for _, link := range []schema.Link{first, second} {
			testkit.Must(t, s.links.UpdateLink(t.Context(), &link, schema.LinkEdit{Tags: &[]string{"all"}}, now))
		}
		figure := regexp.MustCompile(`([^>]+</span> from [\d,]+) ?([^<]*)`)
		against := regexp.MustCompile(`>Clicks ((in the previous|yesterday)[^<]*)`)
		onOverview := figure.FindAllStringSubmatch(b.get("/dashboard").body, -1)
		shared := b.share(t, "tag", "all")
		for place, days := range []int{1, 7, 30} {
			query := "from=" + now.AddDate(0, 0, 1-days).Format(time.DateOnly) + "&to=" + now.Format(time.DateOnly)
			for _, path := range []string{"/dashboard/report?", "/dashboard/report?tag=all&", shared + "?"} {
				body := b.get(path + query).body
				got, words := figure.FindStringSubmatch(body), against.FindStringSubmatch(body)
				if want := onOverview[place]; got == nil || words == nil || got[1] != want[1] || words[1] != want[2] {
					t.Errorf("%s compares by %q %q, the overview by %q", path+query, got, words, want)
				}
			}
		}
	})
	t.Run("names the links with the most clicks", func(t *testing.T) {
		page := b.get("/dashboard")
		page.want(t, http.StatusOK,
			"sho.rt/ second https://example.org/<b>second all 117 sho.rt/ first https://example.org/first all 51")
		if strings.Contains(page.body, "theirs") {
			t.Error("it names another account's link")
		}
	})
	t.Run("gives the script the changing parts alone", func(t *testing.T) {
		page := b.get("/dashboard?part=report")
		page.want(t, http.StatusOK, "Today 42", "Counting progress unknown")
		if strings.Contains(page.body, "<html") {
			t.Errorf("got more than that:\n%s", page.body)
		}
	})
}

// The steps of a new account tick themselves, and stay for its first day.
func TestFirstSteps(t *testing.T) {
	now := time.Now().UTC()
	s := start(t, func(cfg *apiservice.Config) { cfg.Now = func() time.Time { return now } })
	s.now = func() time.Time { return now }
	young := s.addAccount(t, "young@example.org")
	b := s.browser(t)
	b.signIn(young.Email, password)
	wants := func(done int, texts ...string) {
		t.Helper()
		for _, path := range []string{"/dashboard", "/dashboard?part=report"} {
			page := b.get(path)
			page.want(t, http.StatusOK, texts...)
			if n := strings.Count(page.text(), ": done"); n != done {
				t.Errorf("%s: %d steps are done, want %d: %s", path, n, done, page.text())
			}
			if strings.Contains(page.text(), "Today") != strings.Contains(texts[len(texts)-1], " 1") {
				t.Errorf("%s has figures without a click, or none: %s", path, page.text())
			}
		}
	}
	wants(0, "Three steps to your first click", "Create a link", "Your own domain", "Import", "The API",
		"curl http", "The command", "linkstream login http")
	b.post("/dashboard/links", "long_url", "https://example.org/", "custom_alias", "young")
	wants(1, "Three steps", "sho.rt/young", "Waiting for it.")
	link, err := schema.FindLink(t.Context(), s.links, 0, "young")
	testkit.Must(t, err)
	s.count(t, click{link: link, at: now, times: 1})
	wants(3, "You are all set", "Recent links", "Today 1")
	now = now.Add(25 * time.Hour)
	wants(0, "7 days 1")
	page := b.get("/dashboard")
	for _, text := range []string{"You are all set", "Three steps", "The command"} {
		if strings.Contains(page.text(), text) {
			t.Errorf("the second day has %q: %s", text, page.text())
		}
	}
}

func utc(text string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return at
}

// TestMidnight checks to which day a click around midnight belongs, from the store to the numbers.
func TestMidnight(t *testing.T) {
	s := start(t)
	link := s.addLink(t, "sale", "https://example.org/")
	link.CreatedAt = utc("2026-11-10T23:59:59Z")
	for i, at := range []string{"2026-11-14T23:59:59.999Z", "2026-11-15T00:00:00Z", "2026-11-20T23:59:59.999Z",
		"2026-11-21T00:00:00Z", "2026-11-21T23:59:59.999Z"} {
		s.count(t, click{link: link, at: utc(at), times: 1 << i})
	}
	daysOf := func(now time.Time, before int) []dashboard.Day {
		t.Helper()
		q := schema.ReportQuery{AccountID: link.AccountID, Links: []int64{link.ID}, Limit: 1, NoNames: true}
		days, _, err := dashboard.ReadDays(t.Context(), s.clicks, q, clickreport.AddDays(now, -before), now)
		testkit.Must(t, err)
		return days
	}
	for now, want := range map[string]string{
		"2026-11-21T00:00:00Z":     "2026-11-15..2026-11-21 2/4 24",
		"2026-11-21T23:59:59.999Z": "2026-11-15..2026-11-21 2/4 24",
		"2026-11-22T00:00:00Z":     "2026-11-16..2026-11-22 0/4 0",
		"2026-11-20T23:59:59Z":     "2026-11-14..2026-11-21 1/4 24", // the clock of the last clicks is ahead
	} {
		days := daysOf(utc(now), 6)
		on := map[string]int64{}
		for _, day := range days {
			on[day.Date] = day.People
		}
		last := days[len(days)-1]
		got := fmt.Sprintf("%s..%s %d/%d %d", days[0].Date, last.Date, days[0].People, on["2026-11-20"], last.People)
		if got != want {
			t.Errorf("at %s: got %s, want %s", now, got, want)
		}
	}
	all := daysOf(utc("2026-12-20T12:00:00Z"), 40)
	for _, c := range []struct {
		now                   string
		today, week, thirties int64
	}{
		{"2026-11-21T00:00:00Z", 24, 30, 31}, {"2026-11-22T00:00:00Z", 0, 28, 31}, {"2026-11-20T23:59:59Z", 4, 7, 7},
		{"2026-12-20T12:00:00Z", 0, 0, 24},
	} {
		for days, want := range map[int]int64{1: c.today, 7: c.week, 30: c.thirties} {
			if got := dashboard.NewCounter("", all, utc(c.now), days); got.Sum.Total() != want {
				t.Errorf("%s: %d days have %d, want %d", c.now, days, got.Sum.Total(), want)
			}
		}
	}
}

func TestChange(t *testing.T) {
	for _, c := range []struct {
		now, before int64
		want        string
	}{
		{110, 100, "+10%"}, {90, 100, "−10%"}, {100, 100, "±0%"}, {0, 10, "−100%"}, {109, 10, "+990%"}, {110, 10, "×11"},
		{28_156_100, 10_000, "×2815"},
		{5, 0, ""}, {2815, 1, ""}, {9, 9, ""}, // too few to compare with
	} {
		change := dashboard.Counter{Sum: schema.Period{People: c.now}, Prior: schema.Period{People: c.before},
			Compared: true}.Change()
		if change != c.want {
			t.Errorf("%d after %d: %q, want %q", c.now, c.before, change, c.want)
		}
	}
}
