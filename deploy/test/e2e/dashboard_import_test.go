//go:build !engines

package e2e_test

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"mime/multipart"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// TestDashboardImportKilled kills the program in mid-import. Its next run says so, and the file makes each link once.
func TestDashboardImportKilled(t *testing.T) {
	t.Parallel()
	const n = 20_000
	s := startStandalone(t)
	p := s.signIn(t)
	var file strings.Builder
	file.WriteString("alias,long_url\n")
	for i := range n {
		fmt.Fprintf(&file, "row-%d,https://example.com/%d\n", i, i)
	}
	upload := func() {
		t.Helper()
		testkit.Must(t, p.upload(t, "many.csv", file.String()).IsStatus(http.StatusSeeOther))
		page := p.awaitImport(t, "Ready to import")
		id := regexp.MustCompile(`name="id" value="([^"]+)"`).FindStringSubmatch(page.Raw)
		if id == nil {
			t.Fatal(page)
		}
		testkit.Must(t, p.post(t, "/dashboard/import/start", "id", id[1]).IsStatus(http.StatusSeeOther))
	}
	upload()
	testkit.Eventually(t, "some links are imported", func() bool { return countLinks(t, s.owner()) > 0 })
	s.programs[0].kill(t)
	s.programs[0].start(t)
	if made := countLinks(t, s.owner()); made == n {
		t.Fatal("killed when all links were made")
	}
	p.awaitImport(t, "was interrupted")
	upload()
	wantText(t, p.awaitImport(t, "was imported"), http.StatusOK, " already there, 0 skipped.")
	testkit.Equal(t, "links", countLinks(t, s.owner()), n)
}

// upload sends a file by the form of the import.
func (p pages) upload(t *testing.T, name, content string) answer {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	testkit.Must(t, form.WriteField("csrf", p.csrf))
	file, err := form.CreateFormFile("file", name)
	testkit.Must(t, err)
	_, err = io.WriteString(file, content)
	testkit.Must(t, err)
	testkit.Must(t, form.Close())
	return call(t, http.MethodPost, p.base+"/dashboard/import", body.String(), "Content-Type", form.FormDataContentType(),
		"Cookie", p.cookies, "Origin", p.base)
}

// awaitImport waits until the page of the import has a text. Pages of an account are paced, so it does not look often.
func (p pages) awaitImport(t *testing.T, text string) (page answer) {
	t.Helper()
	testkit.Succeeds(t, func() error {
		page = p.get(t, "/dashboard/import")
		if !strings.Contains(html.UnescapeString(page.Raw), text) {
			<-time.After(250 * time.Millisecond)
			return fmt.Errorf("no %q: %v", text, page)
		}
		return nil
	})
	return page
}

// countLinks returns the number of the caller's links.
func countLinks(t *testing.T, c caller) int64 {
	t.Helper()
	_, meta := c.Page(t, "")
	return number(t, meta, "total")
}
