package load_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/bench/load"
	"linkstream/schema/testkit"
)

var clientTLS = &tls.Config{ServerName: "localhost", MinVersion: tls.VersionTLS13, InsecureSkipVerify: true}

// secured is a server of HTTPS that knows what its clients do.
type secured struct {
	addr          string
	full, resumed atomic.Int64 // requests on connections of either kind
	hellos        atomic.Int64
	mu            sync.Mutex
	from          map[string]bool
}

func serveTLS(t *testing.T) *secured {
	t.Helper()
	s := &secured{from: map[string]bool{}}
	redirect := redirectTo("https://example.com/")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS.DidResume {
			s.resumed.Add(1)
		} else {
			s.full.Add(1)
		}
		redirect(w, r)
	}))
	server.TLS = &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		s.hellos.Add(1)
		host, _, _ := net.SplitHostPort(hello.Conn.RemoteAddr().String())
		s.mu.Lock()
		defer s.mu.Unlock()
		s.from[host] = true
		return nil, nil
	}}
	server.StartTLS()
	t.Cleanup(server.Close)
	s.addr = server.Listener.Addr().String()
	return s
}

func TestTLS(t *testing.T) {
	run := func(t *testing.T, make func(addr string, conns int) load.Target, resume bool) (*secured, load.Result) {
		t.Helper()
		s := serveTLS(t)
		target := make(s.addr, 3)
		target.TLS, target.Resume = clientTLS, resume
		result, err := load.Closed(t.Context(), target, 100*time.Millisecond)
		testkit.Must(t, err)
		testkit.Equal(t, "answers", result.Answers, s.full.Load()+s.resumed.Load())
		return s, result
	}
	t.Run("on new connections, each with a full handshake", func(t *testing.T) {
		s, result := run(t, reconnecting, false)
		testkit.Equal(t, "resumed", result.Resumed+s.resumed.Load(), 0)
		testkit.Equal(t, "handshakes", s.hellos.Load(), result.Answers)
	})
	t.Run("on new connections, which resume sessions", func(t *testing.T) {
		s, result := run(t, reconnecting, true)
		testkit.Equal(t, "full handshakes", s.full.Load(), 3)
		testkit.Equal(t, "resumed", result.Resumed, s.resumed.Load())
	})
	t.Run("on lasting connections", func(t *testing.T) {
		s, result := run(t, target, false)
		testkit.Equal(t, "handshakes", s.hellos.Load(), 3)
		if result.Answers <= 3 {
			t.Errorf("%d answers", result.Answers)
		}
	})
}

func TestFloodOfHandshakes(t *testing.T) {
	s, hello := serveTLS(t), load.ClientHello(clientTLS)
	ctx, stop := context.WithCancel(t.Context())
	harm := make(chan load.Harm, 1)
	go func() {
		harm <- load.Flood{Addr: s.addr, Spread: true, Conns: 3, Pipeline: 1, Once: true,
			Request: func(dst []byte) []byte { return append(dst, hello...) }}.Run(ctx)
	}()
	testkit.Eventually(t, "the server has computed", func() bool { return s.hellos.Load() >= 10 })
	stop()
	done := <-harm
	if done.Answers < 7 || done.Connections < done.Answers {
		t.Errorf("%+v", done)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	testkit.Equal(t, "addresses", s.from, map[string]bool{"127.1.0.1": true, "127.1.0.2": true, "127.1.0.3": true})
}
