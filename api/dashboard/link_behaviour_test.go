package dashboard_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// ruled are the fields of a form with a rule, two variants and a card.
var ruled = []string{
	"rules.0.name", "phones", "rules.0.url", "m.example.org/", "rules.0.if.device", "Mobile, tablet", "rules.0.if.country",
	"at", "rules.0.if.query", "ref=a+b&id=*", "rules.0.if.from", "2030-01-31T12:00",
	"variants.0.name", "red", "variants.0.url", "example.org/red", "variants.0.weight", "70",
	"variants.1.name", "blue", "variants.1.url", "example.org/blue", "variants.1.weight", "30",
	"card.title", "A card", "card.image", "example.org/i.png", "max_clicks", " 1000",
	"path_mode", "append",
}

// wantInput requires a field of a page with a value.
func wantInput(t *testing.T, page answer, name, value string) {
	t.Helper()
	_, input, found := strings.Cut(page.body, `<input id="`+name+`"`)
	input, _, _ = strings.Cut(input, ">")
	if !found || !strings.Contains(input, `value="`+value+`"`) {
		t.Errorf("no field %s with %q", name, value)
	}
}

// wantDevices requires that these devices of a rule are checked, and no others.
func wantDevices(t *testing.T, page answer, rule string, devices ...string) {
	t.Helper()
	var got []string
	for _, device := range []string{"mobile", "tablet", "desktop"} {
		name := rule + ".if.device"
		if strings.Contains(page.body, `id="`+name+"."+device+`" name="`+name+`" value="`+device+`" checked`) {
			got = append(got, device)
		}
	}
	testkit.Equal(t, "devices of "+rule, got, devices)
}

// TestRuleWords requires that the form takes words of people, whether a script helps them or not.
func TestRuleWords(t *testing.T) {
	s := start(t)
	s.addLink(t, "words", "https://example.org/")
	b := s.signedIn(t)
	const path = "/dashboard/links/0/words"
	rule := func(field, text string) []string {
		return []string{"long_url", "https://example.org/", "rules.0.url", "example.org/r", "rules.0.if." + field, text}
	}
	for _, c := range []struct {
		field, typed string
		want         schema.Conditions
	}{
		{"device", "phone", schema.Conditions{Device: []string{"mobile"}}},
		{"device", "Phones, laptop, mobile", schema.Conditions{Device: []string{"mobile", "desktop"}}},
		{"country", "germany, AT, Germany", schema.Conditions{Country: []string{"DE", "AT"}}},
		{"country", "USA, uk", schema.Conditions{Country: []string{"US", "GB"}}},
		{"language", "French, de-AT", schema.Conditions{Language: []string{"fr", "de-AT"}}},
		{"browser", "chrome, tiktok", schema.Conditions{Browser: []string{"Chrome", "TikTok App"}}},
		{"os", "iphone, macos, windows phone", schema.Conditions{OS: []string{"iOS", "macOS", "Windows Phone"}}},
	} {
		b.edit(path, rule(c.field, c.typed)...).wantTo(t, path)
		link, err := schema.FindLink(t.Context(), s.links, 0, "words")
		testkit.Must(t, err)
		want := []schema.Rule{{Name: "rule-1", URL: "https://example.org/r", If: c.want}}
		testkit.Equal(t, c.typed, link.Behaviour.Rules, want)
	}
	b.edit(path, append(rule("device", "mobile"), "rules.0.if.device", "tablet")...).wantTo(t, path) // two boxes
	wantDevices(t, b.get(path+"/edit"), "rules.0", "mobile", "tablet")
	for _, field := range []string{"os", "browser", "country", "language"} {
		page := b.edit(path, rule(field, "Nowhere, Nobody")...)
		page.want(t, http.StatusUnprocessableEntity, "Not known: Nowhere, Nobody.")
		if !strings.Contains(page.body, `id="rules.0.if.`+field+`-problem"`) {
			t.Errorf("%s: the problem is elsewhere", field)
		}
	}
	page := b.edit(path, "long_url", "https://example.org/", "variants.0.url", "example.org/a", "variants.0.weight", "50",
		"variants.1.url", "example.org/b", "variants.1.weight", "40")
	page.want(t, http.StatusUnprocessableEntity, "Percentages must add up to 100.", "50 + 40 = 90 %")
	if !strings.Contains(page.body, `id="variants.0.weight-problem"`) {
		t.Error("no field of a weight has the problem")
	}
}

func TestChips(t *testing.T) {
	s := start(t)
	s.addLink(t, "chips", "https://example.org/")
	b := s.signedIn(t)
	const path = "/dashboard/links/0/chips"
	fields := append([]string{"long_url", "https://example.org/", "password", "open sesame"}, ruled...)
	b.edit(path, fields...).wantTo(t, path)
	want := []string{"Password", "1,000 of 1,000 left", "A/B 70/30", "1 rule", "Paths: append"}
	b.get(path).want(t, http.StatusOK, want...)
	b.get("/dashboard/links").want(t, http.StatusOK, want...)
}

// What is left of limits is asked for once for all rows, and only if one has a limit.
func TestChipsOfRows(t *testing.T) {
	var asked atomic.Int64
	s := startFaulty(t, func(_ context.Context, method string) error {
		if method == "LimitUse" {
			asked.Add(1)
		}
		return nil
	})
	link := s.addLink(t, "plain", "https://example.org/")
	b := s.signedIn(t)
	b.get("/dashboard/links")
	testkit.Equal(t, "questions without a limit", asked.Load(), 0)
	end := s.now().AddDate(0, 1, 0).UTC()
	testkit.Must(t, s.links.UpdateLink(t.Context(), &link, schema.LinkEdit{ExpiresAt: &end}, link.CreatedAt))
	for _, hash := range []string{"some", "more"} {
		b.post("/dashboard/links", "long_url", "https://example.org/", "custom_alias", hash, "max_clicks", "100").
			want(t, http.StatusSeeOther)
	}
	page := b.get("/dashboard/links")
	page.want(t, http.StatusOK, "ends "+end.Format("2 Jan 2006"))
	testkit.Equal(t, "rows with a limit", strings.Count(page.text(), "100 of 100 left"), 2)
	testkit.Equal(t, "questions", asked.Load(), 1)
	b.get("/dashboard/links?part=counts").want(t, http.StatusOK)
	testkit.Equal(t, "questions of a poll", asked.Load(), 1)
}

func TestBehaviour(t *testing.T) {
	s := start(t)
	b := s.signedIn(t)
	const path = "/dashboard/links/0/ruled"
	extension := func(t *testing.T) *schema.Behaviour {
		t.Helper()
		link, err := schema.FindLink(t.Context(), s.links, 0, "ruled")
		testkit.Must(t, err)
		return link.Behaviour
	}
	t.Run("is created with a link", func(t *testing.T) {
		b.post("/dashboard/links", append([]string{"long_url", "https://example.org/", "custom_alias", "ruled"},
			ruled...)...).want(t, http.StatusSeeOther)
		e := extension(t)
		testkit.Equal(t, "rule", e.Rules, []schema.Rule{{Name: "phones", URL: "https://m.example.org/", If: schema.Conditions{
			Device: []string{"mobile", "tablet"}, Country: []string{"AT"}, Query: map[string]string{"ref": "a b", "id": "*"},
			From: 1896091200}}})
		image := "https://example.org/i.png"
		testkit.Equal(t, "card", e.Card, &schema.Card{Title: "A card", Image: &image})
		testkit.Equal(t, "limit", e.MaxClicks, int64(1000))
		testkit.Equal(t, "path mode", e.PathMode, schema.PathAppend)
		testkit.Equal(t, "variants", e.Variants, []schema.Variant{{Name: "red", URL: "https://example.org/red", Weight: 70},
			{Name: "blue", URL: "https://example.org/blue", Weight: 30}})
	})
	t.Run("is in the form as it was saved, with shares and a preview", func(t *testing.T) {
		page := b.get(path + "/edit")
		page.want(t, http.StatusOK, "Rule 1", "Variant 2", "As the domain says", "Image: https://example.org/i.png", "sho.rt")
		for name, value := range map[string]string{"rules.0.if.country": "Austria",
			"rules.0.if.query": "id=*&amp;ref=a&#43;b",
			"rules.0.if.from":  "2030-01-31T12:00", "variants.1.weight": "30", "card.title": "A card", "max_clicks": "1000"} {
			wantInput(t, page, name, value)
		}
		wantDevices(t, page, "rules.0", "mobile", "tablet")
		if !strings.Contains(page.body, `<option value="append" selected>`) {
			t.Error("the path mode is not chosen")
		}
		if !strings.Contains(page.body, `x="70.00%" width="30.00%"`) || strings.Contains(page.body, "rules.1.name") {
			t.Errorf("shares or rows are missing:\n%s", page.body)
		}
	})
	t.Run("has its times in the account's zone", func(t *testing.T) {
		b.post("/dashboard/account/profile", "time_zone", "Europe/Vienna").wantTo(t, "/dashboard/account")
		wantInput(t, b.get(path+"/edit"), "rules.0.if.from", "2030-01-31T13:00")
		before := extension(t).Text()
		// from 12:00, which is earlier
		b.edit(path, append([]string{"long_url", "https://example.org/"}, ruled...)...).wantTo(t, path)
		testkit.Equal(t, "from", extension(t).Rules[0].If.From, schema.Moment(1896091200-3600))
		b.post("/dashboard/account/profile", "time_zone", "").wantTo(t, "/dashboard/account")
		b.edit(path, append([]string{"long_url", "https://example.org/"}, ruled...)...).wantTo(t, path)
		testkit.Equal(t, "extension", extension(t).Text(), before)
	})
	t.Run("stays as it is if the form is sent as it was", func(t *testing.T) {
		before := extension(t).Text()
		b.edit(path, append([]string{"long_url", "https://example.org/other"}, ruled...)...).wantTo(t, path)
		testkit.Equal(t, "extension", extension(t).Text(), before)
	})
	t.Run("has buttons that add, move and remove rows, save nothing and keep the text", func(t *testing.T) {
		typed := append([]string{"long_url", "typed", "rules.1.name", "others", "rules.1.if.os", "iOS"}, ruled...)
		act := func(row string) answer {
			page := b.edit(path, append([]string{"row", row}, typed...)...)
			page.want(t, http.StatusOK, "Edit the link")
			if !strings.Contains(page.body, ">typed</textarea>") {
				t.Error("the text is gone")
			}
			return page
		}
		before := extension(t).Text()
		wantInput(t, act("add rules"), "rules.2.name", "")
		wantInput(t, act("add variants"), "variants.2.weight", "")
		moved := act("up rules 1")
		wantInput(t, moved, "rules.0.name", "others")
		wantDevices(t, moved, "rules.1", "mobile", "tablet")
		asked := act("condition rules 1")
		if strings.Contains(asked.body, `id="rules.1.if.language"`) {
			t.Error("a condition that nobody has chosen")
		}
		typed = append(typed, "rules.1.more", "if.language")
		wantInput(t, act("condition rules 1"), "rules.1.if.language", "")
		wantInput(t, act("down rules 0"), "rules.0.name", "others")
		removed := act("remove rules 0")
		wantInput(t, removed, "rules.0.if.os", "iOS")
		if strings.Contains(removed.body, "rules.1.name") {
			t.Error("the rule is still there")
		}
		for _, nonsense := range []string{"up rules 0", "down rules 1", "remove rules 99", "add", "x"} {
			wantInput(t, act(nonsense), "rules.0.name", "phones")
		}
		testkit.Equal(t, "extension", extension(t).Text(), before)
		page := b.post("/dashboard/links", "long_url", "typed", "row", "add variants", "back", "/dashboard")
		page.want(t, http.StatusOK, "Overview")
		wantInput(t, page, "variants.1.weight", "50")
	})
	t.Run("names each problem at its field", func(t *testing.T) {
		page := b.edit(path, "long_url", "https://example.org/", "rules.0.name", "Phones", "rules.0.if.os", "BeOS",
			"rules.1.name", "all", "variants.0.name", "red", "variants.0.weight", "most", "card.description", "no title",
			"max_clicks", "many", "path_mode", "keep")
		page.want(t, http.StatusUnprocessableEntity)
		for _, field := range []string{"rules.0.name", "rules.0.if.os", "rules.0.url", "rules.1.if", "variants", "card.title",
			"max_clicks", "path_mode"} {
			if !strings.Contains(page.body, `id="`+field+`-problem"`) {
				t.Errorf("no problem of %s in\n%s", field, page.text())
			}
		}
	})
	t.Run("asks for a password, keeps it, changes it and removes it", func(t *testing.T) {
		version := int64(0)
		for _, step := range []struct {
			fields []string
			want   string // of the version
		}{{[]string{"password", "open sesame"}, "new"}, {nil, "kept"}, {[]string{"password", "another"}, "new"},
			{[]string{"open", "true"}, "none"}} {
			b.edit(path, append(append([]string{"long_url", "https://example.org/"}, step.fields...), ruled...)...).wantTo(t,
				path)
			now := extension(t).Password
			got := map[bool]string{true: "kept", false: "new"}[now == version]
			if now == 0 {
				got = "none"
			}
			testkit.Equal(t, "version", got, step.want)
			version = now
			page := b.get(path + "/edit")
			if has := strings.Contains(page.body, "Remove the password"); has != (now != 0) ||
				strings.Contains(page.body, "sesame") {
				t.Error("the form says otherwise, or shows the password")
			}
		}
		page := b.edit(path, append([]string{"long_url", "https://example.org/", "password", "abc"}, ruled...)...)
		page.want(t, http.StatusUnprocessableEntity, "The password must have 4 to 128 characters")
	})
	t.Run("is not lost to an edit of another tab", func(t *testing.T) {
		page := b.post(path+"/edit",
			append([]string{"version", "stale", "long_url", "https://example.org/other", "rules.1.name", "late"}, ruled...)...)
		page.want(t, http.StatusUnprocessableEntity, "other rules, variants or another card")
	})
	t.Run("is removed with its rows", func(t *testing.T) {
		b.edit(path, "long_url", "https://example.org/").wantTo(t, path)
		if e := extension(t); !e.IsZero() {
			t.Errorf("%+v", e)
		}
	})
}
