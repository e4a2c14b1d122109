package dashboard_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// addTagged stores links of the service's account, each with its tags.
func (s *testService) addTagged(t *testing.T, tags ...[]string) (links []schema.Link) {
	t.Helper()
	for i, tags := range tags {
		link := schema.Link{AccountID: s.account.ID, Hash: fmt.Sprintf("link-%d", i), URL: "https://example.org/",
			Active: true, CreatedAt: s.now().UTC(), Tags: tags}
		testkit.Must(t, s.links.CreateLink(t.Context(), &link))
		links = append(links, link)
	}
	return links
}

// TestTagsOfSlowClicks has a click store that does not answer in time.
func TestTagsOfSlowClicks(t *testing.T) {
	t.Parallel()
	s := startFaulty(t, func(ctx context.Context, method string) error {
		if method == "ClickCounts" {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
	s.addTagged(t, []string{"print"})
	s.signedIn(t).get("/dashboard/tags").want(t, http.StatusOK, "Clicks cannot be shown at the moment", "1 tag",
		"print 1 –")
}

func TestTags(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(t)
	b.get("/dashboard/tags").want(t, http.StatusOK, "No tags yet")
	links := s.addTagged(t, []string{"print", "sale"}, []string{"sale", "web"}, nil, []string{"web"})
	s.count(t, click{link: links[0], at: s.now(), times: 3}, click{link: links[1], at: s.now(), times: 4})
	t.Run("are listed with their links and clicks", func(t *testing.T) {
		page := b.get("/dashboard/tags")
		page.want(t, http.StatusOK, "3 tags", "print 1 3 Report", "sale 2 7 Report", "web 2 4 Report")
		if !strings.Contains(page.body, `href="/dashboard/links?tag=sale"`) ||
			!strings.Contains(page.body, `<a href="/dashboard/links" aria-current="true">`) {
			t.Errorf("no way to the links of a tag, or no section:\n%s", page.body)
		}
		b.get("/dashboard/tags?page=7").want(t, http.StatusOK, "print 1 3 Report")
	})
	t.Run("are renamed on all links", func(t *testing.T) {
		b.get("/dashboard/tags/print").want(t, http.StatusOK, "1 link", "Rename the tag")
		b.post("/dashboard/tags/print/rename", "new_tag", " Paper ").wantTo(t, "/dashboard/tags")
		b.follow().want(t, http.StatusOK, "The tag “print” is now “paper” on 1 link.", "paper 1 3 Report")
		b.get("/dashboard/tags/print").want(t, http.StatusNotFound)
	})
	t.Run("become one if the reader confirms it", func(t *testing.T) {
		b.post("/dashboard/tags/sale/rename", "new_tag", "web").want(t, http.StatusOK, "“web” exists already",
			"2 links have the tag “web”")
		b.get("/dashboard/tags").want(t, http.StatusOK, "sale 2 7", "web 2 4")
		b.post("/dashboard/tags/sale/rename", "new_tag", "web", "merge", "other").want(t, http.StatusOK, "exists already")
		b.post("/dashboard/tags/sale/rename", "new_tag", "web", "merge", "web").wantTo(t, "/dashboard/tags")
		b.follow().want(t, http.StatusOK, "2 tags", "is now “web” on 2 links", "web 3 7")
	})
	t.Run("have their problems named", func(t *testing.T) {
		for name, problem := range map[string]string{"": "A tag has 1 to 32 characters", "two words": "A tag has",
			strings.Repeat("x", 33): "A tag has",
			"web":                   "The new name must be different."} {
			b.post("/dashboard/tags/web/rename", "new_tag", name).want(t, http.StatusUnprocessableEntity, problem)
		}
	})
	t.Run("are deleted", func(t *testing.T) {
		b.post("/dashboard/tags/web/delete").wantTo(t, "/dashboard/tags")
		b.follow().want(t, http.StatusOK, "was removed from 3 links", "1 tag", "paper 1 3")
		b.get("/dashboard/links").want(t, http.StatusOK, "4 links")
	})
	t.Run("of others and wrong ones are not found", func(t *testing.T) {
		other := s.addAccount(t, "vicky@example.org")
		link := schema.Link{AccountID: other.ID, Hash: "theirs", URL: "https://example.org/", CreatedAt: s.now(),
			Tags: []string{"theirs"}}
		testkit.Must(t, s.links.CreateLink(t.Context(), &link))
		for _, tag := range []string{"theirs", "none", "No", "a%20b", "%00"} {
			b.get("/dashboard/tags/"+tag).want(t, http.StatusNotFound)
			b.post("/dashboard/tags/"+tag+"/rename", "new_tag", "mine").want(t, http.StatusNotFound)
			b.post("/dashboard/tags/"+tag+"/delete").want(t, http.StatusNotFound)
		}
	})
	t.Run("have pages", func(t *testing.T) {
		var many [][]string
		for i := range 11 {
			var some []string
			for n := range 10 {
				some = append(some, fmt.Sprintf("t-%03d", 10*i+n))
			}
			many = append(many, some)
		}
		s := start(t)
		s.addTagged(t, many...)
		b := s.signedIn(t)
		b.get("/dashboard/tags").want(t, http.StatusOK, "110 tags", "t-099", "Page 1 of 2 Next")
		second := b.get("/dashboard/tags?page=2")
		second.want(t, http.StatusOK, "t-100", "t-109", "Previous Page 2 of 2")
		second.lacks(t, "t-099", "Next")
	})
}
