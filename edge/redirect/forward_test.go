package redirect_test

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestForwardedQuery(t *testing.T) {
	long := strings.Repeat("x", 8192-len("https://example.com/?own&#part"))
	e := newEdge(t, nil)
	for _, c := range []struct{ name, location, query, want string }{
		{"a location without a query", "https://example.com/", "a=b", "https://example.com/?a=b"},
		{"a location with a query", "https://example.com/?own=1", "a=b&c", "https://example.com/?own=1&a=b&c"},
		{"a location with an empty query", "https://example.com/?", "a=b", "https://example.com/?a=b"},
		{"a query that ends with &", "https://example.com/?own&", "a", "https://example.com/?own&&a"},
		{"a fragment stays at the end", "https://example.com/#part", "a=b", "https://example.com/?a=b#part"},
		{"a query and a fragment", "https://example.com/?own=1#part", "a=b", "https://example.com/?own=1&a=b#part"},
		{"a question mark in the fragment begins no query", "https://example.com/#part?x", "a",
			"https://example.com/?a#part?x"},
		{"a host without a path", "https://example.com", "a", "https://example.com?a"},
		{"the visitor's query is unchanged", "https://example.com/", "a=%zz+%20/?:@!$'()*,;[]{}|\\^`<>\"",
			"https://example.com/?a=%zz+%20/?:@!$'()*,;[]{}|\\^`<>\""},
		{"names that occur in both are kept twice", "https://example.com/?a=1", "a=2", "https://example.com/?a=1&a=2"},
		{"bytes that no header may have are escaped", "https://example.com/", "\r\nX: y\x00\x7f ü#z",
			"https://example.com/?%0D%0AX:%20y%00%7F%20%C3%BC%23z"},
		{"exactly as long as allowed", "https://example.com/?own#part", long, "https://example.com/?own&" + long + "#part"},
		{"too long", "https://example.com/?own#part", long + "x", "https://example.com/?own#part"},
		{"too long by escapes", "https://example.com/?own#part", long[2:] + "ü", "https://example.com/?own#part"},
	} {
		t.Run(c.name, func(t *testing.T) {
			hash := schema.NewHash()
			e.create(t, schema.Link{Hash: hash, URL: c.location, ForwardQuery: true})
			testkit.Equal(t, "location", e.location(t, hash, c.query), c.want)
		})
	}
}

// FuzzForward compares the location of a link with its location for a visitor with a query.
func FuzzForward(f *testing.F) {
	f.Add("https://example.com/?own=1#part", "a=b&c=%20")
	f.Add("https://example.com", "\r\n#")
	f.Add("https://example.com/#?", strings.Repeat("ü", 3000))
	e := newEdge(f, nil)
	f.Fuzz(func(t *testing.T, target, query string) {
		if _, err := url.Parse(target); err != nil || len(target) > schema.MaxURLLen || !utf8.ValidString(target) ||
			strings.Contains(target, "\x00") {
			return
		}
		hash := schema.NewHash()
		e.create(t, schema.Link{Hash: hash, URL: target, ForwardQuery: true})
		location := e.location(t, hash, "")
		got := e.location(t, hash, query)
		if got == location {
			return
		}
		base, fragment, _ := strings.Cut(location, "#")
		if len(got) > 8192 || !strings.HasPrefix(got, base) || !strings.HasSuffix(got, fragment) {
			t.Errorf("%q with %q: %q", location, query, got)
		}
		if strings.Count(got, "#") != strings.Count(location, "#") ||
			strings.ContainsFunc(got, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			t.Errorf("%q with %q: %q", location, query, got)
		}
		added := strings.TrimSuffix(strings.TrimPrefix(got, base), location[len(base):])
		if plain, err := url.PathUnescape(strings.TrimLeft(added, "?&")); !strings.Contains(query, "%") && err == nil &&
			!strings.HasSuffix(query, plain) {
			t.Errorf("%q with %q: added %q", location, query, added)
		}
	})
}

// location returns where a visitor with a query is sent.
func (e *edge) location(t testing.TB, hash, query string) string {
	t.Helper()
	ctx := request("http://sho.rt/"+hash, &net.TCPAddr{IP: net.IPv4(198, 51, 100, 7)})
	ctx.URI().SetQueryString(query)
	e.handler.Serve(ctx)
	testkit.Equal(t, "status", ctx.Response.StatusCode(), http.StatusFound)
	return string(ctx.Response.Header.Peek("Location"))
}

func TestPreview(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		e := newEdge(t, nil)
		e.create(t, schema.Link{Hash: "abc", URL: "https://bücher.example/<i>?a=b&c", Title: "Books & <more>",
			CreatedAt: time.Date(2026, time.March, 4, 23, 0, 0, 0, time.UTC)})
		e.create(t, schema.Link{Hash: "bare", URL: "https://example.com/"})
		e.create(t, schema.Link{Hash: "bad", URL: "https://unsafe.example/"})
		deleted := e.create(t, schema.Link{Hash: "deleted", URL: "https://example.com/"})
		testkit.Must(t, e.store.DeleteLink(t.Context(), deleted, time.Now()))
		addr := e.serve(t, loops)
		resp, body := send(t, addr, http.MethodGet, "http://sho.rt/abc+")
		for _, want := range []string{"<h1>Books &amp; &lt;more&gt;</h1>",
			`href="https://xn--bcher-kva.example/%3ci%3e?a=b&amp;c"`,
			">https://xn--bcher-kva.example/&lt;i&gt;?a=b&amp;c<", "Created on 2026-03-04"} {
			if resp.StatusCode != http.StatusOK || !strings.Contains(body, want) {
				t.Errorf("%d without %q: %s", resp.StatusCode, want, body)
			}
		}
		for name, want := range map[string]string{"X-Robots-Tag": "noindex", "Cache-Control": "no-store", "Location": ""} {
			testkit.Equal(t, name, resp.Header.Get(name), want)
		}
		if resp, body := send(t, addr, http.MethodGet, "http://sho.rt/bare%2B"); resp.StatusCode != http.StatusOK ||
			!strings.Contains(body, "<h1>Where this link leads</h1>") {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
		for path, want := range map[string]int{"/deleted+": 410, "/bad+": 410, "/none+": 404, "/+": 404, "/abc++": 404,
			"/abc+?x": 200} {
			if resp, _ := send(t, addr, http.MethodGet, "http://sho.rt"+path); resp.StatusCode != want {
				t.Errorf("%s: %d, want %d", path, resp.StatusCode, want)
			}
		}
		testkit.Equal(t, "clicks", len(e.clicks(t)), 0)
		e.store.inject(func() error { return errors.New("connection refused") })
		if resp, _ := send(t, addr, http.MethodGet, "http://sho.rt/abc+"); resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("without the store: %d", resp.StatusCode)
		}
	})
}

func TestPreviewsAreBounded(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		e := newEdge(t, nil)
		e.create(t, schema.Link{Hash: "abc", URL: "https://example.com/"})
		addr := e.serve(t, loops)
		answers := map[int]int{}
		for range 300 {
			resp, _ := send(t, addr, http.MethodGet, "http://sho.rt/abc+")
			if answers[resp.StatusCode]++; resp.StatusCode == http.StatusTooManyRequests &&
				resp.Header.Get("Retry-After") == "" {
				t.Fatal("no Retry-After")
			}
		}
		if answers[200] < 200 || answers[429] == 0 || answers[200]+answers[429] != 300 {
			t.Errorf("answers by status: %v", answers)
		}
		resp, _ := send(t, addr, http.MethodGet, "http://sho.rt/abc")
		testkit.Equal(t, "the link", resp.StatusCode, http.StatusFound)
	})
}
