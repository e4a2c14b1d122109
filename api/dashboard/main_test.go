package dashboard_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/crypto/argon2"

	"linkstream/api/apiservice"
	"linkstream/api/clickreport"
	"linkstream/api/reads"
	"linkstream/schema"
	"linkstream/schema/linkstore"
	"linkstream/schema/sqlite"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// fasthttp renews its Date header as long as the process lasts, and a stopped server's cleaner sleeps for 10 s.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

const (
	email    = "maria@example.org"
	password = "correct horse battery"
)

// service is a running node with one account, on stores of its own.
type testService struct {
	base    string
	links   *linkstore.Store
	clicks  *sqlite.ClickStore
	account schema.Account
	log     *testkit.Buffer
	// of the service: it stands still, so that no day and no window of attempts ends during a test
	now func() time.Time
}

// option changes how a service runs.
type option func(*apiservice.Config)

func behindTLS(cfg *apiservice.Config) {
	cfg.URL = schema.MustParseBaseURL("https://links.example.org")
}
func openSignUp(cfg *apiservice.Config) { cfg.SignUp = "open" }

// unpaced is for tests that send more requests than a person would.
func unpaced(cfg *apiservice.Config) { cfg.PagesPerSecond = 1e6 }
func behindProxy(cfg *apiservice.Config) {
	if err := cfg.TrustedProxies.Set("127.0.0.1"); err != nil {
		panic(err)
	}
}

func start(t testing.TB, options ...option) *testService {
	t.Helper()
	return startFaulty(t, nil, options...)
}

// startFaulty starts a service whose stores call fault before each method.
func startFaulty(t testing.TB, fault storetest.Fault, options ...option) *testService {
	t.Helper()
	return startOn(t, fault, nil, options...)
}

// startOn starts a service whose stores call fault before each method, and whose click log is topics.
func startOn(t testing.TB, fault storetest.Fault, topics clickreport.ClickLog, options ...option) *testService {
	t.Helper()
	dir := t.TempDir()
	links, err := sqlitetest.Open(t.Context(), filepath.Join(dir, "links.db"))
	testkit.Must(t, err)
	clicks, err := sqlitetest.OpenClickStore(t.Context(), filepath.Join(dir, "clicks.db"))
	testkit.Must(t, err)
	began := time.Now()
	s := &testService{links: links, clicks: clicks, log: new(testkit.Buffer), now: func() time.Time { return began }}
	t.Cleanup(func() {
		testkit.Must(t, clicks.Close())
		testkit.Must(t, links.Close())
	})
	s.base = run(t, storetest.Faulty(links, fault),
		storetest.FaultyClicks{ClickStore: clicks, ReportStore: clicks, HistoryStore: clicks, Fault: fault}, topics, s.log,
		append([]option{func(cfg *apiservice.Config) { cfg.Now = s.now }}, options...)...)
	s.account = schema.Account{Email: email, PasswordHash: passwordHash(), CreatedAt: s.now().UTC().AddDate(0, 0, -100)}
	testkit.Must(t, s.links.CreateAccount(t.Context(), &s.account))
	return s
}

// run runs a node on stores, and returns its base.
func run(t testing.TB, links schema.Database, clicks reads.Store, topics clickreport.ClickLog, log io.Writer,
	options ...option) string {
	t.Helper()
	cfg := apiservice.DefaultConfig()
	cfg.EdgeURL, cfg.Listen = schema.MustParseBaseURL("http://sho.rt"), "127.0.0.1:0"
	for _, change := range options {
		change(&cfg)
	}
	n, err := apiservice.New(cfg, links, clicks, topics, slog.New(slog.NewTextHandler(log, nil)))
	testkit.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- n.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		testkit.Must(t, <-stopped)
	})
	return "http://" + n.Addr()
}

// passwordHash costs a check of the password as little as argon2 allows. Package auth tests the parameters of real
// accounts.
var passwordHash = sync.OnceValue(func() string {
	salt, text := []byte("salt of a test"), base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=8,t=1,p=1$%s$%s", argon2.Version, text(salt),
		text(argon2.IDKey([]byte(password), salt, 1, 8, 1, 32)))
})

func (s *testService) addAccount(t testing.TB, email string) schema.Account {
	t.Helper()
	account := schema.Account{Email: email, PasswordHash: passwordHash(), CreatedAt: s.now().UTC()}
	testkit.Must(t, s.links.CreateAccount(t.Context(), &account))
	return account
}

// browser keeps cookies, sends forms as browsers do, and does not follow redirects by itself.
type browser struct {
	t      testing.TB
	base   string
	agent  string
	fields http.Header // of every request
	host   string      // the Host header, if it is not the host of base
	client *http.Client
	seen   answer
	at     string // path of seen
}

// answer is an answer as a browser gets it.
type answer struct {
	status int
	header http.Header
	body   string
}

func (s *testService) browser(t testing.TB) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	testkit.Must(t, err)
	transport := &http.Transport{DisableCompression: true} // compressing pages takes long: see TestCompression
	t.Cleanup(transport.CloseIdleConnections)
	return &browser{t: t, base: s.base, agent: "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
		fields: http.Header{"Origin": {s.base}, "Sec-Fetch-Site": {"same-origin"}},
		client: &http.Client{Jar: jar, Transport: transport, Timeout: time.Minute,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// signedIn returns a browser in which the account is signed in.
func (s *testService) signedIn(t testing.TB) *browser {
	t.Helper()
	b := s.browser(t)
	b.signIn(email, password)
	if b.seen.status != http.StatusSeeOther {
		t.Fatalf("sign-in answers %d:\n%s", b.seen.status, b.seen.body)
	}
	return b
}

func (b *browser) send(method, path string, form url.Values) answer {
	b.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.base+path, body)
	testkit.Must(b.t, err)
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, values := range b.fields {
		req.Header[name] = values
	}
	req.Host = b.host
	req.Header.Set("User-Agent", b.agent)
	req.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	res, err := b.client.Do(req)
	testkit.Must(b.t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	testkit.Must(b.t, err)
	b.seen, b.at = answer{res.StatusCode, res.Header, string(raw)}, path
	return b.seen
}

func (b *browser) get(path string) answer { b.t.Helper(); return b.send(http.MethodGet, path, nil) }

var csrfField = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// post sends a form of the page seen last, or of the account's page: its token is in all of them.
func (b *browser) post(path string, fields ...string) answer {
	b.t.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	if form.Has("csrf") {
		return b.send(http.MethodPost, path, form)
	}
	if token := csrfField.FindStringSubmatch(b.seen.body); token != nil {
		form.Set("csrf", token[1])
	} else if token := csrfField.FindStringSubmatch(b.get("/dashboard/account").body); token != nil {
		form.Set("csrf", token[1])
	}
	return b.send(http.MethodPost, path, form)
}

// copy returns another window of the browser.
func (b *browser) copy() *browser {
	window := *b
	return &window
}

// follow gets the page that the answer seen last leads to.
func (b *browser) follow() answer {
	b.t.Helper()
	to := b.seen.header.Get("Location")
	if b.seen.status != http.StatusSeeOther || !strings.HasPrefix(to, "/") {
		b.t.Fatalf("%d leads to %q:\n%s", b.seen.status, to, b.seen.body)
	}
	return b.get(to)
}

func (b *browser) signIn(email, password string) answer {
	b.t.Helper()
	return b.send(http.MethodPost, "/dashboard/sign-in", url.Values{"email": {email}, "password": {password}})
}

// session returns the secret of the browser's session.
func (b *browser) session() string {
	b.t.Helper()
	base, err := url.Parse(b.base)
	testkit.Must(b.t, err)
	for _, c := range b.client.Jar.Cookies(base) {
		if c.Name == "linkstream" {
			return c.Value
		}
	}
	b.t.Fatal("no session")
	return ""
}

func id(id int64) string { return strconv.FormatInt(id, 10) }

// cookie returns the cookie of that name as an answer sets it; nil if it does not.
func (a answer) cookie(name string) *http.Cookie {
	for _, c := range (&http.Response{Header: a.header}).Cookies() {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// text returns the text of a page, without its elements.
func (a answer) text() string {
	var text strings.Builder
	rest := a.body
	for {
		before, tag, found := strings.Cut(rest, "<")
		_, after, closed := strings.Cut(tag, ">")
		if !found || !closed {
			text.WriteString(rest)
			return strings.Join(strings.Fields(html.UnescapeString(text.String())), " ")
		}
		text.WriteString(before + " ")
		rest = after
	}
}

// want fails unless the answer has the status and its text contains each of texts.
func (a answer) want(t *testing.T, status int, texts ...string) {
	t.Helper()
	if a.status != status {
		t.Fatalf("%d, want %d: %s", a.status, status, a.text())
	}
	if len(texts) == 0 {
		return
	}
	page := a.text()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("no %q in: %s", text, page)
		}
	}
}

func (a answer) wantTo(t *testing.T, location string) {
	t.Helper()
	if got := a.header.Get("Location"); a.status != http.StatusSeeOther || got != location {
		t.Fatalf("%d leads to %q, want %q: %s", a.status, got, location, a.text())
	}
}
