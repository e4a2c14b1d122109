package apiservice_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"linkstream/api/apiservice"
	"linkstream/schema/service"
	"linkstream/schema/testkit"
)

// plainServer answers GET with 200 and does not read the bodies of POST.
type plainServer struct {
	addr string
	set  *metrics.Set
	log  *testkit.Buffer

	entered chan struct{} // gets an element per request for /wait, which is answered at the end of the test
}

func servePlain(t *testing.T, limits apiservice.ConnLimits) *plainServer {
	t.Helper()
	inner, err := service.Listen("127.0.0.1:0")
	testkit.Must(t, err)
	s := &plainServer{addr: inner.Addr().String(), set: metrics.NewSet(), log: new(testkit.Buffer),
		entered: make(chan struct{}, 10)}
	listener := apiservice.NewListener(inner, limits, s.set, s.log.Logger())
	stop := make(chan struct{})
	fast := &fasthttp.Server{Logger: service.ConnLogger(slog.New(slog.DiscardHandler)), ConnState: apiservice.Track,
		StreamRequestBody: true, MaxRequestBodySize: 1, ReadTimeout: time.Minute, IdleTimeout: time.Minute,
		Handler: func(http *fasthttp.RequestCtx) {
			defer apiservice.CloseUnread(http)
			if string(http.Path()) == "/wait" {
				s.entered <- struct{}{}
				<-stop
			}
			http.SetBodyString("done")
		}}
	served := make(chan error, 1)
	go func() { served <- fast.Serve(listener) }()
	t.Cleanup(func() {
		close(stop)
		testkit.Must(t, fast.Shutdown())
		testkit.Must(t, <-served)
	})
	return s
}

// dial connects from an address of this machine.
func (s *plainServer) dial(t *testing.T, from string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", s.addr)
	testkit.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
	return conn
}

// ask sends a request and returns the status of the answer.
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

const getRoot = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

func (s *plainServer) metric(t *testing.T, line string) {
	t.Helper()
	testkit.Eventually(t, line, func() bool {
		var text strings.Builder
		s.set.WritePrometheus(&text)
		return strings.Contains("\n"+text.String(), "\n"+line+"\n")
	})
}

func TestConnectionsOfOneAddressAreBounded(t *testing.T) {
	s := servePlain(t, apiservice.ConnLimits{Connections: 100, PerAddress: 3,
		Exempt: netip.MustParsePrefix("127.0.0.9/32").Contains})
	var open []net.Conn
	for range 3 {
		conn := s.dial(t, "127.0.0.1")
		testkit.Equal(t, "status", askFor(t, conn, getRoot), 200)
		open = append(open, conn)
	}
	for range 2 {
		conn := s.dial(t, "127.0.0.1")
		testkit.Equal(t, "status of one too many", askFor(t, conn, getRoot), 429)
		if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("the connection is not closed: %v", err)
		}
	}
	s.metric(t, `linkstream_api_connections_refused_total{reason="address"} 2`)
	s.metric(t, `linkstream_api_connections 3`)
	testkit.Equal(t, "logged", s.log.Count("-api.max-connections-per-address"), 1)
	testkit.Equal(t, "status for another address", askFor(t, s.dial(t, "127.0.0.2"), getRoot), 200)
	for range 5 {
		testkit.Equal(t, "status for an exempt address", askFor(t, s.dial(t, "127.0.0.9"), getRoot), 200)
	}
	for _, conn := range open {
		testkit.Equal(t, "status on an older connection", askFor(t, conn, getRoot), 200)
	}
	open[0].Close()
	s.metric(t, `linkstream_api_connections 8`)
	testkit.Equal(t, "status when there is room", askFor(t, s.dial(t, "127.0.0.1"), getRoot), 200)
}

func TestIdleConnectionsMakeRoom(t *testing.T) {
	s := servePlain(t, apiservice.ConnLimits{Connections: 3})
	silent := s.dial(t, "127.0.0.1") // has not sent anything, for longest
	s.metric(t, `linkstream_api_connections 1`)
	first, second := s.dial(t, "127.0.0.1"), s.dial(t, "127.0.0.1")
	testkit.Equal(t, "status", askFor(t, first, getRoot), 200)
	testkit.Equal(t, "status", askFor(t, second, getRoot), 200)
	testkit.Equal(t, "status", askFor(t, first, getRoot), 200) // so the second is idle for longer
	wantClosed := func(name string, conn net.Conn) {
		t.Helper()
		if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%s is not closed: %v", name, err)
		}
	}
	third := s.dial(t, "127.0.0.1")
	testkit.Equal(t, "status", askFor(t, third, getRoot), 200)
	wantClosed("the silent one", silent)
	fourth := s.dial(t, "127.0.0.1")
	testkit.Equal(t, "status", askFor(t, fourth, getRoot), 200)
	wantClosed("the second", second)
	testkit.Equal(t, "status on the first", askFor(t, first, getRoot), 200)
	s.metric(t, `linkstream_api_connections 3`)
	s.metric(t, `linkstream_api_connections_shed_total 2`)
}

func TestConnectionsAtWorkAreNotClosed(t *testing.T) {
	s := servePlain(t, apiservice.ConnLimits{Connections: 2})
	for range 2 {
		conn := s.dial(t, "127.0.0.1")
		testkit.Equal(t, "status", askFor(t, conn, getRoot), 200)
		_, err := io.WriteString(conn, strings.Replace(getRoot, "/", "/wait", 1))
		testkit.Must(t, err)
		<-s.entered
	}
	testkit.Equal(t, "status of a further connection", askFor(t, s.dial(t, "127.0.0.1"), getRoot), 503)
	s.metric(t, `linkstream_api_connections_refused_total{reason="full"} 1`)
	s.metric(t, `linkstream_api_connections 2`)
}

func TestUnreadBodiesDoNotTakeTheAnswerBack(t *testing.T) {
	s := servePlain(t, apiservice.ConnLimits{Connections: 100})
	for range 10 {
		conn := s.dial(t, "127.0.0.1")
		testkit.Must(t, conn.(*net.TCPConn).SetWriteBuffer(4<<10))
		request := fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n%300000d", 1)
		testkit.Equal(t, "status", askFor(t, conn, request), 200)
		if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
			t.Fatalf("the connection is not closed: %v", err)
		}
		conn.Close()
	}
	s.metric(t, `linkstream_api_connections 0`)
	conn := s.dial(t, "127.0.0.1")
	for range 2 {
		testkit.Equal(t, "status without a body", askFor(t, conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"),
			200)
	}
}
