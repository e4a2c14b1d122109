package dashboard_test

import (
	"bytes"
	"encoding/csv"
	"html"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// upload sends a file by the form of the page seen last.
func (b *browser) upload(name, content string, fields ...string) answer {
	b.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	if token := csrfField.FindStringSubmatch(b.get("/dashboard/account").body); token != nil && len(fields) == 0 {
		fields = []string{"csrf", token[1]}
	}
	for i := 0; i < len(fields); i += 2 {
		testkit.Must(b.t, form.WriteField(fields[i], fields[i+1]))
	}
	file, err := form.CreateFormFile("file", name)
	testkit.Must(b.t, err)
	_, err = io.WriteString(file, content)
	testkit.Must(b.t, err)
	testkit.Must(b.t, form.Close())
	return b.sendBody("/dashboard/import", form.FormDataContentType(), &body)
}

func (b *browser) sendBody(path, contentType string, body io.Reader) answer {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.base+path, body)
	testkit.Must(b.t, err)
	req.Header = b.fields.Clone()
	req.Header.Set("Content-Type", contentType)
	res, err := b.client.Do(req)
	testkit.Must(b.t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	testkit.Must(b.t, err)
	b.seen = answer{res.StatusCode, res.Header, string(text)}
	return b.seen
}

// waitImport loads the page of imports until it shows a text.
func (b *browser) waitImport(t *testing.T, text string) answer {
	t.Helper()
	testkit.Eventually(t, "the page shows "+text, func() bool {
		return strings.Contains(b.get("/dashboard/import").text(), text)
	})
	b.seen.want(t, http.StatusOK)
	return b.seen
}

// start sends the form that starts the import.
func (b *browser) startImport(t *testing.T) answer {
	t.Helper()
	_, rest, ok := strings.Cut(b.seen.body, `name="id" value="`)
	if !ok {
		t.Fatalf("no form:\n%s", b.seen.body)
	}
	return b.post("/dashboard/import/start", "id", rest[:strings.IndexByte(rest, '"')])
}

// TestImportOfUnknownColumns lets the owner of a file say what its columns are.
func TestImportOfUnknownColumns(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(t)
	token := csrfField.FindStringSubmatch(b.get("/dashboard/account").body)[1]
	unknown := "Back half,Where to,Hits so far,Website\nseventh,https://example.org/7,41,\n"
	b.upload("sheet.csv", unknown).wantTo(t, "/dashboard/import")
	b.waitImport(t, "cannot be imported").want(t, http.StatusOK,
		"The columns Back half, Where to, Hits so far, Website are not known", "Columns of the last file")
	b.upload("sheet.csv", unknown, "csrf", token, "map.alias", "Back half", "map.long_url", "Where to", "map.clicks",
		"Hits so far", "map.title", "", "ignore", "Website", "source", "paper").wantTo(t, "/dashboard/import")
	b.waitImport(t, "Ready to import").want(t, http.StatusOK, "1 new link.",
		"41 clicks of paper will be counted as imported.",
		"Back half (alias) , Where to (long_url) , Hits so far (clicks) , Website (ignored)")
	b.startImport(t).wantTo(t, "/dashboard/import")
	b.waitImport(t, "was imported")
	link, err := schema.FindLink(t.Context(), s.links, 0, "seventh")
	testkit.Must(t, err)
	history, err := s.clicks.History(t.Context(), link.ID, "paper")
	testkit.Must(t, err)
	testkit.Equal(t, "imported clicks", history.Total(), 41)

	b.upload("days.csv", "alias,date,clicks\nseventh,2024-01-02,40\nseventh,2024-01-03,2\n", "csrf", token, "source",
		"paper").wantTo(t, "/dashboard/import")
	b.waitImport(t, "Ready to import").want(t, http.StatusOK, "No new links. 2 rows have their links already.",
		"42 clicks of paper will be counted", "Import 42 clicks")
	b.startImport(t).wantTo(t, "/dashboard/import")
	b.waitImport(t, "was imported")
	history, err = s.clicks.History(t.Context(), link.ID, "paper")
	testkit.Must(t, err)
	testkit.Equal(t, "imported clicks by day", history.Days, []schema.DayCount{{Date: "2024-01-02", Total: 40},
		{Date: "2024-01-03", Total: 2}})
}

func TestImport(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.addDomain(t, "go.example.org", true)
	s.addLink(t, "there", "https://example.org/there")
	s.addForeign(t)
	b := s.signedIn(t)
	b.get("/dashboard/import").want(t, http.StatusOK, "Import links", "Upload a file", "sho.rt go.example.org")
	b.get("/dashboard/import/errors.csv").want(t, http.StatusNotFound)
	file := "alias,long_url,title,tags,domain\r\n" +
		"first,https://example.org/1,\"One, <b>bold</b>\",print,\r\n" +
		"there,https://example.org/there,,,\r\n" +
		"theirs,https://example.org/2,,,\r\n" +
		"fourth,=ftp://example.org/,,,\r\n" +
		"fifth,https://example.org/5,,,go.example.org\r\n"
	t.Run("checks a file before it creates anything", func(t *testing.T) {
		b.upload(`C:\My "links".csv`, file).wantTo(t, "/dashboard/import")
		page := b.waitImport(t, "Ready to import")
		page.want(t, http.StatusOK, "My \"links\".csv",
			"2 new links. 1 row has its link already. 2 rows will be skipped.", "Import 2 links",
			"The alias is already in use",
			"http://sho.rt/first One, <b>bold</b> https://example.org/1", "go.example.org stays: 1 row", "Format linkstream")
		wantHarmless(t, page)
		if _, total, err := s.links.Links(t.Context(), s.account.ID, schema.LinkFilter{}, 1); err != nil || total != 1 {
			t.Errorf("%d links, error %v", total, err)
		}
	})
	t.Run("imports it, and names the skipped rows", func(t *testing.T) {
		b.startImport(t).wantTo(t, "/dashboard/import")
		b.waitImport(t, "was imported").want(t, http.StatusOK, "5 rows: 2 created, 1 already there, 2 skipped.",
			"See your links")
		link, err := schema.FindLink(t.Context(), s.links, 0, "first")
		testkit.Must(t, err)
		testkit.Equal(t, "title", link.Title, "One, <b>bold</b>")
		a := b.get("/dashboard/import/errors.csv")
		lines, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
		testkit.Must(t, err)
		if len(lines) != 3 || lines[1][0] != "4" || lines[2][0] != "5" || lines[2][1] != "long_url" ||
			lines[0][2] != "problem" {
			t.Errorf("%v: %q", a.header, lines)
		}
	})
	t.Run("starts nothing twice", func(t *testing.T) {
		b.post("/dashboard/import/start", "id", "none").want(t, http.StatusUnprocessableEntity,
			"The file is not there any more")
	})
	t.Run("names the rows that cannot be imported", func(t *testing.T) {
		b.upload("", "").want(t, http.StatusUnprocessableEntity, "Please choose a file that is not empty.")
		b.sendBody("/dashboard/import", "text/plain", strings.NewReader("x")).want(t, http.StatusUnprocessableEntity,
			"Please choose a file")
		b.upload("picture.png", "\x89PNG\r\n\x1a\n\x00\x00").wantTo(t, "/dashboard/import")
		b.waitImport(t, "cannot be imported")
		for _, csrf := range [][]string{{"csrf", "x"}, {"domain_id", "1"}} {
			b.upload("links.csv", file, csrf...).want(t, http.StatusForbidden, "This form has expired")
		}
	})
	t.Run("refuses a file that is too large, with and without a Content-Length", func(t *testing.T) {
		large := file + strings.Repeat("x,https://example.org/\n", 33<<20/23)
		b.upload("large.csv", large).want(t, http.StatusUnprocessableEntity, "larger than 32 MiB")
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		testkit.Must(t, form.WriteField("csrf", csrfField.FindStringSubmatch(b.get("/dashboard/account").body)[1]))
		part, err := form.CreateFormFile("file", "chunked.csv")
		testkit.Must(t, err)
		_, err = io.WriteString(part, large)
		testkit.Must(t, err)
		b.sendBody("/dashboard/import", form.FormDataContentType(), struct{ io.Reader }{&body}).want(t,
			http.StatusUnprocessableEntity, "larger than 32 MiB")
	})
	t.Run("is not for visitors", func(t *testing.T) {
		s.browser(t).upload("links.csv", file, "csrf", "x").wantTo(t,
			"/dashboard/sign-in?notice=ended&next=%2Fdashboard%2Fimport")
	})
}

// TestInterruptedImport has the state that a process leaves if it is killed in mid-import. deploy/test/e2e kills one.
func TestInterruptedImport(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(t)
	const file = "alias,long_url\none,https://example.org/1\ntwo,https://example.org/2\n"
	leave := func(phase string, at time.Time) answer {
		testkit.Must(t, s.links.PutImport(t.Context(), schema.ImportStatus{AccountID: s.account.ID, ID: "killed",
			Requested: phase == "ready",
			Status:    `{"FileName": "links.csv", "Phase": "` + phase + `", "Report": {"Rows": 3, "Created": 2, "Present": 1}}`,
			UpdatedAt: at}, at))
		return b.get("/dashboard/import")
	}
	t.Run("looks as if it went on until it has noted nothing for a while", func(t *testing.T) {
		for phase, text := range map[string]string{"receiving": "Receiving “", "checking": "Checking “",
			"ready": "Importing “", "importing": "Importing “"} {
			page := leave(phase, time.Now())
			page.want(t, http.StatusOK, text, "Refresh")
			page.lacks(t, "Upload a file", "Upload another")
			if !strings.Contains(page.body, `data-live="/dashboard/import?part=import"`) {
				t.Error("it is not polled")
			}
		}
		b.get("/dashboard/import?part=import").lacks(t, "<html", "data-done")
		b.post("/dashboard/import/start", "id", "killed").want(t, http.StatusUnprocessableEntity, "is under way")
		b.upload("other.csv", "x").want(t, http.StatusUnprocessableEntity, "An import of your account is under way.")
	})
	t.Run("is said when it has ended", func(t *testing.T) {
		long := time.Now().Add(-time.Minute)
		leave("receiving", long).want(t, http.StatusOK, "was interrupted", "The upload was incomplete.",
			"Upload another file")
		leave("checking", long).want(t, http.StatusOK, "was interrupted", "Nothing was imported yet. Please upload it again.")
		leave("ready", long).want(t, http.StatusOK, "was interrupted", "Nothing was imported yet. Please upload it again.")
		b.post("/dashboard/import/start", "id", "killed").want(t, http.StatusUnprocessableEntity, "is not there any more")
		leave("importing", long).want(t, http.StatusOK, "was interrupted", "3 rows: 2 created, 1 already there, 0 skipped.",
			"Upload the file again to continue")
		if !strings.Contains(b.get("/dashboard/import?part=import").body, "data-done") {
			t.Error("the script goes on to poll")
		}
		b.upload("links.csv", file).wantTo(t, "/dashboard/import")
		b.waitImport(t, "Import 2 links")
		b.startImport(t).wantTo(t, "/dashboard/import")
		b.waitImport(t, "was imported").want(t, http.StatusOK, "2 rows: 2 created")
	})
}

func TestExport(t *testing.T) {
	s := start(t)
	link := s.addLink(t, "first", "https://example.org/")
	s.addLink(t, "second", "https://example.org/2")
	s.addForeign(t)
	s.count(t, click{link: link, at: link.CreatedAt, times: 7})
	b := s.signedIn(t)
	a := b.get("/dashboard/export.csv")
	lines, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	testkit.Must(t, err)
	disposition := a.header.Get("Content-Disposition")
	if a.status != http.StatusOK || !strings.HasPrefix(disposition, `attachment; filename="links-`) || len(lines) != 3 ||
		lines[1][0] != "http://sho.rt/first" || lines[1][len(lines[1])-1] != "7" {
		t.Errorf("%d %v %q", a.status, a.header, lines)
	}
	if head := b.send(http.MethodHead, "/dashboard/export.csv", nil); head.status != http.StatusOK || head.body != "" {
		t.Errorf("HEAD answers %d", head.status)
	}
	t.Run("has the links of the list", func(t *testing.T) {
		const filtered = "/dashboard/export.csv?q=SECOND&amp;state=on"
		if !strings.Contains(b.get("/dashboard/links?q=SECOND&state=on").body,
			`href="`+filtered+`" download>Export 1 link<`) {
			t.Errorf("the list does not lead to it:\n%s", b.seen.body)
		}
		lines, err := csv.NewReader(strings.NewReader(b.get(html.UnescapeString(filtered)).body)).ReadAll()
		testkit.Must(t, err)
		if len(lines) != 2 || lines[1][0] != "http://sho.rt/second" {
			t.Errorf("got %q", lines)
		}
		b.get("/dashboard/export.csv?q=a+b+c+d+e+f+g+h+"+strings.Repeat("i", 285)).want(t,
			http.StatusUnprocessableEntity, "A search has at most 300 characters")
	})
	t.Run("is imported by another account", func(t *testing.T) {
		other := start(t)
		b := other.signedIn(t)
		b.upload("links.csv", a.body)
		b.waitImport(t, "Import 2 links")
		b.startImport(t)
		b.waitImport(t, "2 rows: 2 created")
	})
}
