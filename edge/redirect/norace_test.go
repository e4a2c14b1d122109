//go:build !race

// Under the race detector a sync.Pool drops elements at random, and allocates again.

package redirect_test

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"linkstream/schema/testkit"
)

func TestServeAllocatesNothing(t *testing.T) {
	e := newEdge(t, func(e *edge) {
		testkit.Must(t, e.cfg.TrustedProxies.Set("10.0.0.0/8"))
	})
	e.link(t, 0, "abcdefg", "https://example.com/some/page?with=query")
	e.link(t, e.domain(t, "go.example.com", true), "own", "https://example.com/")
	client := &net.TCPAddr{IP: net.IPv4(203, 0, 113, 7), Port: 4711}
	proxy := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 4711}
	const agent = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
	for _, c := range []struct {
		name, url string
		peer      net.Addr
		fields    []string
	}{
		{"a bare request", "http://sho.rt/abcdefg", client, nil},
		{"with user agent and referrer", "http://sho.rt/abcdefg", client,
			[]string{"User-Agent", agent, "Referer", "https://from.example/"}},
		{"on a custom domain", "http://go.example.com/own", client, []string{"User-Agent", agent}},
		{"behind proxies", "http://sho.rt/abcdefg", proxy, []string{"X-Forwarded-For", "203.0.113.7:80, 2001:db8::1, 10.0.0.2"}},
		{"a prefetch", "http://sho.rt/abcdefg", client, []string{"Sec-Purpose", "prefetch"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := request(c.url, c.peer, c.fields...)
			if allocs := testing.AllocsPerRun(1000, func() {
				ctx.Response.Reset()
				e.handler.Serve(ctx)
			}); allocs != 0 {
				t.Errorf("%v allocations per request", allocs)
			}
			if status := ctx.Response.StatusCode(); status != 302 {
				t.Errorf("answered %d", status)
			}
		})
	}
	if n := len(e.clicks(t)); n != 4*1001 { // AllocsPerRun calls its function once more before it measures
		t.Errorf("%d clicks in the spool", n)
	}
}

func TestRedirectOnLoopAllocatesNothing(t *testing.T) {
	e := newEdge(t, nil)
	e.link(t, 0, "abcdefg", "https://example.com/some/page?with=query")
	addr, err := net.ResolveTCPAddr("tcp4", e.serve(t, 1))
	testkit.Must(t, err)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0) // package net's connections may allocate
	testkit.Must(t, err)
	defer unix.Close(fd)
	testkit.Must(t, unix.Connect(fd, &unix.SockaddrInet4{Port: addr.Port, Addr: [4]byte(addr.IP.To4())}))
	request, answer := []byte("GET /abcdefg HTTP/1.1\r\nHost: sho.rt\r\nReferer: https://from.example/\r\n\r\n"), make([]byte, 1000)
	exchange := func() {
		n, err := unix.Write(fd, request)
		if err == nil {
			n, err = unix.Read(fd, answer)
		}
		if err != nil || string(answer[:min(n, 12)]) != "HTTP/1.1 302" {
			t.Fatalf("answered %q, error %v", answer[:max(n, 0)], err)
		}
	}
	exchange() // from the store
	if allocs := testing.AllocsPerRun(5000, exchange); allocs != 0 {
		t.Errorf("%v allocations per redirect", allocs)
	}
	testkit.Equal(t, "clicks", len(e.clicks(t)), 5002)
}
