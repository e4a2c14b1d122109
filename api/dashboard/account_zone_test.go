package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"linkstream/api/apiservice"
	"linkstream/api/dashboard"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// TestOneClock asks for each page of an account whose days begin 14 hours before UTC days.
func TestOneClock(t *testing.T) {
	s := start(t)
	b := s.signedIn(t)
	zone, err := time.LoadLocation("Pacific/Kiritimati")
	testkit.Must(t, err)
	b.get("/dashboard").want(t, http.StatusOK, "Times are in UTC. Change")
	b.post("/dashboard/account/profile", "time_zone", zone.String()).wantTo(t, "/dashboard/account")
	b.follow().want(t, http.StatusOK, "Days and times are in "+zone.String(), "Times are in "+zone.String())
	midnight := s.now().In(zone).Truncate(time.Second)
	midnight = time.Date(midnight.Year(), midnight.Month(), midnight.Day(), 0, 0, 0, 0, zone)
	today, yesterday := midnight.Format(time.DateOnly), midnight.AddDate(0, 0, -1).Format(time.DateOnly)
	link := s.addLinkAt(t, "sale", "https://example.org/", midnight.AddDate(0, 0, -20))
	s.count(t, click{link: link, at: midnight.Add(-time.Second), times: 3}, click{link: link, at: midnight, times: 4})
	path := "/dashboard/links/0/sale"
	shown := func(date string) string {
		at, err := time.Parse(time.DateOnly, date)
		testkit.Must(t, err)
		return at.Format("2 Jan 2006")
	}

	t.Run("counts the same days on each page", func(t *testing.T) {
		b.get("/dashboard").want(t, http.StatusOK, "Today 4 ", shown(today)+" 4 0", shown(yesterday)+" 3 0",
			"Days are in "+zone.String())
		b.get(path).want(t, http.StatusOK, shown(today)+" 4 0", shown(yesterday)+" 3 0", "Days are in "+zone.String())
		b.get(path+"?from="+today).want(t, http.StatusOK, "Clicks 4")
		csv := b.get(path + "/clicks.csv").body
		if !strings.Contains(csv, yesterday+",3,0,3,") || !strings.Contains(csv, today+",4,0,4,") {
			t.Error(csv)
		}
	})
	t.Run("shows and reads the time of expiry in it", func(t *testing.T) {
		at := time.Date(2099, 3, 1, 8, 30, 0, 0, zone)
		b.edit(path, "long_url", "https://example.org/", "expires_at", "2099-03-01T08:30").wantTo(t, path)
		saved, err := schema.FindLink(t.Context(), s.links, 0, "sale")
		testkit.Must(t, err)
		if !saved.ExpiresAt.Equal(at) {
			t.Errorf("expires at %v, want %v", saved.ExpiresAt, at)
		}
		b.get(path).want(t, http.StatusOK, "expires 1 Mar 2099, 08:30")
		if page := b.get(path + "/edit").body; !strings.Contains(page, `value="2099-03-01T08:30"`) ||
			!strings.Contains(page, ">"+zone.String()+", optional<") {
			t.Error(page)
		}
	})
	t.Run("is the browser's again, and names no zone that does not exist", func(t *testing.T) {
		for _, wrong := range []string{"Mars", "Local", "../etc/passwd", strings.Repeat("x", 100)} {
			b.post("/dashboard/account/profile", "time_zone", wrong).want(t, http.StatusUnprocessableEntity,
				"Enter a time zone such as Europe/Berlin")
		}
		b.post("/dashboard/account/profile", "time_zone", "").wantTo(t, "/dashboard/account")
		b.follow().want(t, http.StatusOK, "Times are in UTC")
		b.fields.Set("Cookie", "linkstream-zone=Asia/Tokyo")
		b.get("/dashboard").want(t, http.StatusOK, "Times are in Asia/Tokyo")
	})
}

func TestSignUpKeepsTheTimeZone(t *testing.T) {
	s := start(t, openSignUp)
	for address, cookie := range map[string]string{"a@example.org": "Europe/Vienna", "b@example.org": "Mars"} {
		b := s.browser(t)
		b.fields.Set("Cookie", "linkstream-zone="+cookie)
		b.send("POST", "/dashboard/sign-up", url.Values{"email": {address}, "password": {"a long password"}}).wantTo(t,
			"/dashboard")
		account, err := s.links.AccountByEmail(t.Context(), address)
		testkit.Must(t, err)
		if want := map[bool]string{true: cookie}[cookie != "Mars"]; account.TimeZone != want {
			t.Errorf("%s: %q, want %q", cookie, account.TimeZone, want)
		}
	}
}

// TestDaysWithoutMidnight asks for pages on days around which a zone has skipped a day, or midnight.
func TestDaysWithoutMidnight(t *testing.T) {
	for _, c := range []struct{ zone, now, yesterday string }{
		{"Pacific/Apia", "2011-12-31T10:00:00+14:00", "2011-12-30"}, // which did not exist
		{"Pacific/Apia", "2012-01-05T10:00:00+14:00", "2012-01-04"},
		{"America/Sao_Paulo", "2018-11-04T10:00:00-02:00", "2018-11-03"}, // begins at 01:00
		{"Asia/Amman", "2021-10-29T10:00:00+02:00", "2021-10-28"},        // has 00:00 twice
	} {
		t.Run(c.zone+" on "+c.now, func(t *testing.T) {
			now, err := time.Parse(time.RFC3339, c.now)
			testkit.Must(t, err)
			s := start(t, func(cfg *apiservice.Config) { cfg.Now = func() time.Time { return now } })
			zone, err := time.LoadLocation(c.zone)
			testkit.Must(t, err)
			b := s.signedIn(t)
			b.post("/dashboard/account/profile", "time_zone", zone.String()).wantTo(t, "/dashboard/account")
			link := s.addLinkAt(t, "sale", "https://example.org/", now.AddDate(0, 0, -9))
			s.count(t, click{link: link, at: now.Add(-time.Hour), times: 4})
			path, today := "/dashboard/links/0/sale", now.In(zone).Format(time.DateOnly)
			b.get("/dashboard").want(t, http.StatusOK, "Today 4")
			b.get("/dashboard/links?from="+today+"&to="+today).want(t, http.StatusOK)
			for _, query := range []string{"", "?from=" + today, "?from=" + c.yesterday + "&to=" + c.yesterday,
				"?from=" + today + "&interval=hour", "?compare=year"} {
				page := b.get(path + query)
				if page.want(t, http.StatusOK); strings.Contains(page.body, "cannot be shown") {
					t.Errorf("%q: %s", query, page.body)
				}
			}
			for period, day := range map[string]string{"today": today, "yesterday": c.yesterday} {
				page := b.get(path + "?period=" + period)
				if page.want(t, http.StatusOK); !strings.Contains(page.body, `name="from" type="date" value="`+day+`"`) {
					t.Errorf("%s is not %s: %s", period, day, page.text())
				}
			}
		})
	}
}

func TestTimesThatClocksDoNotShow(t *testing.T) {
	for _, c := range []struct{ zone, typed, want string }{
		{"Europe/Berlin", "2027-03-28T02:30", "2027-03-28T03:00:00+02:00"},
		{"America/New_York", "2027-03-14T02:30:15", "2027-03-14T03:00:00-04:00"},
		{"America/Havana", "2027-03-14T00:00", "2027-03-14T01:00:00-04:00"},
		{"Australia/Lord_Howe", "2027-10-03T02:15", "2027-10-03T02:30:00+11:00"},
		{"Pacific/Apia", "2011-12-30T12:00", "2011-12-31T00:00:00+14:00"},
		{"America/New_York", "2027-03-14T03:00", "2027-03-14T03:00:00-04:00"},
		{"UTC", "2027-03-14T02:30:15.5", "2027-03-14T02:30:15Z"},
	} {
		zone, err := time.LoadLocation(c.zone)
		testkit.Must(t, err)
		at, err := dashboard.ParseExpiry(c.typed, zone)
		testkit.Must(t, err)
		testkit.Equal(t, c.typed+" in "+c.zone, at.Format(time.RFC3339), c.want)
	}
	if _, err := dashboard.ParseExpiry("2027-03-14", time.UTC); err == nil {
		t.Error("a day is a time")
	}
}
