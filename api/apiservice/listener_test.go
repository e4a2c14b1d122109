package apiservice_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"linkstream/api/apiservice"
	"linkstream/api/auth"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// boundedService is a service within bounds of connections. Its look-ups of tokens do not end before the test does.
type boundedService struct {
	*apiservice.Service
	log     *testkit.Buffer
	entered chan struct{} // gets an element per look-up of a token
}

func serveWithin(t *testing.T, change func(*apiservice.Config)) *boundedService {
	t.Helper()
	links, clicks := openStores(t)
	s := &boundedService{log: new(testkit.Buffer), entered: make(chan struct{}, 10)}
	end := make(chan struct{})
	fault := func(context.Context) error {
		s.entered <- struct{}{}
		<-end
		return errors.New("the test has ended")
	}
	cfg := config()
	change(&cfg)
	var err error
	s.Service, err = apiservice.New(cfg, storetest.Faulty(links, storetest.FaultOf(fault, "TokenByDigest")), clicks, nil,
		s.log.Logger())
	testkit.Must(t, err)
	stop := run(s.Service)
	t.Cleanup(func() {
		close(end)
		testkit.Must(t, stop())
		testkit.Close(t, clicks)
	})
	return s
}

// dial connects from an address of this machine.
func (s *boundedService) dial(t *testing.T, from string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", s.Addr())
	testkit.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	return conn
}

// askFor sends a request and returns the status of the answer.
func askFor(t *testing.T, conn net.Conn, request string) int {
	t.Helper()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	testkit.Must(t, err)
	_, err = io.Copy(io.Discard, res.Body)
	testkit.Must(t, err)
	return res.StatusCode
}

const getOpen = "GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"

func (s *boundedService) metric(t *testing.T, line string) {
	t.Helper()
	testkit.Eventually(t, line, func() bool { return strings.Contains("\n"+page(s.Service), "\n"+line+"\n") })
}

func TestConnectionsOfOneAddressAreBounded(t *testing.T) {
	s := serveWithin(t, func(cfg *apiservice.Config) {
		cfg.MaxConnections, cfg.MaxConnectionsPerAddress = 100, 3
		testkit.Must(t, cfg.TrustedProxies.Set("127.0.0.9/32"))
	})
	var open []net.Conn
	for range 3 {
		conn := s.dial(t, "127.0.0.1")
		testkit.Equal(t, "status", askFor(t, conn, getOpen), 200)
		open = append(open, conn)
	}
	for range 2 {
		conn := s.dial(t, "127.0.0.1")
		testkit.Equal(t, "status of one too many", askFor(t, conn, getOpen), 429)
		if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the connection is not closed: %v", err)
		}
	}
	s.metric(t, `linkstream_api_connections_refused_total{reason="address"} 2`)
	s.metric(t, `linkstream_api_connections 3`)
	testkit.Equal(t, "logged", s.log.Count("-api.max-connections-per-address"), 1)
	testkit.Equal(t, "status for another address", askFor(t, s.dial(t, "127.0.0.2"), getOpen), 200)
	for range 5 {
		testkit.Equal(t, "status for an exempt address", askFor(t, s.dial(t, "127.0.0.9"), getOpen), 200)
	}
	for _, conn := range open {
		testkit.Equal(t, "status on an older connection", askFor(t, conn, getOpen), 200)
	}
	open[0].Close()
	s.metric(t, `linkstream_api_connections 8`)
	testkit.Equal(t, "status when there is room", askFor(t, s.dial(t, "127.0.0.1"), getOpen), 200)
}

func TestIdleConnectionsMakeRoom(t *testing.T) {
	s := serveWithin(t, func(cfg *apiservice.Config) { cfg.MaxConnections = 3 })
	silent := s.dial(t, "127.0.0.1") // has not sent anything, for longest
	s.metric(t, `linkstream_api_connections 1`)
	first, second := s.dial(t, "127.0.0.1"), s.dial(t, "127.0.0.1")
	testkit.Equal(t, "status", askFor(t, first, getOpen), 200)
	testkit.Equal(t, "status", askFor(t, second, getOpen), 200)
	testkit.Equal(t, "status", askFor(t, first, getOpen), 200) // so the second is idle for longer
	wantClosed := func(name string, conn net.Conn) {
		t.Helper()
		if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%s is not closed: %v", name, err)
		}
	}
	third := s.dial(t, "127.0.0.1")
	testkit.Equal(t, "status", askFor(t, third, getOpen), 200)
	wantClosed("the silent one", silent)
	fourth := s.dial(t, "127.0.0.1")
	testkit.Equal(t, "status", askFor(t, fourth, getOpen), 200)
	wantClosed("the second", second)
	testkit.Equal(t, "status on the first", askFor(t, first, getOpen), 200)
	s.metric(t, `linkstream_api_connections 3`)
	s.metric(t, `linkstream_api_connections_shed_total 2`)
}

func TestConnectionsAtWorkAreNotClosed(t *testing.T) {
	s := serveWithin(t, func(cfg *apiservice.Config) { cfg.MaxConnections = 2 })
	for range 2 {
		conn := s.dial(t, "127.0.0.1")
		testkit.Equal(t, "status", askFor(t, conn, getOpen), 200)
		token, _ := auth.NewToken(1, "unknown")
		_, err := io.WriteString(conn, "GET /api/v1/links HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+token+"\r\n\r\n")
		testkit.Must(t, err)
		<-s.entered
	}
	testkit.Equal(t, "status of a further connection", askFor(t, s.dial(t, "127.0.0.1"), getOpen), 503)
	s.metric(t, `linkstream_api_connections_refused_total{reason="full"} 1`)
	s.metric(t, `linkstream_api_connections 2`)
}

func TestUnreadBodiesDoNotTakeTheAnswerBack(t *testing.T) {
	s := serveWithin(t, func(*apiservice.Config) {})
	for range 10 {
		conn := s.dial(t, "127.0.0.1")
		testkit.Must(t, conn.(*net.TCPConn).SetWriteBuffer(4<<10))
		request := fmt.Sprintf("POST /api/v1/shorten HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n%300000d", 1)
		testkit.Equal(t, "status", askFor(t, conn, request), 401)
		if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
			t.Fatalf("the connection is not closed: %v", err)
		}
		conn.Close()
	}
	s.metric(t, `linkstream_api_connections 0`)
	conn := s.dial(t, "127.0.0.1")
	for range 2 {
		request := "POST /api/v1/shorten HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
		testkit.Equal(t, "status without a body", askFor(t, conn, request), 401)
	}
}
