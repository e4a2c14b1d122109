//go:build !engines

package e2e_test

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// TestDashboard uses the dashboard as a browser without a script does.
func TestDashboard(t *testing.T) {
	t.Parallel()
	s := startStandalone(t, longCaches)
	stranger := pages{base: s.api}
	testkit.Equal(t, "Location", stranger.get(t, "/dashboard/links").Header.Get("Location"),
		"/dashboard/sign-in?next=%2Fdashboard%2Flinks")
	wrong := stranger.send(t, "/dashboard/sign-in", url.Values{"email": {s.email}, "password": {"not the password"}})
	wantText(t, wrong, http.StatusUnprocessableEntity, "The email address or the password is wrong.")
	p := s.signIn(t)
	made := p.post(t, "/dashboard/links", "long_url", "www.example.org/", "custom_alias", "made", "domain_id", "0")
	testkit.Must(t, made.IsStatus(http.StatusSeeOther))
	wantText(t, p.get(t, made.Header.Get("Location")), http.StatusOK, "Your link is ready", "https://www.example.org/")
	s.click(t, "made", "User-Agent", desktop)
	s.owner().WaitTotal(t, "made", 1)
	wantText(t, p.get(t, "/dashboard/links/0/made"), http.StatusOK, `id="total">1<`, "Chrome")
	wantText(t, p.get(t, "/dashboard"), http.StatusOK, "Top links")
	testkit.Must(t, p.post(t, "/dashboard/sign-out").IsStatus(http.StatusSeeOther))
	testkit.Must(t, p.get(t, "/dashboard/links").IsStatus(http.StatusSeeOther))
}

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
