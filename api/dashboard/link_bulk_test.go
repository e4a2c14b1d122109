package dashboard_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"linkstream/api/dashboard"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestCreateMany(t *testing.T) {
	t.Parallel()
	s := start(t)
	domain := s.addDomain(t, "go.example.org", true)
	s.addLink(t, "taken", "https://example.org/")
	b := s.signedIn(t)
	b.get("/dashboard/bulk").want(t, http.StatusOK, "Create many links", "sho.rt go.example.org")
	t.Run("creates a link per line, and keeps the lines that are wrong", func(t *testing.T) {
		page := b.post("/dashboard/bulk", "links", "https://example.org/one\r\n\r\n  www.example.org/two second "+
			"\nhttps://example.org/3 taken\nftp://x.org/\n"+
			"https://example.org/ Third\na b c\nhttps://sho.rt/x <b>", "tags", "Print, web", "domain_id", "0")
		page.want(t, http.StatusOK, "3 links are ready", "Copy all", "4 of 7 lines skipped", "3 https://www.example.org/two "+
			"sho.rt/ second",
			"4 https://example.org/3 taken The alias is already in use", "6 https://example.org/ sho.rt/ third",
			"Each line must be a URL, or a URL, a space and an alias.", "must not lead to this service itself",
			"Correct the skipped lines")
		wantHarmless(t, page)
		links, _, err := s.links.Links(t.Context(), s.account.ID, schema.LinkFilter{}, 1)
		testkit.Must(t, err)
		testkit.Equal(t, "links", len(links), 4)
		for _, link := range links[:3] {
			testkit.Equal(t, "tags", link.Tags, []string{"print", "web"})
			if !strings.Contains(page.body, "http://sho.rt/"+link.Hash) {
				t.Errorf("%s is not among what can be copied", link.Hash)
			}
		}
		if !strings.Contains(page.body, ">https://example.org/3 taken\nftp://x.org/\na b c\nhttps://sho.rt/x "+
			"&lt;b&gt;</textarea>") {
			t.Errorf("the form has other lines:\n%s", page.body)
		}
	})
	t.Run("takes a domain", func(t *testing.T) {
		b.post("/dashboard/bulk", "links", "https://example.org/ taken", "domain_id", id(domain.ID)).want(t, http.StatusOK,
			"1 link is ready", "go.example.org/ taken", "Create more")
	})
	t.Run("names the problems of all of them", func(t *testing.T) {
		b.post("/dashboard/bulk", "links", " \n ").want(t, http.StatusUnprocessableEntity, "Please paste at least one URL.")
		b.post("/dashboard/bulk", "links", "x", "domain_id", "99").want(t, http.StatusUnprocessableEntity,
			"No links were created", "must be a verified domain")
		b.post("/dashboard/bulk", "links", "https://example.org/", "tags", "Ä").want(t, http.StatusUnprocessableEntity,
			"Each tag must have 1 to 32")
		b.post("/dashboard/bulk", "links", strings.Repeat("https://example.org/\n", 501)).want(t,
			http.StatusUnprocessableEntity, "There are 501 lines")
	})
	t.Run("takes 500 long lines", func(t *testing.T) {
		var lines []string
		for i := range 500 {
			lines = append(lines, fmt.Sprintf("https://example.org/%d?%s", i, strings.Repeat("a", 1900)))
		}
		b.post("/dashboard/bulk", "links", strings.Join(lines, "\n")).want(t, http.StatusOK, "500 links are ready",
			"All lines")
	})
	t.Run("is limited", func(t *testing.T) {
		s.attempt(t, dashboard.BulkByAccount, id(s.account.ID), 10)
		b.post("/dashboard/bulk", "links", "https://example.org/kept").want(t, http.StatusTooManyRequests,
			"Too many new links.", "https://example.org/kept")
	})
}
