package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/api/client"
	"linkstream/schema/testkit"
)

// TestGeneratedClient generates client.gen.go again.
func TestGeneratedClient(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"generate.yaml", "../rest/openapi.json"} { // of which the go command then knows
		_, err := os.Stat(name)
		testkit.Must(t, err)
	}
	file := filepath.Join(t.TempDir(), "client.gen.go")
	out, err := exec.CommandContext(t.Context(), "go", "tool", "oapi-codegen", "-config", "generate.yaml", "-o", file,
		"../rest/openapi.json").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want, err := os.ReadFile(file)
	testkit.Must(t, err)
	got, err := os.ReadFile("client.gen.go")
	testkit.Must(t, err)
	if !bytes.Equal(got, want) {
		t.Error("client.gen.go is not generated from openapi.json as it is: run go generate ./api/client")
	}
}

// service answers requests in turn, the last answer for ever, and records them.
type service struct {
	answers  []answer
	requests []*http.Request
	bodies   []string
}

type answer struct {
	status int
	header string // Name: value
	body   string
	stream io.Reader // instead of a body
	err    error
}

func (s *service) RoundTrip(req *http.Request) (*http.Response, error) {
	a := s.answers[min(len(s.requests), len(s.answers)-1)]
	s.requests = append(s.requests, req)
	sent := ""
	if req.Body != nil {
		read, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		sent = string(read)
	}
	s.bodies = append(s.bodies, sent)
	if a.err != nil || a.status == 0 {
		if a.err == nil {
			<-req.Context().Done()
		}
		return nil, errors.Join(a.err, req.Context().Err())
	}
	header := http.Header{}
	if name, value, found := strings.Cut(a.header, ": "); found {
		header.Set(name, value)
	}
	body := io.Reader(strings.NewReader(a.body))
	if a.stream != nil {
		body = a.stream
	}
	return &http.Response{StatusCode: a.status, Status: http.StatusText(a.status), Header: header, Request: req,
		Body: io.NopCloser(body)}, nil
}

// connect returns a client of a service that answers.
func connect(t *testing.T, answers ...answer) (*client.Client, *service) {
	t.Helper()
	s := &service{answers: answers}
	api, err := client.Connect("https://links.example.com/base", "ls_token",
		client.WithHTTPClient(&client.Sender{Token: "ls_token", Agent: "test", Transport: s}))
	testkit.Must(t, err)
	return api, s
}

const created = `{"success":true,"short_url":"https://sho.rt/x","original_url":"https://go.dev/","hash":"x",` +
	`"created_at":"2026-11-21T09:30:15+00:00"}`

func TestRequestsAreRepeatedAsTheServiceAsks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api, s := connect(t, answer{status: 503, header: "Retry-After: 5"}, answer{status: 429, header: "Retry-After: 60"},
			answer{status: 409, header: "Retry-After: 1"}, answer{status: 201, body: created})
		start := time.Now()
		made, err := client.Read[client.CreatedLink](api.CreateLink(t.Context(), nil,
			client.LinkRequest{LongUrl: "https://go.dev/"}))
		testkit.Must(t, err)
		testkit.Equal(t, "short URL", made.ShortUrl, "https://sho.rt/x")
		testkit.Equal(t, "time", time.Since(start), 66*time.Second)
		testkit.Equal(t, "bodies", s.bodies, slices.Repeat([]string{`{"long_url":"https://go.dev/"}`}, 4))
		key := s.requests[0].Header.Get("Idempotency-Key")
		for _, r := range s.requests {
			if r.URL.String() != "https://links.example.com/base/api/v1/shorten" || key == "" ||
				r.Header.Get("Idempotency-Key") != key || r.Header.Get("Authorization") != "Bearer ls_token" ||
				r.Header.Get("User-Agent") != "test" || r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s %v", r.URL, r.Header)
			}
		}
		_, _ = api.CreateLink(t.Context(), nil, client.LinkRequest{})
		if s.requests[4].Header.Get("Idempotency-Key") == key {
			t.Error("another request has the same Idempotency-Key")
		}
		mine := "mine"
		_, _ = api.CreateLink(t.Context(), &client.CreateLinkParams{IdempotencyKey: &mine}, client.LinkRequest{})
		testkit.Equal(t, "key of the caller", s.requests[5].Header.Get("Idempotency-Key"), "mine")
		_, _ = api.GetLink(t.Context(), "promo/2026", nil)
		testkit.Equal(t, "path", s.requests[6].URL.EscapedPath(), "/base/api/v1/links/promo%2F2026")
	})
}

func TestRepetitionsHaveAnEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer   answer
		body     io.Reader
		requests int
	}{
		"after five":                    {answer{status: 503, header: "Retry-After: 1"}, strings.NewReader("{}"), 5},
		"without Retry-After":           {answer{status: 503}, strings.NewReader("{}"), 1},
		"with a date":                   {answer{status: 429, header: "Retry-After: Fri, 31 Dec 2027 23:59:59 GMT"}, nil, 1},
		"with a long time":              {answer{status: 429, header: "Retry-After: 86400"}, nil, 1},
		"of a status for which no wait": {answer{status: 500, header: "Retry-After: 1"}, nil, 1},
		"of a body that is read once": {answer{status: 503, header: "Retry-After: 1"},
			io.NopCloser(strings.NewReader("{}")), 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, s := connect(t, c.answer)
				_, err := client.Read[json.RawMessage](api.CreateLinkWithBody(t.Context(), nil, "application/json", c.body))
				var refused *client.Error
				if !errors.As(err, &refused) || refused.Status != c.answer.status || len(s.requests) != c.requests {
					t.Errorf("%d requests, %v", len(s.requests), err)
				}
			})
		})
	}
	t.Run("of the context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			api, _ := connect(t, answer{status: 503, header: "Retry-After: 60"})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if _, err := api.GetAccount(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
	})
}

func TestSilenceEndsARequest(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]answer{"before the answer": {}, "in the answer": {status: 200, stream: silent{}}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, s := connect(t, a)
				if a.status != 0 {
					s.answers[0].stream = &silent{s}
				}
				start := time.Now()
				_, err := client.Read[json.RawMessage](api.GetAccount(t.Context()))
				if took := time.Since(start); took != time.Minute || err == nil || !strings.Contains(err.Error(), "sent nothing") {
					t.Errorf("after %v: %v", took, err)
				}
			})
		})
	}
}

func TestPausesOfTheCallerEndNoRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api, s := connect(t, answer{status: 200})
		s.answers[0].stream = &drops{service: s, left: 3}
		resp, err := api.GetAccount(t.Context())
		testkit.Must(t, err)
		defer resp.Body.Close()
		for range 3 {
			time.Sleep(2 * time.Minute)
			_, err := resp.Body.Read(make([]byte, 1))
			testkit.Must(t, err)
		}
		time.Sleep(2 * time.Minute)
		if _, err = resp.Body.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("error at the end: %v", err)
		}
	})
}

// drops is a body of single bytes, each half a minute after the call of Read, that ends with the request.
type drops struct {
	*service
	left int
}

func (d *drops) Read(p []byte) (int, error) {
	time.Sleep(30 * time.Second)
	if err := d.requests[len(d.requests)-1].Context().Err(); err != nil {
		return 0, err
	}
	if d.left--; d.left < 0 {
		return 0, io.EOF
	}
	p[0] = ' '
	return 1, nil
}

// silent is a body that ends with the request.
type silent struct{ *service }

func (s silent) Read([]byte) (int, error) {
	ctx := s.requests[len(s.requests)-1].Context()
	<-ctx.Done()
	return 0, ctx.Err()
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer answer
		want   client.Error
		text   string
	}{
		"of a token": {answer{status: 401, body: `{"message":"The API token is missing or invalid."}`},
			client.Error{Status: 401, Message: "The API token is missing or invalid."}, "The API token is missing or invalid."},
		"with a code": {answer{status: 404, body: `{"error":"not_found","message":"You have no link with this hash."}`},
			client.Error{Status: 404, Message: "You have no link with this hash.", Code: "not_found"},
			"You have no link with this hash."},
		"of fields": {answer{status: 422, body: `{"message":"Invalid.","errors":{"b":["Two.","Three."],"a":["One."]}}`},
			client.Error{Status: 422, Message: "Invalid.", Fields: map[string][]string{"a": {"One."}, "b": {"Two.", "Three."}}},
			"a: One.\nb: Two. Three."},
		"of a proxy": {answer{status: 502, body: "<html>"}, client.Error{Status: 502,
			Message: "The answer is Bad Gateway and not one of the API."}, "The answer is Bad Gateway and not one of the API."},
		"of a redirect": {answer{status: 301, header: "Location: https://other.example/"}, client.Error{Status: 301,
			Message: "The answer is Moved Permanently and not one of the API. It redirects to https://other.example/"},
			"The answer is Moved Permanently and not one of the API. It redirects to https://other.example/"},
	} {
		t.Run(name, func(t *testing.T) {
			api, s := connect(t, c.answer)
			_, err := client.Read[client.AccountAnswer](api.GetAccount(t.Context()))
			var refused *client.Error
			if !errors.As(err, &refused) || len(s.requests) != 1 {
				t.Fatalf("%d requests, %v", len(s.requests), err)
			}
			testkit.Equal(t, "error", *refused, c.want)
			testkit.Equal(t, "text", err.Error(), c.text)
		})
	}
	api, _ := connect(t, answer{status: 200, body: "<html>"})
	if _, err := client.Read[client.AccountAnswer](api.GetAccount(t.Context())); err == nil ||
		!strings.Contains(err.Error(), "not one of the API") {
		t.Error(err)
	}
}

// TestEditsClearFields requires that a field can be set, cleared, and left as it is.
func TestEditsClearFields(t *testing.T) {
	t.Parallel()
	api, s := connect(t, answer{status: 200, body: "{}"})
	edit := client.LinkEdit{}
	edit.ExpiresAt.SetNull()
	edit.MaxClicks.Set(5)
	const tag = `"17-3"`
	_, err := api.EditLink(t.Context(), "x", &client.EditLinkParams{IfMatch: new(tag)}, edit)
	testkit.Must(t, err)
	testkit.Equal(t, "If-Match", s.requests[0].Header.Get("If-Match"), tag)
	testkit.Equal(t, "body", s.bodies[0], `{"expires_at":null,"max_clicks":5}`)
}

func event(total, until string) string {
	return ": comment\n\nevent: counts\nid: " + until + "\ndata: {\"hash\":\"x\",\"total_clicks\":" + total +
		",\"people\":1,\"bots\":0,\"counted_until\":\"" + until + "\"}\n\n"
}

func TestWatchConnectsAgain(t *testing.T) {
	t.Parallel()
	const until = "2026-11-30T14:05:07+00:00"
	synctest.Test(t, func(t *testing.T) {
		api, s := connect(t, answer{status: 200, body: event("1", until) + event("2", until)},
			answer{err: errors.New("connection refused")}, answer{status: 502}, answer{status: 200, body: event("3", until)},
			answer{status: 200}, answer{status: 401, body: `{"message":"Revoked."}`})
		var totals []int64
		var last error
		for state, err := range client.Watch(t.Context(), func() (*http.Response, error) {
			return api.LinkLive(t.Context(), "x", nil)
		}) {
			if last = err; err == nil {
				totals = append(totals, state.TotalClicks)
				if state.Hash != "x" || state.People != 1 || state.CountedUntil.Format(time.RFC3339) != "2026-11-30T14:05:07Z" {
					t.Errorf("state %+v", state)
				}
			}
		}
		testkit.Equal(t, "totals", totals, []int64{1, 2, 3})
		testkit.Equal(t, "requests", len(s.requests), 6)
		if last == nil || last.Error() != "Revoked." {
			t.Error(last)
		}
	})
	for name, a := range map[string]answer{"refused": {status: 404, body: `{"message":"No."}`},
		"not reached": {err: errors.New("connection refused")}} {
		t.Run("a first stream that is "+name, func(t *testing.T) {
			api, s := connect(t, a)
			for _, err := range client.Watch(t.Context(), func() (*http.Response, error) {
				return api.AccountLive(t.Context(), nil)
			}) {
				if err == nil {
					t.Error("there is a state")
				}
			}
			testkit.Equal(t, "requests", len(s.requests), 1)
		})
	}
	t.Run("the end of the context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			api, _ := connect(t, answer{status: 200, body: event("1", until)})
			for _, err := range client.Watch(ctx, func() (*http.Response, error) { return api.AccountLive(ctx, nil) }) {
				testkit.Must(t, err)
				cancel()
			}
		})
	})
}
