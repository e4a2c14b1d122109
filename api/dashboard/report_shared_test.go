package dashboard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var sharedAddress = regexp.MustCompile(`value="http[^"]*(/dashboard/shared/[A-Za-z0-9_-]{43})"`)

// share shares a report by the form and returns the path of the shared report.
func (b *browser) share(t *testing.T, fields ...string) string {
	t.Helper()
	page := b.get("/dashboard/shares/new")
	newest := regexp.MustCompile(`name="newest" value="(\d+)"`).FindStringSubmatch(page.body)
	page = b.post("/dashboard/shares/new", append(fields, "newest", newest[1])...)
	path := sharedAddress.FindStringSubmatch(page.body)
	if page.status != http.StatusOK || path == nil {
		t.Fatalf("%d: %s", page.status, page.text())
	}
	return path[1]
}

var anyLink = regexp.MustCompile(`<a [^>]*href="([^"]*)"`)

// wantReadable requires that a page is a shared report, whose links all lead to the report itself.
func wantReadable(t *testing.T, page answer, path string, texts ...string) {
	t.Helper()
	page.want(t, http.StatusOK, texts...)
	for _, to := range anyLink.FindAllStringSubmatch(page.body, -1) {
		if to[1] != "#main" && !strings.HasPrefix(to[1], path+"?") && !strings.HasPrefix(to[1], "?") {
			t.Errorf("the page leads to %s", to[1])
		}
	}
	for name, want := range map[string]string{"X-Robots-Tag": "noindex", "Referrer-Policy": "no-referrer",
		"Cache-Control": "no-store"} {
		testkit.Equal(t, name, page.header.Get(name), want)
	}
	for _, secret := range []string{email, `name="csrf"`, "Sign out", "Download"} {
		if strings.Contains(page.body, secret) {
			t.Errorf("the page has %q", secret)
		}
	}
	wantHarmless(t, page)
}

func TestSharedReports(t *testing.T) {
	s := start(t, behindProxy, unpaced)
	sale := s.addLink(t, "sale", "https://target.example/secret")
	testkit.Must(t,
		s.links.UpdateLink(t.Context(), &sale, schema.LinkEdit{Tags: &[]string{"spring"}, Title: new("Summer")}, time.Now()))
	other, domain := s.addLink(t, "other", "https://else.example/"), s.addDomain(t, "go.example.org", true)
	s.count(t, click{link: sale, at: s.now(), times: 12, browser: "Firefox", country: "DE"},
		click{link: sale, at: s.now(), times: 3, device: schema.Bot},
		click{link: other, at: s.now(), times: 5, browser: "Edge"})
	owner := s.signedIn(t)

	t.Run("are read without signing in", func(t *testing.T) {
		reader := s.browser(t)
		link := owner.share(t, "hash", "sale", "domain_id", "0")
		wantReadable(t, reader.get(link), link, "sho.rt/sale", "Summer", "leads to https://target.example/secret",
			"15 clicks since", "Clicks 15", "People 12", "Firefox 100% 12", "As of")
		wantReadable(t, reader.get(link+"?browser=Edge&unknown=1"), link, "No clicks in this period match “Edge”.")
		all := owner.share(t)
		wantReadable(t, reader.get(all), all, "Clicks on all links", "Clicks 20", "https://else.example/")
		tag := owner.share(t, "tag", "spring")
		wantReadable(t, reader.get(tag), tag, "Clicks on links with the tag “spring”", "Clicks 15")
		on := owner.share(t, "domain_id", id(domain.ID))
		wantReadable(t, reader.get(on), on, "Clicks on links on go.example.org", "Clicks 0")
		reader.get(all+"?from=2026-02-30").want(t, http.StatusUnprocessableEntity, "The day must be a date")
		if strings.Contains(reader.get(all+"?tag=none&domain_id=77").text(), "Clicks 0") {
			t.Error("readers choose the links")
		}
	})
	t.Run("hide targets, and what is known of them", func(t *testing.T) {
		const card = `{"title":"Card","description":"","image":"https://image.example/zebra.png"}`
		behaved := s.addLink(t, "behaved", "https://target.example/?utm_source=zebra&utm_term=zebra-term")
		var behaviour schema.Behaviour
		testkit.Must(t, json.Unmarshal([]byte(`{"rules":[{"name":"phones","if":{"device":["mobile"]},`+
			`"url":"https://rule.example/zebra"}],"card":`+card+`}`), &behaviour))
		testkit.Must(t, s.links.UpdateLink(t.Context(), &behaved, schema.LinkEdit{Tags: &[]string{"spring"},
			ExpiredURL: new("https://expired.example/zebra"), Behaviour: &behaviour}, time.Now()))
		s.count(t, click{link: behaved, at: s.now(), times: 4, route: "phones", campaign: "zebra / mail / launch"},
			click{link: behaved, at: s.now(), campaign: "other"})
		shown := owner.share(t, "hash", "behaved", "domain_id", "0")
		s.browser(t).get(shown).want(t, http.StatusOK, "leads to https://target.example/", "zebra 80% 4", "phones")
		for i, scope := range [][]string{{"hash", "behaved", "domain_id", "0"}, {"tag", "spring"}, {"domain_id", "0"}, {}} {
			reader := s.browser(t)
			reader.fields = http.Header{"X-Forwarded-For": {fmt.Sprintf("192.0.2.%d", i)}}
			path := owner.share(t, append(scope, "hide_targets", "true")...)
			all := reader.get(path)
			wantReadable(t, all, path, "phones")
			clicks := regexp.MustCompile(`Clicks \d+`).FindString(all.text())
			for _, query := range []string{"", "?campaign=zebra+%2F+mail+%2F+launch", "?campaign=", "?campaign=none",
				"?limit=1000",
				"?list=campaign", "?interval=hour", "?CAMPAIGN=other", "?route=phones&campaign=other", "?route=phones", "?wall",
				"?wall&campaign=other"} {
				page := reader.get(path + query)
				for _, secret := range []string{"target.example", "expired.example", "rule.example", "image.example",
					"zebra", "launch", "Campaign"} {
					if strings.Contains(page.body, secret) {
						t.Errorf("the page of %v%s has %q: %s", scope, query, secret, page.text())
					}
				}
				if !strings.Contains(query, "route") && !strings.Contains(page.text(), clicks) { // no guess is confirmed
					t.Errorf("%s narrows the report: %s", query, page.text())
				}
			}
			for _, file := range []string{".csv", "/clicks.csv", "/report.csv", "?part=report", "/qr.svg"} {
				if page := reader.get(path + file); strings.Contains(page.body, "zebra") || strings.Contains(page.body, "launch") {
					t.Errorf("%s has a target: %s", file, page.text())
				}
			}
		}
		owner.get("/dashboard/shares/new").want(t, http.StatusOK,
			"Short links, titles, tags and the names of rules and variants stay visible")
		testkit.Must(t, s.links.DeleteLink(t.Context(), behaved, time.Now()))
	})
	t.Run("are in the time zone of their owner, not of the reader", func(t *testing.T) {
		traveller := s.signedIn(t)
		traveller.fields.Set("Cookie", "linkstream-zone=Asia/Tokyo")
		path := traveller.share(t)
		for _, zone := range []string{"", "Europe/Vienna", "none"} { // of the account
			testkit.Must(t, s.links.SetProfile(t.Context(), s.account.ID, schema.Profile{TimeZone: zone}))
			reader := s.browser(t)
			reader.fields.Set("Cookie", "linkstream-zone=America/Lima")
			want := "Asia/Tokyo"
			if zone == "Europe/Vienna" {
				want = zone
			}
			query := "?browser=" + zone // pages are kept
			wantReadable(t, reader.get(path+query), path, "Days are in "+want, "Times are in "+want)
		}
		testkit.Must(t, s.links.SetProfile(t.Context(), s.account.ID, schema.Profile{}))
	})
	t.Run("have the periods of reports", func(t *testing.T) {
		path := owner.share(t)
		page := s.browser(t).get(path + "?period=12m")
		wantReadable(t, page, path, "Clicks per week")
		if !strings.Contains(page.body, `href="`+path+`?period=12m" aria-current="true"`) {
			t.Error("the period is not the chosen one")
		}
	})
	t.Run("are not found when the secret is wrong, they have ended, were revoked, or have no link any more",
		func(t *testing.T) {
			reader := s.browser(t)
			gone := func(path string) {
				t.Helper()
				page := reader.get(path)
				page.want(t, http.StatusNotFound, "This report is not shared")
				testkit.Equal(t, "referrer policy", page.header.Get("Referrer-Policy"), "no-referrer")
			}
			path := owner.share(t)
			gone(path[:len(path)-1])
			gone("/dashboard/shared/" + strings.Repeat("A", 43))
			share, err := s.links.Shares(t.Context(), s.account.ID)
			testkit.Must(t, err)
			reader.get(path).want(t, http.StatusOK)
			owner.post("/dashboard/shares/revoke", "share", id(share[0].ID)).wantTo(t, "/dashboard/shares")
			owner.follow().want(t, http.StatusOK, "The report is no longer shared.")
			gone(path)
			owner.post("/dashboard/shares/revoke", "share", id(share[0].ID))
			owner.follow().want(t, http.StatusOK, "That report is no longer shared.")

			path = owner.share(t, "hash", "sale", "domain_id", "0")
			reader.get(path).want(t, http.StatusOK)
			testkit.Must(t, s.links.DeleteLink(t.Context(), sale, time.Now()))
			gone(path)
			_, err = s.links.RestoreLink(t.Context(), s.account.ID, "sale", nil, time.Unix(0, 0), time.Now())
			testkit.Must(t, err)
			testkit.Must(t, s.links.SetSuspended(t.Context(), s.account.ID, true))
			gone(path)
			testkit.Must(t, s.links.SetSuspended(t.Context(), s.account.ID, false))
			reader.get(path).want(t, http.StatusOK)
		})
	t.Run("are refused with their problems", func(t *testing.T) {
		for field, value := range map[string]string{"hash": "none-of-mine", "domain_id": "77", "tag": "A b",
			"expires_at": "2020-01-01T00:00", "password": "abc"} {
			owner.get("/dashboard/shares/new")
			page := owner.post("/dashboard/shares/new", field, value, "newest", "1000000")
			testkit.Equal(t, "status with "+field, page.status, http.StatusUnprocessableEntity)
		}
		owner.post("/dashboard/shares/new", "newest", "1").want(t, http.StatusUnprocessableEntity, "already been sent")
	})
	t.Run("are listed", func(t *testing.T) {
		owner.share(t, "tag", "spring", "password", "open sesame", "hide_targets", "true", "expires_at", "2099-03-01T12:30")
		owner.get("/dashboard/shares").want(t, http.StatusOK, "links with the tag “spring” Password, "+
			"destinations hidden", "1 Mar 2099, 12:30")
	})
	t.Run("are made in a dialog of the pages that show them", func(t *testing.T) {
		for path, query := range map[string]string{"/dashboard/links/0/sale": "?domain_id=0&amp;hash=sale",
			"/dashboard/report?tag=spring": "?tag=spring", "/dashboard/report": "", "/dashboard/tags/spring": "?tag=spring",
			"/dashboard/shares": ""} {
			page := owner.get(path)
			page.want(t, http.StatusOK, "Share")
			if !strings.Contains(page.body, `href="/dashboard/shares/new`+query+`" data-dialog="modal"`) {
				t.Errorf("%s does not lead to the form", path)
			}
		}
		owner.get("/dashboard/shares/new?domain_id=0&hash=sale").want(t, http.StatusOK, "Share the report of sho.rt/sale")
	})
	t.Run("keep what was typed when the session ends", func(t *testing.T) {
		owner.get("/dashboard/shares/new?tag=spring&expires_at=2099-03-01T12:30").want(t, http.StatusOK, "“spring”")
		if !strings.Contains(owner.seen.body, `value="2099-03-01T12:30"`) {
			t.Error("the end is lost")
		}
	})
}

// TestWall shows a shared report on a screen that nobody touches.
func TestWall(t *testing.T) {
	s := start(t, unpaced)
	sale := s.addLink(t, "sale", "https://target.example/secret")
	s.count(t, click{link: sale, at: s.now(), times: 12, browser: "Firefox", country: "DE", referrer: "t.co"},
		click{link: sale, at: s.now(), times: 3, device: schema.Bot})
	owner, reader := s.signedIn(t), s.browser(t)
	path := owner.share(t, "hash", "sale", "domain_id", "0", "password", "open sesame")
	reader.get(path+"?wall").want(t, http.StatusOK, "This report is protected")
	reader.fields.Set("Origin", "null")
	reader.send(http.MethodPost, path+"?wall", url.Values{"password": {"open sesame"}}).wantTo(t, path+"?wall=")
	for query, texts := range map[string][]string{
		"":            {"30 days", "Clicks per day"},
		"?period=12m": {"12 months"},
		"?from=2026-01-05&to=2026-01-06&browser=Firefox": {"5 Jan 2026 – 6 Jan 2026", "Browser: Firefox", "Clicks 0"},
	} {
		report := reader.get(path + query)
		link := regexp.MustCompile(`href="([^"]*wall)"`).FindStringSubmatch(report.body)
		if link == nil {
			t.Fatalf("%s does not lead to the wall", query)
		}
		wall := reader.get(html.UnescapeString(link[1]))
		wantReadable(t, wall, path, append(texts, "sho.rt/sale", "Times are in UTC", "Bots", "Sources", "Places")...)
		controls := regexp.MustCompile(`<(?:button|form|input|a href="[^#])[^>]*>`).FindAllString(wall.body, -1)
		if len(controls) > 0 {
			t.Errorf("%s: the wall has %q", query, controls)
		}
		if !strings.Contains(wall.body, `<noscript><meta http-equiv="refresh" content="30"></noscript>`) {
			t.Errorf("%s: without the script the wall stays as it is", query)
		}
		if reader.seen.cookie("linkstream-shared") == nil {
			t.Errorf("%s: the wall asks for the password some day", query)
		}
	}
	reader.get(path+"?wall").want(t, http.StatusOK, "Clicks 15", "People 12", "Bots 3", "X", "Germany")
	if reader.get(path); reader.seen.cookie("linkstream-shared") != nil {
		t.Error("the report never asks for the password again")
	}
}

func TestPasswordOfSharedReport(t *testing.T) {
	s := start(t, behindProxy, unpaced)
	s.addLink(t, "sale", "https://example.org/")
	path := s.signedIn(t).share(t, "hash", "sale", "domain_id", "0", "password", "open sesame")
	reader := s.browser(t)
	reader.fields = http.Header{"Origin": {"null"}} // with no-referrer
	enter := func(b *browser, password string) answer {
		return b.send(http.MethodPost, path+"?interval=hour", url.Values{"password": {password}})
	}
	asks := reader.get(path)
	asks.want(t, http.StatusOK, "This report is protected")
	if strings.Contains(asks.body, "sho.rt") || strings.Contains(asks.body, "href=\"/dashboard\"") {
		t.Errorf("the page says more: %s", asks.text())
	}
	enter(reader, "open").want(t, http.StatusUnprocessableEntity, "That is not the password.")
	enter(reader, "open sesame").wantTo(t, path+"?interval=hour")
	cookie := reader.seen.cookie("linkstream-shared")
	if cookie == nil || cookie.Path != path || !cookie.HttpOnly || cookie.MaxAge != 12*3600 {
		t.Fatalf("cookie %+v", cookie)
	}
	wantReadable(t, reader.follow(), path, "sho.rt/sale")
	other := s.signedIn(t).share(t, "password", "open sesame")
	reader.get(other).want(t, http.StatusOK, "This report is protected")
	reader.fields.Set("Cookie", "linkstream-shared="+cookie.Value)
	reader.get(other).want(t, http.StatusOK, "This report is protected")
	guesser := s.browser(t)
	guesser.fields = http.Header{"X-Forwarded-For": {"192.0.2.7"}}
	for range 10 {
		enter(guesser, "open").want(t, http.StatusUnprocessableEntity)
	}
	enter(guesser, "open sesame").want(t, http.StatusTooManyRequests, "Too many attempts. Please try again in a minute.")
}

// TestSharedReportsWithoutStores has no report, keeps the last page for a while, and never logs the secret.
func TestSharedReportsWithoutStores(t *testing.T) {
	var failing atomic.Pointer[string]
	s := startFaulty(t, func(_ context.Context, method string) error {
		if name := failing.Load(); name != nil && *name == method {
			return schema.Errorf(schema.CodeUnavailable, "down")
		}
		return nil
	})
	path := s.signedIn(t).share(t)
	reader := s.browser(t)
	reader.get(path).want(t, http.StatusOK)
	for method, text := range map[string]string{"Report": "This report cannot be shown at the moment",
		"ShareByDigest": "The link store cannot be reached"} {
		failing.Store(&method)
		reader.get(path+"?browser="+method).want(t, http.StatusServiceUnavailable, text)
	}
	method := "Report"
	failing.Store(&method)
	reader.get(path).want(t, http.StatusOK, "Clicks on all links")
	if secret := path[strings.LastIndexByte(path, '/')+1:]; strings.Contains(s.log.String(), secret) ||
		!strings.Contains(s.log.String(), "/dashboard/shared/…") {
		t.Errorf("the log has the secret, or no error: %s", s.log)
	}
}

// TestReaderHoldsNobodyUp lets a reading of a shared report hang. The owner's reports do not wait for it.
func TestReaderHoldsNobodyUp(t *testing.T) {
	var armed atomic.Bool
	hangs, release := make(chan struct{}), make(chan struct{})
	s := startFaulty(t, func(ctx context.Context, method string) error {
		if method == "Report" && armed.CompareAndSwap(true, false) {
			close(hangs)
			<-release
		}
		return nil
	})
	s.count(t, click{link: s.addLink(t, "sale", "https://example.org/"), at: s.now(), times: 12})
	owner, reader := s.signedIn(t), s.browser(t)
	path := owner.share(t)
	armed.Store(true)
	var reading sync.WaitGroup
	reading.Go(func() { reader.get(path) })
	<-hangs
	owner.get("/dashboard/report").want(t, http.StatusOK, "Clicks 12")
	close(release)
	reading.Wait()
	reader.seen.want(t, http.StatusOK, "Clicks 12")
}

func TestReadersOfSharedReportsArePaced(t *testing.T) {
	reader := start(t).browser(t)
	for n := 0; reader.get("/dashboard/shared/"+strings.Repeat("A", 42)+"E").status == http.StatusNotFound; n++ {
		if n > 200 {
			t.Fatal("a network has no pace")
		}
	}
	reader.seen.want(t, http.StatusTooManyRequests)
}
