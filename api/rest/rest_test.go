package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"linkstream/api/apiservice"
	"linkstream/api/auth"
	"linkstream/schema"
	"linkstream/schema/linkstore"
	"linkstream/schema/sqlite"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// fasthttp updates its Date header until the process exits, and the cleaner of a stopped server sleeps for 10 s.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

const edgeURL = "https://sho.rt"

// testService is a running service on real stores.
type testService struct {
	links  *linkstore.Store
	clicks *sqlite.ClickStore
	base   string // URL of the service
	client *http.Client
	log    *testkit.Buffer
	dir    string // of the stores' files
}

// start starts a service that blocks the host bad.example.
func start(t testing.TB) *testService {
	t.Helper()
	return startFaulty(t, nil)
}

// startFaulty starts a service whose stores call fault before each method.
func startFaulty(t testing.TB, fault storetest.Fault) *testService {
	t.Helper()
	return startWrapped(t, fault, asIs)
}

func asIs(links schema.Database) schema.Database { return links }

// startWrapped is startFaulty with the link store that wrap returns, and a changed configuration.
func startWrapped(t testing.TB, fault storetest.Fault, wrap func(schema.Database) schema.Database,
	configure ...func(*apiservice.Config)) *testService {
	t.Helper()
	dir := t.TempDir()
	links, err := sqlitetest.Open(t.Context(), filepath.Join(dir, "links.db"))
	testkit.Must(t, err)
	clicks, err := sqlitetest.OpenClickStore(t.Context(), filepath.Join(dir, "clicks.db"))
	testkit.Must(t, err)
	cfg := apiservice.DefaultConfig()
	cfg.EdgeURL = schema.MustParseBaseURL(edgeURL)
	cfg.Listen, cfg.Blocklist = "127.0.0.1:0", filepath.Join(dir, "hosts")
	testkit.Must(t, os.WriteFile(cfg.Blocklist, []byte("0.0.0.0 bad.example\n"), 0o600))
	for _, change := range configure {
		change(&cfg)
	}
	s := &testService{links: links, clicks: clicks, log: &testkit.Buffer{}, dir: dir}
	api, err := apiservice.New(cfg, wrap(storetest.Faulty(links, fault)),
		storetest.FaultyClicks{ClickStore: clicks, ReportStore: clicks, HistoryStore: clicks,
			Fault: fault}, nil, s.log.Logger())
	testkit.Must(t, err)
	s.base = "http://" + api.Addr()

	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- api.Run(ctx) }()
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	s.client = &http.Client{Transport: transport, Timeout: time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		testkit.Must(t, <-stopped)
		testkit.Must(t, links.Close())
		testkit.Must(t, clicks.Close())
	})
	return s
}

// caller is an account with a token.
type caller struct {
	*testService
	account schema.Account
	token   string // "": requests have no Authorization header
}

func (s *testService) caller(t testing.TB, email string) caller {
	t.Helper()
	c := caller{testService: s, account: schema.Account{Email: email, CreatedAt: time.Now()}}
	testkit.Must(t, s.links.CreateAccount(t.Context(), &c.account))
	c.addToken(t)
	return c
}

// addToken creates another token, which the caller uses from then on.
func (c *caller) addToken(t testing.TB) (tokenID int64) {
	t.Helper()
	secret, token := auth.NewToken(c.account.ID, "test")
	testkit.Must(t, c.links.CreateToken(t.Context(), &token))
	c.token = secret
	return token.ID
}

func (c caller) addDomain(t *testing.T, host string, verified bool) int64 {
	t.Helper()
	domain := schema.Domain{AccountID: c.account.ID, Host: host, CreatedAt: time.Now()}
	if verified {
		domain.VerifiedAt = domain.CreatedAt
	}
	testkit.Must(t, c.links.CreateDomain(t.Context(), &domain))
	return domain.ID
}

// answer is an HTTP answer with its body.
type answer struct {
	status int
	header http.Header
	raw    string
	body   map[string]any // numbers are json.Number; nil if raw is not a JSON object
}

// request sends a request, checks the answer against the OpenAPI document, and returns it. header alternates names and
// values.
func (c caller) request(t *testing.T, method, path, body string, header ...string) answer {
	t.Helper()
	a, err := c.try(t.Context(), method, path, body, header...)
	testkit.Must(t, err)
	return a
}

func (c caller) try(ctx context.Context, method, path, body string, header ...string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if method == http.MethodPost || method == http.MethodPatch || method == http.MethodPut {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := c.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: res.StatusCode, header: res.Header, raw: string(raw)}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if decoder.Decode(&a.body) != nil {
		a.body = nil
	}
	if err := checkAnswer(req, a); err != nil {
		return answer{}, fmt.Errorf("answer to %s %s is not as documented: %w\n%d %.500s", method, path, err, a.status, a.raw)
	}
	return a, nil
}

func (c caller) get(t *testing.T, path string) answer {
	t.Helper()
	return c.request(t, http.MethodGet, path, "")
}

// shorten requests a link with these fields.
func (c caller) shorten(t *testing.T, fields map[string]any) answer {
	t.Helper()
	body, err := json.Marshal(fields)
	testkit.Must(t, err)
	return c.request(t, http.MethodPost, "/api/v1/shorten", string(body))
}

// link creates a link and returns its hash.
func (c caller) link(t *testing.T, fields map[string]any) string {
	t.Helper()
	a := c.shorten(t, fields)
	a.want(t, http.StatusCreated)
	return a.body["hash"].(string)
}

// want requires a JSON object, the status, and the headers of every answer.
func (a answer) want(t *testing.T, status int) {
	t.Helper()
	if a.status != status || a.body == nil {
		t.Fatalf("status %d, want %d: %s", a.status, status, a.raw)
	}
	for name, want := range map[string]string{"Content-Type": "application/json", "X-Content-Type-Options": "nosniff",
		"Cache-Control": "no-store", "Server": ""} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// wantKeys requires a JSON object with exactly these keys, and the status.
func (a answer) wantKeys(t *testing.T, status int, keys ...string) {
	t.Helper()
	a.want(t, status)
	if len(a.body) != len(keys) {
		t.Errorf("keys other than %q: %s", keys, a.raw)
	}
	for _, key := range keys {
		if _, ok := a.body[key]; !ok {
			t.Errorf("no key %q: %s", key, a.raw)
		}
	}
	if message, ok := a.body["message"].(string); status >= 400 && (!ok || message == "") {
		t.Errorf("no message: %s", a.raw)
	}
}

// wantInvalid requires a validation error about exactly these fields.
func (a answer) wantInvalid(t *testing.T, fields ...string) {
	t.Helper()
	a.wantKeys(t, http.StatusUnprocessableEntity, "message", "errors")
	named, _ := a.body["errors"].(map[string]any)
	for _, field := range fields {
		messages, _ := named[field].([]any)
		if len(messages) == 0 {
			t.Errorf("no messages for %q: %s", field, a.raw)
		}
		for _, m := range messages {
			if s, ok := m.(string); !ok || s == "" {
				t.Errorf("message %v for %q", m, field)
			}
		}
	}
	if len(named) != len(fields) {
		t.Errorf("errors other than %q: %s", fields, a.raw)
	}
}
