package redirect_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// behindPaths are targets of requests as clients send them, and where they lead: "" is 404.
var behindPaths = []struct{ path, location string }{
	// appended
	{"/go", "https://a.example/b?c=d#e"}, {"/go/", "https://a.example/b?c=d#e"},
	{"/go/x", "https://a.example/b/x?c=d#e"}, {"/go/x/y", "https://a.example/b/x/y?c=d#e"},
	{"/go/x/", "https://a.example/b/x/?c=d#e"}, {"/%67o/x", "https://a.example/b/x?c=d#e"},
	{"/go/x?y=z", "https://a.example/b/x?c=d#e"}, {"/go/%78%2Fy", "https://a.example/b/%78%2Fy?c=d#e"},
	{"/go/x%2fy", "https://a.example/b/x%2fy?c=d#e"}, {"/go/%252Fx", "https://a.example/b/%252Fx?c=d#e"},
	{"/go/%252e%252E", "https://a.example/b/%252e%252E?c=d#e"}, {"/go/%", "https://a.example/b/%?c=d#e"},
	{"/go/x%3Fy%23z", "https://a.example/b/x%3Fy%23z?c=d#e"}, {"/go/ä", "https://a.example/b/%C3%A4?c=d#e"},
	{"/go/%C3%A4", "https://a.example/b/%C3%A4?c=d#e"}, {"/go/x&y=z", "https://a.example/b/x&y=z?c=d#e"},
	{"/go/x.", "https://a.example/b/x.?c=d#e"}, {"/go/@evil.example", "https://a.example/b/@evil.example?c=d#e"},
	{"/go/:80", "https://a.example/b/:80?c=d#e"}, {"/go/https:x", "https://a.example/b/https:x?c=d#e"},
	{"/go/%0d%0aX:y", "https://a.example/b/%0d%0aX:y?c=d#e"}, {"http://sho.rt/go/x", "https://a.example/b/x?c=d#e"},
	{"/go/...", "https://a.example/b/...?c=d#e"}, {"/go/.x", "https://a.example/b/.x?c=d#e"},
	{"/go/X+y", "https://a.example/b/X+y?c=d#e"},
	// refused
	{"//go/x", ""}, {"/go//x", ""}, {"/go//", ""}, {"/go/x//", ""}, {"/go/x//y", ""}, {"/go/./x", ""}, {"/go/../x", ""},
	{"/go/x/..", ""}, {"/go/.", ""}, {"/go/..", ""}, {"/go/%2e%2e/x", ""}, {"/go/.%2E", ""}, {"/go/%2E", ""},
	{"/go/\\x", ""}, {"/go/x\\..\\y", ""}, {"/go/%5Cx", ""}, {"/go/x/%5c", ""}, {"/go/%2Fx", ""}, {"/go/%2fx", ""},
	{"/go/%2F%2Fevil.example", ""}, {"/go/x/%2Fy", ""}, {"/go/..%2Fx", ""}, {"/go/x%2F..%2Fy", ""},
	{"/go%2Fx", ""}, {"/go%2fx", ""}, {"/go%252Fx", ""}, {"/GO/x", ""}, {"/x/../go/y", ""}, {"/go\\x", ""},
	// the target has no path, or one with a slash at its end
	{"/host/x", "https://host.example/x"}, {"/host/", "https://host.example"}, {"/hosted/x", "https://host.example/x?q"},
	{"/slash/x/y", "https://slash.example/a/x/y"}, {"/folder/x", "https://slash.example/a//x"},
	// names with a slash
	{"/go/own", "https://own.example/"}, {"/go/own.", "https://a.example/b/own.?c=d#e"},
	{"/go%2Fown", ""}, {"/go%2fown", ""}, {"/go%252Fown", ""}, {"/go/own/x", "https://a.example/b/own/x?c=d#e"},
	{"/go/OWN", "https://a.example/b/OWN?c=d#e"}, {"/plain/Own", "https://own.example/"},
	{"/PLAIN/own/", "https://own.example/"},
	{"/plain/own&x=/y", "https://own.example/"}, {"/plain%2Fown", ""}, {"/plain//own", ""}, {"/plain/./own", ""},
	{"/plain\\own", ""}, {"/plain/own/x", ""}, {"/plain/own%2F", ""}, {"/pl%61in/%6Fwn", "https://own.example/"},
	{"/go/deep/x/y", "https://deep.example/x/y"}, {"/go/deep", "https://deep.example/"},
	// ignored
	{"/left/x/y", "https://left.example/a?b"}, {"/left/", "https://left.example/a?b"}, {"/left//x", ""},
	{"/left/../x", ""}, {"/left/%2Fx", ""}, {"/none/x", ""}, {"/none/", "https://none.example/"}, {"/unset/x", ""},
	// patterns
	{"/find", "https://find.example/?q=&r=s"}, {"/find/", "https://find.example/?q=&r=s"},
	{"/find/x", "https://find.example/?q=x&r=s"}, {"/find/x/y", "https://find.example/?q=x%2Fy&r=s"},
	{"/find/a%26b%3Dc", "https://find.example/?q=a%26b%3Dc&r=s"}, {"/find/a&b=c", "https://find.example/?q=a%26b%3Dc&r=s"},
	{"/find/%252F", "https://find.example/?q=%252F&r=s"}, {"/find/a+b", "https://find.example/?q=a%2Bb&r=s"},
	{"/find/ä%20~", "https://find.example/?q=%C3%A4%20~&r=s"}, {"/find//x", ""}, {"/find/../x", ""},
	{"/fill", "https://fill.example//end/#{path}"}, {"/fill/x/y", "https://fill.example/x/y/end/x/y#{path}"},
	{"/fill/x%2Fy;z", "https://fill.example/x/y%3Bz/end/x/y%3Bz#{path}"}, {"/fill/%2e%2e", ""},
	{"/old", "https://old.example/{path}"}, {"/old/x", "https://old.example/{path}/x"},
	{"/coded/x", "https://coded.example/%7Bpath%7D/x"},
}

// newPathEdge returns an edge with the links of behindPaths.
func newPathEdge(t *testing.T) *edge {
	e := newEdge(t, nil)
	create := func(hash, url string, mode schema.PathMode, pattern bool) {
		e.create(t, schema.Link{Hash: hash, URL: url, Behaviour: &schema.Behaviour{PathMode: mode, Pattern: pattern}})
	}
	create("go", "https://a.example/b?c=d#e", schema.PathAppend, false)
	create("host", "https://host.example", schema.PathAppend, false)
	create("hosted", "https://host.example?q", schema.PathAppend, false)
	create("slash", "https://slash.example/a/", schema.PathAppend, false)
	create("folder", "https://slash.example/a//", schema.PathAppend, false)
	create("go/deep", "https://deep.example/", schema.PathAppend, false)
	create("left", "https://left.example/a?b", schema.PathIgnore, false)
	create("none", "https://none.example/", schema.PathNone, false)
	create("find", "https://find.example/?q={path}&r=s", "", true)
	create("fill", "https://fill.example/{path}/end/{path}#{path}", "", true)
	create("old", "https://old.example/{path}", schema.PathAppend, false)
	create("coded", "https://coded.example/%7Bpath%7D", schema.PathAppend, false)
	for hash, url := range map[string]string{"go/own": own, "plain/own": own, "unset": doc} {
		e.link(t, 0, hash, url)
	}
	return e
}

// A path behind a name leads where the link says, as it was sent, and each redirect is a click of the link.
func TestPathsBehindNames(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		e := newPathEdge(t)
		addr := e.serve(t, loops)
		for _, method := range []string{"GET", "HEAD", "GET"} {
			for _, c := range behindPaths {
				said := say(t, addr, fmt.Sprintf("%s %s HTTP/1.1\r\nHost: sho.rt\r\nConnection: close\r\n\r\n", method, c.path))
				status, want := "HTTP/1.1 404 ", c.location
				if c.location != "" {
					status, want = "HTTP/1.1 302 ", "Location: "+c.location+"\r\n"
				}
				if !strings.HasPrefix(said, status) || !strings.Contains(said, want) {
					t.Errorf("%s %s: %.200q, want %q", method, c.path, said, c.location)
				}
				clicks := 0
				if c.location != "" && method == "GET" {
					clicks = 1
				}
				testkit.Equal(t, "clicks of "+method+" "+c.path, len(e.clicks(t)), clicks)
			}
		}
	})
}

// The click of a path says which one it was, decoded once.
func TestClicksOfPaths(t *testing.T) {
	e := newPathEdge(t)
	addr := e.serve(t, 1)
	for path, want := range map[string]string{
		"/go": "", "/go/": "", "/go/x/y": "x/y", "/go/x%2Fy%20%C3%A4%252F": "x/y ä%2F", "/left/x/": "x/", "/find/a&b": "a&b",
		"/go/own": "", "/go/" + strings.Repeat("x", 1000): strings.Repeat("x", schema.MaxPathLen),
	} {
		send(t, addr, "GET", "http://sho.rt"+path)
		clicks := e.clicks(t)
		testkit.Equal(t, "clicks of "+path, len(clicks), 1)
		testkit.Equal(t, path, string(clicks[0].Path), want)
	}
}

// Locations, and paths that are left out, have at most 8 KiB.
func TestLongPaths(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		e := newPathEdge(t)
		addr := e.serve(t, loops)
		const most = 8 << 10
		for _, c := range []struct {
			path   string
			status int
		}{
			{"/host/" + strings.Repeat("x", most-len("https://host.example/")), http.StatusFound},
			{"/host/" + strings.Repeat("x", most-len("https://host.example/")+1), http.StatusRequestURITooLong},
			{"/left/" + strings.Repeat("x", most), http.StatusFound},
			{"/left/" + strings.Repeat("x", most+1), http.StatusRequestURITooLong},
			{"/find/" + strings.Repeat("%2B", most/3), http.StatusRequestURITooLong},
			{"/fill/" + strings.Repeat("x", most/2), http.StatusRequestURITooLong},
			{"/host/" + strings.Repeat("x", 20<<10), http.StatusRequestURITooLong},
			{"/unset/" + strings.Repeat("x", 20<<10), http.StatusNotFound},
		} {
			resp, _ := send(t, addr, "GET", "http://sho.rt"+c.path)
			testkit.Equal(t, fmt.Sprintf("%.10s and %d bytes", c.path, len(c.path)), resp.StatusCode, c.status)
			clicks := 0
			if c.status == http.StatusFound {
				clicks = 1
			}
			testkit.Equal(t, "clicks", len(e.clicks(t)), clicks)
		}
	})
}

// Everything that a link has holds for the paths behind its name, too.
func TestBehavioursOfPaths(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		e := newEdge(t, func(e *edge) { e.check = rightPassword })
		add := func(hash string, change func(*schema.Link)) {
			link := schema.Link{Hash: hash, URL: "https://a.example/?q",
				Behaviour: &schema.Behaviour{PathMode: schema.PathAppend}}
			change(&link)
			e.create(t, link)
		}
		past := time.Now().Add(-time.Hour)
		add("card", func(l *schema.Link) { l.Behaviour.Card = &schema.Card{Title: "The card"} })
		add("few", func(l *schema.Link) { l.Behaviour.MaxClicks = 1 })
		add("ruled", func(l *schema.Link) { l.Behaviour.Rules = rules(schema.Conditions{Device: []string{"mobile"}}) })
		add("a/secret", func(l *schema.Link) { l.Behaviour.Password = 1 })
		add("late", func(l *schema.Link) { l.ExpiresAt, l.ExpiredURL = past, "https://late.example/" })
		add("over", func(l *schema.Link) { l.ExpiresAt = past })
		add("forward", func(l *schema.Link) { l.ForwardQuery = true })
		add("unsafe", func(l *schema.Link) { l.URL = "https://unsafe.example/" })
		add("find", func(l *schema.Link) {
			l.URL, l.ForwardQuery, l.Behaviour = "https://a.example/{path}?q={path}", true, &schema.Behaviour{Pattern: true}
		})
		addr := e.serve(t, loops)
		for _, c := range []struct {
			path, agent string
			status      int
			want        string // of the location, or else of the body
		}{
			{"/card/x", discord, 200, `"https://a.example/x?q"`}, {"/card/x", firefox, 302, "https://a.example/x?q"},
			{"/few/x", crawler, 200, "https://a.example/x?q"}, {"/few/x", firefox, 302, "https://a.example/x?q"},
			{"/few/x", firefox, 410, ""}, {"/few", firefox, 410, ""}, {"/few/x+", firefox, 410, ""},
			{"/ruled/x", iPhone, 302, "https://example.com/0/x"}, {"/ruled/x", firefox, 302, "https://a.example/x?q"},
			{"/a/secret/x", firefox, 200, `<input id="password"`}, {"/late/x", firefox, 302, "https://late.example/"},
			{"/over/x", firefox, 410, ""}, {"/unsafe/x", firefox, 410, ""}, {"/unsafe/x+", firefox, 410, ""},
			{"/over/../x", firefox, 404, ""}, {"/forward/x?y=z", firefox, 302, "https://a.example/x?q&y=z"},
			{"/find/x?y=z", firefox, 302, "https://a.example/x?q=x&y=z"},
			{"/find+", firefox, 200, "https://a.example/{path}?q={path}"},
			{"/find/x+", firefox, 200, "https://a.example/x?q=x"}, {"/find/+", firefox, 200, "{path}"},
			{"/forward/x/y%2B", firefox, 200, "https://a.example/x/y?q"}, {"/forward/x//+", firefox, 404, ""},
			{"/forward/%2e%2e+", firefox, 404, ""}, {"/find/x%20y+.", firefox, 200, "https://a.example/x%20y?q=x%20y"},
		} {
			resp, body := send(t, addr, "GET", "http://sho.rt"+c.path, "User-Agent", c.agent)
			location := resp.Header.Get("Location")
			if resp.StatusCode != c.status || !strings.Contains(location+body, c.want) ||
				c.status == 302 && !strings.HasSuffix(location, c.want) {
				t.Errorf("%s: %d %q %s, want %d %s", c.path, resp.StatusCode, location, body, c.status, c.want)
			}
		}
		for path, want := range map[string]string{"/a/secret": "/a/secret", "/a/secret/x/y": "/a/secret",
			"/a/%73ecret/x%20y": "/a/secret", "/a/secret/x;y": "/a/secret"} {
			resp, _ := sendBody(t, addr, "POST", "http://sho.rt"+path, "password=x")
			testkit.Equal(t, path, resp.StatusCode, http.StatusSeeOther)
			testkit.Equal(t, "path of the cookie of "+path, resp.Cookies()[0].Path, want)
		}
	})
}
