package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// TestLimits has links that redirect so many visitors only.
func TestLimits(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		s, all := startSystem(t, longCaches), t
		testLimits(t, s, s.edge)
		for _, most := range []int64{1, 10, 1000} {
			t.Run(fmt.Sprint("limit ", most, " and kill -9"), func(t *testing.T) {
				limited := s.startLimited(t, most, s.edge)
				for range 3 {
					limited.await(most / 5)
					s.programs[0].kill(t)
					s.programs[0].start(all)
				}
				limited.finish(t)
			})
		}
	})
	t.Run("engines", func(t *testing.T) {
		t.Parallel()
		c := startCluster(t, longCaches)
		edges := []string{c.edge}
		for range 3 {
			_, base := c.startAnother(t, "edge")
			edges = append(edges, base)
		}
		testLimits(t, c.system, edges...)
		for _, most := range []int64{1, 10, 1000} {
			t.Run(fmt.Sprint("limit ", most, " and faults"), func(*testing.T) { c.testLimitFaults(t, most, edges) })
		}
	})
}

// testLimits visits edges one after the other.
func testLimits(t *testing.T, s *system, edges ...string) {
	owner := s.owner()
	visit := func(i int, method, hash string, header ...string) answer {
		return call(t, method, edges[i%len(edges)]+"/"+hash, "", append([]string{"Host", address(s.edge), "User-Agent", desktop}, header...)...)
	}
	left := func(t *testing.T, hash string, want any) {
		t.Helper()
		testkit.Succeeds(t, func() error {
			link := owner.Get(t, "/api/v1/links/"+hash).Want(t, http.StatusOK).Body["link"].(object)
			return testkit.Mismatch("clicks_left", link["clicks_left"], want)
		})
	}
	patch := func(t *testing.T, hash, body string) object {
		t.Helper()
		return owner.Call(t, http.MethodPatch, "/api/v1/links/"+hash, body).Want(t, http.StatusOK).Body["link"].(object)
	}
	t.Run("a link redirects so many visitors, and then answers as expired", func(t *testing.T) {
		hash := owner.Shorten(t, object{"long_url": "https://example.com/", "max_clicks": 5}).Want(t, http.StatusCreated).Body["hash"].(string)
		left(t, hash, json.Number("5"))
		for i := range 5 {
			testkit.Must(t, visit(i, http.MethodHead, hash).IsStatus(http.StatusFound))
			testkit.Must(t, visit(i, http.MethodGet, hash, "Sec-Purpose", "prefetch").IsStatus(http.StatusFound))
			testkit.Must(t, visit(i, http.MethodGet, hash, "User-Agent", unfurlers[0]).IsStatus(http.StatusOK))
			testkit.Must(t, visit(i, http.MethodGet, hash).IsStatus(http.StatusFound))
		}
		for i := range edges {
			testkit.Must(t, visit(i, http.MethodGet, hash).IsStatus(http.StatusGone))
			testkit.Must(t, visit(i, http.MethodHead, hash).IsStatus(http.StatusGone))
		}
		left(t, hash, json.Number("0"))
		owner.WaitTotal(t, hash, 5)
	})
	t.Run("a rise, a fall and an end of the limit take effect within a second", func(t *testing.T) {
		testkit.Follows(t, time.Second, func(try int) func() error {
			hash := fmt.Sprint("limit-", try)
			owner.Shorten(t, object{"long_url": "https://example.com/", "custom_alias": hash, "max_clicks": 2, "expired_url": "https://example.com/over"}).
				Want(t, http.StatusCreated)
			for i := range 2 {
				testkit.Equal(t, "location", visit(i, http.MethodGet, hash).Header.Get("Location"), "https://example.com/")
			}
			testkit.Equal(t, "location", visit(0, http.MethodGet, hash).Header.Get("Location"), "https://example.com/over")
			testkit.Equal(t, "max_clicks", patch(t, hash, `{"max_clicks":3}`)["max_clicks"], any(json.Number("3")))
			return func() error {
				return testkit.Mismatch("location", visit(try, http.MethodGet, hash).Header.Get("Location"), "https://example.com/")
			}
		})
		testkit.Follows(t, time.Second, func(try int) func() error {
			hash := fmt.Sprint("fall-", try)
			owner.Shorten(t, object{"long_url": "https://example.com/", "custom_alias": hash, "max_clicks": 1_000_000}).Want(t, http.StatusCreated)
			for i := range 2 * len(edges) {
				testkit.Must(t, visit(i, http.MethodGet, hash).IsStatus(http.StatusFound))
			}
			patch(t, hash, `{"max_clicks":1}`)
			return func() error {
				for i := range edges {
					if err := visit(i, http.MethodGet, hash).IsStatus(http.StatusGone); err != nil {
						return err
					}
				}
				return nil
			}
		})
		testkit.Follows(t, time.Second, func(try int) func() error {
			link := patch(t, "fall-0", `{"max_clicks":null}`)
			testkit.Equal(t, "max_clicks and clicks_left", []any{link["max_clicks"], link["clicks_left"]}, []any{nil, nil})
			return func() error { return visit(try, http.MethodGet, "fall-0").IsStatus(http.StatusFound) }
		})
	})
	t.Run("limits that are none are refused", func(t *testing.T) {
		for _, limit := range []string{"0", "-1", "1000000001", "1.5", `"5"`, "[]"} {
			refused := owner.Call(t, http.MethodPost, "/api/v1/shorten", `{"long_url":"https://example.com/","max_clicks":`+limit+`}`).
				Want(t, http.StatusUnprocessableEntity)
			if _, names := refused.Body["errors"].(object)["max_clicks"]; !names {
				t.Errorf("max_clicks %s: %v", limit, refused)
			}
		}
	})
}

// limitedLoad is many clients that follow a link with a limit.
type limitedLoad struct {
	s          *system
	hash       string
	most       int64
	redirected atomic.Int64
	stop       context.CancelFunc
	clients    sync.WaitGroup
	wrong      atomic.Pointer[string]
	edges      []string
}

// startLimited creates a link and starts 64 clients of the edges.
func (s *system) startLimited(t *testing.T, most int64, edges ...string) *limitedLoad {
	t.Helper()
	l := &limitedLoad{s: s, most: most, edges: edges}
	l.hash = s.owner().Shorten(t, object{"long_url": "https://example.com/", "max_clicks": most}).Want(t, http.StatusCreated).Body["hash"].(string)
	ctx, cancel := context.WithCancel(t.Context())
	l.stop = cancel
	for i := range 64 {
		l.clients.Go(func() { l.follow(ctx, edges[i%len(edges)]) })
	}
	t.Cleanup(func() { cancel(); l.clients.Wait() })
	return l
}

func (l *limitedLoad) follow(ctx context.Context, edge string) {
	client := http.Client{Timeout: 5 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	for ctx.Err() == nil {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, edge+"/"+l.hash, nil)
		if err != nil {
			return
		}
		request.Host, request.Header = address(l.s.edge), http.Header{"User-Agent": {desktop}}
		response, err := client.Do(request)
		if err == nil {
			response.Body.Close()
			switch response.StatusCode {
			case http.StatusFound:
				l.redirected.Add(1)
			case http.StatusGone, http.StatusServiceUnavailable:
			default:
				l.wrong.Store(new(response.Status))
			}
		}
		<-time.After(50 * time.Millisecond)
	}
}

// await waits until so many visits were redirected, or the limit is reached.
func (l *limitedLoad) await(redirected int64) {
	for began := time.Now(); l.redirected.Load() < redirected && time.Since(began) < testkit.Patience/2; {
		<-time.After(time.Millisecond)
	}
}

// finish waits until the limit is reached and counted, and requires that it is not exceeded.
func (l *limitedLoad) finish(t *testing.T) {
	t.Helper()
	owner := l.s.owner()
	owner.WaitTotal(t, l.hash, l.most)
	<-time.After(2 * time.Second) // the clients go on
	l.stop()
	l.clients.Wait()
	if wrong := l.wrong.Load(); wrong != nil {
		t.Errorf("a visit was answered with %s", *wrong)
	}
	owner.WaitTotal(t, l.hash, l.most)
	for _, edge := range l.edges {
		testkit.Must(t, call(t, http.MethodGet, edge+"/"+l.hash, "", "Host", address(l.s.edge), "User-Agent", desktop).IsStatus(http.StatusGone))
	}
	owner.WaitTotal(t, l.hash, l.most)
	if n := l.redirected.Load(); n > l.most {
		t.Errorf("%d visits were redirected, limit %d", n, l.most)
	}
}

// testLimitFaults kills and suspends programs and Postgres while visitors use up a limit.
func (c *cluster) testLimitFaults(t *testing.T, most int64, bases []string) {
	edges := c.all("edge")
	l := c.startLimited(t, most, bases...)
	l.await(most / 10)
	edges[1].kill(t)
	l.await(most / 5)
	edges[2].process.Signal(t, syscall.SIGSTOP)
	c.program("api").kill(t)
	l.await(most * 3 / 10)
	testkit.Must(t, c.postgres.Kill())
	<-time.After(time.Second)
	edges[3].kill(t)
	edges[1].launch(t)
	testkit.Must(t, c.postgres.Start(t.Context()))
	edges[2].process.Signal(t, syscall.SIGCONT)
	l.await(most / 2)
	for _, p := range slices.Backward(edges[:3]) {
		if p.process != nil {
			p.kill(t)
		}
	}
	for _, p := range append(edges, c.program("api")) {
		if p.process == nil {
			p.launch(t)
		}
	}
	c.awaitReady(t)
	l.finish(t)
}
