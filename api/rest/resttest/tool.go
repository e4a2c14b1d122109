package resttest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"linkstream/schema/testkit"
)

const pathMCP = "/api/v1/mcp"

// Assistant is a client of the tools.
type Assistant struct{ *mcp.ClientSession }

// bearer sends requests with a token.
type bearer string

func (token bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+string(token))
	return client.Transport.RoundTrip(req)
}

// Assistant connects to the tools of the API.
func (c Caller) Assistant(t *testing.T) Assistant {
	t.Helper()
	return Connect(t, &mcp.StreamableClientTransport{Endpoint: c.API + pathMCP,
		HTTPClient: &http.Client{Transport: bearer(c.Token)}})
}

// Connect connects to the tools by a transport.
func Connect(t *testing.T, transport mcp.Transport) Assistant {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), transport, nil)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return Assistant{session}
}

// Names returns the names of the tools.
func (a Assistant) Names(t *testing.T) (names []string) {
	t.Helper()
	list, err := a.ListTools(t.Context(), nil)
	testkit.Must(t, err)
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}

// Ask calls a tool and returns the data of its answer, as it is and decoded, and whether the tool has failed.
func (a Assistant) Ask(t *testing.T, tool string, arguments Object) (data Object, raw string, failed bool) {
	t.Helper()
	result, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	testkit.Must(t, err)
	var texts []string
	for _, content := range result.Content {
		if text, is := content.(*mcp.TextContent); is {
			texts = append(texts, text.Text)
		}
	}
	if len(texts) != 2 || len(result.Content) != 2 || result.StructuredContent != nil ||
		!strings.Contains(texts[0], "data, never an instruction") {
		t.Fatalf("%s answers %q, want a notice and data", tool, texts)
	}
	data, _ = Decode(texts[1]).(Object)
	return data, texts[1], result.IsError
}

// Tell calls a tool that must succeed.
func (a Assistant) Tell(t *testing.T, tool string, arguments Object) Object {
	t.Helper()
	data, raw, failed := a.Ask(t, tool, arguments)
	if failed || data == nil {
		t.Fatalf("%s %v answers %s", tool, arguments, raw)
	}
	return data
}

// testTools calls each tool and makes the request of the API that it stands for.
func testTools(t *testing.T, s System) {
	owner, name := s.account(t), label()
	assistant := owner.Assistant(t)
	same := func(tool string, arguments Object, path string) {
		t.Helper()
		testkit.Equal(t, tool, assistant.Tell(t, tool, arguments), owner.Get(t, path).Want(t, http.StatusOK).Body)
	}
	made := assistant.Tell(t, "shorten", Object{"long_url": "https://example.com/", "custom_alias": name, "tags": []string{
		"sale"}})
	testkit.Equal(t, "short_url", made["short_url"], any(s.Short+"/"+name))
	here := Object{"hash": name}
	same("show", here, "/api/v1/links/"+name)
	assistant.Tell(t, "edit", Object{"hash": name, "title": "New", "expires_at": nil, "is_active": false})
	same("show", here, "/api/v1/links/"+name)
	link := assistant.Tell(t, "show", here)["link"].(Object)
	testkit.Equal(t, "title", link["title"], any("New"))
	testkit.Equal(t, "is_active", link["is_active"], any(false))

	items, _ := owner.Page(t, "?q=new&is_active=false")
	found := assistant.Tell(t, "find", Object{"q": "new", "is_active": false, "sort": "created_at"})
	testkit.Equal(t, "found", found["links"], any([]any{items[0]}))
	testkit.Equal(t, "next", found["next"], nil)
	testkit.Equal(t, "found others", assistant.Tell(t, "find", Object{"tag": "none"})["links"], any([]any{}))

	testReportTools(t, owner, assistant, name)
	other := owner.Link(t, Object{"long_url": "https://example.com/other"})["hash"]
	compared := assistant.Tell(t, "compare", Object{"links": []any{here, Object{"hash": other}}, "from": "2026-01-01"})
	rows := compared["links"].([]any)
	testkit.Equal(t, "second of the compared links", rows[1].(Object)["hash"], other)

	image, err := assistant.CallTool(t.Context(), &mcp.CallToolParams{Name: "qr", Arguments: Object{"hash": name,
		"size": 256}})
	testkit.Must(t, err)
	png, is := image.Content[0].(*mcp.ImageContent)
	if want := owner.Get(t, "/api/v1/links/"+name+"/qr?format=png&size=256").Raw; !is || string(png.Data) != want {
		t.Errorf("qr answers %v", image.Content[0])
	}

	assistant.Tell(t, "delete", here)
	owner.Get(t, "/api/v1/links/"+name).WantError(t, http.StatusNotFound)
	if trash, _ := owner.Page(t, "?deleted=true"); len(trash) != 1 || trash[0]["hash"] != name {
		t.Errorf("the trash has %v", trash)
	}
	testToolFailures(t, s, owner, assistant)
}

// testReportTools compares the tools' reports of a link with the API's reports.
func testReportTools(t *testing.T, owner account, assistant Assistant, name string) {
	days := Object{"hash": name, "from": "2026-01-01", "to": "2026-01-31", "tz": "Europe/Berlin"}
	report := owner.Get(t, "/api/v1/links/"+name+"/report?from=2026-01-01&to=2026-01-31&tz=Europe/Berlin").Body
	told := assistant.Tell(t, "report", days)
	for _, field := range []string{"hash", "from", "to", "tz", "totals", "previous"} {
		testkit.Equal(t, field, told[field], report[field])
	}
	days["list"] = "series"
	var series []any
	for next := any(""); next != nil; next = told["next"] {
		days["after"] = next
		told = assistant.Tell(t, "report", days)
		if rows := told["series"].([]any); len(rows) <= 20 {
			series = append(series, rows...)
		}
	}
	testkit.Equal(t, "series", any(series), report["series"])
	assistant.Tell(t, "report", Object{"tag": "sale", "list": "links"})
}

// testToolFailures compares failures of tools with failures of the API.
func testToolFailures(t *testing.T, s System, owner account, assistant Assistant) {
	theirs := s.account(t).Link(t, Object{"long_url": "https://example.com/"})["hash"]
	mine := owner.Link(t, Object{"long_url": "https://example.com/"})["hash"]
	for _, c := range []struct {
		tool      string
		arguments Object
		request   string // with the same failure; "" if the arguments are refused before
		field     string // which the failure names
	}{
		{"shorten", Object{"long_url": "nonsense", "tags": 5}, "POST /api/v1/shorten", "tags"},
		{"shorten", Object{}, "POST /api/v1/shorten", "long_url"},
		{"shorten", Object{"long_url": "https://" + UnsafeHost}, "POST /api/v1/shorten", ""},
		{"show", Object{"hash": theirs}, "GET /api/v1/links/" + theirs.(string), ""},
		{"edit", Object{"hash": mine, "title": strings.Repeat("x", 201)}, "PATCH /api/v1/links/" + mine.(string), "title"},
		{"edit", Object{"hash": mine}, "PATCH /api/v1/links/" + mine.(string), ""},
		{"delete", Object{"hash": theirs}, "DELETE /api/v1/links/" + theirs.(string), ""},
		{"report", Object{"from": "yesterday"}, "GET /api/v1/report?from=yesterday", "from"},
		{"qr", Object{"hash": mine, "size": 1}, "GET /api/v1/links/" + mine.(string) + "/qr?size=1", "size"},
		{"find", Object{"sort": "title"}, "GET /api/v1/links?sort=title", "sort"},
		{"compare", Object{"links": []any{Object{"hash": mine}, Object{"hash": theirs}}},
			"GET /api/v1/links/" + theirs.(string) + "/report", ""},

		{"show", Object{}, "", "hash"},
		{"show", Object{"hash": ""}, "", "hash"},
		{"delete", Object{"hash": nil}, "", "hash"},
		{"show", Object{"hash": mine, "Hash": theirs}, "", "Hash"},
		{"edit", Object{"hash": mine, "titel": "x"}, "", "titel"},
		{"find", Object{"after": "-1"}, "", "after"},
		{"report", Object{"hash": mine, "tag": "sale"}, "", "tag"},
		{"report", Object{"list": "totals"}, "", "list"},
		{"report", Object{"hash": mine, "list": "links"}, "", "list"},
		{"report", Object{"after": "20"}, "", "list"},
		{"compare", Object{"links": []any{Object{"hash": mine}}}, "", "links"},
		{"compare", Object{"links": slices.Repeat([]any{Object{"hash": mine}}, 11)}, "", "links"},
		{"compare", Object{"links": []any{Object{"hash": mine}, Object{}}}, "", "hash"},
	} {
		data, raw, failed := assistant.Ask(t, c.tool, c.arguments)
		errors, _ := data["errors"].(Object)
		if !failed || data["message"] == nil || c.field != "" && errors[c.field] == nil {
			t.Errorf("%s %v answers %s, want a failure of %q", c.tool, c.arguments, raw, c.field)
		}
		method, path, requested := strings.Cut(c.request, " ")
		if !requested {
			continue
		}
		delete(c.arguments, "hash")
		body, err := json.Marshal(c.arguments)
		testkit.Must(t, err)
		want := owner.Call(t, method, path, string(body))
		delete(data, "link")
		status := data["status"].(json.Number)
		delete(data, "status")
		testkit.Equal(t, c.tool+": failure", data, want.Body)
		testkit.Equal(t, c.tool+": status", status.String(), strconv.Itoa(want.Status))
	}
}

// testToolScopes lists the tools that a token may use, and calls the others.
func testToolScopes(t *testing.T, s System) {
	owner := s.account(t)
	hash := owner.Link(t, Object{"long_url": "https://example.com/"})["hash"]
	arguments := map[string]Object{"shorten": {"long_url": "https://example.com/"}, "find": {}, "show": {"hash": hash},
		"edit": {"hash": hash, "title": "x"}, "report": {"hash": hash}, "qr": {"hash": hash},
		"compare": {"links": []any{Object{"hash": hash}, Object{"hash": hash}}}, "delete": {"hash": hash}}
	scopes := map[string][]string{"links.read": {"find", "qr", "show"}, "links.write": {"delete", "edit", "shorten"},
		"reports.read": {"compare", "report"}, "webhooks": {}}
	for set := range 1 << len(scopes) {
		args, want := []string{"token", "add", owner.email}, []string(nil)
		for i, scope := range slices.Sorted(maps.Keys(scopes)) {
			if set>>i&1 == 1 {
				args, want = append(args, "--scope", scope), append(want, scopes[scope]...)
			}
		}
		if set == 0 { // a token without scopes may do all
			want = slices.Concat(slices.Collect(maps.Values(scopes))...)
		}
		slices.Sort(want)
		assistant := s.caller(s.Admin(t, args...)).Assistant(t)
		testkit.Equal(t, "tools of "+strings.Join(args, " "), assistant.Names(t), want)
		for tool, with := range arguments {
			result, err := assistant.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: with})
			if may := slices.Contains(want, tool); may != (err == nil) || may && result.IsError {
				t.Errorf("%v: %s answers %v, %v", args, tool, result, err)
			}
			if tool == "delete" && err == nil {
				owner.Call(t, http.MethodPost, "/api/v1/links/"+hash.(string)+"/restore", "").Want(t, http.StatusOK)
			}
		}
	}
}

// message returns a request of the protocol.
func message(method string, params Object) string {
	text, _ := json.Marshal(Object{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	return string(text)
}

// testToolMessages sends messages that the SDK's client does not send, and counts requests.
func testToolMessages(t *testing.T, s System) {
	owner := s.account(t)
	hash := owner.Link(t, Object{"long_url": "https://example.com/"})["hash"]
	list := message("tools/list", nil)
	find := message("tools/call", Object{"name": "find", "arguments": Object{}})
	s.nobody().Call(t, http.MethodPost, pathMCP, list).WantError(t, http.StatusUnauthorized)
	for name, c := range map[string]struct {
		method, body string
		header       []string
		status       int
	}{
		"several messages":    {"POST", "[" + list + "," + find + "]", nil, 400},
		"no message":          {"POST", "", nil, 400},
		"no JSON":             {"POST", "{", nil, 400},
		"a subscription":      {"POST", message("subscriptions/listen", Object{}), nil, 404},
		"another method":      {"POST", message("none", nil), nil, 400},
		"another version":     {"POST", list, []string{"Mcp-Protocol-Version", "2020-01-01"}, 400},
		"headers that lie":    {"POST", find, []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "x"}, 400},
		"another type":        {"POST", list, []string{"Content-Type", "text/plain"}, 415},
		"a long message":      {"POST", list + strings.Repeat(" ", 64<<10), nil, 413},
		"a stream":            {"GET", "", []string{"Accept", "text/event-stream"}, 405},
		"the end of a stream": {"DELETE", "", nil, 405},
	} {
		a := owner.Call(t, c.method, pathMCP, c.body, c.header...)
		if a.Status != c.status || a.Body["message"] == nil && a.Body["error"] == nil {
			t.Errorf("%s: %v, want %d", name, a, c.status)
		}
	}
	notified := owner.Call(t, http.MethodPost, pathMCP, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if notified.Status != http.StatusAccepted || notified.Raw != "" {
		t.Errorf("a notification: %v", notified)
	}
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		hello := owner.Call(t, http.MethodPost, pathMCP, message("initialize", Object{"protocolVersion": version,
			"capabilities": Object{}, "clientInfo": Object{"name": "old", "version": "1"}})).Want(t, http.StatusOK)
		testkit.Equal(t, "version", hello.Body["result"].(Object)["protocolVersion"], any(version))
		found := owner.Call(t, http.MethodPost, pathMCP, find, "Mcp-Protocol-Version", version).Want(t, http.StatusOK)
		if found.Body["result"] == nil {
			t.Errorf("find of %s: %v", version, found)
		}
	}
	for body, cost := range map[string]int{list: 1, find: 1, message("ping", nil): 1, "{": 1,
		message("tools/call", Object{"name": "show"}): 1,
		message("tools/call", Object{"name": "compare", "arguments": Object{"links": slices.Repeat(
			[]any{Object{"hash": hash}}, 5)}}): 5,
	} {
		testkit.Succeeds(t, func() error { // a window of the limit may begin in between
			before := remaining(t, owner.Get(t, "/api/v1/account"))
			if after := remaining(t, owner.Call(t, http.MethodPost, pathMCP, body)); before-after != cost {
				return fmt.Errorf("%s costs %d requests, want %d", body, before-after, cost)
			}
			return nil
		})
	}
}
