package e2e_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/schema/testkit"
)

// TestLimits has links that redirect a limited number of visitors, on all edges together.
func TestLimits(t *testing.T) {
	t.Parallel()
	s := startSystem(t, longCaches)
	killed, other := s.startAnother(t, "edge")
	limited := s.startLimited(t, 500, s.edge, other)
	for range 2 {
		limited.await(100)
		killed.kill(t)
		killed.start(t)
	}
	limited.finish(t)
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
	l.hash = s.owner().Link(t, object{"long_url": "https://example.com/", "max_clicks": most})["hash"].(string)
	ctx, cancel := context.WithCancel(t.Context())
	l.stop = cancel
	for i := range 64 {
		l.clients.Go(func() { l.follow(ctx, edges[i%len(edges)]) })
	}
	t.Cleanup(func() { cancel(); l.clients.Wait() })
	return l
}

func (l *limitedLoad) follow(ctx context.Context, edge string) {
	client := http.Client{Timeout: 5 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
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
		a := call(t, http.MethodGet, edge+"/"+l.hash, "", "Host", address(l.s.edge), "User-Agent", desktop)
		testkit.Must(t, a.IsStatus(http.StatusGone))
	}
	owner.WaitTotal(t, l.hash, l.most)
	if n := l.redirected.Load(); n > l.most {
		t.Errorf("%d visits were redirected, limit %d", n, l.most)
	}
}
