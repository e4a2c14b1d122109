package eventloop_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"

	"linkstream/schema/testkit"
)

const v1 = "PROXY TCP4 203.0.113.7 192.0.2.1 4711 443\r\n"

// v2 returns the header of version 2 for a client's address.
func v2(t testing.TB, client string) string {
	t.Helper()
	header := proxyproto.HeaderProxyFromAddrs(2, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(client)),
		net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:443")))
	text, err := header.Format()
	testkit.Must(t, err)
	return string(text)
}

// proxies trusts the loopback address but for 127.0.0.2.
func proxies(s *site) {
	s.cfg.ProxyProtocol = true
	s.cfg.Exempt = func(addr netip.Addr) bool { return addr == netip.MustParseAddr("127.0.0.1") }
}

func TestProxyProtocol(t *testing.T) {
	eachWay(t, func(t *testing.T, loops int) {
		s := start(t, loops, proxies)
		for header, want := range map[string]string{
			v1:                         "203.0.113.7:4711 to 192.0.2.1:443",
			v2(t, "203.0.113.8:1"):     "203.0.113.8:1 to ",
			v2(t, "[2001:db8::1]:815"): "[2001:db8::1]:815 to ",
			"PROXY UNKNOWN\r\n":        "127.0.0.1:",
		} {
			conn := s.dial(t)
			if got := string(ask(t, conn, header+get("/address")).Body()); !strings.HasPrefix(got, want) {
				t.Errorf("%q: the client is %s, want %s", header, got, want)
			}
			if got := string(ask(t, conn, get("/address")).Body()); !strings.HasPrefix(got, want) { // the next request
				t.Errorf("%q: the client becomes %s", header, got)
			}
		}
		for _, said := range []string{get("/link"), "PROXY TCP4 1.2.3.4\r\n" + get("/link"),
			"\r\n\r\n\x00\r\nQUIT\n\x21\x11\xff\xff" + get("/link")} {
			conn := s.dial(t)
			_, _ = io.WriteString(conn, said)
			_ = conn.CloseWrite()
			if answer, _ := io.ReadAll(conn); strings.Contains(string(answer), "302") {
				t.Errorf("without a header, %.30q is answered %q", said, answer)
			}
		}
		stranger := s.dialFrom(t, "127.0.0.2") // may not say who it is, and need not
		if got := string(ask(t, stranger, get("/address")).Body()); !strings.HasPrefix(got, "127.0.0.2:") {
			t.Errorf("a stranger is %s", got)
		}
		testkit.Equal(t, "a stranger's header", ask(t, s.dialFrom(t, "127.0.0.2"), v1+get("/address")).StatusCode(), 400)
	})
}

func TestProxyProtocolBoundsClients(t *testing.T) {
	s := startSecure(t, 1, func(s *site) {
		proxies(s)
		s.cfg.MaxConnectionsPerAddress = 1
	})
	dial := func(addr, header string) net.Conn {
		conn, err := net.Dial("tcp", addr)
		testkit.Must(t, err)
		t.Cleanup(func() { conn.Close() })
		testkit.Must(t, conn.SetDeadline(time.Now().Add(testkit.Patience)))
		_, err = io.WriteString(conn, header)
		testkit.Must(t, err)
		return conn
	}
	first := tls.Client(dial(s.addr, v2(t, "203.0.113.7:1")), s.client)
	testkit.Equal(t, "the first one", string(ask(t, first, get("/address")).Body()), "203.0.113.7:1 to 192.0.2.1:443")
	testkit.Equal(t, "one too many", ask(t, dial(s.plainAddr, v1), get("/link")).StatusCode(), 429)
	if err := tls.Client(dial(s.addr, v1), s.client).Handshake(); err == nil {
		t.Error("one too many shakes hands")
	}
	s.awaitMetric(t, metricAddress, 2)
	for _, c := range []struct {
		client string
		status int
	}{ // an IPv6 /64 is one client
		{"203.0.113.9:1", 302}, {"[2001:db8:0:1::1]:1", 302}, {"[2001:db8:0:1:ffff::1]:1", 429}, {"[2001:db8:0:2::1]:1", 302},
	} {
		answer := ask(t, dial(s.plainAddr, v2(t, c.client)), get("/link"))
		testkit.Equal(t, "another client, "+c.client, answer.StatusCode(), c.status)
	}
	first.Close()
	testkit.Succeeds(t, func() error {
		resp, err := tryAsk(dial(s.plainAddr, v1), get("/link"))
		if err != nil {
			return err
		}
		return testkit.Mismatch("there is room again", resp.StatusCode(), 302)
	})
}

// FuzzProxyProtocol checks that a client is only answered after a whole header, and that the server goes on after
// any bytes.
func FuzzProxyProtocol(f *testing.F) {
	f.Add([]byte(v1))
	f.Add([]byte(v2(f, "203.0.113.7:1")))
	f.Add([]byte("PROXY UNKNOWN\r\n"))
	f.Add([]byte("\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00"))
	f.Add([]byte("PROXY TCP6 ::1 ::1 1 1\r\n"))
	s := start(f, 0, func(s *site) {
		proxies(s)
		s.cfg.ReadTimeout = 100 * time.Millisecond
	})
	f.Fuzz(func(t *testing.T, header []byte) {
		conn := s.dial(t)
		_, _ = conn.Write(append(header, get("/link")...))
		_ = conn.CloseWrite()
		answer, err := io.ReadAll(conn)
		if netErr, ok := err.(net.Error); ok && netErr.Timeout() {
			t.Errorf("%q: the connection stays open", header)
		}
		known := strings.HasPrefix(string(header), "PROXY ") || strings.HasPrefix(string(header), "\r\n\r\n\x00\r\nQUIT\n")
		if !known && strings.Contains(string(answer), "302") {
			t.Errorf("%q is answered %q", header, answer)
		}
	})
}
