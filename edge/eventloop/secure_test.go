package eventloop_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"linkstream/edge/eventloop"
	"linkstream/schema/testkit"
)

// secureSite is a site that is also served by HTTPS.
type secureSite struct {
	*site
	plainAddr string // addr is the address of HTTPS
	client    *tls.Config
}

const (
	metricFullHandshakes = `linkstream_edge_tls_handshakes_total{result="full"}`
	metricResumed        = `linkstream_edge_tls_handshakes_total{result="resumed"}`
	metricFailed         = `linkstream_edge_tls_handshakes_total{result="failed"}`
)

// startSecure serves both ways until the test ends.
func startSecure(t testing.TB, loops int, change func(*site)) *secureSite {
	t.Helper()
	authority := testkit.NewAuthority(t)
	certPEM, keyPEM := authority.Sign(t, time.Hour, "a.example")
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	testkit.Must(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	s := start(t, loops, func(s *site) {
		if change != nil {
			change(s)
		}
		config := &tls.Config{Certificates: []tls.Certificate{cert}}
		if s.secure != nil {
			s.secure(config)
		}
		s.beside = func(server *eventloop.Server) {
			go func() { ended <- server.ServeTLS(ctx, ln, config, s.grace) }()
		}
	})
	secure := &secureSite{s, s.addr, &tls.Config{RootCAs: authority.Roots, ServerName: "a.example"}}
	s.addr = ln.Addr().String()
	stopPlain := s.stop
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("ServeTLS returned %v", err)
		}
		stopPlain()
	})
	t.Cleanup(s.stop)
	return secure
}

// dialTLS connects and shakes hands.
func (s *secureSite) dialTLS(t testing.TB) *tls.Conn {
	t.Helper()
	conn, err := s.tryTLS(t)
	testkit.Must(t, err)
	return conn
}

func (s *secureSite) tryTLS(t testing.TB) (*tls.Conn, error) {
	t.Helper()
	conn := tls.Client(s.dial(t), s.client)
	return conn, conn.Handshake()
}

func TestHTTPS(t *testing.T) {
	t.Run("answers as HTTP does, and plain connections at the same time", func(t *testing.T) {
		s := startSecure(t, 1, nil)
		conn := s.dialTLS(t)
		for _, path := range []string{"/link", "/page", "/large", "/store"} {
			plain, err := net.Dial("tcp", s.plainAddr)
			testkit.Must(t, err)
			want, got := ask(t, plain, get(path)), ask(t, conn, get(path))
			plain.Close()
			testkit.Equal(t, "status of "+path, got.StatusCode(), want.StatusCode())
			testkit.Equal(t, "location of "+path, string(got.Header.Peek("Location")), string(want.Header.Peek("Location")))
			testkit.Equal(t, "body of "+path, string(got.Body()), string(want.Body()))
		}
		s.awaitMetric(t, metricFullHandshakes, 1)
	})
	t.Run("sessions are resumed", func(t *testing.T) {
		s := startSecure(t, 1, nil)
		s.client.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		for i := range 3 {
			conn := s.dialTLS(t)
			ask(t, conn, get("/link")) // the ticket comes before the answer
			testkit.Equal(t, "resumed", conn.ConnectionState().DidResume, i > 0)
			conn.Close()
		}
		s.awaitMetric(t, metricFullHandshakes, 1)
		s.awaitMetric(t, metricResumed, 2)
	})
	t.Run("what is not TLS ends the connection, and harms nobody", func(t *testing.T) {
		s := startSecure(t, 1, nil)
		for _, said := range []string{get("/link"), "\x16\x03\x01\x40\x00" + strings.Repeat("\x01", 1<<14), "\x16"} {
			conn := s.dial(t)
			_, _ = io.WriteString(conn, said)
			_ = conn.CloseWrite()
			answer, _ := io.ReadAll(conn)
			if strings.Contains(string(answer), "302") {
				t.Errorf("%.20q is answered %q", said, answer)
			}
		}
		testkit.Eventually(t, "they have failed", func() bool { return s.metric(t, metricFailed) == 3 })
		ask(t, s.dialTLS(t), get("/link"))
		testkit.Eventually(t, "only the last one is open", func() bool { return s.metric(t, metricOpen) == 1 })
	})
}

func TestHTTPSTimeouts(t *testing.T) {
	t.Parallel()
	s := startSecure(t, 1, func(s *site) {
		s.cfg.ReadTimeout, s.cfg.IdleTimeout = short, short
	})
	t.Run("of a handshake", func(t *testing.T) { wantEnd(t, s.dial(t), "") })
	// answered asks once on a new connection, which the server then has to end.
	answered := func(t *testing.T, request string, want int) {
		inTime(t, func() error {
			conn, err := s.tryTLS(t)
			if err != nil {
				return err
			}
			resp, err := tryAsk(conn, request)
			if err == nil {
				err = testkit.Mismatch("status", resp.StatusCode(), want)
			}
			if err == nil {
				wantEnd(t, conn, "")
			}
			return err
		})
	}
	t.Run("of a request", func(t *testing.T) { answered(t, "GET /link HTTP/1.1\r\n", 408) })
	t.Run("between requests", func(t *testing.T) { answered(t, get("/link"), 302) })
}

// inTime repeats a try that fails after the server's patience: then the client may have been late, where it waits
// for a CPU.
func inTime(t *testing.T, try func() error) {
	t.Helper()
	const tries = 10
	for n := 1; ; n++ {
		began := time.Now()
		err := try()
		if err == nil {
			return
		}
		if n == tries || time.Since(began) < short || isTimeout(err) {
			t.Fatal(err)
		}
	}
}

func TestHTTPSSharesTheBounds(t *testing.T) {
	t.Run("of one address", func(t *testing.T) {
		s := startSecure(t, 1, func(s *site) { s.cfg.MaxConnectionsPerAddress = 2 })
		plain, err := net.Dial("tcp", s.plainAddr)
		testkit.Must(t, err)
		defer plain.Close()
		ask(t, plain, get("/link"))
		first := s.dialTLS(t)
		ask(t, first, get("/link"))
		wantEnd(t, s.dial(t), "")
		s.awaitMetric(t, metricAddress, 1)
		testkit.Equal(t, "connections", s.metric(t, metricOpen), 2) // the refused one does not count, nor does its end
		first.Close()
		testkit.Eventually(t, "there is room again", func() bool { return s.metric(t, metricOpen) == 1 })
		ask(t, s.dialTLS(t), get("/link"))
	})
	t.Run("the one that waits longest makes room, whichever way it came", func(t *testing.T) {
		s := startSecure(t, 1, func(s *site) { s.cfg.MaxConnections, s.cfg.MaxConnectionsPerAddress = 4, 0 })
		plain, err := net.Dial("tcp", s.plainAddr)
		testkit.Must(t, err)
		defer plain.Close()
		plain.SetDeadline(time.Now().Add(testkit.Patience))
		var conns []net.Conn
		for range 3 {
			conn := s.dialTLS(t)
			ask(t, conn, get("/link"))
			conns = append(conns, conn)
		}
		ask(t, plain, get("/link"))
		ask(t, conns[0], get("/link")) // is not the longest idle any more
		ask(t, s.dialTLS(t), get("/link"))
		wantEnd(t, conns[1], "")
		ask(t, conns[0], get("/link"))
		ask(t, conns[2], get("/link"))
		s.awaitMetric(t, metricShed, 1)
		// All that waits is plain: it makes room for HTTPS.
		for _, conn := range []net.Conn{conns[0], conns[2]} {
			io.WriteString(conn, get("/wait"))
		}
		testkit.Eventually(t, "two are in use", func() bool { return s.waiting.Load() == 2 })
		for _, n := range []int64{3, 4} {
			io.WriteString(s.dialTLS(t), get("/wait"))
			testkit.Eventually(t, "one more is in use", func() bool { return s.waiting.Load() == n })
		}
		wantEnd(t, plain, "")
		wantEnd(t, s.dial(t), "") // one too many
		s.awaitMetric(t, metricFull, 1)
		close(s.gate)
	})
	t.Run("HTTPS makes room for plain connections", func(t *testing.T) {
		s := startSecure(t, 1, func(s *site) { s.cfg.MaxConnections = 1 })
		conn := s.dialTLS(t)
		ask(t, conn, get("/link"))
		testkit.Eventually(t, "the connection is idle", func() bool { // a little later than its client has the answer
			plain, err := net.Dial("tcp", s.plainAddr)
			testkit.Must(t, err)
			defer plain.Close()
			return ask(t, plain, get("/link")).StatusCode() == 302
		})
		wantEnd(t, conn, "")
	})
}

func TestHTTPSStops(t *testing.T) {
	t.Parallel()
	s := startSecure(t, 1, func(s *site) { s.cfg.ReadTimeout = testkit.Patience })
	idle, silent, busy := s.dialTLS(t), s.dial(t), s.dialTLS(t)
	ask(t, idle, get("/link"))
	io.WriteString(busy, get("/wait"))
	testkit.Eventually(t, "a request is under way", func() bool { return s.waiting.Load() == 1 })
	stopped := make(chan struct{})
	go func() { s.stop(); close(stopped) }()
	awaitClosed(t, s.addr)
	close(s.gate)
	resp, err := readAnswer(busy)
	testkit.Must(t, err)
	testkit.Equal(t, "answer", string(resp.Body()), "waited")
	testkit.Equal(t, "it is the last one", resp.ConnectionClose(), true)
	began := time.Now()
	wantEnd(t, idle, "")
	wantEnd(t, silent, "")
	<-stopped
	if took := time.Since(began); took > s.cfg.ReadTimeout/2 {
		t.Errorf("a silent client delays the stop for %v", took)
	}
}

// A browser opens connections that it may never use, and waits longer on others than the server waits for it to
// take an answer.
func TestHTTPSRefusalAfterIdling(t *testing.T) {
	const timeout = 50 * time.Millisecond
	s := startSecure(t, 1, func(s *site) { s.cfg.WriteTimeout, s.cfg.ReadTimeout = timeout, 8*timeout })
	t.Run("of a connection that is never used", func(t *testing.T) {
		answer, err := readAnswer(s.dialTLS(t))
		testkit.Must(t, err)
		testkit.Equal(t, "status", answer.StatusCode(), 408)
	})
	t.Run("of a request that cannot be read", func(t *testing.T) {
		conn := s.dialTLS(t)
		ask(t, conn, get("/link"))
		time.Sleep(2 * timeout)
		testkit.Equal(t, "status", ask(t, conn, "nonsense\r\n\r\n").StatusCode(), 400)
	})
}
