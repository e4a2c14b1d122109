package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

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
		b.post(path+"/edit", "long_url", "example.org/new?a=1", "title", " Spring <b>sale ", "tags", "Spring, print  spring",
			"utm_source", "poster", "utm_campaign", "spring & more").wantTo(t, path)
		b.follow().want(t, http.StatusOK, "sho.rt/sale was saved.", "Spring <b>sale", "print spring",
			"leads to https://example.org/new?a=1&utm_source=poster&utm_campaign=spring+%26+more")
		link, err := s.links.Link(t.Context(), 0, "sale")
		testkit.Must(t, err)
		testkit.Equal(t, "tags", link.Tags, []string{"print", "spring"})
		testkit.Equal(t, "title", link.Title, "Spring <b>sale")
		page = b.get("/dashboard/links")
		page.want(t, http.StatusOK, "Spring <b>sale", "print spring")
		wantHarmless(t, page)
		page = b.get(path + "/edit")
		if !strings.Contains(page.body, `value="Spring &lt;b&gt;sale"`) || !strings.Contains(page.body, `value="print spring"`) {
			t.Errorf("the form does not have what was saved:\n%s", page.body)
		}
		b.post(path+"/edit", "long_url", "https://example.org/", "title", "", "tags", "").wantTo(t, path)
		link, err = s.links.Link(t.Context(), 0, "sale")
		if err != nil || link.Title != "" || len(link.Tags) > 0 || link.URL != "https://example.org/" {
			t.Errorf("not cleared: %+v, %v", link, err)
		}
	})
	t.Run("says beside each field what is wrong, and keeps the text", func(t *testing.T) {
		page := b.post(path+"/edit", "long_url", "ftp://example.org/", "title", strings.Repeat("x", 201), "tags", "gut schön",
			"utm_source", "poster")
		page.want(t, http.StatusUnprocessableEntity, "The long URL must begin with http", "The title must have at most 200",
			"Each tag must have 1 to 32 characters")
		for _, part := range []string{`id="long_url-problem"`, `id="title-problem"`, `id="tags-problem"`, `>ftp://example.org/</textarea>`,
			`value="gut schön"`, `value="poster"`, `aria-describedby="tags-problem tags-hint" aria-invalid="true"`} {
			if !strings.Contains(page.body, part) {
				t.Errorf("no %s in\n%s", part, page.body)
			}
		}
		if link, err := s.links.Link(t.Context(), 0, "sale"); err != nil || link.URL != "https://example.org/" {
			t.Errorf("%+v, %v", link, err)
		}
	})
	t.Run("creates links with titles and tags", func(t *testing.T) {
		b.post("/dashboard/links", "long_url", "https://example.org/#top", "custom_alias", "tagged", "title", "A title", "tags", "one two",
			"utm_medium", "email").want(t, http.StatusSeeOther)
		link, err := s.links.Link(t.Context(), 0, "tagged")
		if err != nil || link.Title != "A title" || len(link.Tags) != 2 || link.URL != "https://example.org/?utm_medium=email#top" {
			t.Errorf("%+v, %v", link, err)
		}
		page := b.post("/dashboard/links", "long_url", "https://example.org/", "tags", "schön", "title", "kept")
		page.want(t, http.StatusUnprocessableEntity, "Each tag must have 1 to 32 characters")
		if !strings.Contains(page.body, `<details class="more" open>`) || !strings.Contains(page.body, `value="kept"`) {
			t.Errorf("the fields are closed:\n%s", page.body)
		}
	})
	t.Run("deletes a link, whose alias is its owner's", func(t *testing.T) {
		b.post(path+"/delete").wantTo(t, "/dashboard/links")
		b.follow().want(t, http.StatusOK, "sho.rt/sale was deleted.", "1 link")
		for _, gone := range []string{path, path + "/edit", path + "?part=report"} {
			b.get(gone).want(t, http.StatusNotFound)
		}
		b.post(path + "/delete").want(t, http.StatusNotFound)
		b.post("/dashboard/links", "long_url", "https://example.org/again", "custom_alias", "sale").want(t, http.StatusSeeOther)
	})
	t.Run("leaves the links of others alone", func(t *testing.T) {
		b.get("/dashboard/links/0/theirs/edit").want(t, http.StatusNotFound)
		b.post("/dashboard/links/0/theirs/edit", "long_url", "https://example.org/").want(t, http.StatusNotFound)
		b.post("/dashboard/links/0/theirs/delete").want(t, http.StatusNotFound)
		if link, err := s.links.Link(t.Context(), 0, "theirs"); err != nil || link.URL != "https://other.example/" || link.Stopped == schema.Deleted {
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
		{"https://example.org/?a", "", "https://example.org/?a"},
		{"https://example.org/%zz", "a", "https://example.org/%zz"}, {"nothing", "a", "nothing"}, {"", "a", ""},
	} {
		parameters := map[string]string{"utm_source": c.source}
		if c.source == "" {
			parameters = nil
		}
		if got := dashboard.WithCampaign(c.url, parameters); got != c.want {
			t.Errorf("%q with %q: got %q, want %q", c.url, c.source, got, c.want)
		}
	}
}
