package dashboard_test

import (
	"net/url"
	"strings"
	"testing"

	"linkstream/api/dashboard"
)

// FuzzNextPath checks that, whatever an address asks for, a sign-in
//   - leads to a page of the dashboard, on this host,
//   - by an address that needs no escapes in a header.
func FuzzNextPath(f *testing.F) {
	for _, next := range []string{"", "/dashboard", "/dashboard/links?page=2", "//evil.example",
		"/dashboard\\evil", "/dashboard/\x00", "/dashboard/../..//evil.example", "https://evil.example/dashboard", "/dashboard?next=//evil"} {
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

// FuzzBrowserName checks that no User-Agent header does harm: it says something, shorter than the header or so.
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
