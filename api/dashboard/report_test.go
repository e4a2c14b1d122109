package dashboard_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/api/clickreport"
	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

var bars = regexp.MustCompile(`viewBox="0 0 (\d+) 280"`)

// barsOn returns how many bars the chart on a page has.
func barsOn(page string) int {
	if found := bars.FindStringSubmatch(page); found != nil {
		n, _ := strconv.Atoi(found[1])
		return n
	}
	return 0
}

var hiddenField = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

// choose presses the button of a name on the report that was seen last.
func (b *browser) choose(field, value string) answer {
	b.t.Helper()
	before, _, found := strings.Cut(b.seen.body, fmt.Sprintf(`<button name="%s" value="%s"`, field, value))
	if !found {
		b.t.Fatalf("no button for %s %q: %s", field, value, b.seen.body)
	}
	query := url.Values{}
	for _, kept := range hiddenField.FindAllStringSubmatch(before[strings.LastIndex(before, "<form"):], -1) {
		query.Add(html.UnescapeString(kept[1]), html.UnescapeString(kept[2]))
	}
	query.Add(field, value)
	path, _, _ := strings.Cut(b.at, "?")
	return b.get(path + "?" + query.Encode())
}

// Imported clicks are drawn apart and named with their sources, where there are any.
func TestReportOfImportedClicks(t *testing.T) {
	s := startFaulty(t, nil)
	moved, plain := s.addLink(t, "moved", "https://example.org/"), s.addLink(t, "plain", "https://example.org/")
	at := s.now().UTC().AddDate(0, 0, -2).Truncate(24 * time.Hour)
	s.count(t, click{link: moved, at: at, times: 12}, click{link: plain, at: at, times: 5})
	testkit.Must(t, s.clicks.SetHistories(t.Context(),
		storetest.HistoryOf(s.account.ID, moved.ID, "bitly", at, 3000),
		storetest.HistoryOf(s.account.ID, moved.ID, "old-site", at.AddDate(0, 0, -1), 40)))
	b := s.signedIn(t)
	page := b.get("/dashboard/links/0/moved")
	page.want(t, http.StatusOK, "Clicks 3,052", "People 12 Bots 0 Imported 3,040 from bitly, old-site",
		"People Bots Imported from bitly, old-site", "3,052 clicks since the link was created")
	wantHarmless(t, page)
	if !strings.Contains(page.body, `stroke="url(#dots)"`) {
		t.Error("no bar of imported clicks is drawn")
	}
	b.get("/dashboard").want(t, http.StatusOK, "17 by people, 0 by bots, 3,040 imported", "sho.rt/ moved", "3,052")
	if page := b.get("/dashboard/links/0/plain"); strings.Contains(page.body, "mported") {
		t.Error("a report without imported clicks names them")
	}
}

func TestReport(t *testing.T) {
	var down, slow atomic.Bool
	s := startFaulty(t, func(ctx context.Context, method string) error {
		if slow.Load() && method == "Report" {
			<-ctx.Done()
			return ctx.Err()
		}
		if down.Load() && (method == "Report" || method == "ReportDetail") {
			return schema.Errorf(schema.CodeUnavailable, "down")
		}
		return nil
	})
	sale, other := s.addLink(t, "sale", "https://example.org/"), s.addLink(t, "other", "https://example.org/other")
	at := s.now().UTC().AddDate(0, 0, -2).Truncate(24 * time.Hour)
	day, hour := at.Format(time.DateOnly), at.Add(23*time.Hour+30*time.Minute)
	s.count(t,
		click{link: sale, at: hour, times: 12, browser: "Firefox", country: "DE", referrer: "news.example"},
		click{link: sale, at: at.Add(time.Hour), times: 4, device: schema.Mobile, browser: "Safari", country: "FR"},
		click{link: sale, at: at, times: 3, device: schema.Bot},
		click{link: other, at: at, times: 30, browser: "Edge"}, click{link: sale, at: at.AddDate(0, 0, -1), times: 10})
	b := s.signedIn(t)
	of := func(fields string) string {
		return "/dashboard/links/0/sale?from=" + day + "&to=" + day + fields
	}

	t.Run("counts the days that were asked for", func(t *testing.T) {
		page := b.get(of(""))
		page.want(t, http.StatusOK,
			"Clicks 19 +90% from 10 People 16 +60% from 10 Bots 3 0 before", "Firefox 75% 12",
			"Germany 75% 12", "Desktop 75% 12 Mobile 25% 4", "news.example 75% 12", "Operating systems", "Languages",
			"Days are in UTC")
		wantHarmless(t, page)
		b.get("/dashboard/links/0/sale").want(t, http.StatusOK, "Clicks 29")
		b.get("/dashboard/report?from="+day+"&to="+day).want(t, http.StatusOK, "Clicks on all links", "Clicks 49",
			"sho.rt/ other https://example.org/other 30 sho.rt/ sale https://example.org/ 19")
	})
	t.Run("has presets that keep the filters, and are in the account's time zone", func(t *testing.T) {
		zone, err := time.LoadLocation("Pacific/Kiritimati") // 14 hours ahead
		testkit.Must(t, err)
		today := s.now().In(zone)
		path := "/dashboard/links/0/sale?"
		testkit.Must(t, s.links.SetProfile(t.Context(), s.account.ID, schema.Profile{TimeZone: zone.String()}))
		defer func() { testkit.Must(t, s.links.SetProfile(t.Context(), s.account.ID, schema.Profile{})) }()
		page := b.get(path + "country=DE")
		for label, of := range map[string]struct {
			key         string
			first, last int
		}{"Today": {"today", 0, 0}, "Yesterday": {"yesterday", -1, -1}, "7 days": {"7d", -6, 0},
			"90 days": {"90d", -89, 0}, "This month": {"month", 1 - today.Day(), 0}} {
			want := path + "country=DE&amp;period=" + of.key
			if !strings.Contains(page.body, `<a href="`+want+`">`+label+`</a>`) {
				t.Errorf("%q is not a link to %s", label, want)
			}
			shown := b.get(path + "country=DE&period=" + of.key)
			for field, days := range map[string]int{"from": of.first, "to": of.last} {
				day := today.AddDate(0, 0, days).Format(time.DateOnly)
				if !strings.Contains(shown.body, `name="`+field+`" type="date" value="`+day+`"`) ||
					!strings.Contains(shown.body, ` aria-current="page">`+label+`</a>`) {
					t.Errorf("%s is not %s %s", label, field, day)
				}
			}
			from := today.AddDate(0, 0, of.first).Format(time.DateOnly)
			b.get(path+"period="+of.key+"&from="+from+"&to="+from).lacks(t, "period="+of.key+"&amp;part")
		}
		if !strings.Contains(page.body, ` aria-current="page">30 days</a>`) ||
			strings.Contains(page.body, "<details class=\"more\" open>") {
			t.Error("30 days is not the current preset")
		}
		if want := "from=" + today.AddDate(0, 0, -13).Format(time.DateOnly) + "&amp;to=" + today.Format(time.DateOnly) +
			`">All</a>`; !strings.Contains(page.body, want) {
			t.Errorf("no %s", want)
		}
		old := s.now().UTC().AddDate(-2, 0, 0)
		s.addLinkAt(t, "old", "https://example.org/", old)
		want := `<a href="/dashboard/links/0/old?from=` + old.Format(time.DateOnly) + `&amp;to=` +
			s.now().UTC().Format(time.DateOnly) +
			`&amp;tz=UTC">All</a>`
		if page := b.get("/dashboard/links/0/old"); !strings.Contains(page.body, want) {
			t.Errorf("no %s in\n%s", want, page.body)
		}
		if other := b.get(of("")); strings.Count(other.body, ` aria-current="page">`) > 1 ||
			!strings.Contains(other.body, "<details class=\"more\" open>") {
			t.Error("a day before yesterday is a preset")
		}
	})
	t.Run("filters by a name, and leads back", func(t *testing.T) {
		b.get(of(""))
		page := b.choose("country", "DE")
		testkit.Equal(t, "path", b.at, "/dashboard/links/0/sale?country=DE&from="+day+"&to="+day)
		page.want(t, http.StatusOK, "Country: Germany remove", "Clicks 12", "Firefox 100% 12")
		if !strings.Contains(page.body, `name="country" value="DE"`) {
			t.Error("the form forgets the filter")
		}
		b.get(of("&country=")).want(t, http.StatusOK, "Country: Unknown remove", "Clicks 3")
		every := ""
		for _, by := range schema.Dimensions() {
			every += "&" + string(by) + "=x"
		}
		if page := b.get(of(every)); strings.Count(page.body, `class="badge accent">`) != len(schema.Dimensions()) ||
			strings.Contains(page.body, `">: <bdi>`) {
			t.Errorf("a filter has no name: %s", page.text())
		}
	})
	t.Run("of all links has totals by domain and tag, and can be of one of them", func(t *testing.T) { reportsTotals(t) })
	t.Run("has hours, in the time zone that is asked for", func(t *testing.T) {
		page := b.get(of("&interval=hour"))
		page.want(t, http.StatusOK, "Clicks per hour", "Each bar is an hour")
		if bars := barsOn(page.body); bars != 24 || !strings.Contains(page.text(), at.Format("2 Jan 2006")+", 23:00 12 0") {
			t.Errorf("%d bars: %s", bars, page.text())
		}
		// the last hour is on the next day there
		b.get(of("&tz=Asia/Tokyo")).want(t, http.StatusOK, "Clicks 7", "Days are in Asia/Tokyo")
	})
	t.Run("has the account's time zone, else the browser's, unless another is asked for", func(t *testing.T) {
		reader := s.signedIn(t)
		in := func(cookie, fields, zone string) {
			t.Helper()
			reader.fields.Set("Cookie", "linkstream-zone="+cookie)
			reader.get(of(fields)).want(t, http.StatusOK, "Days are in "+zone)
			if fields != "" && !strings.Contains(reader.seen.body, `tz=`+url.QueryEscape(zone)) {
				t.Errorf("%s: links and polls are in another zone:\n%s", zone, reader.seen.body)
			}
		}
		in("Asia/Tokyo", "", "Asia/Tokyo")
		in("Asia/Tokyo", "&tz=America/New_York", "America/New_York")
		in("Asia/Tokyo", "&tz=UTC", "UTC")
		for _, wrong := range []string{"Mars", "Local", "../../etc/passwd", "", strings.Repeat("x", 3000)} {
			in(wrong, "", "UTC")
		}
		testkit.Must(t, s.links.SetProfile(t.Context(), s.account.ID, schema.Profile{TimeZone: "Europe/Vienna"}))
		defer func() { testkit.Must(t, s.links.SetProfile(t.Context(), s.account.ID, schema.Profile{})) }()
		in("Asia/Tokyo", "", "Europe/Vienna")
	})
	t.Run("names each problem at its field", func(t *testing.T) {
		for fields, problem := range map[string]string{"from=x": "The day must be a date",
			"from=2026-01-02&to=2026-01-01": "must not be before", "from=2020-01-01&interval=hour": "at most 31 days"} {
			page := b.get("/dashboard/report?" + fields)
			page.want(t, http.StatusUnprocessableEntity, problem)
			if !strings.Contains(page.body, `-problem"`) {
				t.Errorf("%s: not beside its field:\n%s", fields, page.body)
			}
			wantHarmless(t, page)
		}
	})
	t.Run("says that a time zone does not exist", func(t *testing.T) {
		b.get("/dashboard/report?tz=Mars").want(t, http.StatusUnprocessableEntity, "The time zone must be an IANA name")
	})
	t.Run("says that clicks cannot be shown", func(t *testing.T) {
		down.Store(true)
		defer down.Store(false)
		b.get(of("")).want(t, http.StatusOK, "Clicks cannot be shown at the moment", "From", "Other days")
	})
	t.Run("has advice if it takes too long, and is not in the log then", func(t *testing.T) {
		slow.Store(true)
		defer slow.Store(false)
		logged := s.log.String()
		b.get(of("")).want(t, http.StatusOK, "This report takes too long: ask for a shorter range", "From", "Other days")
		testkit.Equal(t, "log", s.log.String(), logged)
	})
}

// reportsTotals counts clicks on links with and without tags, on two domains, and on a link that is then deleted.
func reportsTotals(t *testing.T) {
	s := start(t)
	links := s.addTagged(t, []string{"print", "sale"}, []string{"sale"}, nil, nil)
	domain := s.addDomain(t, "go.example.org", true)
	own := schema.Link{AccountID: s.account.ID, DomainID: domain.ID, Hash: "own", URL: "https://example.org/",
		Active:    true,
		CreatedAt: s.now().UTC(), Tags: []string{"web"}}
	testkit.Must(t, s.links.CreateLink(t.Context(), &own))
	at := s.now().UTC()
	s.count(t, click{link: links[0], at: at, times: 8, browser: "Firefox"},
		click{link: links[1], at: at, times: 4, device: schema.Bot},
		click{link: links[2], at: at, times: 2}, click{link: own, at: at, times: 5}, click{link: links[3], at: at},
		click{link: own, at: at.AddDate(0, 0, -40), times: 70})
	testkit.Must(t, s.links.DeleteLink(t.Context(), links[3], at))
	b := s.signedIn(t)
	page := b.get("/dashboard/report")
	page.want(t, http.StatusOK, "Clicks 20", "Count clicks by tag and by domain")
	if !regexp.MustCompile(`href="/dashboard/report\?[^"]*totals=show`).MatchString(page.body) {
		t.Errorf("no way to the totals:\n%s", page.body)
	}
	page.lacks(t, "Domains</h2>")
	page = b.get("/dashboard/report?totals=show")
	page.lacks(t, "Count clicks")
	page.want(t, http.StatusOK, "Clicks 20", "Domains Name Share Clicks sho.rt 70% 14 go.example.org 25% 5 Deleted "+
		"links 5% 1",
		"Tags Name Share Clicks sale 60% 12 print 40% 8 web 25% 5 No tag 10% 2")
	wantHarmless(t, page)
	for query, want := range map[string]string{"tag=sale": "Clicks 12", "tag=none": "Clicks 0", "domain_id=" +
		id(domain.ID): "Clicks 5",
		"domain_id=0": "Clicks 14", "domain_id=0&tag=web": "Clicks 0", "tag=sale&browser=Firefox": "Clicks 8",
		"tag=&domain_id=": "Clicks 20"} {
		b.get("/dashboard/report?"+query).want(t, http.StatusOK, want)
	}
	kept := "&period=30d"
	for _, of := range []struct{ field, value, want, shows string }{
		{"browser", "Firefox", "browser=Firefox&domain_id=0" + kept + "&tag=sale", "Clicks 8"},
		{"tag", "print", "domain_id=0" + kept + "&tag=print", "Clicks 8"},
		{"domain_id", "0", "domain_id=0" + kept + "&tag=sale", "Clicks 12"},
	} {
		b.get("/dashboard/report?tag=sale&domain_id=0&totals=show").want(t, http.StatusOK, "Clicks 12")
		b.choose(of.field, of.value).want(t, http.StatusOK, of.shows)
		want, _ := url.ParseQuery(of.want + "&totals=show")
		testkit.Equal(t, "path", b.at, "/dashboard/report?"+want.Encode())
	}
	b.get("/dashboard/report?tag=sale&domain_id="+id(domain.ID)).want(t, http.StatusOK,
		"Clicks on links with the tag “ sale ” on "+
			"go.example.org . Show all links", "Tag: sale remove sale Domain: go.example.org remove")
	for query, want := range map[string]string{"tag=none": "You have no link with the tag “none”.",
		"domain_id=0&tag=web":  "“web” on this domain.",
		"browser=firefox&os=X": "No clicks in this period match “firefox” and “X”."} {
		b.get("/dashboard/report?"+query).want(t, http.StatusOK, want)
	}
	b.get("/dashboard/report?from=2020-01-01&to=2020-01-01").lacks(t, "You have no link", "No click of these days")
	b.get("/dashboard/report?domain_id=99&country=Germany").want(t, http.StatusUnprocessableEntity,
		"You have no domain with this id", "The country must be a code")
	empty := s.addDomain(t, "empty.example.org", true)
	b.get("/dashboard/report?domain_id="+id(empty.ID)).want(t, http.StatusOK, "You have no link on this domain.")
	b.get("/dashboard/report?tag=No+Tag&domain_id=x&from=y").want(t, http.StatusUnprocessableEntity,
		"The tag must have 1 to 32", "The domain id must be", "The day must be a date")
	b.get("/dashboard/report?totals=show&limit=1").want(t, http.StatusOK,
		"sale 60% 12 People and bots, as of now. A click counts for each tag of its link. All 4 tags")
	alone := b.get("/dashboard/report?totals=show&part=totals&tag=sale")
	alone.want(t, http.StatusOK, "sale 100% 12", "sho.rt 100% 12 People and bots, as of now.")
	alone.lacks(t, "Sources", "<html")
	if b.get("/dashboard/report?totals=show&part=report"); strings.Contains(b.seen.body, "Domains") {
		t.Error("the totals are polled")
	}
}

func TestComparison(t *testing.T) {
	s := start(t)
	link := s.addLink(t, "sale", "https://example.org/")
	for at, times := range map[string]int{"2026-11-20T09:00:00Z": 1, "2026-11-20T11:59:00Z": 2, "2026-11-20T12:01:00Z": 4,
		"2025-11-21T11:00:00Z": 8,
		"2025-11-21T13:00:00Z": 16, "2025-11-20T23:59:00Z": 32, "2026-11-19T00:00:00Z": 64} {
		s.count(t, click{link: link, at: utc(at), times: times})
	}
	for _, c := range []struct {
		from, to string
		year     bool
		want     int64
	}{
		{"2026-11-21", "2026-11-21", false, 1 + 2}, {"2026-11-21", "2026-11-21", true, 8},
		{"2026-11-20", "2026-11-20", false, 64},
		{"2026-11-20", "2026-11-21", false, 64}, {"2026-11-20", "2026-11-21", true, 32 + 8},
		{"2026-11-20", "2026-11-20", true, 32},
	} {
		asked, problems := clickreport.Parse(func(field string) (string, bool) {
			return map[string]string{"from": c.from, "to": c.to}[field], field == "from" || field == "to"
		}, utc("2026-11-21T12:00:00Z"))
		testkit.Equal(t, "problems", len(problems), 0)
		got, err := clickreport.Compare(t.Context(), s.clicks, s.account.ID, []int64{link.ID}, c.year,
			utc("2026-11-21T12:00:00Z"), asked)
		testkit.Must(t, err)
		testkit.Equal(t, fmt.Sprint(c), got[0].Clicks.Total(), c.want)
	}
	b := s.signedIn(t)
	page := b.get("/dashboard/links/0/sale?compare=year")
	if !strings.Contains(page.body, "compare=year&amp;") ||
		!strings.Contains(page.body, `<option value="year" selected>`) {
		t.Error("the page forgets what it compares with")
	}
	page.want(t, http.StatusOK, "Compared with Period before Year before", "No data for the year before")
	b.get("/dashboard/links/0/sale").want(t, http.StatusOK, "No data for the period before")
}

// Readers know sources, countries and devices at a glance. Hosts of one source stay filters of their own.
func TestNamesOfSources(t *testing.T) {
	s := start(t)
	link := s.addLink(t, "sale", "https://example.org/")
	for host, times := range map[string]int{"l.instagram.com": 6, "instagram.com": 5, "com.google.android.gm": 4,
		"blog.example": 3} {
		s.count(t, click{link: link, at: s.now(), times: times, referrer: host, country: "DE", device: schema.Mobile})
	}
	b := s.signedIn(t)
	page := b.get("/dashboard/links/0/sale")
	page.want(t, http.StatusOK, "Instagram (l.instagram.com) 33% 6", "Instagram (instagram.com) 28% 5", "Gmail app 22% 4",
		"blog.example 17% 3")
	for _, part := range []string{`title="com.google.android.gm"`, `#DE `, `#smartphone `} {
		if !strings.Contains(page.body, part) {
			t.Errorf("no %s", part)
		}
	}
	b.choose("referrer", "l.instagram.com").want(t, http.StatusOK, "Referrer: Instagram remove", "Clicks 6")
}
