package resttest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"linkstream/schema/testkit"
)

// client neither follows redirects nor keeps connections open.
var client = &http.Client{
	Timeout:       testkit.Patience,
	Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Object is a JSON object; its numbers are json.Number.
type Object = map[string]any

// Answer is a complete HTTP response.
type Answer struct {
	Request string // method and URL, for messages
	Status  int
	Header  http.Header
	Raw     string
	Body    Object // nil if raw is not a JSON object
}

// Call sends a request and reads the answer. header holds names and values in turn. Host sets the request's host.
func Call(t *testing.T, method, address, body string, header ...string) Answer {
	t.Helper()
	a, err := send(t, nil, method, address, body, header...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// send is Call for goroutines other than the test's. check may refuse the answer.
func send(
	t *testing.T, check func(*http.Request, Answer) error, method, address, body string, header ...string,
) (Answer, error) {
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		return Answer{}, err
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
		return Answer{}, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return Answer{}, fmt.Errorf("read answer of %s %s: %w", method, address, err)
	}
	a := Answer{Request: method + " " + address, Status: res.StatusCode, Header: res.Header, Raw: string(raw)}
	a.Body, _ = Decode(a.Raw).(Object)
	if check != nil {
		if err := check(req, a); err != nil {
			return a, fmt.Errorf("the answer is not as documented: %w: %v", err, a)
		}
	}
	return a, nil
}

// Decode returns raw as a JSON value, nil if it is not JSON.
func Decode(raw string) any {
	dec := json.NewDecoder(strings.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil || dec.More() {
		return nil
	}
	return v
}

// String returns the request and the answer.
func (a Answer) String() string {
	return fmt.Sprintf("%s\n→ %d %s\n%.2000s", a.Request, a.Status, a.Header.Get("Content-Type"), a.Raw)
}

// IsStatus returns an error if the answer has another status.
func (a Answer) IsStatus(status int) error {
	if a.Status != status {
		return fmt.Errorf("status %d, want %d: %v", a.Status, status, a)
	}
	return nil
}

// Want fails the test if the answer is not a JSON object with that status.
func (a Answer) Want(t *testing.T, status int) Answer {
	t.Helper()
	if err := a.IsStatus(status); err != nil {
		t.Fatal(err)
	}
	return a.WantJSON(t)
}

// WantJSON fails the test if the answer is not a JSON object.
func (a Answer) WantJSON(t *testing.T) Answer {
	t.Helper()
	kind, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
	if kind != "application/json" || a.Body == nil {
		t.Fatalf("want a JSON object of type application/json: %v", a)
	}
	return a
}

// Caller is a client of the API. Without a token, it sends no Authorization header.
type Caller struct {
	API   string // base URL
	Token string

	check func(*http.Request, Answer) error // of System
}

// Call sends a request with the headers of section 5 of the contract, which header may override.
func (c Caller) Call(t *testing.T, method, path, body string, header ...string) Answer {
	t.Helper()
	a, err := c.Try(t, method, path, body, header...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Try is call for goroutines other than the test's.
func (c Caller) Try(t *testing.T, method, path, body string, header ...string) (Answer, error) {
	lines := []string{"Accept", "application/json"}
	if c.Token != "" {
		lines = append(lines, "Authorization", "Bearer "+c.Token)
	}
	if method == http.MethodPost || method == http.MethodPatch || method == http.MethodPut {
		lines = append(lines, "Content-Type", "application/json")
	}
	return send(t, c.check, method, c.API+path, body, append(lines, header...)...)
}

// Get sends a GET.
func (c Caller) Get(t *testing.T, path string) Answer { return c.Call(t, http.MethodGet, path, "") }

// Shorten posts the fields, valid or not.
func (c Caller) Shorten(t *testing.T, fields Object, header ...string) Answer {
	t.Helper()
	body, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return c.Call(t, http.MethodPost, "/api/v1/shorten", string(body), header...)
}

// Link creates a link and returns the body of the answer.
func (c Caller) Link(t *testing.T, fields Object) Object {
	t.Helper()
	return c.Shorten(t, fields).Want(t, http.StatusCreated).Body
}

// Alias creates a link to a URL with an alias.
func (c Caller) Alias(t *testing.T, alias, address string) Object {
	t.Helper()
	return c.Link(t, Object{"long_url": address, "custom_alias": alias})
}

// Total returns the link's total_clicks.
func (c Caller) Total(t *testing.T, hash string) int64 {
	t.Helper()
	return Number(t, c.Stats(t, hash), "total_clicks")
}

// Stats returns the field stats of a link's statistics.
func (c Caller) Stats(t *testing.T, hash string) Object {
	t.Helper()
	body := c.Get(t, "/api/v1/stats/"+hash).Want(t, http.StatusOK).Body
	stats, ok := body["stats"].(Object)
	if !ok {
		t.Fatalf("stats of %q is not an object: %v", hash, body)
	}
	return stats
}

// WaitTotal waits until at least want clicks are counted and requires that exactly want are.
func (c Caller) WaitTotal(t *testing.T, hash string, want int64) {
	t.Helper()
	var got int64
	testkit.Succeeds(t, func() error {
		if got = c.Total(t, hash); got < want {
			return fmt.Errorf("total_clicks of %q is %d, want %d", hash, got, want)
		}
		return nil
	})
	if got > want {
		t.Errorf("total_clicks of %q is %d, want %d", hash, got, want)
	}
}

// Number returns an integer field of an object.
func Number(t *testing.T, o Object, name string) int64 {
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

// Page returns the items and the meta of a page of the list; query is "" or "?page=2".
func (c Caller) Page(t *testing.T, query string) (items []Object, meta Object) {
	t.Helper()
	body := c.Get(t, "/api/v1/links"+query).Want(t, http.StatusOK).Body
	list, ok := body["data"].([]any)
	if !ok {
		t.Fatalf("data is not an array: %v", body)
	}
	for _, v := range list {
		item, ok := v.(Object)
		if !ok {
			t.Fatalf("item is not an object: %v", v)
		}
		items = append(items, item)
	}
	if meta, ok = body["meta"].(Object); !ok {
		t.Fatalf("meta is not an object: %v", body)
	}
	return items, meta
}
