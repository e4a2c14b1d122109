package dashboard_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/api/auth"
	"linkstream/api/csvfile"
	"linkstream/api/dashboard"
	"linkstream/api/qr"
	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestLinkPage(t *testing.T) {
	s := start(t)
	now := s.now().UTC()
	link := s.addLinkAt(t, "sale", `https://example.org/?q="><script>alert(1)</script>`, now.AddDate(0, 0, -203))
	quiet := s.addLink(t, "quiet", "https://example.org/")
	const evil = `<script>alert("x")</script>`
	s.count(t,
		click{link: link, at: now, times: 1200, browser: "Firefox", referrer: "news.example", country: "DE",
			os: "Windows", language: "de"},
		click{link: link, at: now.AddDate(0, 0, -3), times: 40, device: schema.Mobile,
			browser: evil, referrer: evil, country: evil, os: evil, language: evil},
		click{link: link, at: now.AddDate(0, 0, -3), times: 7, device: schema.Bot,
			browser: "Googlebot", referrer: "bot.example"},
		click{link: link, at: now.AddDate(0, 0, -50), times: 5, device: schema.Other},
		click{link: link, at: now.AddDate(0, 0, -203), times: 3})
	b := s.signedIn(t)

	t.Run("shows people apart from bots, and names by how often they occur", func(t *testing.T) {
		page := b.get("/dashboard/links/0/sale")
		page.want(t, http.StatusOK, "sho.rt/sale", "on created",
			"1,255 clicks since the link was created", "Clicks 1,247 5 before People 1,240 5 before Bots 7 0 before",
			"Desktop 97% 1,200 Mobile 3% 40 Bots (of all clicks) <1% 7", "Firefox 97% 1,200", "news.example 97% 1,200",
			"Germany 97% 1,200", "Windows 97% 1,200", "German 97% 1,200", `leads to https://example.org/?q="><script>`+
				`alert(1)</script>`)
		if strings.Contains(page.text(), "Googlebot") || strings.Contains(page.text(), "bot.example") {
			t.Error("a bot's browser or referrer is among people's")
		}
		wantHarmless(t, page)
	})
	t.Run("has a bar for each day of the period, in the table, too", func(t *testing.T) {
		for before, want := range map[int]struct{ days, people, bots int }{
			// weeks of 204 days: 30 from any weekday on
			0: {30, 1240, 7}, 6: {7, 1240, 7}, 29: {30, 1240, 7}, 89: {90, 1245, 7}, 203: {30, 1248, 7},
		} {
			period := ""
			if before > 0 {
				period = "?from=" + now.AddDate(0, 0, -before).Format(time.DateOnly)
			}
			page := b.get("/dashboard/links/0/sale" + period)
			page.want(t, http.StatusOK)
			bars, rows := barsOn(page.body), strings.Count(page.body[:strings.Index(page.body, `</tbody>`)], `<tr><th>`)
			if bars != want.days || rows != want.days {
				t.Errorf("%q: %d bars and %d rows, want %d", period, bars, rows, want.days)
			}
			if summary := fmt.Sprintf("%s by people, %s by bots", dashboard.Number(int64(want.people)),
				dashboard.Number(int64(want.bots))); !strings.Contains(page.body, summary) {
				t.Errorf("%q: no %q", period, summary)
			}
		}
	})
	t.Run("has the API's total", func(t *testing.T) {
		total := s.apiTotal(t, "sale")
		for _, period := range []string{"", "?from=" + now.Format(time.DateOnly)} {
			b.get("/dashboard/links/0/sale"+period).want(t, http.StatusOK, dashboard.Number(total)+" clicks since the link was "+
				"created")
		}
	})
	t.Run("is calm without clicks", func(t *testing.T) {
		preset := regexp.MustCompile(`href="(/dashboard/links/0/quiet[^"]*)"[^>]*>All<`)
		all := preset.FindStringSubmatch(b.get("/dashboard/links/0/quiet").body)
		b.get(strings.ReplaceAll(all[1], "&amp;", "&")).want(t, http.StatusOK, "0 clicks since", "No clicks in this period")
		if bars := barsOn(b.seen.body); bars != 7 {
			t.Errorf("the chart of a new link has room for %d bars", bars)
		}
	})
	t.Run("says when countries are known", func(t *testing.T) {
		s.count(t, click{link: quiet, at: now, browser: "Firefox"})
		b.get("/dashboard/links/0/"+quiet.Hash).want(t, http.StatusOK, "Countries are not recorded here.")
	})
	t.Run("gives the script the changing parts alone", func(t *testing.T) {
		page := b.get("/dashboard/links/0/sale?part=report")
		page.want(t, http.StatusOK, "1,255 clicks since", "Counting progress unknown")
		if strings.Contains(page.body, "<html") || strings.Contains(page.body, "csrf") {
			t.Errorf("got more than that:\n%s", page.body)
		}
	})
}

// apiTotal returns total_clicks as the API has it.
func (s *testService) apiTotal(t *testing.T, hash string) int64 {
	t.Helper()
	secret, token := auth.NewToken(s.account.ID, "test")
	testkit.Must(t, s.links.CreateToken(t.Context(), &token))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+"/api/v1/stats/"+hash, nil)
	testkit.Must(t, err)
	req.Header.Set("Authorization", "Bearer "+secret)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	res, err := (&http.Client{Transport: transport}).Do(req)
	testkit.Must(t, err)
	defer res.Body.Close()
	var got struct {
		Stats struct {
			Total int64 `json:"total_clicks"`
		} `json:"stats"`
	}
	testkit.Must(t, json.NewDecoder(res.Body).Decode(&got))
	return got.Stats.Total
}

func TestLinksOfOneHash(t *testing.T) {
	s := start(t)
	domain := s.addDomain(t, "go.example.com", true)
	s.addLink(t, "both", "https://default.example/")
	custom := schema.Link{AccountID: s.account.ID, DomainID: domain.ID, Hash: "both", URL: "https://custom.example/",
		Active: true, CreatedAt: time.Now().Add(-time.Hour)}
	testkit.Must(t, s.links.CreateLink(t.Context(), &custom))
	b := s.signedIn(t)
	b.get("/dashboard/links/0/both").want(t, http.StatusOK, "sho.rt/both", "leads to https://default.example/")
	path := fmt.Sprintf("/dashboard/links/%d/both", domain.ID)
	b.get(path).want(t, http.StatusOK, "go.example.com/both", "leads to https://custom.example/")
	b.post(path+"/active", "active", "false")
	for domainID, want := range map[int64]bool{0: true, domain.ID: false} {
		got, err := schema.FindLink(t.Context(), s.links, domainID, "both")
		if err != nil || got.Active != want {
			t.Errorf("domain %d: active is %v, error %v", domainID, got.Active, err)
		}
		if got.UpdatedAt.After(got.CreatedAt) == want {
			t.Errorf("domain %d: updated at %v", domainID, got.UpdatedAt)
		}
	}
}

func TestActivate(t *testing.T) {
	s := start(t)
	link := s.addLink(t, "sale", "https://example.org/")
	b := s.signedIn(t)
	is := func(t *testing.T, want bool) {
		t.Helper()
		if got, err := schema.FindLink(t.Context(), s.links, 0, "sale"); err != nil || got.Active != want {
			t.Errorf("active is %v, want %v, error %v", got.Active, want, err)
		}
	}
	b.get("/dashboard/links?q=sale").want(t, http.StatusOK, "on", "Switch off")
	if !strings.Contains(b.seen.body, `name="back" value="/dashboard/links?page=1&amp;q=sale"`) {
		t.Error("the form does not lead back to its page of the list")
	}
	b.post("/dashboard/links/0/sale/active", "active", "false", "back", "/dashboard/links?page=1&q=sale").
		wantTo(t, "/dashboard/links?page=1&q=sale#link-"+id(link.ID))
	is(t, false)
	b.follow().want(t, http.StatusOK, "sho.rt/sale is switched off", "Undo", "off", "Switch on")
	form := regexp.MustCompile(`(?s)role="status"><p>sho.rt/sale is.*?</form>`).FindString(b.seen.body)
	for _, part := range []string{`action="/dashboard/links/0/sale/active"`, `name="active" value="true"`,
		`name="back" value="/dashboard/links?page=1&amp;q=sale"`} {
		if !strings.Contains(form, part) {
			t.Errorf("the form that undoes it has no %s: %s", part, form)
		}
	}
	for _, elsewhere := range []string{"https://evil.example/", "//evil.example/", "/dashboard/../x\\", ""} {
		b.post("/dashboard/links/0/sale/active", "active", "true", "back", elsewhere)
		if to := b.seen.header.Get("Location"); !strings.HasPrefix(to, "/dashboard/") || strings.Contains(to, "evil") {
			t.Errorf("back to %q leads to %q", elsewhere, to)
		}
		is(t, true)
	}
	b.seen = answer{}
	b.send(http.MethodPost, "/dashboard/links/0/sale/active", map[string][]string{"active": {"false"}})
	b.seen.want(t, http.StatusForbidden)
	is(t, true)
}

func TestLinksOfOthersDoNotExist(t *testing.T) {
	s := start(t)
	s.addForeign(t)
	s.addLink(t, "mine", "https://example.org/")
	b := s.signedIn(t)
	for _, link := range []string{"0/theirs", "0/none", "1/mine", "-1/mine", "x/mine", "/mine", "0/..%2f", "0/%00",
		"0/%E2%80%AE", "9223372036854775808/mine", "0/" + strings.Repeat("a", 100)} {
		for _, path := range []string{"", "/clicks.csv", "/qr.svg", "/qr.png"} {
			if page := b.get("/dashboard/links/" + link + path); page.status != http.StatusNotFound {
				t.Errorf("%s%s answers %d", link, path, page.status)
			}
		}
		b.get("/dashboard/account")
		if page := b.post("/dashboard/links/"+link+"/active", "active", "false"); page.status != http.StatusNotFound {
			t.Errorf("switching %s off answers %d", link, page.status)
		}
	}
	if got, err := schema.FindLink(t.Context(), s.links, 0, "theirs"); err != nil || !got.Active {
		t.Errorf("got %+v, error %v", got, err)
	}
}

func TestDownloads(t *testing.T) {
	s := start(t)
	link := s.addLink(t, "sale", "https://example.org/")
	now := s.now().UTC()
	s.count(t, click{link: link, at: now, times: 5},
		click{link: link, at: now.AddDate(0, 0, -2), times: 2, device: schema.Bot})
	const base, typeCSV = "/dashboard/links/0/sale/", "text/csv; charset=utf-8; header=present"
	b := s.signedIn(t)
	file := func(t *testing.T, path, contentType, name string) string {
		t.Helper()
		got := b.get(path)
		got.want(t, http.StatusOK)
		kind, params, err := mime.ParseMediaType(got.header.Get("Content-Disposition"))
		if err != nil || kind != "attachment" || params["filename"] != name || got.header.Get("Content-Type") != contentType {
			t.Errorf("%s: %s", path, got.header)
		}
		return got.body
	}
	t.Run("CSV has each day", func(t *testing.T) {
		from, to := now.AddDate(0, 0, -6).Format(time.DateOnly), now.Format(time.DateOnly)
		body := file(t, base+"clicks.csv?from="+from, typeCSV, "sho.rt-sale-"+from+"-"+to+".csv")
		lines, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(body, csvfile.BOM))).ReadAll()
		testkit.Must(t, err)
		if len(lines) != 8 || strings.Join(lines[0], " ") != "date people bots total visitors" {
			t.Fatalf("got %q", lines)
		}
		for i, want := range map[int]string{5: "0 2 2", 6: "0 0 0", 7: "5 0 5"} {
			if got := strings.Join(lines[i][:4], " "); got != now.AddDate(0, 0, i-7).Format(time.DateOnly)+" "+want {
				t.Errorf("line %d: got %s, want %s", i, got, want)
			}
		}
		names := file(t, base+"clicks.csv?list=browser&from="+from, typeCSV, "sho.rt-sale-browser-"+from+"-"+to+".csv")
		if !strings.HasPrefix(names, "\ufeffbrowser,people\n") {
			t.Error(names)
		}
		b.get(base+"clicks.csv?list=nothing").want(t, http.StatusNotFound)
		b.get(base+"clicks.csv?from=x").want(t, http.StatusUnprocessableEntity, "The day must be a date")
	})
	t.Run("QR codes lead to the short link", func(t *testing.T) {
		for _, format := range []string{qr.SVG, qr.PNG} {
			for _, size := range []int{512, 300} {
				style := qr.Default
				style.Format, style.Size = format, size
				want, _, err := style.Draw("http://sho.rt/sale")
				testkit.Must(t, err)
				got := file(t, fmt.Sprintf("%sqr.%s?size=%d", base, format, size), style.ContentType(), "sho.rt-sale."+format)
				testkit.Equal(t, "code", got, string(want))
			}
		}
		b.get(base+"qr.png?size=1").want(t, http.StatusUnprocessableEntity, "cannot be drawn")
	})
	t.Run("QR codes have a style", func(t *testing.T) {
		page := b.get(base + "qr?size=300&margin=2&level=H&foreground=%230b3d2e&background=%23FFEECC")
		page.want(t, http.StatusOK, "Download SVG")
		const query = "?background=FFEECC&amp;foreground=0B3D2E&amp;level=H&amp;margin=2&amp;size=300"
		for _, part := range []string{`src="` + base + `qr.svg` + query, `href="` + base + `qr.png` + query,
			`value="#0B3D2E"`, `<option value="H" selected>`} {
			if !strings.Contains(page.body, part) {
				t.Errorf("no %s in:\n%s", part, page.body)
			}
		}
		b.get(base+"qr?foreground=eeeeee&size=9999&margin=x").want(t, http.StatusUnprocessableEntity, "Cameras may not read",
			"64 to 2048", "0 to 16")
	})
}

func TestPagesWithoutTheClickStore(t *testing.T) {
	var down atomic.Bool
	s := startFaulty(t, storetest.FaultOf(func(context.Context) error {
		if down.Load() {
			return schema.Errorf(schema.CodeUnavailable, "down")
		}
		return nil
	}, "ClickCounts", "Report"))
	s.addLink(t, "sale", "https://example.org/")
	b := s.signedIn(t)
	down.Store(true)
	const notice = "Clicks cannot be shown at the moment"
	b.get("/dashboard/links").want(t, http.StatusOK, notice, "sho.rt/ sale", "https://example.org/", "–", "Switch off")
	b.get("/dashboard/links/0/sale").want(t, http.StatusOK, notice, "sho.rt/sale", "Switch off", "QR code")
	b.get("/dashboard").want(t, http.StatusOK, notice)
	b.get("/dashboard/links/0/sale/qr.svg").want(t, http.StatusOK)
	b.get("/dashboard/links/0/sale/clicks.csv").want(t, http.StatusServiceUnavailable, "The click store cannot be reached")
	down.Store(false)
	b.get("/dashboard/links").want(t, http.StatusOK, "sho.rt/ sale")
	if strings.Contains(b.seen.text(), notice) {
		t.Error("the notice stays")
	}
}

// waitingClicks is a log with a number of waiting clicks, and the time of the first.
type waitingClicks struct {
	clicks atomic.Int64
	since  time.Time
	down   atomic.Bool
}

func (w *waitingClicks) Lag(context.Context) (int64, time.Time, error) {
	if w.down.Load() {
		return 0, time.Time{}, errors.New("the log is down")
	}
	return w.clicks.Load(), w.since, nil
}

func TestHowFarClicksAreCounted(t *testing.T) {
	t.Parallel()
	waiting := &waitingClicks{since: time.Now().UTC()}
	s := startOn(t, nil, waiting)
	s.addLink(t, "sale", "https://example.org/")
	b := s.signedIn(t)
	eventually := func(want string) {
		t.Helper()
		testkit.Succeeds(t, func() error {
			for _, path := range []string{"/dashboard", "/dashboard/links", "/dashboard/links/0/sale"} {
				if text := b.get(path).text(); !strings.Contains(text, want) {
					return fmt.Errorf("%s does not say %q: %s", path, want, text)
				}
			}
			return nil
		})
	}
	eventually("Up to date")
	waiting.clicks.Store(3)
	eventually("Counted up to " + waiting.since.Format("15:04:05") + " : 3 clicks to go")
	waiting.clicks.Store(1)
	eventually(": 1 click to go")
	waiting.clicks.Store(0)
	eventually("Up to date")
	waiting.down.Store(true)
	eventually("Counting progress unknown")
}
