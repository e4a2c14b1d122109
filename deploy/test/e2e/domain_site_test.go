package e2e_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"linkstream/api/customdomain/dnstest"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// TestSites has a default domain and an apex that send visitors somewhere whom no link leads anywhere.
func TestSites(t *testing.T) {
	t.Parallel()
	document := filepath.Join(t.TempDir(), "assetlinks.json")
	writeFile(t, document, `[{"default": 1}]`)
	dns := dnstest.Start(t)
	s := startSystem(t, longCaches, "LINKSTREAM_EDGE_ROOT_URL=https://default.example/",
		"LINKSTREAM_EDGE_NOT_FOUND_URL=https://default.example/404", "LINKSTREAM_EDGE_ASSETLINKS="+document,
		"LINKSTREAM_EDGE_EXPIRED_URL=https://default.example/late", "LINKSTREAM_API_RESOLVER="+dns.Addr(),
		"LINKSTREAM_EDGE_URL=http://"+shortHost)
	const host = "example.org"
	owner, pages := s.owner(), s.signIn(t)
	dns.Add(t, shortHost+". A 192.0.2.1", shortHost+". AAAA 2001:db8::1", host+". A 192.0.2.1")
	path := pages.post(t, "/dashboard/domains", "host", host).Header.Get("Location")
	page := pages.get(t, path)
	wantText(t, page, http.StatusOK, "A and AAAA records", "192.0.2.1", "2001:db8::1")
	dns.Add(t, "_linkstream."+host+`. TXT "`+regexp.MustCompile(`linkstream-verification=\w+`).FindString(page.Raw)+`"`)
	if a := pages.post(t, path+"/verify"); a.Status != http.StatusSeeOther {
		t.Fatal(a)
	}
	domain := decode(strings.TrimPrefix(path, "/dashboard/domains/"))
	expiry := time.Now().Add(2 * time.Second)
	for _, id := range []any{nil, domain} {
		fields := object{"long_url": "https://example.com/", "custom_alias": "late",
			"expires_at": expiry.Format(time.RFC3339)}
		if id != nil {
			fields["domain_id"] = id
		}
		owner.Link(t, fields)
	}
	// goes returns an error unless paths on a host lead to these locations, or to none.
	goes := func(host string, locations map[string]string) error {
		for path, want := range locations {
			for _, method := range []string{http.MethodHead, http.MethodGet} {
				if got := s.visit(t, method, path, "Host", host).Header.Get("Location"); got != want {
					return fmt.Errorf("%s of %s leads to %q, want %q", method, path, got, want)
				}
			}
		}
		return nil
	}
	testkit.Succeeds(t, func() error {
		got := s.visit(t, http.MethodHead, "/late", "Host", shortHost).Header.Get("Location")
		return testkit.Mismatch("location of an expired link", got, "https://default.example/late")
	})
	testkit.Must(t, goes(shortHost, map[string]string{"/": "https://default.example/",
		"/none?a=b": "https://default.example/404", "/a/b": "https://default.example/404",
		"/late": "https://default.example/late", schema.AppleLinksPath: "https://default.example/404"}))
	wantJSON := func(path, host, want string) {
		t.Helper()
		a := s.visit(t, http.MethodGet, path, "Host", host)
		if a.Raw != want || a.Header.Get("Content-Type") != "application/json" {
			t.Error(a)
		}
	}
	wantJSON(schema.AndroidLinksPath, shortHost, `[{"default": 1}]`)
	testkit.Must(t, goes(host, map[string]string{"/": "", "/none": "", "/late": ""}))
	apple := `{"applinks": "` + strings.Repeat("x", 120<<10) + `"}`
	set := map[string]string{}
	testkit.Follows(t, time.Second, func(try int) func() error {
		to := fmt.Sprint("https://own.example/", try)
		if a := pages.post(t, path+"/site", "root_url", to, "not_found_url", to+"/404", "expired_url", to+"/late",
			"apple_app_site_association", apple); a.Status != http.StatusSeeOther {
			t.Fatal(a)
		}
		set = map[string]string{"/": to, "/none": to + "/404", schema.AndroidLinksPath: to + "/404"}
		return func() error { return goes(host, set) }
	})
	wantJSON(schema.AppleLinksPath, host, apple)
	testkit.Must(t, goes(host, map[string]string{"/late": set["/"] + "/late"}))
	edge := s.programs[len(s.programs)-1]
	edge.kill(t)
	edge.start(t)
	testkit.Must(t, goes(host, set))
	owner.WaitTotal(t, "late", 1)
	owner.WaitTotal(t, fmt.Sprintf("late?domain_id=%v", domain), 1)
}
