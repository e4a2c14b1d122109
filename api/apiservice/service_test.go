package apiservice_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"
	"go.uber.org/goleak"

	"linkstream/api/apiservice"
	"linkstream/api/auth"
	"linkstream/schema"
	"linkstream/schema/linkstore"
	"linkstream/schema/service"
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

var discard = slog.New(slog.DiscardHandler)

func openStores(t testing.TB) (*linkstore.Store, *sqlite.ClickStore) {
	t.Helper()
	dir := t.TempDir()
	links, err := sqlitetest.Open(t.Context(), filepath.Join(dir, "links.db"))
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, links.Close()) })
	clicks, err := sqlitetest.OpenClickStore(t.Context(), filepath.Join(dir, "clicks.db"))
	testkit.Must(t, err)
	return links, clicks
}

func config() apiservice.Config {
	cfg := apiservice.DefaultConfig()
	cfg.EdgeURL, cfg.Listen = schema.MustParseBaseURL("http://sho.rt"), "127.0.0.1:0"
	return cfg
}

// run runs the service. stop stops it and returns the result of Run.
func run(s *apiservice.Service) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return func() error {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		return <-done
	}
}

func get(t *testing.T, url, token string) (status int, body string) {
	t.Helper()
	status, body, err := tryGet(t.Context(), url, token)
	testkit.Must(t, err)
	return status, body
}

func call(t *testing.T, method, url, token, body string) (status int, answer string) {
	t.Helper()
	status, answer, err := tryCall(t.Context(), method, url, token, body)
	testkit.Must(t, err)
	return status, answer
}

func tryGet(ctx context.Context, url, token string) (status int, body string, err error) {
	return tryCall(ctx, http.MethodGet, url, token, "")
}

func tryCall(ctx context.Context, method, url, token, text string) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(text))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return res.StatusCode, string(raw), err
}

func addToken(t *testing.T, links *linkstore.Store) (secret string) {
	t.Helper()
	account := schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
	testkit.Must(t, links.CreateAccount(t.Context(), &account))
	secret, token := auth.NewToken(account.ID, "test")
	testkit.Must(t, links.CreateToken(t.Context(), &token))
	return secret
}

// page returns the metrics of the service.
func page(s *apiservice.Service) string {
	var text strings.Builder
	s.Metrics().WritePrometheus(&text)
	return text.String()
}

func TestOperators(t *testing.T) {
	links, clicks := openStores(t)
	defer clicks.Close()
	var down atomic.Bool
	s, err := apiservice.New(config(), links, storetest.FaultyClicks{ClickStore: clicks, ReportStore: clicks,
		Fault: func(context.Context, string) error {
			if down.Load() {
				return schema.Errorf(schema.CodeUnavailable, "down")
			}
			return nil
		}}, nil, discard)
	testkit.Must(t, err)
	stop := run(s)
	base := "http://" + s.Addr()
	token := addToken(t, links)

	t.Run("have no endpoints on the public port", func(t *testing.T) {
		for _, path := range []string{"/metrics", "//metrics", "/%6detrics", "/x/../metrics", "/readyz", "/healthz",
			"/debug/pprof/"} {
			if status, body := get(t, base+path, ""); status != http.StatusNotFound {
				t.Errorf("%s: %d %q", path, status, body)
			}
		}
	})
	t.Run("count requests by route and status", func(t *testing.T) {
		get(t, base+"/api/v1/links", token)
		get(t, base+"/api/v1/links?page=x", token)
		get(t, base+"/api/v1/stats/none", token)
		get(t, base+"/dashboard/sign-in", "")
		get(t, base+"/dashboard/x", "")
		body := page(s)
		for _, line := range []string{
			`linkstream_api_requests_total{route="/api/v1/links",status="200"} 1`,
			`linkstream_api_requests_total{route="/api/v1/links",status="422"} 1`,
			`linkstream_api_requests_total{route="/api/v1/stats/{hash}",status="404"} 1`,
			`linkstream_api_requests_total{route="other",status="404"} 8`,
			`linkstream_api_requests_total{route="/dashboard/sign-in",status="200"} 1`,
			`linkstream_api_request_seconds_count{route="/api/v1/links"} 2`,
		} {
			if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(line) + `$`).MatchString(body) {
				t.Errorf("no line %s in\n%s", line, body)
			}
		}
	})
	down.Store(true)
	t.Run("keep an api whose link store answers", func(t *testing.T) {
		testkit.Must(t, s.Ready(t.Context()))
		status, body := call(t, http.MethodPost, base+"/api/v1/shorten", token, `{"long_url": "https://example.com/", `+
			`"custom_alias": "made"}`)
		testkit.Equal(t, "shorten: "+body, status, http.StatusCreated)
		for _, path := range []string{"/api/v1/stats/made", "/api/v1/links", "/api/v1/report"} {
			if status, body := get(t, base+path, token); status != http.StatusServiceUnavailable ||
				!strings.Contains(body, "Clicks cannot be read") {
				t.Errorf("%s: %d %s", path, status, body)
			}
		}
	})
	testkit.Must(t, links.Close())
	t.Run("get an answer that the link store is down", func(t *testing.T) {
		var unready *service.Unready
		if err := s.Ready(t.Context()); !errors.As(err, &unready) || unready.What != "link store" {
			t.Errorf("got %v", err)
		}
	})
	testkit.Must(t, stop())
}

func TestPublicHealth(t *testing.T) {
	links, clicks := openStores(t)
	defer clicks.Close()
	cfg := config()
	cfg.PublicHealth = true
	s, err := apiservice.New(cfg, links, clicks, nil, discard)
	testkit.Must(t, err)
	stop := run(s)
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusNotFound,
		"/metrics": http.StatusNotFound} {
		if status, body := get(t, "http://"+s.Addr()+path, ""); status != want {
			t.Errorf("%s: %d %q, want %d", path, status, body, want)
		}
	}
	testkit.Must(t, stop())
}

func TestConnectionsAreBounded(t *testing.T) {
	links, clicks := openStores(t)
	defer clicks.Close()
	cfg := config()
	cfg.MaxConnectionsPerAddress = 2
	s, err := apiservice.New(cfg, links, clicks, nil, discard)
	testkit.Must(t, err)
	stop := run(s)
	var open [2]net.Conn
	for i := range open {
		open[i], err = net.Dial("tcp", s.Addr())
		testkit.Must(t, err)
	}
	testkit.Eventually(t, "both are accepted",
		func() bool { return strings.Contains(page(s), "linkstream_api_connections 2\n") })
	if status, body := get(t, "http://"+s.Addr()+"/none", ""); status != http.StatusTooManyRequests {
		t.Errorf("%d %s", status, body)
	}
	for _, conn := range open {
		conn.Close()
	}
	testkit.Must(t, stop())
}

// A flood of requests without a token is refused for the most part; requests with a token are answered.
func TestTokensPassAFlood(t *testing.T) {
	links, clicks := openStores(t)
	defer clicks.Close()
	s, err := apiservice.New(config(), links, clicks, nil, discard)
	testkit.Must(t, err)
	stop, base, token := run(s), "http://"+s.Addr(), addToken(t, links)
	get(t, base+"/api/v1/links", token)
	flooding, endFlood := context.WithCancel(t.Context())
	var flood sync.WaitGroup
	for range 500 { // twice as many as are admitted while one of them waits for its slot
		flood.Go(func() {
			client := &http.Client{Transport: &http.Transport{}} // has a connection of its own
			defer client.CloseIdleConnections()
			for flooding.Err() == nil {
				if res, err := client.Get(base + "/none"); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
			}
		})
	}
	refused := regexp.MustCompile(`linkstream_api_anonymous_refused_total [1-9]\d\d`)
	testkit.Eventually(t, "requests are refused", func() bool { return refused.MatchString(page(s)) })
	for range 50 {
		if status, body := get(t, base+"/api/v1/links", token); status != http.StatusOK {
			t.Errorf("%d %s", status, body)
		}
	}
	stored, _, err := links.TokenByDigest(t.Context(), auth.Digest(token))
	testkit.Must(t, err)
	testkit.Must(t, links.RevokeToken(t.Context(), stored.ID, time.Now(), false))
	testkit.Eventually(t, "a revoked token is refused like none", func() bool {
		status, _ := get(t, base+"/api/v1/links", token)
		return status == http.StatusServiceUnavailable
	})
	endFlood()
	flood.Wait()
	testkit.Must(t, stop())
}

func TestNewReportsInvalidSettings(t *testing.T) {
	links, clicks := openStores(t)
	defer clicks.Close()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer taken.Close()
	for want, change := range map[string]func(*apiservice.Config){
		"-api.blocklist":      func(cfg *apiservice.Config) { cfg.Blocklist = "/dev/null,/none" },
		taken.Addr().String(): func(cfg *apiservice.Config) { cfg.Listen = taken.Addr().String() },
	} {
		cfg := config()
		change(&cfg)
		if _, err := apiservice.New(cfg, links, clicks, nil, discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %q", err, want)
		}
	}
}

func TestConfig(t *testing.T) {
	cfg := config()
	cfg.Listen = apiservice.DefaultConfig().Listen
	fs := flag.NewFlagSet("api", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	cfg.RegisterFlags(fs)
	testkit.Must(t, fs.Parse([]string{"-api.blocklist", "a,b", "-api.url", "https://links.example.org",
		"-api.signup", "open", "-api.trusted-proxies", "10.0.0.0/8", "-api.max-connections", "7",
		"-api.max-connections-per-address", "3"}))
	testkit.Must(t, cfg.Validate())
	if cfg.Listen != "127.0.0.1:8081" || cfg.Blocklist != "a,b" || cfg.URL.String() != "https://links.example.org" ||
		cfg.SignUp != "open" || cfg.TrustedProxies.String() != "10.0.0.0/8" ||
		cfg.MaxConnections != 7 || cfg.MaxConnectionsPerAddress != 3 {
		t.Errorf("%+v", cfg)
	}
	if err := fs.Parse([]string{"-api.url", "links.example.org"}); err == nil {
		t.Error("a base without a scheme is accepted")
	}
	cfg.Listen, cfg.EdgeURL, cfg.SignUp = "8081", schema.BaseURL{}, "maybe"
	cfg.MaxConnections, cfg.MaxConnectionsPerAddress = 0, -1
	err := cfg.Validate()
	for _, name := range []string{"-api.listen", "-edge.url", "-api.signup", "-api.max-connections:",
		"-api.max-connections-per-address"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v does not name %s", err, name)
		}
	}
}

// memoryListener has the address of a TCP listener.
type memoryListener struct{ *fasthttputil.InmemoryListener }

func (memoryListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080} }

func TestSlowClients(t *testing.T) {
	new(fasthttp.ResponseHeader).AppendBytes(nil) // starts fasthttp's clock, which never stops, outside the bubbles
	for _, c := range []struct {
		name, sent string
		answers    []int // statuses, after which the server closes the connection
		within     time.Duration
	}{
		{"that never complete a header get 408", "GET /api/v1/none HTTP/1.1\r\nHos", []int{408}, 11 * time.Second},
		{"that never complete a body get 408",
			"POST /api/v1/shorten HTTP/1.1\r\nAUTHORIZED\r\nContent-Length: 10000\r\n\r\n{", []int{408}, 11 * time.Second},
		{"that never complete a body that is too large get 413",
			"POST /api/v1/shorten HTTP/1.1\r\nAUTHORIZED\r\nTransfer-Encoding: chunked\r\n\r\n11170\r\n" +
				strings.Repeat("x", 70_000), []int{413}, 11 * time.Second},
		{"that send no further request are disconnected", "GET /api/v1/none HTTP/1.1\r\nAUTHORIZED\r\n\r\n", []int{404},
			76 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				links, clicks := openStores(t)
				defer clicks.Close()
				listener, cfg := fasthttputil.NewInmemoryListener(), config()
				cfg.Listener, cfg.MaxConnections = memoryListener{listener}, 1
				server, err := apiservice.New(cfg, links, clicks, nil, discard)
				testkit.Must(t, err)
				stop := run(server)
				fields := "Host: x\r\nContent-Type: application/json\r\nAuthorization: Bearer " + addToken(t, links)
				began := time.Now()
				conn, err := listener.Dial()
				testkit.Must(t, err)
				_, err = io.WriteString(conn, strings.Replace(c.sent, "AUTHORIZED", fields, 1))
				testkit.Must(t, err)
				reader := bufio.NewReader(conn)
				for _, status := range c.answers {
					res, err := http.ReadResponse(reader, nil)
					testkit.Must(t, err)
					body, err := io.ReadAll(res.Body)
					testkit.Must(t, err)
					if res.StatusCode != status || !strings.Contains(string(body), `"message":"`) {
						t.Errorf("%d %s", res.StatusCode, body)
					}
				}
				if _, err := reader.ReadByte(); err != io.EOF || time.Since(began) > c.within {
					t.Errorf("the connection is open after %v: %v", time.Since(began), err)
				}
				conn.Close()
				testkit.Must(t, stop())
				time.Sleep(time.Minute) // until fasthttp's cleaner of idle workers has ended
			})
		})
	}
}

// Reporters of vulnerabilities find the contact without a token, whatever their client accepts.
func TestSecurityText(t *testing.T) {
	for _, contacts := range []string{"", "security@example.org"} {
		links, clicks := openStores(t)
		cfg := config()
		testkit.Must(t, cfg.Contacts.Set(contacts))
		s, err := apiservice.New(cfg, links, clicks, nil, discard)
		testkit.Must(t, err)
		stop := run(s)
		for _, accept := range []string{"*/*", "text/html"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr()+service.SecurityPath, nil)
			testkit.Must(t, err)
			req.Header.Set("Accept", accept)
			res, err := http.DefaultClient.Do(req)
			testkit.Must(t, err)
			body, err := io.ReadAll(res.Body)
			testkit.Must(t, err)
			testkit.Must(t, res.Body.Close())
			if found := strings.HasPrefix(string(body), "Contact: mailto:security@example.org\n"); found != (contacts != "") ||
				found != (res.StatusCode == http.StatusOK) {
				t.Errorf("with %q: %d %s", contacts, res.StatusCode, body)
			}
		}
		testkit.Must(t, stop())
		testkit.Must(t, clicks.Close())
	}
}
