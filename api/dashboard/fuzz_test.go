package dashboard_test

import (
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"linkstream/api/dashboard"
)

// FuzzNextPath checks that, for every address that names a page, a sign-in
//   - leads to a page of the dashboard, on this host,
//   - by an address that needs no escapes in a header.
func FuzzNextPath(f *testing.F) {
	for _, next := range []string{"", "/dashboard", "/dashboard/links?page=2", "//evil.example",
		"/dashboard\\evil", "/dashboard/\x00", "/dashboard/../..//evil.example", "https://evil.example/dashboard",
		"/dashboard?next=//evil"} {
		f.Add(next)
	}
	base := &url.URL{Scheme: "https", Host: "links.example.org", Path: "/dashboard/sign-in"}
	f.Fuzz(func(t *testing.T, next string) {
		path := dashboard.NextPath(next)
		for i := range len(path) {
			if path[i] <= ' ' || path[i] >= 0x7f {
				t.Fatalf("%q leads to %q", next, path)
			}
		}
		if !strings.HasPrefix(path, "/dashboard") {
			t.Fatalf("%q leads to %q", next, path)
		}
		if to, err := base.Parse(path); err == nil && (to.Scheme != base.Scheme || to.Host != base.Host) {
			t.Errorf("%q leads to %v", next, to)
		}
	})
}

// FuzzBrowserName checks that every User-Agent header has a name, at most 40 bytes longer than the header.
func FuzzBrowserName(f *testing.F) {
	for _, agent := range []string{"", "curl/8.0", "(", ";;(/",
		"Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"} {
		f.Add(agent)
	}
	f.Fuzz(func(t *testing.T, agent string) {
		if name := dashboard.BrowserName(agent); name == "" || len(name) > len(agent)+40 {
			t.Errorf("%q is %q", agent, name)
		}
	})
}

// FuzzForm checks that no cookie and no form makes the dashboard fail, and that a cookie without a session leads to the
// sign-in page only.
func FuzzForm(f *testing.F) {
	for _, seed := range []struct{ path, cookie, form string }{
		{"/dashboard/links", "", "long_url=https://example.com/&custom_alias=abc&domain_id=0"},
		{"/dashboard/links", "", "long_url=%00%ff%zz&domain_id=99999999999999999999&&=;"},
		{"/dashboard/links/0/abc/active", "", "active=true"},
		{"/dashboard/links/0/abc/edit", "", "long_url=a.b/?%23&title=%00&tags=a,,b+%ff&utm_source=%26"},
		{"/dashboard/tags/a/rename", "", "new_tag=%00&merge=b"},
		{"/dashboard/domains", "", "host=go.example.com"},
		{"/dashboard/domains", "", "host=%e2%80%ae..&host=b"},
		{"/dashboard/domains/-1/remove", "", ""},
		{"/dashboard/tokens", "", "name=%f0%9f%98%80"},
		{"/dashboard/tokens/revoke", "", "id=1.5"},
		{"/dashboard/sign-in", "linkstream=x; linkstream_notice=a.b", "next=//evil.example"},
		{"/dashboard/account/sessions/end", "linkstream=\"", "id="},
		{"/dashboard/links/0/abc/clicks.csv?period=-7&page=%zz", "", ""},
	} {
		f.Add(seed.path, seed.cookie, seed.form)
	}
	s := start(f, unpaced)
	owner := s.signedIn(f)
	csrf := csrfField.FindStringSubmatch(owner.get("/dashboard/account").body)[1]
	session := "linkstream=" + owner.session()
	client := &http.Client{Transport: owner.client.Transport, CheckRedirect: owner.client.CheckRedirect}
	f.Fuzz(func(t *testing.T, path, cookie, form string) {
		if path == "/dashboard/links/0/abc/edit" {
			window := owner.copy()
			window.t = t
			if version := versionField.FindStringSubmatch(window.get(path).body); version != nil {
				form = "version=" + version[1] + "&" + form
			}
		}
		for _, method := range []string{http.MethodPost, http.MethodGet} {
			req, err := http.NewRequestWithContext(t.Context(), method, s.base+path, strings.NewReader("csrf="+csrf+"&"+form))
			if err != nil || !strings.HasPrefix(path, "/dashboard/") || method == http.MethodPost && costly.MatchString(path) {
				return
			}
			req.Header = http.Header{"Origin": {s.base}, "Sec-Fetch-Site": {"same-origin"},
				"Content-Type": {"application/x-www-form-urlencoded"}, "Cookie": {session}}
			if cookie != "" {
				req.Header.Set("Cookie", cookie)
			}
			res, err := client.Do(req)
			if err != nil {
				return // the client does not understand the path
			}
			res.Body.Close()
			if res.StatusCode >= 500 || s.log.Contains("panic") {
				t.Fatalf("%s %q with cookie %q and %q: answered %d\n%s", method, path, cookie, form, res.StatusCode, s.log.String())
			}
			if cookie != "" && !strings.Contains(cookie, session) && res.StatusCode == http.StatusOK && !open(path) {
				t.Fatalf("%s %q: the cookie %q is enough", method, path, cookie)
			}
		}
	})
}

// FuzzUpload checks that every form has a file or an error, and no file without the session's token before it.
func FuzzUpload(f *testing.F) {
	const part = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.csv\"\r\n\r\nno column\r\n--b--\r\n"
	for _, seed := range []struct{ kind, body string }{
		{"multipart/form-data; boundary=b", part},
		{"multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=csrf\r\n\r\nright\r\n" + part},
		{"multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"csrf\"\r\n\r\nx\r\n" + part},
		{"multipart/form-data", part}, {"multipart/form-data; boundary=\"", ""}, {"multipart/mixed; boundary=b", part},
		{"text/csv", "a,b\n"},
		{"multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; " +
			"name=\"domain_id\"\r\n\r\n-1\r\n--b\r\n\r\n\r\n--b"},
	} {
		f.Add(seed.kind, seed.body)
	}
	f.Fuzz(func(t *testing.T, kind, body string) {
		file, choice, err := dashboard.ReadFileForm(strings.NewReader(body), kind,
			func(token []byte) bool { return string(token) == "right" })
		if (file == nil) == (err == nil) || choice.DomainID != nil && *choice.DomainID <= 0 {
			t.Fatalf("%q with %q: file %v, %+v, error %v", kind, body, file, choice, err)
		}
		if file == nil {
			return
		}
		if !strings.Contains(body, "right") {
			t.Fatalf("%q with %q is taken without the token", kind, body)
		}
		if n, _ := io.Copy(io.Discard, file); n > int64(len(body)) {
			t.Fatalf("%q with %q has a file of %d bytes", kind, body, n)
		}
	})
}

// costly are the paths of forms that hash a password, end the session, or ask name servers.
var costly = regexp.MustCompile(`sign-|password|verify`)

// open reports whether a page is for everybody.
func open(path string) bool {
	return strings.HasPrefix(path, "/dashboard/sign-") || strings.HasPrefix(path, "/dashboard/assets")
}
