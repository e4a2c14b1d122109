package rest_test

import (
	"context"
	"encoding/json"
	"go/format"
	"html"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"linkstream/schema/testkit"
)

// maxReference is the size of the page in bytes.
const maxReference = 250 << 10

func TestReference(t *testing.T) {
	s := start(t)
	owner, nobody := s.caller(t, "docs@example.org"), caller{testService: s}
	page := nobody.get(t, "/api/v1/docs")
	testkit.Equal(t, "status", page.status, http.StatusOK)

	t.Run("needs no token, and is like pages of the dashboard", func(t *testing.T) {
		dashboard := nobody.request(t, http.MethodGet, "/dashboard/sign-in", "")
		for _, name := range []string{"Content-Type", "Content-Security-Policy", "Referrer-Policy", "X-Frame-Options"} {
			if got, want := page.header.Get(name), dashboard.header.Get(name); got != want || got == "" {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
		testkit.Equal(t, "limit", page.header.Get("X-RateLimit-Limit"), "")
		testkit.Equal(t, "HEAD", nobody.request(t, http.MethodHead, "/api/v1/docs/", "").status, http.StatusOK)
		testkit.Equal(t, "POST", nobody.request(t, http.MethodPost, "/api/v1/docs", "").status, http.StatusUnauthorized)
		post := owner.request(t, http.MethodPost, "/api/v1/docs", "{}")
		testkit.Equal(t, "POST with a token", post.status, http.StatusMethodNotAllowed)
	})
	t.Run("is compressed, and sent again only if it has changed", func(t *testing.T) {
		for _, coding := range []string{"", "gzip"} {
			a := nobody.request(t, http.MethodGet, "/api/v1/docs", "", "Accept-Encoding", coding)
			testkit.Equal(t, "coding", a.header.Get("Content-Encoding"), coding)
			wantVary(t, a, "Accept-Encoding")
			a = nobody.request(t, http.MethodGet, "/api/v1/docs", "", "If-None-Match", `"x", `+a.header.Get("ETag"))
			if a.status != http.StatusNotModified || a.raw != "" {
				t.Errorf("status %d with %d bytes", a.status, len(a.raw))
			}
		}
	})
	t.Run("is small and whole", func(t *testing.T) {
		if len(page.raw) > maxReference {
			t.Errorf("%d bytes", len(page.raw))
		}
		if found := regexp.MustCompile(`(src|href|action)="[^/#"][^"]*"|="//`).FindString(page.raw); found != "" {
			t.Errorf("it needs %s", found)
		}
		ids := map[string]int{}
		for _, id := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(page.raw, -1) {
			if ids[id[1]]++; ids[id[1]] > 1 {
				t.Errorf("several elements are %q", id[1])
			}
		}
		for _, link := range regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(page.raw, -1) {
			if ids[link[1]] == 0 {
				t.Errorf("a link leads to %q", link[1])
			}
		}
	})
	t.Run("names every operation, parameter, answer and field", func(t *testing.T) { checkNamed(t, page.raw) })
	t.Run("is named where programs and people look", func(t *testing.T) {
		for _, path := range []string{"/llms.txt", "/api/v1/openapi.json"} {
			if a := nobody.get(t, path); a.status != http.StatusOK || !strings.Contains(a.raw, "/api/v1/docs") {
				t.Errorf("%s: %d %.200s", path, a.status, a.raw)
			}
		}
	})
	t.Run("tools are named where assistants look", func(t *testing.T) {
		if a := nobody.get(t, "/llms.txt"); !strings.Contains(a.raw, "/api/v1/mcp") {
			t.Error(a.raw)
		}
	})
	t.Run("has examples of curl that succeed", func(t *testing.T) {
		checkCurl(t, s.caller(t, "curl@example.org"), examplesOf(page.raw, "curl"))
	})
	t.Run("has examples in every language, formatted", func(t *testing.T) {
		doc, err := openapi3.NewLoader().LoadFromFile("openapi.json")
		testkit.Must(t, err)
		for _, language := range []string{"Go", "Python", "TypeScript"} {
			found := examplesOf(page.raw, language)
			if n := len(doc.Paths.Map()); len(found) < n {
				t.Errorf("%s: %d of more than %d", language, len(found), n)
			}
			for _, e := range found {
				formatted, err := format.Source([]byte(e.text))
				if language == "Go" && (err != nil || string(formatted) != e.text) {
					t.Errorf("%v\n%s", err, e.text)
				}
			}
		}
	})
}

// checkNamed requires that a page explains everything in the document.
func checkNamed(t *testing.T, page string) {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("openapi.json")
	testkit.Must(t, err)
	want := func(parts ...string) {
		if text := strings.Join(parts, ""); !strings.Contains(page, text) {
			t.Errorf("the page lacks %s", text)
		}
	}
	escaped := strings.NewReplacer("`", "", "&", "&amp;", "<", "&lt;", ">", "&gt;").Replace
	page = strings.NewReplacer("<code>", "", "</code>", "", "&#39;", "'").Replace(page)
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			want(`id="`, operation.OperationID, `"`)
			want(escaped(operation.Summary), ` <code class="wrap"><b class="`, method, `">`, method, "</b> ", path)
			want("<p>", escaped(operation.Description))
			for _, p := range operation.Parameters {
				want(`id="`, operation.OperationID, ".", p.Value.Name, `"`)
			}
			for status, r := range operation.Responses.Map() {
				if r.Ref == "" {
					want("<dt>", status)
					want(escaped(*r.Value.Description))
				}
			}
		}
	}
	fields := 0
	for name, s := range doc.Components.Schemas {
		for property, p := range s.Value.Properties {
			fields++
			want(`id="`, name, ".", property, `"`)
			want(escaped(p.Value.Description))
		}
	}
	if fields < 250 {
		t.Errorf("only %d fields", fields)
	}
	for name, r := range doc.Components.Responses {
		want(`<dt id="`, name, `"`)
		want(escaped(*r.Value.Description))
	}
}

// example is an example of an operation.
type example struct{ operation, text string }

func examplesOf(page, language string) (all []example) {
	parts := regexp.MustCompile(`<div class="stack" id="(\w+)">|data-language="` + language + `">([^<]*)</pre>`)
	operation := ""
	for _, part := range parts.FindAllStringSubmatch(page, -1) {
		if part[1] != "" {
			operation = part[1]
		} else {
			all = append(all, example{operation, html.UnescapeString(part[2]) + "\n"})
		}
	}
	return all
}

// checkCurl runs examples in a shell, whose curl says what it was given, and sends these requests by method and path:
// first the requests that make something, and the one that restores a deleted link last.
func checkCurl(t *testing.T, owner caller, examples []example) {
	t.Helper()
	order := []string{http.MethodPost, http.MethodPut, http.MethodGet, http.MethodPatch, http.MethodDelete, "restore"}
	calls := make([][]curlCall, len(order))
	for _, e := range examples {
		c := readCurl(t, owner, e.text)
		at := slices.Index(order, c.method)
		switch e.operation {
		case "restoreLink":
			at = len(order) - 1
		case "resendDelivery": // no delivery has the id of the example
			continue
		}
		calls[at] = append(calls[at], c)
	}
	for _, group := range calls {
		slices.SortStableFunc(group, func(a, b curlCall) int { return strings.Compare(a.url, b.url) })
	}
	slices.Reverse(calls[slices.Index(order, http.MethodDelete)]) // what a link has before the link
	for _, c := range slices.Concat(calls...) {
		if status, body := c.send(t); status/100 != 2 {
			t.Errorf("%s %s %s: %d %s", c.method, c.url, c.body, status, body)
		}
	}
}

type curlCall struct {
	method, url, body string
	header            [][2]string
}

func readCurl(t *testing.T, owner caller, text string) (c curlCall) {
	t.Helper()
	sh := exec.CommandContext(t.Context(), "sh", "-euc", `curl() { printf '%s\0' "$@"; }`+"\n"+text)
	sh.Env = []string{"LINKSTREAM_TOKEN=" + owner.token}
	out, err := sh.Output()
	testkit.Must(t, err)
	words := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	c.method = http.MethodGet
	for i := 0; i < len(words); i++ {
		switch words[i] {
		case "--no-buffer":
		case "--request":
			i++
			c.method = words[i]
		case "--data":
			i++
			c.body = words[i]
		case "--header":
			i++
			name, value, _ := strings.Cut(words[i], ": ")
			c.header = append(c.header, [2]string{name, value})
		default:
			if c.url != "" || !strings.HasPrefix(words[i], owner.base) {
				t.Errorf("%q in %s", words[i], text)
			}
			c.url = words[i]
		}
	}
	return c
}

// send sends the request, and returns the answer's beginning: streams do not end.
func (c curlCall) send(t *testing.T) (status int, body string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, c.method, c.url, strings.NewReader(c.body))
	testkit.Must(t, err)
	for _, field := range c.header {
		req.Header.Set(field[0], field[1])
	}
	res, err := http.DefaultClient.Do(req)
	testkit.Must(t, err)
	defer res.Body.Close()
	begin := make([]byte, 400)
	n, err := res.Body.Read(begin)
	if err != io.EOF {
		testkit.Must(t, err)
	}
	if res.Header.Get("Content-Type") == "application/json" && c.body != "" && !json.Valid([]byte(c.body)) {
		t.Errorf("the body %s is not JSON", c.body)
	}
	return res.StatusCode, string(begin[:n])
}
