package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

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
		b.get("/dashboard").want(t, http.StatusOK, "Today 4 3 yesterday", shown(today)+" 4 0", shown(yesterday)+" 3 0",
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
				"A time zone has a name such as Europe/Berlin")
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
