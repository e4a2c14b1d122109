package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// client neither follows redirects nor keeps connections open.
var client = &http.Client{
	Timeout:       testkit.Patience,
	Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// object is a JSON object; its numbers are json.Number.
type object = map[string]any

// answer is a complete HTTP response.
type answer struct {
	request string // method and URL, for messages
	status  int
	header  http.Header
	raw     string
	body    object // nil if raw is not a JSON object
}

// call sends a request and reads the answer. header holds names and values in turn. Host sets the request's host.
func call(t *testing.T, method, address, body string, header ...string) answer {
	t.Helper()
	a, err := tryCall(t, method, address, body, header...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func tryCall(t *testing.T, method, address, body string, header ...string) (answer, error) {
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("User-Agent", "") // sends none, unless header has one
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		} else {
			req.Header.Set(header[i], header[i+1])
		}
	}
	res, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{}, fmt.Errorf("read answer of %s %s: %w", method, address, err)
	}
	a := answer{request: method + " " + address, status: res.StatusCode, header: res.Header, raw: string(raw)}
	a.body, _ = decode(a.raw).(object)
	return a, nil
}

// decode returns raw as a JSON value, nil if it is not JSON.
func decode(raw string) any {
	dec := json.NewDecoder(strings.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil || dec.More() {
		return nil
	}
	return v
}

func (a answer) String() string {
	return fmt.Sprintf("%s\n→ %d %s\n%.2000s", a.request, a.status, a.header.Get("Content-Type"), a.raw)
}

// isStatus returns an error if the answer has another status.
func (a answer) isStatus(status int) error {
	if a.status != status {
		return fmt.Errorf("status %d, want %d: %v", a.status, status, a)
	}
	return nil
}

// want fails the test if the answer is not a JSON object with that status.
func (a answer) want(t *testing.T, status int) answer {
	t.Helper()
	if err := a.isStatus(status); err != nil {
		t.Fatal(err)
	}
	return a.wantJSON(t)
}

func (a answer) wantJSON(t *testing.T) answer {
	t.Helper()
	kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	if kind != "application/json" || a.body == nil {
		t.Fatalf("want a JSON object of type application/json: %v", a)
	}
	return a
}

// caller is a client of the API. Without a token, it sends no Authorization header.
type caller struct{ api, token string }

func (s *system) owner() caller { return caller{s.api, s.token} }

// another returns a caller with a new account, and the account's email address.
func (s *system) another(t *testing.T, name string) (caller, string) {
	t.Helper()
	email := name + "@example.com"
	s.admin(t, "account", "add", email)
	return caller{s.api, s.admin(t, "token", "add", email)}, email
}

// call sends a request with the headers of section 5 of the contract, which header may override.
func (c caller) call(t *testing.T, method, path, body string, header ...string) answer {
	t.Helper()
	a, err := c.try(t, method, path, body, header...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// try is call for goroutines other than the test's.
func (c caller) try(t *testing.T, method, path, body string, header ...string) (answer, error) {
	lines := []string{"Accept", "application/json"}
	if c.token != "" {
		lines = append(lines, "Authorization", "Bearer "+c.token)
	}
	if method == http.MethodPost {
		lines = append(lines, "Content-Type", "application/json")
	}
	return tryCall(t, method, c.api+path, body, append(lines, header...)...)
}

func (c caller) get(t *testing.T, path string) answer { return c.call(t, http.MethodGet, path, "") }

// domain adds a verified custom domain to an account and returns its id.
func (s *system) domain(t *testing.T, email, host string) json.Number {
	t.Helper()
	id, ok := decode(s.admin(t, "domain", "add", email, host, "--verified")).(json.Number)
	if !ok {
		t.Fatalf("domain add printed no id")
	}
	return id
}

// click follows a short link by GET and requires a redirect.
func (s *system) click(t *testing.T, hash string, header ...string) answer {
	t.Helper()
	a := s.visit(t, http.MethodGet, "/"+hash, header...)
	if err := a.isStatus(http.StatusFound); err != nil {
		t.Fatal(err)
	}
	return a
}

// visit sends a request to the edge.
func (s *system) visit(t *testing.T, method, path string, header ...string) answer {
	t.Helper()
	return call(t, method, s.edge+path, "", header...)
}

// shorten posts the fields, valid or not.
func (c caller) shorten(t *testing.T, fields object) answer {
	t.Helper()
	body, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return c.call(t, http.MethodPost, "/api/v1/shorten", string(body))
}

// link creates a link and returns the body of the answer.
func (c caller) link(t *testing.T, fields object) object {
	t.Helper()
	return c.shorten(t, fields).want(t, http.StatusCreated).body
}

// alias creates a link to a URL with an alias.
func (c caller) alias(t *testing.T, alias, address string) object {
	t.Helper()
	return c.link(t, object{"long_url": address, "custom_alias": alias})
}

// total returns the link's total_clicks.
func (c caller) total(t *testing.T, hash string) int64 {
	t.Helper()
	return number(t, c.stats(t, hash), "total_clicks")
}

// stats returns the field stats of a link's statistics.
func (c caller) stats(t *testing.T, hash string) object {
	t.Helper()
	body := c.get(t, "/api/v1/stats/"+hash).want(t, http.StatusOK).body
	stats, ok := body["stats"].(object)
	if !ok {
		t.Fatalf("stats of %q is not an object: %v", hash, body)
	}
	return stats
}

// waitTotal waits until at least want clicks are counted and requires that exactly want are.
func (c caller) waitTotal(t *testing.T, hash string, want int64) {
	t.Helper()
	var got int64
	testkit.Succeeds(t, func() error {
		if got = c.total(t, hash); got < want {
			return fmt.Errorf("total_clicks of %q is %d, want %d", hash, got, want)
		}
		return nil
	})
	if got > want {
		t.Errorf("total_clicks of %q is %d, want %d", hash, got, want)
	}
}

// number returns an integer field of an object.
func number(t *testing.T, o object, name string) int64 {
	t.Helper()
	n, ok := o[name].(json.Number)
	if !ok {
		t.Fatalf("%s is not a number: %v", name, o)
	}
	i, err := n.Int64()
	if err != nil {
		t.Fatalf("%s is not an integer: %v", name, err)
	}
	return i
}

// page returns the items and the meta of a page of the list; query is "" or "?page=2".
func (c caller) page(t *testing.T, query string) (items []object, meta object) {
	t.Helper()
	body := c.get(t, "/api/v1/links"+query).want(t, http.StatusOK).body
	list, ok := body["data"].([]any)
	if !ok {
		t.Fatalf("data is not an array: %v", body)
	}
	for _, v := range list {
		item, ok := v.(object)
		if !ok {
			t.Fatalf("item is not an object: %v", v)
		}
		items = append(items, item)
	}
	if meta, ok = body["meta"].(object); !ok {
		t.Fatalf("meta is not an object: %v", body)
	}
	return items, meta
}

// shape describes an object: the names of exactly all its fields, each with a check of its value.
type shape map[string]func(any) error

func (s shape) check(t *testing.T, o object) {
	t.Helper()
	for name, kind := range s {
		if v, ok := o[name]; !ok {
			t.Errorf("field %q is missing: %v", name, o)
		} else if err := kind(v); err != nil {
			t.Errorf("field %q: %v", name, err)
		}
	}
	for name := range o {
		if s[name] == nil {
			t.Errorf("field %q is not in the contract: %v", name, o)
		}
	}
}

func text(v any) error {
	if s, ok := v.(string); !ok || s == "" {
		return fmt.Errorf("%v is not a non-empty string", v)
	}
	return nil
}

func link(v any) error {
	s, _ := v.(string)
	if u, err := url.Parse(s); err != nil || u.Scheme == "" || u.Host == "" {
		return fmt.Errorf("%v is not an absolute URL", v)
	}
	return nil
}

func boolean(v any) error {
	if _, ok := v.(bool); !ok {
		return fmt.Errorf("%v is not a boolean", v)
	}
	return nil
}

func yes(v any) error {
	if v != true {
		return fmt.Errorf("%v is not true", v)
	}
	return nil
}

func integer(v any) error {
	n, _ := v.(json.Number)
	if _, err := n.Int64(); err != nil {
		return fmt.Errorf("%v is not an integer", v)
	}
	return nil
}

func structure(v any) error {
	if _, ok := v.(object); !ok {
		return fmt.Errorf("%v is not an object", v)
	}
	return nil
}

func array(v any) error {
	if _, ok := v.([]any); !ok {
		return fmt.Errorf("%v is not an array", v)
	}
	return nil
}

var momentForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$`)

// moment accepts created_at as ISO 8601 and the design require it: UTC with the offset +00:00, never Z.
func moment(v any) error {
	s, _ := v.(string)
	if at, err := time.Parse(time.RFC3339, s); err != nil || !momentForm.MatchString(s) {
		return fmt.Errorf("%v is not of the form 2006-01-02T15:04:05+00:00", v)
	} else if age := time.Since(at); age < -2*time.Second || age > time.Hour {
		return fmt.Errorf("%v is %s ago", v, age)
	}
	return nil
}

// wantError requires the body of an error as in section 7 of the contract: a message, and with status 422 an object
// errors with exactly these fields, each with an array of messages.
func (a answer) wantError(t *testing.T, status int, fields ...string) answer {
	t.Helper()
	a.want(t, status)
	switch {
	case status == http.StatusUnauthorized:
		shape{"message": text}.check(t, a.body)
	case status == http.StatusNotFound:
		shape{"message": text, "error": exactly("not_found")}.check(t, a.body)
	case status == http.StatusUnprocessableEntity && len(fields) == 0:
		shape{"message": text, "error": exactly("unsafe_url")}.check(t, a.body)
	case status == http.StatusUnprocessableEntity:
		shape{"message": text, "errors": structure}.check(t, a.body)
	default: // the contract does not define other fields
		if err := text(a.body["message"]); err != nil {
			t.Errorf("message: %v: %v", err, a)
		}
	}
	errors, _ := a.body["errors"].(object)
	for _, name := range fields {
		messages, _ := errors[name].([]any)
		if len(messages) == 0 {
			t.Errorf("errors has no messages for %q: %v", name, a)
		}
		for _, m := range messages {
			if err := text(m); err != nil {
				t.Errorf("errors of %q: %v: %v", name, err, a)
			}
		}
	}
	if len(errors) != len(fields) {
		t.Errorf("errors should have the fields %q only: %v", fields, a)
	}
	return a
}

func exactly(want string) func(any) error {
	return func(v any) error {
		if v != want {
			return fmt.Errorf("%v is not %q", v, want)
		}
		return nil
	}
}
