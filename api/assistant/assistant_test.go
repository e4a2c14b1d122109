package assistant_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"unicode"

	"linkstream/api/assistant"
	"linkstream/schema/testkit"
)

// newTools returns the tools of the API.
func newTools(t testing.TB) *assistant.Tools {
	t.Helper()
	document, err := os.ReadFile("../rest/openapi.json")
	testkit.Must(t, err)
	tools, err := assistant.New(document, "test")
	testkit.Must(t, err)
	return tools
}

// serve sends a message to tools that may do everything.
func serve(t testing.TB, tools *assistant.Tools, message string, do func(assistant.Request) assistant.Answer,
	failed func(any)) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	tools.Serve(t.Context(), w, http.Header{"Content-Type": {"application/json"}}, []byte(message),
		&assistant.Caller{May: func(string, string) bool { return true }, Do: do, Failed: failed})
	return w
}

func call(tool, arguments string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `}}`
}

// TestRequests looks at the requests that tools make.
func TestRequests(t *testing.T) {
	tools := newTools(t)
	for arguments, want := range map[string]string{
		`find {"q":"a&b","tag":null,"is_active":true,"domain_id":0}`: "GET /api/v1/links?domain_id=0&" +
			"is_active=true&limit=20&q=a%26b ",
		`find {"after":"3"}`:                            "GET /api/v1/links?after=3&limit=20 ",
		`find {"after":"3","sort":"-clicks"}`:           "GET /api/v1/links?page=3&sort=-clicks ",
		`find {"updated_since":"2026-01-01T00:00:00Z"}`: "",
		`find null`:                           "GET /api/v1/links?limit=20 ",
		`show {"hash":"../shorten?x=1#/%2e"}`: "GET /api/v1/links/..%2Fshorten%3Fx=1%23%2F%252e ",
		`show {"hash":"a","domain_id":7}`:     "GET /api/v1/links/a?domain_id=7 ",
		`edit {"hash":"a","domain_id":7,"title":"b","expires_at":null}`: `PATCH /api/v1/links/a?domain_id=7 ` +
			`{"expires_at":null,"title":"b"}`,
		`shorten {"long_url":"https://a/","domain_id":18014398509481985}`: `POST /api/v1/shorten ` +
			`{"domain_id":18014398509481985,"long_url":"https://a/"}`,
		`delete {"hash":"a/b"}`:                           "DELETE /api/v1/links/a%2Fb ",
		`report {"os":"","limit":5}`:                      "", // refused
		`report {"os":"","hash":"a"}`:                     "GET /api/v1/links/a/report?limit=21&os= ",
		`report {"domain_id":0,"list":"os","after":"40"}`: "GET /api/v1/report?domain_id=0&limit=61 ",
		`qr {"hash":"a","format":"svg"}`:                  "GET /api/v1/links/a/qr?format=svg ",
		`qr {"hash":"a"}`:                                 "GET /api/v1/links/a/qr?format=png ",
		`qr []`:                                           "",
		`qr "a"`:                                          "",
	} {
		var got string
		tool, args, _ := strings.Cut(arguments, " ")
		serve(t, tools, call(tool, args), func(r assistant.Request) assistant.Answer {
			got = r.Method + " " + r.Target + " " + string(r.Body)
			return assistant.Answer{Status: http.StatusOK, Body: []byte("{}")}
		}, func(cause any) { t.Errorf("%s: %v", arguments, cause) })
		testkit.Equal(t, arguments, got, want)
	}
}

// TestPanicsAreAnswered keeps a fault of a tool from ending the program.
func TestPanicsAreAnswered(t *testing.T) {
	var cause any
	w := serve(t, newTools(t), call("find", "{}"), func(assistant.Request) assistant.Answer { panic("secret") },
		func(c any) { cause = c })
	testkit.Equal(t, "cause", cause, any("secret"))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "Something went wrong") ||
		strings.Contains(w.Body.String(), "secret") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestAnswersOfNoAPI has answers that the API should not give.
func TestAnswersOfNoAPI(t *testing.T) {
	tools := newTools(t)
	for _, body := range []string{"", "null", "[]", "{", `{"data":5,"meta":[]}`, `{"series":5}`, "<html>"} {
		for _, status := range []int{200, 304, 404, 500} {
			for _, tool := range []string{`find {}`, `show {"hash":"a"}`, `report {}`, `report {"list":"series"}`,
				`qr {"hash":"a"}`, `compare {"links":[{"hash":"a"},{"hash":"b"}]}`} {
				name, args, _ := strings.Cut(tool, " ")
				w := serve(t, tools, call(name, args), func(assistant.Request) assistant.Answer {
					return assistant.Answer{Status: status, Body: []byte(body)}
				}, func(any) {})
				var answer struct{ Result struct{ Content []any } }
				testkit.Must(t, json.Unmarshal(w.Body.Bytes(), &answer))
				if w.Code != http.StatusOK || len(answer.Result.Content) == 0 {
					t.Errorf("%s with %d %q: %d %s", tool, status, body, w.Code, w.Body)
				}
			}
		}
	}
}

// FuzzServe sends messages to tools of an API that gives any answer.
func FuzzServe(f *testing.F) {
	f.Add(call("find", `{"q":"x"}`), `{"data":[{"title":"<b>\u202e"}],"meta":{"last_page":2}}`, 200)
	f.Add(call("report", `{"list":"os"}`), `{"os":[{"name":"x"}]}`, 200)
	f.Add(call("compare", `{"links":[{"hash":"a"},{"hash":"b","domain_id":null}]}`), `{"totals":{}}`, 200)
	f.Add(call("edit", `{"hash":"a"}`), `{"message":"No.","errors":{}}`, 422)
	f.Add(call("qr", `null`), "\x89PNG", 200)
	f.Add(`{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"x"}}`, "", 200)
	f.Add(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, "", 200)
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}`, "", 200)
	f.Add(`[{"jsonrpc":"2.0","id":1,"result":{}}]`, "", 200)
	tools := newTools(f)
	f.Fuzz(func(t *testing.T, message, body string, status int) {
		w := serve(t, tools, message, func(assistant.Request) assistant.Answer {
			return assistant.Answer{Status: status, Body: []byte(body)}
		}, func(any) {})
		if w.Code >= 500 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		var answer struct {
			Result struct{ Content []struct{ Type, Text string } }
		}
		if w.Code != http.StatusOK || json.Unmarshal(w.Body.Bytes(), &answer) != nil {
			return
		}
		for _, content := range answer.Result.Content {
			if strings.ContainsFunc(content.Text, func(r rune) bool { return !unicode.IsPrint(r) || r == '<' || r == '>' }) {
				t.Errorf("%q", content.Text)
			}
		}
	})
}
