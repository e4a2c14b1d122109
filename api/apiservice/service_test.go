package apiservice_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"
	"go.uber.org/goleak"

	"linkstream/api/apiservice"
	"linkstream/api/auth"
	"linkstream/api/rest"
	"linkstream/deploy/testengines/enginetest"
	"linkstream/schema"
	"linkstream/schema/service"
	"linkstream/schema/sqlite"
)

var engines enginetest.Engines

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(engines.Of(m),
		// fasthttp renews its Date header as long as the process lasts, and a stopped server's cleaner sleeps for 10 s.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

var discard = slog.New(slog.DiscardHandler)

// slowLinks is a link store whose list waits.
type slowLinks struct {
	*links
	asked   chan struct{} // closed when the list was asked for
	release chan struct{} // the list waits until it is closed
}

type links = sqlite.Store

func (s slowLinks) Links(ctx context.Context, accountID, page int64) ([]schema.Link, int64, error) {
	close(s.asked)
	<-s.release
	return s.links.Links(ctx, accountID, page)
}

func openStores(t *testing.T) (*sqlite.Store, *sqlite.Clicks) {
	t.Helper()
	dir := t.TempDir()
	links, err := sqlite.Open(t.Context(), filepath.Join(dir, "links.db"))
	must(t, err)
	t.Cleanup(func() { must(t, links.Close()) })
	clicks, err := sqlite.OpenClicks(t.Context(), filepath.Join(dir, "clicks.db"))
	must(t, err)
	return links, clicks
}

func config() apiservice.Config {
	cfg := apiservice.DefaultConfig()
	cfg.EdgeURL, cfg.Listen = schema.MustParseBaseURL("http://sho.rt"), "127.0.0.1:0"
	return cfg
}

// run runs a node; stop stops it and returns what Run has returned.
func run(t *testing.T, n *apiservice.Service) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	return func() error {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		return <-done
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, url, token string) (status int, body string) {
	t.Helper()
	status, body, err := tryGet(t.Context(), url, token)
	must(t, err)
	return status, body
}

func tryGet(ctx context.Context, url, token string) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
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

func addToken(t *testing.T, links *sqlite.Store) (secret string) {
	t.Helper()
	account := schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
	must(t, links.CreateAccount(t.Context(), &account))
	secret, token := auth.NewToken(account.ID, "test")
	must(t, links.CreateToken(t.Context(), &token))
	return secret
}

func TestOperatorsEndpoints(t *testing.T) {
	links, clicks := openStores(t)
	n, err := apiservice.New(config(), links, clicks, nil, discard)
	must(t, err)
	stop := run(t, n)
	base := "http://" + n.Addr()
	token := addToken(t, links)

	t.Run("healthz says that the process lives", func(t *testing.T) {
		if status, body := get(t, base+"/healthz", ""); status != http.StatusOK || body != "ok\n" {
			t.Errorf("%d %q", status, body)
		}
	})
	t.Run("metrics count requests by route and status", func(t *testing.T) {
		get(t, base+"/api/v1/links", token)
		get(t, base+"/api/v1/links?page=x", token)
		get(t, base+"/api/v1/stats/none", token)
		get(t, base+"/anything", "")
		get(t, base+"/else", "")
		get(t, base+"/dashboard/sign-in", "")
		get(t, base+"/dashboard/x", "")
		_, body := get(t, base+"/metrics", "")
		for _, line := range []string{
			`linkstream_api_requests_total{route="/api/v1/links",status="200"} 1`,
			`linkstream_api_requests_total{route="/api/v1/links",status="422"} 1`,
			`linkstream_api_requests_total{route="/api/v1/stats/{hash}",status="404"} 1`,
			`linkstream_api_requests_total{route="other",status="404"} 3`,
			`linkstream_api_requests_total{route="/dashboard/sign-in",status="200"} 1`,
			`linkstream_api_request_seconds_count{route="/api/v1/links"} 2`,
		} {
			if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(line) + `$`).MatchString(body) {
				t.Errorf("no line %s", line)
			}
		}
	})
	t.Run("readyz says whether the stores answer", func(t *testing.T) {
		if status, body := get(t, base+"/readyz", ""); status != http.StatusOK {
			t.Errorf("%d %q", status, body)
		}
		must(t, clicks.Close())
		status, body := get(t, base+"/readyz", "")
		if status != http.StatusServiceUnavailable || !strings.Contains(body, "click store") {
			t.Errorf("without clicks: %d %q", status, body)
		}
	})
	must(t, stop())
}

func TestRunAnswersWhatIsUnderWayBeforeItEnds(t *testing.T) {
	links, clicks := openStores(t)
	defer clicks.Close()
	slow := slowLinks{links, make(chan struct{}), make(chan struct{})}
	n, err := apiservice.New(config(), slow, clicks, nil, discard)
	must(t, err)
	stop := run(t, n)
	token := addToken(t, links)

	answered := make(chan error, 1)
	go func() {
		status, body, err := tryGet(t.Context(), "http://"+n.Addr()+"/api/v1/links", token)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%d %s", status, body)
		}
		answered <- err
	}()
	<-slow.asked
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	for deadline := time.Now().Add(10 * time.Second); ; { // until nobody listens any more
		conn, err := net.Dial("tcp", n.Addr())
		if err != nil {
			break
		}
		conn.Close()
		if time.Now().After(deadline) {
			t.Fatal("a node that stops still takes connections")
		}
	}
	select {
	case err := <-stopped:
		t.Fatalf("Run returned %v with a request under way", err)
	default:
	}
	close(slow.release)
	must(t, <-answered)
	must(t, <-stopped)
}

func TestNewReportsWhatItCannotUse(t *testing.T) {
	links, clicks := openStores(t)
	defer clicks.Close()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
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
	must(t, fs.Parse([]string{"-api.blocklist", "a,b", "-api.url", "https://links.example.org",
		"-api.signup", "open", "-api.trusted-proxies", "10.0.0.0/8"}))
	must(t, cfg.Validate())
	if cfg.Listen != "127.0.0.1:8081" || cfg.Blocklist != "a,b" || cfg.URL.String() != "https://links.example.org" ||
		cfg.SignUp != "open" || cfg.TrustedProxies.String() != "10.0.0.0/8" {
		t.Errorf("%+v", cfg)
	}
	if err := fs.Parse([]string{"-api.url", "links.example.org"}); err == nil {
		t.Error("a base without a scheme is accepted")
	}
	cfg.Listen, cfg.EdgeURL, cfg.SignUp = "8081", schema.BaseURL{}, "maybe"
	err := cfg.Validate()
	for _, name := range []string{"-api.listen", "-edge.url", "-api.signup"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want it to name %s", err, name)
		}
	}
}

func TestSlowClients(t *testing.T) {
	new(fasthttp.ResponseHeader).AppendBytes(nil) // starts fasthttp's clock, which never ends, outside of the bubbles
	for _, c := range []struct {
		name, sent string
		answers    []int // of which the last ends the connection
		within     time.Duration
	}{
		{"that never finish a header get 408", "GET /none HTTP/1.1\r\nHos", []int{408}, 11 * time.Second},
		{"that never finish a body get 408",
			"POST /none HTTP/1.1\r\nHost: x\r\nContent-Length: 10000\r\n\r\n{", []int{408}, 11 * time.Second},
		{"that never finish a body that is too large get 413",
			"POST /none HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" +
				strings.Repeat("x", 70_000), []int{413}, 11 * time.Second},
		{"that stay without a request are disconnected", "GET /none HTTP/1.1\r\nHost: x\r\n\r\n", []int{404}, 76 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := rest.New(nil, nil, nil, nil, nil, metrics.NewSet(), discard)
				server := apiservice.NewServer(api, nil, &service.Endpoints{}, discard)
				listener := fasthttputil.NewInmemoryListener()
				ctx, cancel := context.WithCancel(t.Context())
				served := make(chan error, 1)
				go func() { served <- service.Serve(ctx, server, listener, time.Minute) }()
				began := time.Now()
				conn, err := listener.Dial()
				must(t, err)
				_, err = io.WriteString(conn, c.sent)
				must(t, err)
				reader := bufio.NewReader(conn)
				for _, status := range c.answers {
					res, err := http.ReadResponse(reader, nil)
					must(t, err)
					body, err := io.ReadAll(res.Body)
					must(t, err)
					if res.StatusCode != status || !strings.Contains(string(body), `"message":"`) {
						t.Errorf("%d %s", res.StatusCode, body)
					}
				}
				if _, err := reader.ReadByte(); err != io.EOF || time.Since(began) > c.within {
					t.Errorf("the connection goes on after %v: %v", time.Since(began), err)
				}
				conn.Close()
				cancel()
				must(t, <-served)
				time.Sleep(time.Minute) // until fasthttp's cleaner of idle workers has seen that the server is gone
			})
		})
	}
}
