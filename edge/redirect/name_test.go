package redirect_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// rawPaths are targets of requests as clients send them, and where they lead: "" is 404.
var rawPaths = []struct{ host, path, location string }{
	{"sho.rt", "/go-doc", doc}, {"sho.rt", "/%67o%2Ddoc", doc}, {"sho.rt", "/go-doc/", doc},
	{"sho.rt", "/go-doc.", doc}, {"sho.rt", "/go-doc&utm_source=x", doc},
	{"sho.rt", "/go-doc&utm_source=x?y=z", doc}, {"sho.rt", "/go-doc%26x", doc}, {"sho.rt", "/go-doc.?y=z", doc},
	{"sho.rt", "/go-doc/?y=z&a=b", doc}, {"sho.rt", "/go-doc%2E", doc}, {"sho.rt", "/go-doc%E2%80%8B", doc},
	{"sho.rt", "/go-doc%20", doc}, {"sho.rt", "/go-doc%C2%BB", doc}, {"sho.rt", "/go-doc»", doc},
	{"sho.rt", "/go-doc%3F", doc}, {"sho.rt", "/go-doc%22", doc}, {"sho.rt", "/go-doc%29.", doc},
	{"sho.rt", "/go-doc%0D%0A", doc}, {"sho.rt", "/go-doc%EF%BB%BF", doc},
	{"sho.rt", "/go-doc/%2E%E2%80%A6", doc}, {"sho.rt", "/go-doc&x=%2F..%2Fa/../b", doc},
	{"sho.rt", "/Go-Doc!", doc}, {"sho.rt", "/GO-DOC/&X=Y", doc}, {"sho.rt", "http://sho.rt/go-doc.", doc},
	{"sho.rt", "/go-doc;", doc}, {"sho.rt", "/go-doc'%3E", doc}, {"sho.rt", "//go-doc", ""},
	{"sho.rt", "/./go-doc", ""}, {"sho.rt", "/x/../go-doc", ""}, {"sho.rt", "/%2Fgo-doc", ""},
	{"sho.rt", "/go-doc//", ""}, {"sho.rt", "/go-doc/x", ""}, {"sho.rt", "/go-doc\\", ""},
	{"sho.rt", "/go-doc%5C", ""}, {"sho.rt", "/\\go-doc", ""}, {"sho.rt", "/go-doc%2F", ""},
	{"sho.rt", "/go-doc%2f", ""}, {"sho.rt", "/go-doc%252F", ""}, {"sho.rt", "/go-doc%252E", ""},
	{"sho.rt", "/go-doc%2Fx", ""}, {"sho.rt", "/x%2F..%2Fgo-doc", ""}, {"sho.rt", "/go-doc%FF", ""},
	{"sho.rt", "/go-doc%E2%80", ""}, {"sho.rt", "/go-doc%00", ""}, {"sho.rt", "/go-doc%", ""},
	{"sho.rt", "/go-doc%2", ""}, {"sho.rt", "/go-doc%zz", ""}, {"sho.rt", "/go-doc.....", ""},
	{"sho.rt", "/go-doc./", ""}, {"sho.rt", "/go-doc%3Fa&b", ""}, {"sho.rt", "/go-docs.", ""},
	{"sho.rt", "/docs.", ""}, {"sho.rt", "/robots.txt.", ""}, {"sho.rt", "/healthz/", ""},
	{"sho.rt", "/aBcDeFg.", automatic}, {"sho.rt", "/abcdefg.", ""}, {"sho.rt", "/ABCDEFG/", ""},
	{"go.example.com", "/own).", own}, {"go.example.com", "/OWN/&a", own}, {"go.example.com", "/go-doc.", ""},
	{"sho.rt", "/own.", ""}, {"none.example.com", "/own.", ""},
}

const doc, automatic, own = "https://doc.example/", "https://automatic.example/", "https://own.example/"

// newNamedEdge returns an edge with the links of rawPaths.
func newNamedEdge(t *testing.T) *edge {
	e := newEdge(t, nil)
	e.link(t, 0, "go-doc", doc)
	e.link(t, 0, "aBcDeFg", automatic)
	e.link(t, e.domain(t, "go.example.com", true), "own", own)
	return e
}

// A path leads where people mean it to, and each redirect is a click.
func TestRawPaths(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		e := newNamedEdge(t)
		addr := e.serve(t, loops)
		for _, method := range []string{"GET", "HEAD", "GET"} {
			for _, c := range rawPaths {
				said := say(t, addr, fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", method, c.path, c.host))
				status, want := "HTTP/1.1 404 ", c.location
				if c.location != "" {
					status, want = "HTTP/1.1 302 ", "Location: "+c.location+"\r\n"
				}
				if !strings.HasPrefix(said, status) || !strings.Contains(said, want) {
					t.Errorf("%s %s on %s: %.200q, want %q", method, c.path, c.host, said, c.location)
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

// Paths that differ from a name by what people type lead to everything that a link has.
func TestFormsOfTypedPaths(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		e := newEdge(t, nil)
		e.check = nil
		e.create(t, schema.Link{Hash: "go-doc", URL: doc, Title: "The title"})
		e.extend(t, "card", schema.Behaviour{Card: &schema.Card{Title: "The card"}})
		e.extend(t, "few", schema.Behaviour{MaxClicks: 3})
		e.extend(t, "secret", schema.Behaviour{Password: 1})
		addr := e.serve(t, loops)
		for _, c := range []struct {
			method, path, agent string
			status              int
			body                string
		}{
			{"GET", "/go-doc+", "", 200, "The title"}, {"GET", "/go-doc+.", "", 200, "The title"},
			{"GET", "/go-doc/+", "", 200, "The title"}, {"GET", "/Go-Doc.%2B%C2%BB", "", 200, "The title"},
			{"GET", "/go-doc+&utm_source=x", "", 200, "The title"}, {"HEAD", "/go-doc+/", "", 200, ""},
			{"GET", "/none+.", "", 404, ""}, {"GET", "/go+doc", "", 404, ""}, {"GET", "/+", "", 404, ""},
			{"GET", "/card.", discord, 200, "The card"}, {"GET", "/Card/&x", firefox, 302, ""},
			{"GET", "/few.", crawler, 200, "https://example.com/"}, {"GET", "/few/", firefox, 302, ""},
			{"GET", "/secret.", "", 200, `<input id="password"`}, {"POST", "/go-doc.", "", 405, ""},
			{"GET", "/.", "", 200, ""}, {"GET", "/%20", "", 200, ""},
		} {
			resp, body := send(t, addr, c.method, "http://sho.rt"+c.path, "User-Agent", c.agent)
			if resp.StatusCode != c.status || !strings.Contains(body, c.body) {
				t.Errorf("%s %s: %d %s", c.method, c.path, resp.StatusCode, body)
			}
		}
	})
}

// A grant holds for the path on which the password was entered, as the browser compares it.
func TestGrantsOfTypedPaths(t *testing.T) {
	e := newEdge(t, func(e *edge) { e.check = rightPassword })
	e.extend(t, "secret", schema.Behaviour{Password: 1})
	addr := e.serve(t, 1)
	for path, want := range map[string]string{
		"/secret": "/secret", "/secret/": "/secret/", "/Secret.": "/Secret.", "/secret&x=y": "/secret&x=y",
		"/secret%20": "/secret", "/SECRET%0D%0A": "/SECRET", "/secret;": "/secret", "/secret%3Bpath=": "",
		"/secret&%0d%0aX:%20y": "/secret",
	} {
		resp, _ := sendBody(t, addr, "POST", "http://sho.rt"+path, "password=x")
		if want == "" {
			testkit.Equal(t, path, resp.StatusCode, http.StatusMethodNotAllowed)
			continue
		}
		testkit.Equal(t, path, resp.StatusCode, http.StatusSeeOther)
		testkit.Equal(t, "path of the cookie of "+path, resp.Cookies()[0].Path, want)
		testkit.Equal(t, "injected header of "+path, resp.Header.Get("X"), "")
	}
}
