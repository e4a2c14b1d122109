package dashboard_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"linkstream/api/dashboard"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestEdit(t *testing.T) {
	s := start(t)
	s.addForeign(t)
	s.addLink(t, "sale", "https://example.org/")
	b := s.signedIn(t)
	const path = "/dashboard/links/0/sale"
	t.Run("changes the long URL, the title and the tags", func(t *testing.T) {
		page := b.get(path + "/edit")
		page.want(t, http.StatusOK, "Edit the link", "https://example.org/", "Delete the link")
		b.edit(path, "long_url", "example.org/new?a=1", "title", " Spring <b>sale ", "tags", "Spring, print  spring",
			"utm_source", "poster", "utm_campaign", "spring & more").wantTo(t, path)
		b.follow().want(t, http.StatusOK, "sho.rt/sale was saved.", "Spring <b>sale", "print spring",
			"leads to https://example.org/new?a=1&utm_source=poster&utm_campaign=spring+%26+more")
		link, err := schema.FindLink(t.Context(), s.links, 0, "sale")
		testkit.Must(t, err)
		testkit.Equal(t, "tags", link.Tags, []string{"print", "spring"})
		testkit.Equal(t, "title", link.Title, "Spring <b>sale")
		page = b.get("/dashboard/links")
		page.want(t, http.StatusOK, "Spring <b>sale", "print spring")
		wantHarmless(t, page)
		page = b.get(path + "/edit")
		if !strings.Contains(page.body, `value="Spring &lt;b&gt;sale"`) ||
			!strings.Contains(page.body, `value="print spring"`) {
			t.Errorf("the form does not have what was saved:\n%s", page.body)
		}
		b.edit(path, "long_url", "https://example.org/", "title", "", "tags", "").wantTo(t, path)
		link, err = schema.FindLink(t.Context(), s.links, 0, "sale")
		if err != nil || link.Title != "" || len(link.Tags) > 0 || link.URL != "https://example.org/" {
			t.Errorf("not cleared: %+v, %v", link, err)
		}
	})
	t.Run("names each problem at its field, and keeps the text", func(t *testing.T) {
		page := b.edit(path, "long_url", "ftp://example.org/", "title", strings.Repeat("x", 201), "tags", "gut schön",
			"utm_source", "poster")
		page.want(t, http.StatusUnprocessableEntity, "The destination must begin", "The title must have at most 200",
			"Each tag must have 1 to 32 characters")
		for _, part := range []string{`id="long_url-problem"`, `id="title-problem"`, `id="tags-problem"`,
			`>ftp://example.org/</textarea>`,
			`value="gut schön"`, `value="poster"`, `aria-describedby="tags-problem tags-hint" aria-invalid="true"`} {
			if !strings.Contains(page.body, part) {
				t.Errorf("no %s in\n%s", part, page.body)
			}
		}
		if link, err := schema.FindLink(t.Context(), s.links, 0, "sale"); err != nil || link.URL != "https://example.org/" {
			t.Errorf("%+v, %v", link, err)
		}
	})
	t.Run("creates links with titles and tags", func(t *testing.T) {
		b.post("/dashboard/links", "long_url", "https://example.org/#top", "custom_alias", "tagged", "title", "A title",
			"tags", "one two", "utm_medium", "email").want(t, http.StatusSeeOther)
		link, err := schema.FindLink(t.Context(), s.links, 0, "tagged")
		if err != nil || link.Title != "A title" || len(link.Tags) != 2 ||
			link.URL != "https://example.org/?utm_medium=email#top" {
			t.Errorf("%+v, %v", link, err)
		}
		page := b.post("/dashboard/links", "long_url", "https://example.org/", "tags", "schön", "title", "kept")
		page.want(t, http.StatusUnprocessableEntity, "Each tag must have 1 to 32 characters")
		if !strings.Contains(page.body, `<details class="more" open>`) || !strings.Contains(page.body, `value="kept"`) {
			t.Errorf("the fields are closed:\n%s", page.body)
		}
	})
	t.Run("sets the expiry, the expired URL and the query", func(t *testing.T) {
		b.edit(path, "long_url", "https://example.org/", "expires_at", "2099-03-01T12:30", "expired_url", "example.org/late",
			"forward_query", "true").wantTo(t, path)
		b.follow().want(t, http.StatusOK, "expires 1 Mar 2099, 12:30", "then leads to https://example.org/late",
			"passes on the visitor's query string")
		link, err := schema.FindLink(t.Context(), s.links, 0, "sale")
		if err != nil || !link.ExpiresAt.Equal(utc("2099-03-01T12:30:00Z")) ||
			link.ExpiredURL != "https://example.org/late" || !link.ForwardQuery {
			t.Fatalf("%+v, %v", link, err)
		}
		for _, part := range []string{`value="2099-03-01T12:30"`, `value="https://example.org/late"`,
			`value="true" checked`} {
			if page := b.get(path + "/edit"); !strings.Contains(page.body, part) {
				t.Errorf("the form does not have %s:\n%s", part, page.body)
			}
		}
		for _, at := range []string{"2020-01-01T00:00", "tomorrow", "2099-03-01"} {
			page := b.edit(path, "long_url", "https://example.org/", "expires_at", at)
			page.want(t, http.StatusUnprocessableEntity, "The time of expiry must")
			if !strings.Contains(page.body, `value="`+at+`"`) || !strings.Contains(page.body, `id="expires_at-problem"`) {
				t.Errorf("%q: %s", at, page.body)
			}
		}
		past := utc("2026-01-02T03:04:05Z")
		testkit.Must(t, s.links.UpdateLink(t.Context(), &link, schema.LinkEdit{ExpiresAt: &past}, time.Now()))
		b.get("/dashboard/links").want(t, http.StatusOK, "expired")
		b.get(path).want(t, http.StatusOK, "expired 2 Jan 2026, 03:04", "led to https://example.org/",
			"now leads to https://example.org/late")
		b.edit(path, "long_url", "https://example.org/2", "expires_at", "2026-01-02T03:04:05").wantTo(t, path) // as it was
		link, err = schema.FindLink(t.Context(), s.links, 0, "sale")
		if err != nil || !link.ExpiresAt.Equal(past) || link.ExpiredURL != "" || link.ForwardQuery ||
			link.URL != "https://example.org/2" {
			t.Errorf("%+v, %v", link, err)
		}
		b.edit(path, "long_url", "https://example.org/", "expires_at", "").wantTo(t, path)
		b.follow().want(t, http.StatusOK, "on created")
		b.post("/dashboard/links", "long_url", "https://example.org/", "custom_alias", "soon-over", "expires_at",
			"2099-03-01T12:30:07", "expired_url", "example.org").want(t, http.StatusSeeOther)
		link, err = schema.FindLink(t.Context(), s.links, 0, "soon-over")
		if err != nil || !link.ExpiresAt.Equal(utc("2099-03-01T12:30:07Z")) || link.ExpiredURL != "https://example.org" {
			t.Errorf("%+v, %v", link, err)
		}
		b.post("/dashboard/links", "long_url", "https://example.org/", "expires_at", "2020-01-01T00:00").want(t,
			http.StatusUnprocessableEntity, "The time of expiry must be in the future")
		testkit.Must(t, s.links.DeleteLink(t.Context(), link, time.Now()))
	})
	t.Run("deletes a link, whose alias is its owner's", func(t *testing.T) {
		b.post(path+"/delete").wantTo(t, "/dashboard/links")
		b.follow().want(t, http.StatusOK, "sho.rt/sale was deleted.", "1 link")
		for _, gone := range []string{path, path + "/edit", path + "?part=report"} {
			b.get(gone).want(t, http.StatusNotFound)
		}
		b.post(path+"/delete").want(t, http.StatusNotFound)
		b.post("/dashboard/links", "long_url", "https://example.org/again", "custom_alias", "sale").want(t,
			http.StatusSeeOther)
	})
	t.Run("leaves the links of others alone", func(t *testing.T) {
		b.get("/dashboard/links/0/theirs/edit").want(t, http.StatusNotFound)
		b.post("/dashboard/links/0/theirs/edit", "long_url", "https://example.org/").want(t, http.StatusNotFound)
		b.post("/dashboard/links/0/theirs/delete").want(t, http.StatusNotFound)
		if link, err := schema.FindLink(t.Context(), s.links, 0, "theirs"); err != nil ||
			link.URL != "https://other.example/" || link.Stopped == schema.Deleted {
			t.Errorf("%+v, %v", link, err)
		}
	})
}

func TestWithCampaign(t *testing.T) {
	for _, c := range []struct{ url, source, want string }{
		{"https://example.org", "a", "https://example.org?utm_source=a"},
		{"https://example.org/?b=2&a=1#x?y", "a b&c=ü", "https://example.org/?b=2&a=1&utm_source=a+b%26c%3D%C3%BC#x?y"},
		{"https://example.org/?utm_source=old&a=%20&utm_source=older", "new", "https://example.org/?a=%20&utm_source=new"},
		{"https://example.org/?#", "a", "https://example.org/?utm_source=a#"},
		{"https://example.org/?utm_source=old#x", "-", "https://example.org/#x"},
		{"https://example.org/?utm_source=old&b=1", "-", "https://example.org/?b=1"},
		{"https://example.org/?a", "", "https://example.org/?a"},
		{"https://example.org/%zz", "a", "https://example.org/%zz"}, {"nothing", "a", "nothing"}, {"", "a", ""},
	} {
		parameters := map[string]string{"utm_source": c.source}
		switch c.source {
		case "":
			parameters = nil
		case "-":
			parameters["utm_source"] = ""
		}
		if got := dashboard.WithCampaign(c.url, parameters); got != c.want {
			t.Errorf("%q with %q: got %q, want %q", c.url, c.source, got, c.want)
		}
	}
}

func TestCampaignFields(t *testing.T) {
	s := start(t)
	s.addLink(t, "sale", "https://example.org/?utm_source=poster&a=1&utm_term=x")
	b := s.signedIn(t)
	const path = "/dashboard/links/0/sale"
	wantURL := func(want string) {
		t.Helper()
		link, err := schema.FindLink(t.Context(), s.links, 0, "sale")
		testkit.Must(t, err)
		testkit.Equal(t, "long URL", link.URL, want)
	}
	page := b.get(path + "/edit")
	for _, part := range []string{`name="utm_source" type="text" autocomplete="off" autocapitalize="none" ` +
		`spellcheck="false" placeholder="such as newsletter" value="poster"`, `value="x"`} {
		if !strings.Contains(page.body, part) {
			t.Errorf("no %s", part)
		}
	}
	b.edit(path, "long_url", "https://example.org/?utm_source=poster&a=2&utm_term=x", "utm_source", "poster", "utm_medium",
		"", "utm_term", "")
	wantURL("https://example.org/?utm_source=poster&a=2")
	b.edit(path, "long_url", "https://example.org/?utm_source=typed", "utm_source", "poster")
	wantURL("https://example.org/?utm_source=typed")
	b.edit(path, "long_url", "https://example.org/?utm_source=typed", "utm_source", "field")
	wantURL("https://example.org/?utm_source=field")
}

func TestNamesOfTags(t *testing.T) {
	s := start(t)
	link := s.addLink(t, "sale", "https://example.org/")
	tags := []string{"a", "b"}
	testkit.Must(t, s.links.UpdateLink(t.Context(), &link, schema.LinkEdit{Tags: &tags}, link.CreatedAt))
	testkit.Equal(t, "names", s.signedIn(t).get("/dashboard/tags.txt").body, "a\nb\n")
}
