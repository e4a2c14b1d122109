package clientaddr_test

import (
	"net/netip"
	"strings"
	"testing"

	"linkstream/schema/clientaddr"

	"github.com/valyala/fasthttp"
)

func proxies(t testing.TB, list string) clientaddr.Proxies {
	t.Helper()
	var p clientaddr.Proxies
	if err := p.Set(list); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestProxiesSet(t *testing.T) {
	t.Run("accepts addresses and CIDR blocks", func(t *testing.T) {
		p := proxies(t, " 10.1.2.3/8, 192.0.2.1,2001:db8::/32,::1,,::ffff:192.0.2.2 ")
		if got, want := p.String(), "10.0.0.0/8,192.0.2.1/32,2001:db8::/32,::1/128,192.0.2.2/32"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
	t.Run("replaces the proxies", func(t *testing.T) {
		p := proxies(t, "10.0.0.0/8")
		if err := p.Set(""); err != nil || p.String() != "" {
			t.Errorf("%q, error %v", p.String(), err)
		}
	})
	t.Run("names each invalid field and changes nothing", func(t *testing.T) {
		p := proxies(t, "10.0.0.0/8")
		err := p.Set("proxy.example, 10.0.0.0/33, ::ffff:10.0.0.0/104, 192.0.2.1")
		want := strings.Join([]string{
			`"proxy.example" is not an address`, `"10.0.0.0/33" is not a CIDR block`, `"::ffff:10.0.0.0/104" is not a ` +
				`CIDR block`,
		}, "\n")
		if err == nil || err.Error() != want || p.String() != "10.0.0.0/8" {
			t.Errorf("%q, error %v", p.String(), err)
		}
	})
}

func TestProxiesClient(t *testing.T) {
	p := proxies(t, "10.0.0.0/8,2001:db8:ffff::/48")
	for _, c := range []struct {
		name, peer string
		forwarded  []string
		client     string
	}{
		{"no proxy", "192.0.2.1", []string{"198.51.100.1"}, "192.0.2.1"},
		{"one proxy", "10.0.0.1", []string{"198.51.100.1"}, "198.51.100.1"},
		{"the peer as mapped IPv4", "::ffff:10.0.0.1", []string{"198.51.100.1"}, "198.51.100.1"},
		{"a chain of proxies", "10.0.0.1", []string{"203.0.113.9, 198.51.100.1, 10.0.0.2, 2001:db8:ffff::1"}, "198.51.100.1"},
		{"in several lines", "10.0.0.1", []string{"203.0.113.9", "198.51.100.1", "10.0.0.2"}, "198.51.100.1"},
		{"without blanks", "10.0.0.1", []string{"203.0.113.9,198.51.100.1"}, "198.51.100.1"},
		{"with a port", "10.0.0.1", []string{"198.51.100.1:4711"}, "198.51.100.1"},
		{"IPv6", "10.0.0.1", []string{"2001:db8::1"}, "2001:db8::1"},
		{"IPv6 with a port", "10.0.0.1", []string{"[2001:db8::1]:4711"}, "2001:db8::1"},
		{"IPv6 with a zone", "10.0.0.1", []string{"fe80::1%eth0"}, "fe80::1"},
		{"only proxies", "10.0.0.1", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"nothing", "10.0.0.1", nil, "10.0.0.1"},
		{"an empty line", "10.0.0.1", []string{""}, "10.0.0.1"},
		{"a comma at the end", "10.0.0.1", []string{"198.51.100.1,"}, "198.51.100.1"},
		{"a comma and a blank at the end", "10.0.0.1", []string{"198.51.100.1, "}, "198.51.100.1"},
		{"several commas at the end", "10.0.0.1", []string{"198.51.100.1,, ,\t,"}, "198.51.100.1"},
		{"a comma in front", "10.0.0.1", []string{", 198.51.100.1"}, "198.51.100.1"},
		{"an empty field between proxies", "10.0.0.1", []string{"203.0.113.9, 198.51.100.1, , 10.0.0.2"}, "198.51.100.1"},
		{"an empty line behind", "10.0.0.1", []string{"198.51.100.1", ""}, "198.51.100.1"},
		{"a line of commas behind", "10.0.0.1", []string{"198.51.100.1", ", ,"}, "198.51.100.1"},
		{"tabs", "10.0.0.1", []string{"203.0.113.9,\t198.51.100.1\t,\t10.0.0.2\t"}, "198.51.100.1"},
		{"only commas", "10.0.0.1", []string{", ,,"}, "10.0.0.1"},
		{"a word", "10.0.0.1", []string{"198.51.100.1, unknown"}, "198.51.100.1"},
		{"a word alone", "10.0.0.1", []string{"unknown"}, "10.0.0.1"},
		{"a word in another line", "10.0.0.1", []string{"198.51.100.1", "unknown, 10.0.0.2"}, "198.51.100.1"},
		{"a word behind the client", "10.0.0.1", []string{"unknown, 198.51.100.1"}, "198.51.100.1"},
		{"an obfuscated identifier", "10.0.0.1", []string{"198.51.100.1, _hidden, 10.0.0.2"}, "198.51.100.1"},
		{"a hyphen", "10.0.0.1", []string{"198.51.100.1, -"}, "198.51.100.1"},
		{"a host name", "10.0.0.1", []string{"198.51.100.1, proxy.example"}, "198.51.100.1"},
		{"a number beyond 255", "10.0.0.1", []string{"198.51.100.1, 198.51.100.256"}, "198.51.100.1"},
		{"three numbers", "10.0.0.1", []string{"198.51.100.1, 198.51.100"}, "198.51.100.1"},
		{"quotation marks", "10.0.0.1", []string{`"198.51.100.1", "10.0.0.2"`}, "198.51.100.1"},
		{"quoted IPv6 with a port", "10.0.0.1", []string{`"[2001:db8::1]:4711"`}, "2001:db8::1"},
		{"IPv6 in brackets", "10.0.0.1", []string{"[2001:db8::1]"}, "2001:db8::1"},
		{"IPv6 in brackets with a zone", "10.0.0.1", []string{"[fe80::1%25eth0]:80"}, "fe80::1"},
		{"IPv6 with one bracket", "10.0.0.1", []string{"[2001:db8::1"}, "2001:db8::1"},
		{"IPv4 in brackets", "10.0.0.1", []string{"[198.51.100.1]:80"}, "198.51.100.1"},
		{"an empty port", "10.0.0.1", []string{"198.51.100.1:"}, "198.51.100.1"},
		{"a port that is a word", "10.0.0.1", []string{"198.51.100.1:_x"}, "198.51.100.1"},
		{"IPv4 mapped to IPv6", "10.0.0.1", []string{"::ffff:198.51.100.1"}, "198.51.100.1"},
		{"IPv4 mapped to IPv6 with a port", "10.0.0.1", []string{"[::ffff:198.51.100.1]:80"}, "198.51.100.1"},
		{"a proxy mapped to IPv6", "10.0.0.1", []string{"198.51.100.1, ::ffff:10.0.0.2"}, "198.51.100.1"},
		{"only proxies and words", "10.0.0.1", []string{"unknown, 10.0.0.3, , 10.0.0.2, unknown"}, "10.0.0.3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var header fasthttp.RequestHeader
			for _, line := range c.forwarded {
				header.Add("X-Forwarded-For", line)
			}
			if got := p.Client(netip.MustParseAddr(c.peer), &header).String(); got != c.client {
				t.Errorf("client %s, want %s", got, c.client)
			}
		})
	}
}

func TestProxiesClientDoesNotAllocate(t *testing.T) {
	p := proxies(t, "10.0.0.0/8")
	var header fasthttp.RequestHeader
	header.Add("X-Forwarded-For", "203.0.113.9, [2001:db8::1]:4711")
	header.Add("X-Forwarded-For", "198.51.100.1, 10.0.0.2")
	peer := netip.MustParseAddr("10.0.0.1")
	if allocs := testing.AllocsPerRun(100, func() { p.Client(peer, &header) }); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// FuzzProxiesClient checks that the client, for any header,
//   - is an address without a zone, not IPv4 mapped to IPv6, because neither would match the list of proxies,
//   - does not depend on anything to the left of an address that is not a proxy.
func FuzzProxiesClient(f *testing.F) {
	for _, line := range []string{
		"198.51.100.1, 10.0.0.1", "[2001:db8::1]:80", "fe80::1%eth0", "::ffff:10.0.0.1", ",", "[", "[]", ":", "%",
		"1.2.3.4:5",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		p := proxies(t, "10.0.0.0/8")
		client := func(line string) netip.Addr {
			var header fasthttp.RequestHeader
			header.Add("X-Forwarded-For", line)
			return p.Client(netip.MustParseAddr("10.0.0.1"), &header)
		}
		if got := client(line); !got.IsValid() || got.Zone() != "" || got.Is4In6() {
			t.Errorf("client %s of %q", got, line)
		}
		if got := client(line + ", 192.0.2.1 ,, 10.1.1.1:80, unknown,"); got.String() != "192.0.2.1" {
			t.Errorf("client %s, want the last one that is not a proxy, of %q", got, line)
		}
	})
}
