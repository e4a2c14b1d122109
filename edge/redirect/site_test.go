package redirect_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/service"
	"linkstream/schema/testkit"
)

// newSiteEdge returns an edge whose default domain has a site, as has go.example.com, and an expired link on both.
func newSiteEdge(t testing.TB) (e *edge, domain int64) {
	e = newEdge(t, func(e *edge) {
		e.site = schema.Site{RootURL: "https://default.example/", NotFoundURL: "https://default.example/404",
			ExpiredURL: "https://default.example/late"}
		e.appLinks = schema.AppLinks{Apple: `{"default":1}`}
		e.cfg.Contacts = service.Contacts{"mailto:security@sho.rt"}
	})
	domain = e.domain(t, "go.example.com", true)
	testkit.Must(t, e.store.SetSite(t.Context(), domain,
		schema.Site{RootURL: "https://own.example/ü", NotFoundURL: "https://own.example/404",
			ExpiredURL: "https://own.example/late"}, schema.AppLinks{Android: "[1]"}))
	e.domain(t, "plain.example.com", true)
	for _, id := range []int64{0, domain, domain + 1} {
		for hash, url := range map[string]string{"late": "", "moved": "https://example.com/moved"} {
			e.create(t, schema.Link{DomainID: id, Hash: hash, URL: "https://example.com/", ForwardQuery: true,
				ExpiresAt: time.Now(), ExpiredURL: url})
		}
	}
	return e, domain
}

func TestSites(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		e, domain := newSiteEdge(t)
		addr := e.serve(t, loops)
		clicks := 0
		for _, c := range []struct {
			host, path string
			status     int
			location   string
			click      bool
		}{
			{"sho.rt", "/", 302, "https://default.example/", false},
			{"sho.rt", "/?a=b", 302, "https://default.example/", false},
			{"sho.rt", "/none", 302, "https://default.example/404", false},
			{"sho.rt", "/NONE", 302, "https://default.example/404", false},
			{"sho.rt", "/a/b", 302, "https://default.example/404", false},
			{"sho.rt", "/none+", 302, "https://default.example/404", false},
			{"sho.rt", "/.well-known/other", 302, "https://default.example/404", false},
			{"sho.rt", "/late?a=b", 302, "https://default.example/late?a=b", true},
			{"sho.rt", "/moved?a=b", 302, "https://example.com/moved?a=b", true},
			{"127.0.0.1", "/", 302, "https://default.example/", false},
			{"go.example.com", "/", 302, "https://own.example/%C3%BC", false},
			{"go.example.com.:80", "/a/b", 302, "https://own.example/404", false},
			{"go.example.com", "/none?a=b", 302, "https://own.example/404", false},
			{"go.example.com", "/late", 302, "https://own.example/late", true},
			{"go.example.com", "/moved", 302, "https://example.com/moved", true},
			{"go.example.com", "/robots.txt", 200, "", false},
			{"plain.example.com", "/", 200, "", false},
			{"plain.example.com", "/none", 404, "", false},
			{"plain.example.com", "/a/b", 404, "", false},
			{"plain.example.com", "/late", 410, "", false},
			{"unknown.example.com", "/", 200, "", false},
			{"unknown.example.com", "/none", 404, "", false},
		} {
			for range 2 { // looked up, and from memory
				for _, method := range []string{"GET", "HEAD"} {
					resp, _ := send(t, addr, method, "http://"+c.host+c.path)
					if got := resp.Header.Get("Location"); resp.StatusCode != c.status || got != c.location {
						t.Errorf("%s of %s on %s: %d to %q, want %d to %q", method, c.path, c.host, resp.StatusCode, got,
							c.status, c.location)
					}
				}
				if c.click {
					clicks++
				}
			}
		}
		testkit.Equal(t, "clicks", len(e.clicks(t)), clicks)
		for series, want := range map[string]int{
			`host="sho.rt",from="root"`: 12, `host="sho.rt",from="not_found"`: 20, `host="go.example.com",from="root"`: 4,
			`host="go.example.com",from="not_found"`: 8,
		} {
			testkit.Equal(t, series, e.metric(t, "linkstream_edge_site_redirects_total{"+series+"}"), want)
		}
		testkit.Must(t, e.store.SetSite(t.Context(), domain, schema.Site{NotFoundURL: "https://own.example/new"},
			schema.AppLinks{}))
		e.resolver.Drop(schema.Change{Host: "go.example.com"})
		for path, want := range map[string]string{"/": "200 ", "/none": "302 https://own.example/new", "/late": "410 "} {
			resp, _ := send(t, addr, "GET", "http://go.example.com"+path)
			testkit.Equal(t, path+" after a change", fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("Location")), want)
		}
	})
}

// The default domain has a security.txt. Custom domains belong to others.
func TestSecurityText(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		e, _ := newSiteEdge(t)
		addr := e.serve(t, loops)
		for host, want := range map[string]int{"sho.rt": 200, "SHO.RT.:80": 200, "127.0.0.1": 200, "go.example.com": 302,
			"plain.example.com": 404, "unknown.example.com": 404} {
			resp, body := send(t, addr, "GET", "http://"+host+service.SecurityPath)
			testkit.Equal(t, host, resp.StatusCode, want)
			if found := strings.HasPrefix(body, "Contact: mailto:security@sho.rt\nExpires: "); found != (want == 200) {
				t.Errorf("%s: %s", host, body)
			}
		}
	})
}

// A site URL that leads to a blocked host is ignored; expired links answer 410.
func TestBlockedSite(t *testing.T) {
	e, domain := newSiteEdge(t)
	const unsafe = "https://unsafe.example/"
	testkit.Must(t, e.store.SetSite(t.Context(), domain,
		schema.Site{RootURL: unsafe, NotFoundURL: unsafe, ExpiredURL: unsafe}, schema.AppLinks{}))
	addr := e.serve(t, 1)
	for path, want := range map[string]int{"/": 200, "/none": 404, "/late": 410} {
		resp, _ := send(t, addr, "GET", "http://go.example.com"+path)
		testkit.Equal(t, path, resp.StatusCode, want)
	}
}

func TestCountedHostsAreBounded(t *testing.T) {
	e := newEdge(t, nil)
	addr := e.serve(t, 1)
	for i := range 503 {
		host := fmt.Sprint("h", i, ".example.com")
		testkit.Must(t, e.store.SetSite(t.Context(), e.domain(t, host, true), schema.Site{RootURL: "https://own.example/"},
			schema.AppLinks{}))
		resp, _ := send(t, addr, "GET", "http://"+host+"/")
		testkit.Equal(t, "status", resp.StatusCode, 302)
	}
	testkit.Equal(t, "counted together", e.metric(t, `linkstream_edge_site_redirects_total{host="other",from="root"}`), 3)
}

func TestAppLinks(t *testing.T) {
	const apple, android = schema.AppleLinksPath, schema.AndroidLinksPath
	eachWay(t, func(t *testing.T, loops int) {
		e, domain := newSiteEdge(t)
		addr := e.serve(t, loops)
		want := func(host, path string, status int, body string) {
			t.Helper()
			resp, got := send(t, addr, "GET", "http://"+host+path)
			if resp.StatusCode != status || status == 200 &&
				(got != body || resp.Header.Get("Content-Type") != "application/json") {
				t.Errorf("%s on %s: %d %v %q", path, host, resp.StatusCode, resp.Header, got)
			}
			resp, got = send(t, addr, "HEAD", "http://"+host+path)
			if resp.StatusCode != status || got != "" {
				t.Errorf("HEAD of %s on %s: %d %q", path, host, resp.StatusCode, got)
			}
		}
		want("sho.rt", apple, 200, `{"default":1}`)
		want("sho.rt", android, 302, "")
		want("go.example.com", apple, 302, "")
		want("go.example.com", android, 200, "[1]")
		want("plain.example.com", apple, 404, "")
		want("unknown.example.com", apple, 404, "")
		large := `"` + strings.Repeat("x", schema.MaxAppLinks-2) + `"`
		testkit.Must(t, e.store.SetSite(t.Context(), domain, schema.Site{}, schema.AppLinks{Apple: large}))
		e.resolver.Drop(schema.Change{Host: "go.example.com"})
		want("go.example.com", apple, 200, large)
		want("go.example.com", android, 404, "")
		e.store.inject(func() error { return errors.New("down") })
		want("sho.rt", apple, 200, `{"default":1}`)
		want("go.example.com", apple, 503, "")
		want("plain.example.com", apple, 404, "")
	})
}
