package webhook_test

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metrics"

	"linkstream/api/links"
	"linkstream/api/webhook"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestIsPublic(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"93.184.216.34": true, "2606:2800:220:1::1": true, "::ffff:93.184.216.34": true, "64:ff9b::5db8:d822": true,
		"2002:5db8:d822::1": true,
		"0.0.0.0":           false, "0.1.2.3": false, "10.1.2.3": false, "100.64.0.1": false, "127.0.0.1": false,
		"169.254.169.254": false, "172.16.0.1": false,
		"192.0.0.8": false, "192.0.2.1": false, "192.168.1.1": false, "198.18.0.1": false, "203.0.113.1": false,
		"224.0.0.1": false,
		"240.0.0.1": false, "255.255.255.255": false,
		"::": false, "::1": false, "::7f00:1": false, "fc00::1": false, "fe80::1%eth0": false, "fec0::1": false,
		"ff02::1":     false,
		"2001:db8::1": false, "2001:0:5db8:d822::1": false, "100::1": false, "3fff::1": false, "5f00::1": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "64:ff9b::a00:1": false, "64:ff9b:1::5db8:d822": false,
		"64:ff9b::a9fe:a9fe": false,
		"2002:a00:1::1":      false, "2002:7f00:1::1": false,
	} {
		testkit.Equal(t, text, webhook.IsPublic(netip.MustParseAddr(text)), want)
	}
}

func newSender(t *testing.T, store schema.WebhookStore, allow string, own ...string) *webhook.Sender {
	t.Helper()
	addresses, err := links.ParseAddresses(own...)
	testkit.Must(t, err)
	cfg := webhook.Config{Own: addresses}
	testkit.Must(t, cfg.Allow.Set(allow))
	return webhook.New(cfg, store, func(link schema.Link) any { return map[string]any{"hash": link.Hash} },
		metrics.NewSet(), slog.New(slog.DiscardHandler))
}

func TestSenderConnectsOnlyWhereItMay(t *testing.T) {
	t.Parallel()
	s := newSender(t, nil, "10.1.0.0/16, fd00::/8", "198.41.0.4")
	for _, c := range []struct {
		addr          string
		secure, plain bool
	}{
		{"93.184.216.34", true, false}, {"198.41.0.4", false, false}, {"::ffff:198.41.0.4", false, false},
		{"2002:c629:4::1", false, false},
		{"10.1.2.3", true, true}, {"::ffff:10.1.2.3", true, true}, {"64:ff9b::a01:203", true, true}, {"fd00::1", true,
			true},
		{"10.2.0.1", false, false}, {"127.0.0.1", false, false}, {"fe80::1", false, false},
	} {
		addr := netip.MustParseAddr(c.addr)
		for _, port := range []uint16{80, 443, 8080} {
			to := netip.AddrPortFrom(addr, port)
			testkit.Equal(t, "https to "+to.String(), s.Check(true, to) == nil, c.secure)
			testkit.Equal(t, "http to "+to.String(), s.Check(false, to) == nil, c.plain)
		}
	}
}

// The operator allows all of this machine and of a network. The ports of the service stay closed at each of its
// addresses, in each form of them.
func TestSenderNeverCallsTheService(t *testing.T) {
	t.Parallel()
	s := newSender(t, nil, "0.0.0.0/0,::/0", "127.0.0.1:9081", "0.0.0.0:8081", "[::]:8082", "[::1]:8083", ":8084",
		"10.1.2.3:8085", "10.1.2.4", "[fd00::1]:8086", "localhost:8087", "203.0.113.9:443")
	here := []string{"127.0.0.1", "127.0.0.2", "127.255.255.254", "::1", "0.0.0.0", "0.1.2.3", "::", "::ffff:127.0.0.1",
		"::ffff:0.0.0.0", "::7f00:1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2002:7f00:1::5"}
	interfaces, err := net.InterfaceAddrs()
	testkit.Must(t, err)
	for _, i := range interfaces {
		here = append(here, netip.MustParsePrefix(i.String()).Addr().String())
	}
	for _, addr := range here {
		for port := uint16(8080); port < 8092; port++ {
			own := port >= 8081 && port <= 8087
			to := netip.AddrPortFrom(netip.MustParseAddr(addr), port)
			testkit.Equal(t, "https to "+to.String(), s.Check(true, to) == nil, !own)
			testkit.Equal(t, "http to "+to.String(), s.Check(false, to) == nil, !own)
			url := "http://" + to.String() + "/metrics"
			testkit.Equal(t, url, s.CheckURL(url) == "", !own)
		}
		if s.Check(false, netip.AddrPortFrom(netip.MustParseAddr(addr), 9081)) == nil {
			t.Errorf("%s leads to operators", addr)
		}
	}
	for to, want := range map[string]bool{
		"10.1.2.3:8085": false, "[::ffff:10.1.2.3]:8085": false, "[64:ff9b::a01:203]:8085": false,
		"[2002:a01:203::]:8085": false,
		"10.1.2.3:8086":         true, "10.1.2.4:1": false, "10.1.2.4:65535": false, "[64:ff9b::a01:204]:80": false,
		"10.1.2.5:8085":  true,
		"[fd00::1]:8086": false, "[fd00::1]:8085": true, "203.0.113.9:443": false, "203.0.113.9:444": true,
		"[fe80::1%eth0]:8081": true,
	} {
		testkit.Equal(t, to, s.Check(false, netip.MustParseAddrPort(to)) == nil, want)
	}
	for url, want := range map[string]bool{
		"http://localhost:8087/": false, "http://LOCALHOST.:8087/": false, "http://localhost:3000/": true,
		"http://10.1.2.4/": false, "https://203.0.113.9/": false, "http://203.0.113.9:443/": false,
		"http://203.0.113.9/":           true,
		"http://[::ffff:a01:203]:8085/": false, "http://10.1.2.3:08085/": false, "http://10.1.2.3:0/": false,
		"http://10.1.2.3:70000/": false,
		"http://10.1.2.3:/":      true,
	} {
		testkit.Equal(t, url, s.CheckURL(url) == "", want)
	}
}

// The name of a receiver may lead to the service only when it is called (DNS rebinding).
func TestSenderChecksEachConnection(t *testing.T) {
	t.Parallel()
	called := make(chan struct{}, 10)
	private := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called <- struct{}{} }))
	t.Cleanup(private.Close)
	_, port, err := net.SplitHostPort(private.Listener.Addr().String())
	testkit.Must(t, err)
	s := newSender(t, nil, "127.0.0.0/8,::/0,0.0.0.0/8", "0.0.0.0:"+port)
	for _, host := range []string{"localhost", "127.0.0.1", "127.9.9.9", "0.0.0.0", "[::ffff:127.0.0.1]"} {
		for _, scheme := range []string{"http", "https"} {
			hook := schema.Webhook{URL: scheme + "://" + host + ":" + port + "/metrics", Secret: secret}
			note := s.Attempt(t.Context(), hook, schema.Delivery{Message: "msg_1", Event: schema.EventTest, Data: "{}"})
			testkit.Equal(t, hook.URL, note.Error, "The address of the receiver is one of this service.")
		}
	}
	testkit.Equal(t, "calls", len(called), 0)
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	closed, open := newSender(t, nil, "", "sho.rt"), newSender(t, nil, "10.0.0.0/8", "sho.rt")
	for _, c := range []struct {
		url          string
		closed, open bool
	}{
		{"https://example.com/hook?x=1", true, true}, {"https://example.com:8443", true, true},
		{"http://example.com/", false, true},
		{"http://10.0.0.1:8080/", false, true}, {"https://10.0.0.1/", false, true}, {"http://93.184.216.34/", false, false},
		{"https://sho.rt/", false, false}, {"https://SHO.rt./", false, false}, {"https://127.0.0.1/", false, false},
		{"https://0x7f.1/", false, false},
		{"https://a:b@example.com/", false, false}, {"ftp://example.com/", false, false}, {"https:///x", false, false},
		{"//example.com", false, false},
		{"https://example.com/#x", false, false}, {"https://exa mple.com/", false, false},
		{"https://example.com/\n", false, false},
		{"https://example.com/" + strings.Repeat("x", 2048), false, false}, {"", false, false},
	} {
		testkit.Equal(t, "closed: "+c.url, closed.CheckURL(c.url) == "", c.closed)
		testkit.Equal(t, "open: "+c.url, open.CheckURL(c.url) == "", c.open)
	}
}

func TestNetworks(t *testing.T) {
	t.Parallel()
	var n webhook.Networks
	testkit.Must(t, n.Set("10.1.2.3/8,fd00::/8"))
	testkit.Equal(t, "networks", n.String(), "10.0.0.0/8,fd00::/8")
	if n.Set("10.0.0.1") == nil || n.Set("x/8") == nil {
		t.Error("an address is a network")
	}
}
