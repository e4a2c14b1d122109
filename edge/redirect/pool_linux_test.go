//go:build !race

// Under the race detector a sync.Pool drops elements at random: it allocates again, and ristretto loses the requests
// that it collects in one.

package redirect_test

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestServeAllocatesNothing(t *testing.T) {
	e := newEdge(t, func(e *edge) {
		testkit.Must(t, e.cfg.TrustedProxies.Set("10.0.0.0/8"))
	})
	e.link(t, 0, "abcdefg", "https://example.com/some/page?with=query")
	e.link(t, e.domain(t, "go.example.com", true), "own", "https://example.com/")
	e.create(t, schema.Link{Hash: "expires", URL: "https://example.com/", ExpiresAt: time.Now().Add(time.Hour)})
	e.create(t, schema.Link{Hash: "expired", URL: "https://example.com/", ExpiresAt: time.Now(),
		ExpiredURL: "https://late.example/"})
	e.create(t, schema.Link{Hash: "forward", URL: "https://example.com/?own=1#part", ForwardQuery: true})
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
			[]string{"User-Agent", agent, "Referer", "https://from.example/", "Accept-Language", "de-AT,de;q=0.9"}},
		{"on a custom domain", "http://go.example.com/own", client, []string{"User-Agent", agent}},
		{"behind proxies", "http://sho.rt/abcdefg", proxy,
			[]string{"X-Forwarded-For", "203.0.113.7:80, 2001:db8::1, 10.0.0.2"}},
		{"of a link that expires", "http://sho.rt/expires", client, nil},
		{"of an expired link that leads elsewhere", "http://sho.rt/expired", client, nil},
		{"with a query that is forwarded", "http://sho.rt/forward?utm_source=a&b=%20c", client, nil},
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
	if n := len(e.clicks(t)); n != 7*1001 { // AllocsPerRun calls its function once more before it measures
		t.Errorf("%d clicks in the spool", n)
	}
}

func TestRedirectOnLoopAllocatesNothing(t *testing.T) {
	e := newEdge(t, nil)
	e.create(t, schema.Link{Hash: "abcdefg", URL: "https://example.com/some/page?with=query#part"})
	e.create(t, schema.Link{Hash: "forward", URL: "https://example.com/some/page?with=query#part", ForwardQuery: true,
		ExpiresAt: time.Now().Add(time.Hour)})
	addr, err := net.ResolveTCPAddr("tcp4", e.serve(t, 1))
	testkit.Must(t, err)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0) // package net's connections may allocate
	testkit.Must(t, err)
	defer unix.Close(fd)
	testkit.Must(t, unix.Connect(fd, &unix.SockaddrInet4{Port: addr.Port, Addr: [4]byte(addr.IP.To4())}))
	answer := make([]byte, 1000)
	for _, path := range []string{"/abcdefg", "/forward?utm_source=a&b=%20c"} {
		request := []byte("GET " + path + " HTTP/1.1\r\nHost: sho.rt\r\nReferer: " +
			"https://from.example/\r\nAccept-Language: de-AT,de;q=0.9\r\n\r\n")
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
			t.Errorf("%s: %v allocations per redirect", path, allocs)
		}
	}
	testkit.Equal(t, "clicks", len(e.clicks(t)), 2*5002)
}

func TestExtendedRedirectDoesNotAllocate(t *testing.T) {
	e := newRuledEdge(t)
	e.extend(t, "abc", schema.Behaviour{Rules: rules(schema.Conditions{Device: []string{"mobile"}},
		schema.Conditions{Country: []string{"AT"}, Language: []string{"he"}},
		schema.Conditions{Query: map[string]string{"a": "b"}}), Card: &schema.Card{Title: "title"},
		Variants: []schema.Variant{{Name: "a", URL: "https://example.com/a", Weight: 50},
			{Name: "b", URL: "https://example.com/b", Weight: 50}}})
	ctx := request("http://sho.rt/abc?x=1", &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7)}, "User-Agent", firefox,
		"Accept-Language", "iw-IL")
	e.handler.Serve(ctx)
	if allocs := testing.AllocsPerRun(100, func() { ctx.Response.Reset(); e.handler.Serve(ctx) }); allocs != 0 {
		t.Errorf("%v allocations per redirect", allocs)
	}
}
