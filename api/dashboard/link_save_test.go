package dashboard_test

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var versionField = regexp.MustCompile(`name="version" value="([^"]+)"`)

// version returns the version of the link in the form of a page.
func (a answer) version(t testing.TB) string {
	t.Helper()
	found := versionField.FindStringSubmatch(a.body)
	if found == nil {
		t.Fatalf("no version in\n%s", a.body)
	}
	return found[1]
}

// edit sends the form of a link as it is shown now, with the fields.
func (b *browser) edit(path string, fields ...string) answer {
	b.t.Helper()
	return b.post(path+"/edit", append(fields, "version", b.get(path+"/edit").version(b.t))...)
}

// TestEditConflict opens the form of a link twice.
func TestEditConflict(t *testing.T) {
	var before atomic.Pointer[func()] // is called before the next edit reaches the store
	s := startFaulty(t, func(_ context.Context, method string) error {
		if method != "UpdateLink" {
			return nil
		}
		if do := before.Swap(nil); do != nil {
			(*do)()
		}
		return nil
	}, unpaced)
	s.addLink(t, "sale", "https://example.org/")
	b := s.signedIn(t)
	const path = "/dashboard/links/0/sale"
	link := func() schema.Link {
		t.Helper()
		link, err := schema.FindLink(t.Context(), s.links, 0, "sale")
		testkit.Must(t, err)
		return link
	}
	seen := b.get(path + "/edit").version(t)
	testkit.Equal(t, "version of the same link", b.get(path+"/edit").version(t), seen)
	b.post(path+"/edit", "version", seen, "long_url", "https://first.example/", "title", "First", "tags", "a b",
		"expires_at", "2099-01-02T03:04", "expired_url", "https://late.example/", "forward_query", "true").wantTo(t, path)

	page := b.post(path+"/edit", "version", seen, "long_url", "second.example", "title", "Mine", "tags", "b, a")
	page.want(t, http.StatusUnprocessableEntity, "This link was changed after you opened the form",
		"Now: https://first.example/", "Now: First", "Now: 2099-01-02T03:04", "Now: https://late.example/", "Now: yes")
	for _, part := range []string{">second.example</textarea>", `value="Mine"`, `value="b, a"`,
		`aria-describedby="forward_query-problem" aria-invalid="true"`} {
		if !strings.Contains(page.body, part) {
			t.Errorf("no %s in\n%s", part, page.body)
		}
	}
	if strings.Contains(page.body, "tags-problem") {
		t.Error("the tags are those of the link")
	}
	testkit.Equal(t, "long URL after the conflict", link().URL, "https://first.example/")

	campaign := b.post(path+"/edit", "version", seen, "long_url", "https://first.example/", "utm_source", "poster")
	campaign.want(t, http.StatusUnprocessableEntity, "This link was changed", "Now: First")
	campaign.lacks(t, "Now: https://first.example/")
	invalid := b.post(path+"/edit", "version", page.version(t), "long_url", "ftp://second.example/")
	testkit.Equal(t, "version of a form with a mistake", invalid.version(t), page.version(t))
	b.post(path+"/edit", "version", page.version(t), "long_url", "https://second.example/", "title", "Mine", "tags",
		"b, a").wantTo(t, path)
	testkit.Equal(t, "title", link().Title, "Mine")

	t.Run("is asked for", func(t *testing.T) {
		b.post(path+"/edit", "long_url", "https://lost.example/").want(t, http.StatusUnprocessableEntity,
			"This link was changed")
	})
	t.Run("is a new link with the same hash", func(t *testing.T) {
		s.addLink(t, "anew", "https://example.org/")
		const path = "/dashboard/links/0/anew"
		seen := b.get(path + "/edit").version(t)
		was, err := schema.FindLink(t.Context(), s.links, 0, "anew")
		testkit.Must(t, err)
		testkit.Must(t, s.links.DeleteLink(t.Context(), was, time.Now()))
		s.addLink(t, "anew", "https://example.org/")
		b.post(path+"/edit", "version", seen, "long_url", "https://lost.example/").want(t, http.StatusUnprocessableEntity,
			"This link was changed")
	})
	t.Run("is each change of the link", func(t *testing.T) {
		for _, edit := range []schema.LinkEdit{{Title: new("x")}, {Tags: &[]string{"x"}}, {Active: new(false)},
			{ExpiresAt: new(utc("2099-03-01T12:30:00Z"))},
			{ExpiresAt: new(utc("2099-03-01T12:30:01Z"))}, {ExpiredURL: new("https://x.example/")}, {ForwardQuery: new(true)}} {
			seen := b.get(path + "/edit").version(t)
			was := link()
			testkit.Must(t, s.links.UpdateLink(t.Context(), &was, edit, time.Now()))
			b.post(path+"/edit", "version", seen, "long_url", "https://lost.example/").want(t, http.StatusUnprocessableEntity,
				"This link was changed")
		}
	})
	t.Run("is noticed after a session that ended", func(t *testing.T) {
		seen := b.get(path + "/edit").version(t)
		was := link()
		testkit.Must(t, s.links.UpdateLink(t.Context(), &was, schema.LinkEdit{Title: new("while away")}, time.Now()))
		window := s.browser(t)
		window.get("/dashboard/sign-in")
		answer := window.send(http.MethodPost, path+"/edit",
			url.Values{"version": {seen}, "long_url": {"https://typed.example/"}})
		to, err := url.Parse(answer.header.Get("Location"))
		testkit.Must(t, err)
		page := b.get(to.Query().Get("next"))
		page.want(t, http.StatusOK, "https://typed.example/")
		b.post(path+"/edit", "version", page.version(t), "long_url", "https://typed.example/").want(t,
			http.StatusUnprocessableEntity, "Now: while away")
	})
	t.Run("is noticed between the look at the link and the edit", func(t *testing.T) {
		seen := b.get(path + "/edit").version(t)
		before.Store(new(func() {
			was := link()
			testkit.Must(t, s.links.UpdateLink(t.Context(), &was, schema.LinkEdit{Title: new("other")}, time.Now()))
		}))
		b.post(path+"/edit", "version", seen, "long_url", "https://lost.example/").want(t, http.StatusUnprocessableEntity,
			"Now: other")
		testkit.Equal(t, "title", link().Title, "other")
	})
}
