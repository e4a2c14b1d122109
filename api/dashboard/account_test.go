package dashboard_test

import (
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"linkstream/api/dashboard"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestChangePassword(t *testing.T) {
	const fresh = "another horse battery"
	s := start(t)
	other := s.signedIn(t)
	b := s.signedIn(t)
	before := b.seen.cookie("linkstream").Value
	t.Run("refuses invalid input", func(t *testing.T) {
		for _, c := range []struct{ current, fresh, again, problem, field string }{
			{"wrong", fresh, fresh, "That is not your current password.", "current"},
			{password, "short", "short", "A password needs at least 8 characters", "new"},
			{password, strings.Repeat("x", 1025), strings.Repeat("x", 1025), "at most 1024", "new"},
			{password, fresh, "something else", "The passwords do not match", "again"},
		} {
			a := b.post("/dashboard/account/password", "current", c.current, "new", c.fresh, "again", c.again)
			a.want(t, http.StatusUnprocessableEntity, c.problem, "Sessions")
			if !regexp.MustCompile(`name="` + c.field + `"[^>]*aria-invalid="true"`).MatchString(a.body) {
				t.Errorf("%s is not marked", c.field)
			}
		}
		other.get("/dashboard").want(t, http.StatusOK)
	})
	t.Run("ends all other sessions, and this one goes on with a new secret", func(t *testing.T) {
		b.post("/dashboard/account/password", "current", password, "new", fresh, "again", fresh).
			wantTo(t, "/dashboard/account")
		b.follow().want(t, http.StatusOK, "Your password was changed", "This browser")
		if strings.Contains(b.get("/dashboard/account").text(), "Your password was changed") {
			t.Error("the notice is shown twice")
		}
		other.get("/dashboard").wantTo(t, "/dashboard/sign-in")
		s.wantEnded(t, before)
	})
	t.Run("replaces the password", func(t *testing.T) {
		s.browser(t).signIn(email, password).want(t, http.StatusUnprocessableEntity)
		s.browser(t).signIn(email, fresh).wantTo(t, "/dashboard")
	})
	t.Run("is limited: a stolen session is no way to guess the password", func(t *testing.T) {
		s := start(t)
		b := s.signedIn(t)
		s.attempt(t, dashboard.PasswordByAccount, id(s.account.ID), 9)
		for _, status := range []int{http.StatusUnprocessableEntity, http.StatusTooManyRequests} {
			b.post("/dashboard/account/password", "current", "wrong", "new", fresh, "again", fresh).want(t, status)
		}
	})
}

// The page has a field of each name in schema.Profile. Europe/Vienna is a valid value of all.
func TestProfile(t *testing.T) {
	s := start(t)
	b := s.signedIn(t)
	const value = "Europe/Vienna"
	for _, field := range reflect.VisibleFields(reflect.TypeFor[schema.Profile]()) {
		var want schema.Profile
		reflect.ValueOf(&want).Elem().FieldByIndex(field.Index).SetString(value)
		name := testkit.SnakeCase(field.Name)
		b.post("/dashboard/account/profile", name, value).wantTo(t, "/dashboard/account")
		page := b.follow()
		page.want(t, http.StatusOK, "Your time zone was saved.")
		if !regexp.MustCompile(`<input [^>]*name="` + name + `"[^>]* value="` + value + `"`).MatchString(page.body) {
			t.Errorf("the page does not show %s", name)
		}
		account, err := s.links.AccountByEmail(t.Context(), email)
		testkit.Must(t, err)
		testkit.Equal(t, "profile with "+name, account.Profile, want)
	}
}

func TestSessionsOfAnAccount(t *testing.T) {
	s := start(t)
	s.addAccount(t, "vicky@example.org")
	b := s.signedIn(t)
	phone := s.browser(t)
	phone.agent = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) " +
		"Version/18.0 Mobile/15E148 Safari/604.1"
	phone.signIn(email, password)
	vicky := s.browser(t)
	vicky.signIn("vicky@example.org", password)
	field := regexp.MustCompile(`name="session" value="(\d+)"`)
	ids := func() (ids []string) {
		for _, match := range field.FindAllStringSubmatch(b.get("/dashboard/account").body, -1) {
			ids = append(ids, match[1])
		}
		return ids
	}
	t.Run("are listed with their browsers", func(t *testing.T) {
		b.get("/dashboard/account").want(t, http.StatusOK, "Firefox on Linux This browser", "Safari on iOS", email)
		if got := ids(); len(got) != 2 {
			t.Errorf("%q", got)
		}
	})
	t.Run("cannot be ended by others", func(t *testing.T) {
		vicky.get("/dashboard/account")
		for _, id := range append(ids(), "0", "-1", "x", "99999999999999999999") {
			vicky.post("/dashboard/account/sessions/end", "session", id).wantTo(t, "/dashboard/account")
		}
		phone.get("/dashboard").want(t, http.StatusOK)
	})
	t.Run("end one by one", func(t *testing.T) {
		b.post("/dashboard/account/sessions/end", "session", ids()[0]).wantTo(t, "/dashboard/account")
		b.follow().want(t, http.StatusOK, "The session was signed out.")
		phone.get("/dashboard").wantTo(t, "/dashboard/sign-in")
	})
	t.Run("end all at once but this one", func(t *testing.T) {
		others := []*browser{s.signedIn(t), s.signedIn(t)}
		b.post("/dashboard/account/sessions/end-others").wantTo(t, "/dashboard/account")
		for _, other := range others {
			other.get("/dashboard").wantTo(t, "/dashboard/sign-in")
		}
		vicky.get("/dashboard").want(t, http.StatusOK)
		if got := ids(); len(got) != 1 {
			t.Errorf("%q", got)
		}
	})
	t.Run("are signed out of in the list, too", func(t *testing.T) {
		b.post("/dashboard/account/sessions/end", "session", ids()[0]).wantTo(t, "/dashboard/sign-in?notice=signed-out")
		b.get("/dashboard").wantTo(t, "/dashboard/sign-in")
		b.send("POST", "/dashboard/account/password", url.Values{}).wantTo(t,
			"/dashboard/sign-in?notice=ended&next=%2Fdashboard%2Faccount")
		b.follow().want(t, http.StatusOK, "Your session ended")
	})
	t.Run("survive a kill: nothing of them is kept in the process", func(t *testing.T) {
		second := *s
		second.base = run(t, s.links, s.clicks, nil, s.log)
		b := second.browser(t)
		b.fields.Set("Cookie", "linkstream="+vicky.session())
		b.get("/dashboard/account").want(t, http.StatusOK, "vicky@example.org")
	})
}

func TestNoticesCannotBeForged(t *testing.T) {
	s := start(t)
	b := s.signedIn(t)
	b.post("/dashboard/account/sessions/end-others")
	notice := b.seen.cookie("linkstream-notice")
	if notice == nil {
		t.Fatal("no notice")
	}
	secret := b.session()
	_, mac, _ := strings.Cut(notice.Value, ".")
	for _, value := range []string{"Rm9yZ2Vk." + mac, "Rm9yZ2Vk", "Rm9yZ2Vk.", "%%%." + mac, "."} { // "Forged"
		forged := s.browser(t)
		forged.fields.Set("Cookie", "linkstream="+secret+"; linkstream-notice="+value)
		page := forged.get("/dashboard")
		page.want(t, http.StatusOK)
		if strings.Contains(page.text(), "Forged") || strings.Contains(page.body, `class="notice`) {
			t.Errorf("%q shows %s", value, page.text())
		}
	}
}
