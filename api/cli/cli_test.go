package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"linkstream/api/cli"
	"linkstream/schema/testkit"
)

// hostile is a text that takes over a terminal, hides what follows, and breaks lines and cells of tables.
const hostile = "a\x1b]0;title\a\x1b[2J\u009b31m\x7f\r\u202egpj.exe\u2066\u2028\nb\tc\x00"

// hostileService answers every request with words of strangers in all fields that have any.
func hostileService(w http.ResponseWriter, r *http.Request) {
	link := map[string]any{"hash": hostile, "short_url": hostile, "original_url": hostile, "title": hostile,
		"tags": []string{hostile}, "card": map[string]any{"title": hostile}, "created_at": "2026-11-21T09:30:15+00:00",
		"clicks": 1, "is_active": true}
	names := []map[string]any{{"name": hostile, "clicks": 1}}
	body := map[string]any{"success": true, "short_url": hostile, "data": []any{link}, "link": link, "hash": hostile,
		"tz": hostile, "from": "2026-11-21", "to": "2026-11-21", "interval": "day", "referrers": names, "campaigns": names,
		"links": []any{link}, "meta": map[string]any{"current_page": 1, "last_page": 1},
		"results": []any{map[string]any{"success": false, "message": hostile}},
		"message": hostile, "errors": map[string]any{hostile: []string{hostile}}}
	switch path.Base(r.URL.Path) {
	case "domains":
		body["data"] = []any{map[string]any{"id": 7, "host": hostile}}
	case "refused":
		w.WriteHeader(http.StatusUnprocessableEntity)
	case "live":
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"hash\":\""+strings.NewReplacer("\n", "", "\r", "").Replace(hostile)+"\"}\n\n")
		return
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(body)
}

// TestWordsOfStrangers runs every command that prints them.
func TestWordsOfStrangers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(hostileService))
	defer server.Close()
	t.Setenv("LINKSTREAM_URL", server.URL)
	t.Setenv("LINKSTREAM_TOKEN", "ls_token")
	for name, c := range map[string]struct {
		command []string
		input   string
		lines   int // of output
	}{
		"shorten":            {[]string{"shorten", "https://example.com/"}, "", 1},
		"list":               {[]string{"list"}, "", 1},
		"list as JSON":       {[]string{"list", "--json"}, "", 1},
		"show":               {[]string{"show", "x"}, "", 9},
		"show as JSON":       {[]string{"show", "x", "--json"}, "", 1},
		"edit":               {[]string{"edit", "x", "--title", "y"}, "", 9},
		"restore":            {[]string{"restore", "x"}, "", 9},
		"report":             {[]string{"report"}, "", 4 + 3},
		"report of a link":   {[]string{"report", "x"}, "", 4 + 3},
		"report as JSON":     {[]string{"report", "--json"}, "", 1},
		"import":             {[]string{"import", "-"}, "long_url,title\nhttps://example.com/,x\n", 1},
		"import as JSON":     {[]string{"import", "-", "--json"}, "long_url\nhttps://example.com/\n", 1},
		"refusals":           {[]string{"show", "refused"}, "", 0},
		"messages":           {[]string{"mcp"}, `{"jsonrpc":"2.0","id":"` + "\u202e" + `","method":"tools/list"}`, 1},
		"usage":              {[]string{"show", "x", "--domain", hostile + hostile}, "", 0},
		"columns of a file":  {[]string{"import", "-"}, "\"" + hostile + "\"\n", 0},
		"domains of a file":  {[]string{"import", "-"}, "long_url,domain\nhttps://example.com/,\"" + hostile + "x\"\n", 1},
		"QR codes, not PNGs": {[]string{"qr", "x"}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, _ := run(t, c.input, c.command...)
			for _, r := range out + errOut {
				if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' {
					t.Errorf("%U is in\n%q\n%q", r, out, errOut)
				}
			}
			if lines := strings.Count(out, "\n"); lines != c.lines {
				t.Errorf("%d lines, want %d\n%s%s", lines, c.lines, out, errOut)
			}
			if c.lines > 0 && strings.Contains(name, "JSON") {
				var value any
				testkit.Must(t, json.Unmarshal([]byte(out), &value))
				if name != "import as JSON" && !strings.Contains(mustJSON(t, value), mustJSON(t, hostile)) {
					t.Errorf("the text has changed: %q", out)
				}
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	batches := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := path.Base(r.URL.Path)
		status, err := strconv.Atoi(name)
		switch {
		case name == "domains":
			_, _ = io.WriteString(w, `{"data": [], "meta": {"last_page": 1}}`)
		case name == "bulk" && batches == 0:
			batches++
			result := `{"success": true, "hash": "x"}`
			_, _ = io.WriteString(w, `{"results": [`+strings.Repeat(result+",", 999)+result+`]}`)
		case name == "bulk":
			w.WriteHeader(http.StatusInternalServerError)
		case err == nil:
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"message": "Status `+name+`."}`)
		default: // an answer that breaks off
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"link": `)
		}
	}))
	defer server.Close()
	t.Setenv("LINKSTREAM_URL", server.URL+"/")
	t.Setenv("LINKSTREAM_TOKEN", "ls_token")
	for name, want := range map[string]int{"401": 1, "404": 1, "422": 1, "429": 1, "500": 1, "502": 3, "503": 3, "504": 3,
		"broken": 3} {
		if _, errOut, code := run(t, "", "show", name); code != want || errOut == "" {
			t.Errorf("show %s: exit code %d, want %d: %s", name, code, want, errOut)
		}
	}
	t.Setenv("LINKSTREAM_TOKEN", "ls_to\nken")
	if _, errOut, code := run(t, "", "list"); code != 2 || !strings.Contains(errOut, "not an API token") {
		t.Errorf("a token of two lines: exit code %d: %s", code, errOut)
	}
	t.Setenv("LINKSTREAM_TOKEN", "ls_token")
	file := "long_url\n" + strings.Repeat("https://example.com/\n", 1500)
	if _, errOut, code := run(t, file, "import", "-"); code != 1 || !strings.Contains(errOut, "1000 links created") ||
		!strings.Contains(errOut, "before line 1002, run it again to go on") {
		t.Errorf("an import that is refused in between: exit code %d: %s", code, errOut)
	}
}

// TestFilesOfAnySystem imports files of other systems, and looks at the aliases that the service is asked for.
func TestFilesOfAnySystem(t *testing.T) {
	var aliases []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Links []struct {
				Alias string `json:"alias"`
			}
		}
		_ = json.NewDecoder(r.Body).Decode(&asked) // of a list of domains, nothing
		results := []any{}
		for _, link := range asked.Links {
			aliases = append(aliases, link.Alias)
			results = append(results, map[string]any{"success": true})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"success": true, "data": []any{}, "results": results,
			"meta": map[string]any{"current_page": 1, "last_page": 1}})
	}))
	defer server.Close()
	t.Setenv("LINKSTREAM_URL", server.URL)
	t.Setenv("LINKSTREAM_TOKEN", "ls_token")
	for name, file := range map[string]string{
		"line feeds":           "alias,long_url\na,x\nb,y\n",
		"carriage returns":     "\ufeffalias,long_url\ra,x\rb,y\r",
		"UTF-16":               "\xff\xfeu\x00r\x00l\x00",
		"short URLs":           "short_url,long_url\nhttps://sho.rt/a/?x,x\nb,y\n",
		"short URLs in front":  "short_url,alias,long_url\nsho.rt/a,,x\nsho.rt/no,b,y\n",
		"short URLs behind":    "alias,short_url,long_url\n,/%61,x\nb,sho.rt/no,y\n",
		"a heading":            "alias,long_url\r",
		"nothing":              "",
		"cells guarded by us":  "alias,long_url\n'-a,x\nb,y\n",
		"cells of many breaks": "alias,long_url\r\n\r\na,x\r\n\n\rb,y",
	} {
		aliases = nil
		_, problem, _ := run(t, file, "import", "-")
		got := strings.Join(aliases, " ") + " " + problem
		want := "a b 2 links created"
		switch name {
		case "a heading":
			want = "the file has no rows"
		case "nothing":
			want = "the file is not CSV"
		case "UTF-16":
			want = `the column "url"`
		case "cells guarded by us":
			want = "-a b 2 links created"
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func mustJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	testkit.Must(t, err)
	return strings.Trim(string(text), `"`)
}

// run runs the command in this process with its outputs in files.
func run(t *testing.T, input string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var files [3]*os.File
	for i := range files {
		file, err := os.CreateTemp(t.TempDir(), "stream")
		testkit.Must(t, err)
		defer file.Close()
		files[i] = file
	}
	testkit.Must(t, os.WriteFile(files[0].Name(), []byte(input), 0o600))
	code = cli.Run(t.Context(), args, files[0], files[1], files[2])
	out, err := os.ReadFile(files[1].Name())
	testkit.Must(t, err)
	errOut, err := os.ReadFile(files[2].Name())
	testkit.Must(t, err)
	return string(out), string(errOut), code
}

// answering is a service whose account has a link, and that answers to other requests with body.
func answering(t *testing.T, body *string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path.Base(r.URL.Path) {
		case "domains":
			_, _ = io.WriteString(w, `{"data": [], "meta": {"last_page": 1}}`)
		default:
			w.Header().Set("Content-Length", strconv.Itoa(max(len(*body), 10)))
			_, _ = io.WriteString(w, *body)
		}
	}))
	t.Cleanup(server.Close)
	t.Setenv("LINKSTREAM_URL", server.URL)
	t.Setenv("LINKSTREAM_TOKEN", "ls_token")
}

// TestResultsOfImports has results that no service should give.
func TestResultsOfImports(t *testing.T) {
	var body string
	answering(t, &body)
	for results, want := range map[string]string{
		`[{"success": false}]`:                                      "the service gave no reason",
		`[{"success": false, "errors": {}}]`:                        "the service gave no reason",
		`[{"success": false, "message": "No."}]`:                    "No.",
		`[{"success": false, "errors": {"links.0.title": ["B."]}}]`: "title: B.",
		`[]`: "0 results for 1 links",
		`[{"success": true}, {"success": false}]`: "2 results for 1 links",
	} {
		body = `{"results": ` + results + `}`
		out, errOut, code := run(t, "long_url\nhttps://example.com/\n", "import", "-")
		if code != 1 || !strings.Contains(out+errOut, want) {
			t.Errorf("%s: exit code %d, %q %q, want %q", results, code, out, errOut, want)
		}
	}
}

// A link with former names takes each of them in turn, and ends with its own.
func TestFormerNamesOfImports(t *testing.T) {
	var renamed []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var edit struct{ Alias string }
		switch {
		case r.Method == http.MethodPatch:
			check := json.NewDecoder(r.Body).Decode(&edit)
			renamed = append(renamed, fmt.Sprint(r.URL.EscapedPath(), " ", r.URL.RawQuery, " ", edit.Alias, check))
			if edit.Alias == "taken" {
				w.WriteHeader(http.StatusUnprocessableEntity)
				_, _ = io.WriteString(w, `{"errors": {"alias": ["It is in use."]}}`)
				return
			}
			_, _ = io.WriteString(w, `{"link": {}}`)
		case path.Base(r.URL.Path) == "domains":
			_, _ = io.WriteString(w, `{"data": [{"id": 7, "host": "go.example.org"}], "meta": {"last_page": 1}}`)
		default:
			_, _ = io.WriteString(w, `{"results": [{"success": true, "hash": "a/1"}, {"success": true, "hash": "b"}]}`)
		}
	}))
	defer server.Close()
	t.Setenv("LINKSTREAM_URL", server.URL)
	t.Setenv("LINKSTREAM_TOKEN", "ls_token")
	out, errOut, code := run(t, "long_url,alias,domain,former_hashes\nhttps://example.com/,a/1,go.example.org,old taken\n"+
		"https://example.com/,b,,older\n", "import", "-")
	testkit.Equal(t, "names", renamed, []string{
		"/api/v1/links/a%2F1 domain_id=7 old<nil>", "/api/v1/links/a%2F1 domain_id=7 taken<nil>",
		"/api/v1/links/a%2F1 domain_id=7 a/1<nil>", "/api/v1/links/b domain_id=0 older<nil>",
		"/api/v1/links/b domain_id=0 b<nil>"})
	if code != 1 || !strings.Contains(out, "former_hashes: taken: It is in use.") ||
		!strings.Contains(errOut, "2 links created, 1 not") {
		t.Errorf("exit code %d, %q %q", code, out, errOut)
	}
}

// A list is read by cursors, so that links that are made meanwhile move none to another page, unless it has an order or
// the service an age in which there are none.
func TestAllOfAList(t *testing.T) {
	const link = `{"hash": "a", "short_url": "", "original_url": "", "created_at": "2026-11-21T09:30:15+00:00"}`
	var asked []string
	old := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		asked = append(asked, q.Get("sort")+q.Get("limit")+q.Get("page")+q.Get("after"))
		meta := `{"next": null}`
		switch {
		case old || !q.Has("after"):
			meta = `{"last_page": 2}`
		case q.Get("after") != "cursor 2":
			meta = `{"next": "cursor ` + strconv.Itoa(len(asked)) + `"}`
		}
		_, _ = io.WriteString(w, `{"data": [`+link+`], "meta": `+meta+`}`)
	}))
	defer server.Close()
	t.Setenv("LINKSTREAM_URL", server.URL)
	t.Setenv("LINKSTREAM_TOKEN", "ls_token")
	for _, c := range []struct {
		name, sort string
		old        bool
		want       []string
	}{
		{"by cursors", "created_at", false, []string{"created_at1000", "created_at1000cursor 1", "created_at1000cursor 2"}},
		{"by clicks", "-clicks", false, []string{"-clicks1", "-clicks2"}},
		{"of a service without cursors", "", true, []string{"1000", "1", "2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			asked, old = nil, c.old
			args := []string{"list", "--all"}
			if c.sort != "" {
				args = append(args, "--sort", c.sort)
			}
			out, errOut, code := run(t, "", args...)
			testkit.Equal(t, "requests", asked, c.want)
			links := len(c.want)
			if c.old {
				links--
			}
			if code != 0 || strings.Count(out, "\n") != links {
				t.Errorf("exit code %d, %q %q", code, out, errOut)
			}
		})
	}
}

// TestExportsThatFail leaves the files that were there.
func TestExportsThatFail(t *testing.T) {
	const whole = "alias,long_url\r\nx,https://example.com/\r\n"
	var body string
	answering(t, &body)
	dir := t.TempDir()
	export := func(file string, code int) {
		t.Helper()
		if _, errOut, got := run(t, "", "export", filepath.Join(dir, file)); got != code {
			t.Errorf("exit code %d, want %d: %s", got, code, errOut)
		}
	}
	files := func() (names []string) {
		entries, err := os.ReadDir(dir)
		testkit.Must(t, err)
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		return names
	}
	body = "alias" // breaks off
	export("new.csv", 3)
	export("no/directory.csv", 1)
	testkit.Equal(t, "files after failures", len(files()), 0)

	old := filepath.Join(dir, "old.csv")
	testkit.Must(t, os.WriteFile(old, []byte("old"), 0o600))
	testkit.Must(t, os.Symlink("old.csv", filepath.Join(dir, "link.csv")))
	for _, name := range []string{"old.csv", "link.csv"} {
		export(name, 3)
		text, err := os.ReadFile(old)
		testkit.Must(t, err)
		testkit.Equal(t, "file after a failure", string(text), "old")
	}
	body = whole
	export("link.csv", 0)
	text, err := os.ReadFile(old)
	testkit.Must(t, err)
	info, err := os.Stat(old)
	testkit.Must(t, err)
	testkit.Equal(t, "permissions", info.Mode().Perm(), 0o600)
	testkit.Equal(t, "lines", strings.Count(string(text), "\n"), 2)
	testkit.Equal(t, "files", files(), []string{"link.csv", "old.csv"})

	_, errOut, code := run(t, "", "export", os.DevNull)
	testkit.Equal(t, "exit code of a device: "+errOut, code, 0)
}
