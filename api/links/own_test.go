package links_test

import (
	"log/slog"
	"net"
	"testing"

	"linkstream/api/links"
	"linkstream/schema"
	"linkstream/schema/blocklist"
	"linkstream/schema/testkit"
)

func TestCreateRefusesLinksToItself(t *testing.T) {
	f := newFixture(t, "https://sho.rt")
	list, err := blocklist.Open("", slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	var own []links.Address
	for _, s := range []string{"api.example:8443", "lb.example", "198.51.100.7:8080", "[2001:db8::7]:8080", ":8081",
		"[::]:8082",
		"0.0.0.0:8083"} {
		address, err := links.ParseAddress(s)
		testkit.Must(t, err)
		own = append(own, address)
	}
	f.Shortener = links.New(schema.MustParseBaseURL("https://sho.rt"), f.store, f.store, list, own...)
	refused := []string{
		"http://localhost", "http://LOCALHOST:1/", "http://localhost./", "http://a.b.localhost", "http://ｌocalhost/",
		"http://127.0.0.1", "http://127.0.0.1:9/", "http://127.1.2.3/", "http://１２７.0.0.1/", "http://127.0.0.1./",
		"http://[::1]/", "http://[0:0:0:0:0:0:0:1]:5/", "http://0.0.0.0/", "http://0.0.0.1:7/", "http://[::]:9/",
		"http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]:3/", "http://[64:ff9b::127.0.0.1]/",
		"http://[64:ff9b::7f01:203]/",
		"http://[::127.0.0.1]/", "http://[::ffff:0.0.0.0]/", "http://[64:ff9b::]/",
		"https://api.example:8443/x", "http://API.example.:8443", "http://lb.example", "https://lb.example:4711/",
		"http://198.51.100.7:8080/", "http://[::ffff:198.51.100.7]:8080/", "http://[64:ff9b::c633:6407]:8080/",
		"http://[::198.51.100.7]:8080/", "http://[2001:db8::7]:8080/", "http://[2001:DB8:0::0007]:8080/",
		"http://198.51.100.7:8081/", // a port of this service on a host of this service
	}
	accepted := []string{
		"http://localhost.example", "http://mylocalhost/", "http://128.0.0.1/", "http://1.0.0.0", "http://[::2:0:0:1]/",
		"https://api.example/", "https://api.example:8444/", "http://x.lb.example", "http://198.51.100.7/",
		"http://198.51.100.7:8084/", "http://[2001:db8::8]:8080/", "http://10.255.255.254:8081/",
	}
	for _, addr := range interfaceAddresses(t) {
		// 80 is a port of https://sho.rt, perhaps by a proxy
		for _, port := range []string{"8081", "8082", "8083", "8080", "80"} {
			refused = append(refused, "http://"+net.JoinHostPort(addr, port)+"/")
		}
		accepted = append(accepted, "http://"+net.JoinHostPort(addr, "9000")+"/")
	}
	for _, longURL := range refused {
		if _, err := f.create(t, longURL, "", 0); schema.ErrorCode(err) != schema.CodeInvalid {
			t.Errorf("%q: %v", longURL, err)
		}
	}
	for _, longURL := range accepted {
		if _, err := f.create(t, longURL, "", 0); err != nil {
			t.Errorf("%q: %v", longURL, err)
		}
	}
}

// interfaceAddresses returns the addresses of this machine that are not local to it.
func interfaceAddresses(t *testing.T) (addrs []string) {
	t.Helper()
	interfaces, err := net.InterfaceAddrs()
	testkit.Must(t, err)
	for _, i := range interfaces {
		if network, ok := i.(*net.IPNet); ok && network.IP.IsGlobalUnicast() {
			addrs = append(addrs, network.IP.String())
		}
	}
	return addrs
}

func TestParseAddress(t *testing.T) {
	for _, s := range []string{"sho.rt", "sho.rt:80", ":80", "192.0.2.1", "[2001:db8::1]:80", "0.0.0.0:80",
		"bücher.example"} {
		if _, err := links.ParseAddress(s); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
	for _, s := range []string{"", ":", ":0", ":65536", ":x", "a b", "0.0.0.0", "http://sho.rt", "sho.rt/x"} {
		if a, err := links.ParseAddress(s); err == nil {
			t.Errorf("%q: %+v", s, a)
		}
	}
}
