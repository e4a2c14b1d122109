package apiservice_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"linkstream/api/apiservice"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// pool counts the connections of a store. Some methods keep their connection until the pool is closed.
type pool struct {
	connections chan struct{}
	closed      chan struct{}
	slow        []string
}

func (p *pool) fault(ctx context.Context, method string) error {
	select {
	case p.connections <- struct{}{}:
		defer func() { <-p.connections }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if slices.Contains(p.slow, method) {
		select {
		case <-p.closed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// TestReadyDuringSlowReads lets an account ask for many reports and searches that do not end. They delay neither load
// balancers that ask whether the service is ready, nor the account's next link.
func TestReadyDuringSlowReads(t *testing.T) {
	const calls = 20
	links, clicks := openStores(t)
	defer clicks.Close()
	ofLinks := &pool{make(chan struct{}, links.Readers()), make(chan struct{}), []string{"Links"}}
	ofClicks := &pool{make(chan struct{}, clicks.Readers()), ofLinks.closed, []string{"Report"}}
	s, err := apiservice.New(config(), storetest.Faulty(links, ofLinks.fault),
		storetest.FaultyClicks{ClickStore: clicks, ReportStore: clicks, HistoryStore: clicks,
			Fault: ofClicks.fault}, nil, discard)
	testkit.Must(t, err)
	stop, base, token := run(s), "http://"+s.Addr(), addToken(t, links)
	var asking sync.WaitGroup
	for n := range 2 * calls {
		path := []string{"/api/v1/links?q=a", "/api/v1/report"}[n%2]
		asking.Go(func() {
			for {
				select {
				case <-ofLinks.closed:
					return
				default:
					_, _, _ = tryGet(t.Context(), base+path, token)
				}
			}
		})
	}
	testkit.Eventually(t, "reads are under way", func() bool {
		return len(ofLinks.connections) > 0 &&
			len(ofClicks.connections) > 0
	})
	testkit.Eventually(t, "all clients ask", func() bool { return connections(s) >= 2*calls })
	for range 3 {
		testkit.Takes(t, time.Second, func(int) { testkit.Must(t, s.Ready(t.Context())) })
		testkit.Takes(t, time.Second, func(int) {
			status, body := call(t, http.MethodPost, base+"/api/v1/shorten", token, `{"long_url": "https://example.com/"}`)
			testkit.Equal(t, "shorten: "+body, status, http.StatusCreated)
		})
	}
	close(ofLinks.closed)
	asking.Wait()
	testkit.Must(t, stop())
}

// connections returns how many connections of clients a service has.
func connections(s *apiservice.Service) (n int) {
	for line := range strings.Lines(page(s)) {
		_, _ = fmt.Sscanf(line, "linkstream_api_connections %d", &n)
	}
	return n
}
