package dashboard_test

import (
	"bufio"
	"compress/gzip"
	"html"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"linkstream/schema/testkit"
)

var liveAttributes = regexp.MustCompile(`data-live="([^"]+)" data-tag="([^"]+)" data-every="(\d+)"`)

// A poll is answered with 304 if nothing has changed since the page was rendered, or since the poll before.
func TestPolls(t *testing.T) {
	s := start(t)
	link := s.addLinkAt(t, "sale", "https://example.org/", s.now().AddDate(-2, 0, 0))
	s.count(t, click{link: link, at: s.now().AddDate(-2, 0, 0)})
	b := s.signedIn(t)
	for path, every := range map[string]string{"/dashboard": "1000", "/dashboard/links": "1000",
		"/dashboard/links?q=sale": "1000",
		"/dashboard/links/0/sale": "1000", "/dashboard/links/0/sale?from=2020-01-01": "15000"} {
		found := liveAttributes.FindStringSubmatch(b.get(path).body)
		if found == nil || found[3] != every {
			t.Fatalf("%s: %q, want every %s ms", path, found, every)
		}
		b.fields.Set("If-None-Match", html.UnescapeString(found[2]))
		if got := b.get(html.UnescapeString(found[1])); got.status != http.StatusNotModified || got.body != "" {
			t.Errorf("%s: the first poll is answered with %d, %d bytes", path, got.status, len(got.body))
		}
		s.count(t, click{link: link, at: s.now()})
		after := b.get(html.UnescapeString(found[1]))
		tag := after.header.Get("ETag")
		if after.status != http.StatusOK || after.body == "" || tag == html.UnescapeString(found[2]) {
			t.Errorf("%s: after a click the poll is answered with %d and the tag %s", path, after.status, tag)
		}
		b.fields.Set("If-None-Match", tag)
		if got := b.get(html.UnescapeString(found[1])); tag == "" || got.status != http.StatusNotModified {
			t.Errorf("%s: the next poll, with the tag %s, is answered with %d", path, tag, got.status)
		}
		b.fields.Del("If-None-Match")
	}
}

func TestCompression(t *testing.T) {
	s := start(t)
	s.addLink(t, "sale", "https://example.org/"+strings.Repeat("long-", 100))
	b := s.signedIn(t)
	script := regexp.MustCompile(`/dashboard/static/script\.[0-9a-f]+\.js`).FindString(b.get("/dashboard").body)
	get := func(path, encodings string) answer {
		b.fields.Set("Accept-Encoding", encodings)
		return b.get(path)
	}
	csrf := regexp.MustCompile(`name="csrf" value="[^"]*"`)
	for _, path := range []string{"/dashboard/links/0/sale", "/dashboard/links/0/sale/clicks.csv",
		"/dashboard/export.csv", "/dashboard/none", script} {
		same := func() bool { // pages have the time of day
			was, a := get(path, "identity"), get(path, "gzip, deflate, br, zstd")
			if a.status != was.status || a.header.Get("Vary") != "Accept-Encoding" ||
				was.header.Get("Vary") != "Accept-Encoding" {
				t.Fatalf("%s: %d %v, without compression %d %v", path, a.status, a.header, was.status, was.header)
			}
			if a.header.Get("Content-Encoding") != "gzip" || was.header.Get("Content-Encoding") != "" ||
				len(a.body) > len(was.body)*2/3 {
				t.Fatalf("%s: %v with %d bytes, %v with %d", path, a.header, len(a.body), was.header, len(was.body))
			}
			unpacked, err := gzip.NewReader(strings.NewReader(a.body))
			testkit.Must(t, err)
			body, err := io.ReadAll(unpacked)
			testkit.Must(t, err)
			return csrf.ReplaceAllString(string(body), "") == csrf.ReplaceAllString(was.body, "")
		}
		testkit.Eventually(t, path+" is the same page when it is compressed", same)
	}
	for encodings, want := range map[string]string{"gzip": "gzip", "br, GZIP": "gzip", "*": "gzip", "x-gzip;q=0.5": "gzip",
		"gzip;q=0":         "",
		"gzip; Q=0.000, *": "", "*;q=0": "", "br": "", "": "", "gzip;q=x": "gzip", "*;q=0, gzip": "gzip"} {
		for _, path := range []string{"/dashboard/none", script} {
			if got := get(path, encodings).header.Get("Content-Encoding"); got != want {
				t.Errorf("%s with Accept-Encoding %q: encoded by %q, want %q", path, encodings, got, want)
			}
		}
	}
}

func TestStream(t *testing.T) {
	s := start(t)
	s.addLink(t, "sale", "https://example.org/")
	b := s.signedIn(t)
	streamed := regexp.MustCompile(`data-stream="([^"]*)"`)
	for _, page := range []string{"/dashboard", "/dashboard/links", "/dashboard/links/0/sale", "/dashboard/report"} {
		found := streamed.FindStringSubmatch(b.get(page).body)
		if found == nil {
			t.Fatalf("%s: no stream", page)
		}
		link, path := found[1], ""
		testkit.Equal(t, "a link is streamed on "+page, link != "", page == "/dashboard/links/0/sale")
		if link != "" {
			path = "?link=" + link
		}
		open := func(client *http.Client) *http.Response {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+"/dashboard/live"+path, nil)
			testkit.Must(t, err)
			res, err := client.Do(req)
			testkit.Must(t, err)
			t.Cleanup(func() { res.Body.Close() })
			return res
		}
		res := open(b.client)
		lines := bufio.NewScanner(res.Body)
		if !lines.Scan() || lines.Text() != "event: counts" || res.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s: %d %v %q", page, res.StatusCode, res.Header, lines.Text())
		}
		testkit.Equal(t, "status without a session", open(s.browser(t).client).StatusCode, http.StatusSeeOther)
	}
	testkit.Equal(t, "status of another's link", b.get("/dashboard/live?link=4711").status, http.StatusNotFound)
}
