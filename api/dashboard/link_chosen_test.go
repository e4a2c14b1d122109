package dashboard_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/api/dashboard"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// tagged returns the hashes of the account's links with a tag, the newest first.
func (s *testService) tagged(t *testing.T, filter schema.LinkFilter) (hashes []string) {
	t.Helper()
	links, _, err := s.links.Links(t.Context(), s.account.ID, filter, 1)
	testkit.Must(t, err)
	for _, link := range links {
		hashes = append(hashes, link.Hash)
	}
	return hashes
}

func TestChosenLinks(t *testing.T) {
	s := start(t)
	s.addForeign(t)
	var links []schema.Link
	for i := range 25 {
		links = append(links, s.addLink(t, fmt.Sprintf("link-%02d", i), fmt.Sprintf("https://example.org/%d", i%2)))
	}
	b := s.signedIn(t)
	const odd = "/dashboard/links?page=1&q=org%2F1"
	chosen := func(fields ...string) answer { return b.post("/dashboard/links/chosen", fields...) }

	t.Run("each link has a box", func(t *testing.T) {
		page := b.get("/dashboard/links?page=2")
		for _, link := range links[:5] {
			if !strings.Contains(page.body, fmt.Sprintf(`form=chosen name=id value=%d `, link.ID)) {
				t.Errorf("%s has none", link.Hash)
			}
		}
	})
	t.Run("chosen links are tagged, and freed of tags", func(t *testing.T) {
		chosen("id", id(links[0].ID), "id", id(links[3].ID), "id", "0", "id", "x", "do", "tag", "tags", "New, old", "back",
			odd).wantTo(t, odd)
		b.follow().want(t, http.StatusOK, "2 links were tagged new, old.")
		testkit.Equal(t, "tagged links", s.tagged(t, schema.LinkFilter{Tag: "new"}), []string{"link-03", "link-00"})
		chosen("id", id(links[0].ID), "do", "untag", "tags", "new")
		b.follow().want(t, http.StatusOK, "1 link was freed of new.")
		testkit.Equal(t, "tagged links", s.tagged(t, schema.LinkFilter{Tag: "new"}), []string{"link-03"})
		testkit.Equal(t, "other tag", s.tagged(t, schema.LinkFilter{Tag: "old"}), []string{"link-03", "link-00"})
	})
	t.Run("all links of a filter are changed", func(t *testing.T) {
		chosen("all", "true", "do", "off", "back", odd)
		b.follow().want(t, http.StatusOK, "12 links were switched off.")
		testkit.Equal(t, "links that are off", len(s.tagged(t, schema.LinkFilter{Redirects: new(false)})), 12)
		chosen("all", "true", "do", "on", "back", odd)
	})
	t.Run("links are exported", func(t *testing.T) {
		file := chosen("id", id(links[2].ID), "id", id(links[1].ID), "do", "export")
		if lines := strings.Split(file.body, "\r\n"); len(lines) != 4 || !strings.Contains(lines[1], "link-01") ||
			!strings.Contains(lines[2], "link-02") {
			t.Errorf("the file has %q", lines)
		}
		chosen("all", "true", "do", "export", "back", odd).wantTo(t, "/dashboard/export.csv?q=org%2F1")
	})
	t.Run("names the links that were not changed", func(t *testing.T) {
		full := s.addLink(t, "full", "https://example.org/full")
		tags := strings.Fields("a b c d e f g h i j")
		testkit.Must(t, s.links.UpdateLink(t.Context(), &full, schema.LinkEdit{Tags: &tags}, full.CreatedAt))
		for text, fields := range map[string][]string{
			"No link is selected.": {"do", "off"}, "Name at least one tag.": {"do", "tag", "id", id(full.ID)},
			"A tag has 1 to 32 characters": {"do", "tag", "tags", "schön", "id", id(full.ID)},
			"1 link was tagged one. 1 link stayed as before: A link must have at most 10 tags.": {"do", "tag", "tags", "one",
				"id", id(full.ID), "id", id(links[9].ID)},
			"Nothing was changed. A tag has": {"do", "off", "all", "true", "back", "/dashboard/links?tag=%C3%A4"},
		} {
			chosen(fields...)
			b.seen.want(t, http.StatusSeeOther)
			b.get("/dashboard/links").want(t, http.StatusOK, text)
		}
		testkit.Must(t, s.links.DeleteLink(t.Context(), full, full.CreatedAt))
	})
	t.Run("links are deleted, and come back by Undo", func(t *testing.T) {
		chosen("all", "true", "do", "delete", "back", odd)
		page := b.follow()
		page.want(t, http.StatusOK, "12 links were deleted.", "Undo", "No links match")
		b.post("/dashboard/trash/restore", "deleted_at", page.deletion(t), "back", odd).wantTo(t, odd)
		b.follow().want(t, http.StatusOK, "12 links are back", "12 links with")
	})
}

// deletion returns the deletion that the page undoes.
func (a answer) deletion(t *testing.T) string {
	t.Helper()
	found := regexp.MustCompile(`name="deleted_at" value="([\d.]+)"`).FindStringSubmatch(a.body)
	if found == nil {
		t.Fatalf("nothing to undo: %s", a.text())
	}
	return found[1]
}

// addMany adds links with the hashes many-0, many-1, ….
func (s *testService) addMany(t *testing.T, n int) {
	t.Helper()
	for from := 0; from < n; from += schema.MaxLinkBatch {
		batch := schema.LinkBatch{AccountID: s.account.ID}
		for i := from; i < min(n, from+schema.MaxLinkBatch); i++ {
			batch.Links = append(batch.Links, schema.Link{Hash: fmt.Sprint("many-", i), URL: "https://example.org/",
				Active: true, CreatedAt: s.now().UTC()})
		}
		testkit.Must(t, s.links.CreateLinks(t.Context(), &batch))
	}
}

func TestManyChosenLinks(t *testing.T) {
	var calls atomic.Int64 // of the method that fails
	var failing atomic.Value
	var slow atomic.Bool // RestoreLinks takes longer than a request restores links
	failing.Store("")
	s := startFaulty(t, func(_ context.Context, method string) error {
		if method == "RestoreLinks" && slow.Load() {
			time.Sleep(dashboard.RestoreTime()) // the store is slow; the test does not wait for a state
		}
		if method == failing.Load() && calls.Add(1) > 1 {
			return schema.Errorf(schema.CodeUnavailable, "down")
		}
		return nil
	})
	fail := func(method string) { calls.Store(0); failing.Store(method) }
	s.addMany(t, 1105)
	b := s.signedIn(t)
	chosen := func(fields ...string) answer {
		return b.post("/dashboard/links/chosen", append(fields, "all", "true", "back", "/dashboard/links?page=1&q=many")...)
	}
	newest := func() string {
		t.Helper()
		return regexp.MustCompile(`name="newest" value="(\d+)"`).FindStringSubmatch(b.seen.body)[1]
	}
	const all = "1,105 links"
	t.Run("are deleted after a question, without those of later", func(t *testing.T) {
		chosen("do", "delete").want(t, http.StatusOK, "Delete "+all+"?", "Keep them")
		confirmed := newest()
		s.addLink(t, "many-later", "https://example.org/")
		chosen("do", "delete", "newest", confirmed).want(t, http.StatusSeeOther)
		b.follow().want(t, http.StatusOK, all+" were deleted.", "1 link with")
	})
	t.Run("come back as far as possible, which the page says", func(t *testing.T) {
		fail("RestoreLinks")
		b.post("/dashboard/trash/restore", "deleted_at", b.seen.deletion(t)).want(t, http.StatusSeeOther)
		b.follow().want(t, http.StatusOK, "1,000 of "+all+" are back, with their clicks.", "Restore the others")
		if strings.Contains(b.seen.body, "data-continue") {
			t.Error("the script repeats what has failed")
		}
		rest := b.seen.deletion(t)
		b.post("/dashboard/trash/restore", "deleted_at", rest).want(t, http.StatusServiceUnavailable)
		fail("")
		b.post("/dashboard/trash/restore", "deleted_at", rest, "back", "/dashboard/links?page=1&q=many").want(t,
			http.StatusSeeOther)
		b.follow().want(t, http.StatusOK, all+" are back, with their clicks.", "1,106 links with")
	})
	t.Run("come back without those that were created anew", func(t *testing.T) {
		chosen("do", "delete")
		chosen("do", "delete", "newest", newest()).want(t, http.StatusSeeOther)
		deletion := b.follow().deletion(t)
		s.addLink(t, "many-7", "https://example.org/")
		b.post("/dashboard/trash/restore", "deleted_at", deletion).want(t, http.StatusSeeOther)
		b.follow().want(t, http.StatusOK, all+" are back, with their clicks. 1 link cannot come back")
	})
	t.Run("come back in parts, one after the other", func(t *testing.T) {
		chosen("do", "delete")
		chosen("do", "delete", "newest", newest()).want(t, http.StatusSeeOther)
		deletion := b.follow().deletion(t)
		slow.Store(true)
		b.post("/dashboard/trash/restore", "deleted_at", deletion).want(t, http.StatusSeeOther)
		slow.Store(false)
		b.follow().want(t, http.StatusOK, "1,000 of 1,106 links are back, with their clicks.", "Restore the others")
		if !strings.Contains(b.seen.body, `action="/dashboard/trash/restore" data-continue`) {
			t.Error("the script does not go on")
		}
		b.post("/dashboard/trash/restore", "deleted_at", b.seen.deletion(t)).want(t, http.StatusSeeOther)
		b.follow().want(t, http.StatusOK, "1,106 links are back, with their clicks.")
	})
	t.Run("are changed in part if the store fails", func(t *testing.T) {
		for _, done := range []string{"switched off", "tagged new", "deleted"} {
			do := map[string]string{"switched off": "off", "tagged new": "tag", "deleted": "delete"}[done]
			fields := []string{"tags", "new", "do", do}
			chosen(fields...)
			fields = append(fields, "newest", newest())
			fail("ChangeLinks")
			chosen(fields...).want(t, http.StatusSeeOther)
			fail("")
			b.follow().want(t, http.StatusOK,
				"1,000 links were "+done+". 106 links stayed as before, because the service is busy: try again.")
		}
	})
}

// undo sends the form that undoes what the page says, and returns the page that it leads to.
func (b *browser) undo(t *testing.T, page answer) answer {
	t.Helper()
	found := regexp.MustCompile(`name="undone" value="([^"]+)"`).FindStringSubmatch(page.body)
	if found == nil {
		t.Fatalf("nothing to undo: %s", page.text())
	}
	b.post("/dashboard/links/chosen", "undone", html.UnescapeString(found[1])).want(t, http.StatusSeeOther)
	return b.follow()
}

func TestUndoOfChosenLinks(t *testing.T) {
	s := start(t)
	b := s.signedIn(t)
	first, second, third := s.addLink(t, "first", "https://example.org/"), s.addLink(t, "second", "https://example.org/"),
		s.addLink(t, "third", "https://example.org/")
	for link, tags := range map[*schema.Link][]string{&second: {"old"}, &third: {"new", "old"}} {
		testkit.Must(t, s.links.UpdateLink(t.Context(), link, schema.LinkEdit{Tags: &tags, Active: new(link == &second)},
			link.CreatedAt))
	}
	chosen := func(fields ...string) answer {
		t.Helper()
		b.post("/dashboard/links/chosen", append(fields, "id", id(first.ID), "id", id(second.ID), "id", id(third.ID))...).
			want(t, http.StatusSeeOther)
		return b.follow()
	}
	state := func() (all []string) {
		t.Helper()
		links, _, err := s.links.Links(t.Context(), s.account.ID, schema.LinkFilter{}, 1)
		testkit.Must(t, err)
		for _, link := range links {
			all = append(all, fmt.Sprint(link.Hash, link.Tags, link.Active))
		}
		return all
	}
	before := state()
	for _, c := range []struct{ do, tags, says string }{
		{"tag", "new, old", "2 links were tagged new, old. 1 link needed no change."},
		{"untag", "new old", "2 links were freed of new, old. 1 link needed no change."},
		{"off", "", "2 links were switched off. 1 link needed no change."},
		{"on", "", "1 link was switched on. 2 links needed no change."},
	} {
		t.Run(c.do+" is undone where it has changed a link, and the links stay selected", func(t *testing.T) {
			page := chosen("do", c.do, "tags", c.tags)
			page.want(t, http.StatusOK, c.says, "Undo")
			testkit.Equal(t, "selected links", strings.Count(page.body, " checked>"), 3)
			page = b.undo(t, page)
			page.want(t, http.StatusOK, "as before.")
			testkit.Equal(t, "links", state(), before)
			if strings.Count(page.body, " checked>") == 0 {
				t.Error("no link stays selected")
			}
		})
	}
	t.Run("links that have changed since stay as they are", func(t *testing.T) {
		page := chosen("do", "tag", "tags", "late")
		testkit.Must(t, s.links.UpdateLink(t.Context(), &first, schema.LinkEdit{Title: new("Since")}, s.now()))
		b.undo(t, page).want(t, http.StatusOK, "2 links are as before. 1 link has changed since.")
		testkit.Equal(t, "tagged links", s.tagged(t, schema.LinkFilter{Tag: "late"}), []string{"first"})
	})
	t.Run("a forged undo changes nothing", func(t *testing.T) {
		before := state()
		for _, value := range []string{"x", "delete.1.1.1.", "tag.0.1.1.a", "tag.1.1.18446744073709551615.a", "off.1.1.1"} {
			b.post("/dashboard/links/chosen", "undone", value).want(t, http.StatusSeeOther)
		}
		testkit.Equal(t, "links", state(), before)
	})
}

func TestSearchInTrash(t *testing.T) {
	s := start(t)
	s.addMany(t, 203)
	s.addLink(t, "other", "https://example.com/")
	ids, err := s.links.LinkIDs(t.Context(), s.account.ID, schema.LinkFilter{}, 2000)
	testkit.Must(t, err)
	for some := range slices.Chunk(ids, schema.MaxLinkBatch) {
		testkit.Must(t, s.links.ChangeLinks(t.Context(), &schema.LinkChanges{AccountID: s.account.ID, IDs: some,
			At: s.now().UTC()}))
	}
	b := s.signedIn(t)
	page := b.get("/dashboard/trash?rows=100")
	page.want(t, http.StatusOK, "Restore all 204 links", "Page 1 of 3", "Kept until")
	testkit.Equal(t, "rows", strings.Count(page.body, `name="link"`), 100)
	const search = "/dashboard/trash?page=1&q=many&rows=50"
	b.get(search).want(t, http.StatusOK, "Restore all 203 links found", "Page 1 of 5")
	b.get("/dashboard/trash?q=none").want(t, http.StatusOK, "No deleted links match “ none ”")
	b.post("/dashboard/trash/restore", "deleted_at", "0.203.0", "back", search).wantTo(t, search)
	b.follow().want(t, http.StatusOK, "203 links are back, with their clicks.")
	b.get("/dashboard/trash").want(t, http.StatusOK, "sho.rt/ other", "Restore all 1 link")
	b.post("/dashboard/trash/restore", "link", "0.other", "back", "/dashboard/trash")
	b.follow().want(t, http.StatusOK, "sho.rt/other is back", "The trash is empty")
}

// A restore is undone: exactly the links that it has restored are deleted again.
func TestUndoOfRestore(t *testing.T) {
	s := start(t)
	s.addMany(t, 3)
	deleted := s.addLink(t, "deleted-before", "https://example.org/")
	b := s.signedIn(t)
	b.post("/dashboard/links/0/deleted-before/delete")
	b.post("/dashboard/links/chosen", "do", "delete", "all", "true", "back", "/dashboard/links?q=many")
	boxes := regexp.MustCompile(`name="id" value="(\d+)"`).FindAllStringSubmatch(b.get("/dashboard/trash?q=many").body, -1)
	const trash = "/dashboard/trash?page=1"
	for _, c := range []struct {
		form       []string
		said, done string
	}{
		{[]string{"link", "0.deleted-before"}, "is back, with its clicks. Undo", "1 link is in the trash again."},
		{[]string{"id", boxes[0][1], "id", boxes[1][1]}, "2 links are back, with their clicks. Undo",
			"2 links are in the trash again."},
		{[]string{"deleted_at", "0.4.0"}, "4 links are back, with their clicks. Undo", "4 links are in the trash again."},
	} {
		b.post("/dashboard/trash/restore", append(c.form, "back", trash)...).wantTo(t, trash)
		page := b.follow()
		page.want(t, http.StatusOK, c.said)
		kept := s.addLink(t, "kept", "https://example.org/")
		b.undo(t, page).want(t, http.StatusOK, c.done)
		b.get("/dashboard/trash").want(t, http.StatusOK, "Restore all 4 links")
		testkit.Must(t, s.links.DeleteLink(t.Context(), kept, deleted.CreatedAt.AddDate(0, -2, 0)))
	}
	b.post("/dashboard/trash/restore", "deleted_at", "0.4.0", "back", trash)
	page := b.follow()
	b.post("/dashboard/links/0/deleted-before/active", "active", "false").want(t, http.StatusSeeOther)
	b.undo(t, page).want(t, http.StatusOK, "3 links are in the trash again. 1 link has changed since.")
	b.get("/dashboard/links").want(t, http.StatusOK, "sho.rt/ deleted-before")
}

func TestTrash(t *testing.T) {
	s := start(t)
	link := s.addLink(t, "sale", "https://example.org/")
	s.addLink(t, "other", "https://example.org/")
	s.count(t, click{link: link, at: link.CreatedAt, times: 42})
	b := s.signedIn(t)
	b.get("/dashboard/trash").want(t, http.StatusOK, "The trash is empty")
	b.post("/dashboard/links/0/sale/delete", "back", "/dashboard/links?page=1").wantTo(t, "/dashboard/links?page=1")
	b.follow().want(t, http.StatusOK, "sho.rt/sale was deleted.", "Undo", "1 link")
	b.get("/dashboard/trash").want(t, http.StatusOK, "sho.rt/ sale", "42", "Restore selected")
	t.Run("a link comes back with its clicks", func(t *testing.T) {
		b.post("/dashboard/trash/restore", "link", "0.sale", "back", "/dashboard/links?page=1").wantTo(t,
			fmt.Sprintf("/dashboard/links?page=1#link-%d", link.ID))
		b.get("/dashboard/links").want(t, http.StatusOK, "sho.rt/sale is back", "42")
	})
	t.Run("links that cannot come back say why", func(t *testing.T) {
		for _, hash := range []string{"sale", "other"} {
			b.post("/dashboard/links/0/" + hash + "/delete")
		}
		page := b.get("/dashboard/trash").body
		boxes := regexp.MustCompile(`name="id" value="(\d+)"`).FindAllStringSubmatch(page, -1)
		testkit.Equal(t, "boxes", len(boxes), 2)
		b.post("/dashboard/links", "long_url", "https://example.org/", "custom_alias", "sale")
		b.post("/dashboard/trash/restore", "link", "0.sale")
		b.follow().want(t, http.StatusOK, "sale: You have a link with this hash")
		b.post("/dashboard/trash/restore", "id", boxes[0][1], "id", boxes[1][1], "id", "x")
		b.follow().want(t, http.StatusOK, "1 link is back", "1 link cannot come back: you have restored it")
		b.post("/dashboard/trash/restore", "link", "0.none")
		b.follow().want(t, http.StatusOK, "none: You have deleted no link with this hash")
		b.post("/dashboard/trash/restore")
		b.follow().want(t, http.StatusOK, "No link is selected.", "The trash is empty")
	})
}
