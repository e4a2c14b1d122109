package schema_test

import (
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	"linkstream/schema"
)

var (
	label63 = strings.Repeat("a", 63)
	name253 = strings.Repeat(label63+".", 3) + strings.Repeat("b", 61)
)

// hosts are hosts in any form, and in canonical form; "" for an invalid one.
var hosts = []struct{ what, given, want string }{
	{"a name", "go.example.com", "go.example.com"},
	{"one label", "localhost", "localhost"},
	{"upper case", "GO.Example.COM", "go.example.com"},
	{"a dot at the end", "go.example.com.", "go.example.com"},
	{"two dots at the end", "go.example.com..", ""},
	{"a dot alone", ".", ""},
	{"a dot in front", ".example.com", ""},
	{"an empty label", "go..example.com", ""},
	{"nothing", "", ""},
	{"an underscore", "_dmarc.my_page.example", "_dmarc.my_page.example"},
	{"runs of hyphens", "r3---sn-4g5e.example.com", "r3---sn-4g5e.example.com"},
	{"an underscore in front and at the end", "_.a_.example", "_.a_.example"},
	{"a hyphen in front of a label", "-go.example.com", "-go.example.com"},
	{"a hyphen at the end of a label", "foo-.tumblr.com", "foo-.tumblr.com"},
	{"a hyphen at the end", "go.example-", "go.example-"},
	{"hyphens alone", "-.--.---.example", "-.--.---.example"},
	{"hyphens in the places of punycode", "ab--cd.example", "ab--cd.example"},
	{"a label of 63 characters", label63 + ".example", label63 + ".example"},
	{"a label of 64 characters", label63 + "a.example", ""},
	{"253 characters", name253, name253},
	{"253 characters and a dot", name253 + ".", name253},
	{"254 characters", name253 + "b", ""},
	{"thousands of labels", strings.Repeat("a.", 5000) + "a", ""},
	{"a space", "go example.com", ""},
	{"a control character", "go\x00.example.com", ""},
	{"a line break at the end", "go.example.com\n", ""},
	{"an asterisk", "*.example.com", ""},
	{"a percent sign", "%67o.example.com", ""},
	{"a port", "go.example.com:80", ""},
	{"an empty port", "go.example.com:", ""},
	{"a URL", "http://go.example.com", ""},
	{"a path", "go.example.com/x", ""},
	{"a user", "me@go.example.com", ""},
	{"brackets around a name", "[go.example.com]", ""},

	{"a name outside ASCII", "bücher.example", "xn--bcher-kva.example"},
	{"capitals outside ASCII", "BÜCHER.Example", "xn--bcher-kva.example"},
	{"a decomposed letter", "bu\u0308cher.example", "xn--bcher-kva.example"},
	{"sharp s", "straße.example", "xn--strae-oqa.example"},
	{"right to left", "مثال.إختبار", "xn--mgbh0fb.xn--kgbechtv"},
	{"an emoji", "💩.la", "xn--ls8h.la"},
	{"ideographic full stops", "例え。テスト。", "xn--r8jz45g.xn--zckzah"},
	{"letters of full width", "ｎｅｗｓ．example", "news.example"},
	{"a soft hyphen, which is ignored", "exam\u00adple.com", "example.com"},
	{"thousands of soft hyphens", "exam" + strings.Repeat("\u00ad", 1000) + "ple.com", ""},
	{"a solidus of full width", "good／.evil.example", ""},
	{"a question mark of full width", "good？.example", ""},
	{"an underscore in a label outside ASCII", "ä_b.example", "xn--_b-uia.example"},
	{"a hyphen in front of a label outside ASCII", "-ä.example", "xn----0fa.example"},
	{"a hyphen at the end of a label outside ASCII", "ä-.example", "xn----zfa.example"},
	{"hyphens in the places of punycode, outside ASCII", "ab--ä.example", "xn--ab---ooa.example"},
	{"an underscore beside a label outside ASCII", "my_page.ä.example", "my_page.xn--4ca.example"},
	{"an empty label beside one outside ASCII", "ä..example", ""},
	{"a joiner that joins nothing", "ä\u200d.example", ""},
	{"a joiner alone", "\u200d.example", ""},
	{"a change of direction", "\u202eä.example", ""},
	{"both directions in a label", "aا.example", ""},
	{"a label too long in punycode", strings.Repeat("ä", 60) + ".example", ""},
	{"a name too long in punycode", strings.Repeat("ä.", 1000) + "example", ""},
	{"invalid UTF-8", "\xff.example.com", ""},
	{"an encoded surrogate", "\xed\xa0\x80.example.com", ""},
	{"the replacement character", "\ufffd.example.com", ""},

	{"punycode", "xn--bcher-kva.example", "xn--bcher-kva.example"},
	{"punycode in capitals", "XN--Bcher-KVA.example", "xn--bcher-kva.example"},
	{"punycode beside an underscore", "my_page.xn--bcher-kva.example", "my_page.xn--bcher-kva.example"},
	{"xn-- within a label", "axn--b.example", "axn--b.example"},
	{"punycode with a hyphen at the end", "xn----zfa.example", "xn----zfa.example"},
	{"punycode with an underscore", "xn--_b-uia.example", "xn--_b-uia.example"},
	{"punycode of nothing", "xn--.example", ""},
	{"punycode that is broken", "xn--a.example", ""},
	{"punycode of a letter that is mapped", "xn--ch-wka9841x.example", ""},
	{"punycode of ASCII", "xn--example-.com", ""},

	{"an IPv4 address", "192.0.2.1", "192.0.2.1"},
	{"an IPv4 address with a dot at the end", "192.0.2.1.", "192.0.2.1"},
	{"an IPv4 address of full width", "１９２.０.2。1", "192.0.2.1"},
	{"an IPv4 address in hexadecimal", "0x7f.1", ""},
	{"an IPv4 address in hexadecimal capitals", "0X7F.0.0.0X1", ""},
	{"an IPv4 address in octal", "0177.0.0.1", ""},
	{"an IPv4 address as one number", "2130706433", ""},
	{"an IPv4 address of two numbers", "127.1", ""},
	{"five numbers", "1.2.3.4.5", ""},
	{"a number beyond 255", "256.1.1.1", ""},
	{"a number as the last label", "example.1", ""},
	{"0x as the last label", "example.0x", ""},
	{"numbers as other labels", "1.0x7f.example", "1.0x7f.example"},
	{"a hexadecimal number as the last label", "example.0xfF", ""},
	{"a last label that begins with a digit", "example.1st", "example.1st"},
	{"a last label that is nearly hexadecimal", "example.0xg", "example.0xg"},

	{"IPv6 loopback", "::1", "::1"},
	{"IPv6 unspecified", "::", "::"},
	{"IPv6 in brackets", "[2001:db8::1]", "2001:db8::1"},
	{"IPv6 in capitals and zeros", "2001:0DB8:0:0::0001", "2001:db8::1"},
	{"IPv4-mapped", "::ffff:1.2.3.4", "1.2.3.4"},
	{"IPv4-mapped in hexadecimal", "[::FFFF:7f00:1]", "127.0.0.1"},
	{"IPv4-compatible", "::1.2.3.4", "1.2.3.4"},
	{"IPv4 behind NAT64", "64:ff9b::192.0.2.33", "192.0.2.33"},
	{"IPv4 behind a local NAT64", "64:ff9b:1::192.0.2.33", "192.0.2.33"},
	{"IPv4 behind 6to4", "2002:c000:221:1::1", "192.0.2.33"},
	{"a zone", "fe80::1%eth0", ""},
	{"a zone in brackets", "[fe80::1%25eth0]", ""},
	{"a missing bracket", "[::1", ""},
	{"only the second bracket", "::1]", ""},
	{"IPv6 with a port", "[::1]:80", ""},
	{"IPv6 with a letter that is no digit", "::g", ""},
	{"IPv4 in brackets", "[1.2.3.4]", ""},
	{"a colon alone", ":", ""},
}

func TestParseHost(t *testing.T) {
	for _, c := range hosts {
		t.Run(c.what, func(t *testing.T) {
			host, err := schema.ParseHost(c.given)
			if string(host) != c.want || (err == nil) != (c.want != "") {
				t.Errorf("ParseHost(%q) = %q, %v; want %q", c.given, host, err, c.want)
			}
		})
	}
}

func TestHostIsAnAddressOrAName(t *testing.T) {
	for host, isAddr := range map[schema.Host]bool{
		"192.0.2.1": true, "2001:db8::1": true, "::": true, "go.example.com": false, "1.example": false, "localhost": false,
		"": false,
	} {
		if host.IsAddr() != isAddr || host.Addr().IsValid() != isAddr {
			t.Errorf("%q: IsAddr %t, Addr %v", host, host.IsAddr(), host.Addr())
		}
		if valid := schema.ValidHostName(string(host)); valid != (!isAddr && host != "") || host.ValidDomain() != valid {
			t.Errorf("%q: ValidHostName %t, ValidDomain %t", host, valid, host.ValidDomain())
		}
	}
	if addr := schema.Host("192.0.2.1").Addr(); addr != netip.MustParseAddr("192.0.2.1") {
		t.Errorf("Addr is %v", addr)
	}
}

// TestDomainsOfThisService has hosts that links may lead to, and that this service cannot have.
func TestDomainsOfThisService(t *testing.T) {
	for host, valid := range map[schema.Host]bool{
		"go.example.com": true, "localhost": true, "my_page.example": true, "r3---sn.example": true, "a-b.example": true,
		"xn--bcher-kva.example": true, "foo-.tumblr.com": false, "-go.example": false, "go.example-": false,
		"-.example": false, "xn----zfa.example": false, "xn--_b-uia.example": false, "xn--ab---ooa.example": false,
		"192.0.2.1": false, "2001:db8::1": false,
	} {
		if parsed, err := schema.ParseHost(string(host)); parsed != host || err != nil || host.ValidDomain() != valid {
			t.Errorf("%q: %q, %v, ValidDomain %t", host, parsed, err, host.ValidDomain())
		}
		_, err := schema.ParseBaseURL("https://" + string(host) + "/")
		if isBase := err == nil; !host.IsAddr() && isBase != valid {
			t.Errorf("%q: as the host of a base %v", host, err)
		}
	}
}

func TestHostIsLocal(t *testing.T) {
	for given, local := range map[string]bool{
		"localhost": true, "LocalHost.": true, "ｌocalhost": true, "a.localhost": true, "a.b.localhost": true,
		"127.0.0.1": true, "127.255.0.1": true, "127.0.0.1.": true, "１２７.0.0.1": true, "0.0.0.0": true, "0.1.2.3": true,
		"::1": true, "::": true, "[::1]": true, "0:0:0:0:0:0:0:1": true, "::ffff:127.0.0.1": true, "::ffff:7f00:1": true,
		"::ffff:0.0.0.0": true, "::127.0.0.1": true, "64:ff9b::127.0.0.1": true, "64:ff9b::7f00:1": true, "64:ff9b::": true,
		"64:ff9b:1::7f00:1": true, "64:ff9b:1:2::127.0.0.1": true, "2002:7f00:1::": true, "2002:7f00:1::1": true,
		"2002::1":     true,
		"mylocalhost": false, "localhost.example": false, "a.localhost.example": false, "128.0.0.1": false, "1.0.0.0": false,
		"126.255.255.255": false, "10.0.0.1": false, "::2:0:0:1": false, "::ffff:128.0.0.1": false, "64:ff9b::a00:1": false,
		"64:ff9b:1::a00:1": false, "64:ff9b:2::7f00:1": false, "2002:a00:1::": false, "2003:7f00:1::": false,
		"fe80::1": false, "2001:db8::1": false, "example.com": false,
	} {
		host, err := schema.ParseHost(given)
		if err != nil || host.IsLocal() != local {
			t.Errorf("%q is %q, %v, local %t", given, host, err, host.IsLocal())
		}
	}
}

func TestHostOfURL(t *testing.T) {
	for given, want := range map[string]schema.Host{
		"https://Go.Example.com.:8080/x?y#z": "go.example.com", "http://b%C3%BCcher.example": "xn--bcher-kva.example",
		"http://[::ffff:7f00:1]:80/": "127.0.0.1", "http://[64:ff9b::7f00:1]": "127.0.0.1",
		"http://me@a.example/": "a.example",
		"mailto:x":             "", "http://2130706433/": "", "http://%zz/": "", "": "",
	} {
		if got, err := schema.HostOfURL(given); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", given, got, err, want)
		}
	}
}

func TestHostUnicode(t *testing.T) {
	for host, want := range map[schema.Host]string{
		"xn--mnchen-3ya.example": "münchen.example",
		"xn--r8jz45g.xn--zckzah": "例え.テスト",
		"go.example.com":         "",
		"my_page.example":        "",
		"192.0.2.1":              "",
		"2001:db8::1":            "",
		"":                       "",
	} {
		if got := host.Unicode(); got != want {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	}
}

func TestHostToASCII(t *testing.T) {
	for name, want := range map[string]string{
		"A_b..%x":              "A_b..%x", // ASCII is not checked
		"BÜCHER.example.":      "xn--bcher-kva.example.",
		"\xff":                 "",
		"good／.evil.example":   "",
		"good≠.example":        "xn--good-8n9a.example",
		"a b.bücher.example":   "",
		"a/b.bücher.example":   "",
		"ä_b.example":          "xn--_b-uia.example",
		"ä-.example":           "xn----zfa.example",
		"１２７.0.0.1":            "127.0.0.1",
		"xn--bcher-kva.bücher": "xn--bcher-kva.xn--bcher-kva",
	} {
		if got, err := schema.HostToASCII(name); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", name, got, err, want)
		}
	}
}

func TestCutPort(t *testing.T) {
	for hostport, want := range map[string][2]string{
		"example.com:80": {"example.com", "80"},
		"example.com":    {"example.com", ""},
		"example.com:":   {"example.com", ""},
		"a:b:c":          {"a:b", "c"},
		":80":            {"", "80"},
		"":               {"", ""},
		"[::1]":          {"[::1]", ""},
		"[::1]:80":       {"[::1]", "80"},
		"[::1]:":         {"[::1]", ""},
		"[::1]x:80":      {"[::1]x", "80"},
	} {
		if host, port := schema.CutPort(hostport); host != want[0] || port != want[1] {
			t.Errorf("%q: %q and %q, want %q", hostport, host, port, want)
		}
		if host, port := schema.CutPort([]byte(hostport)); string(host) != want[0] || string(port) != want[1] {
			t.Errorf("%q as bytes: %q and %q, want %q", hostport, host, port, want)
		}
	}
}

func TestHeadersAreReadWithoutAllocation(t *testing.T) {
	for _, header := range []string{"links.go.example.com:8080", "[2001:db8::1]:80", "192.0.2.1", "..", "-"} {
		bytes := []byte(header)
		allocs := testing.AllocsPerRun(100, func() {
			host, _ := schema.CutPort(bytes)
			_ = schema.ValidHostName(host) || schema.HostIsAddr(host)
		})
		if allocs != 0 {
			t.Errorf("%q: %v allocations", header, allocs)
		}
	}
}

// FuzzParseHost checks that a canonical host
//   - is its own canonical form, also in capitals and with a dot at the end of a name,
//   - is either an address or a valid name, within the limits, and no address that stands for another one,
//   - is local whenever it is loopback or unspecified,
//   - is the host of a URL that is made with it,
//   - has a Unicode form that leads back to it.
func FuzzParseHost(f *testing.F) {
	for _, c := range hosts {
		f.Add(c.given)
	}
	f.Fuzz(func(t *testing.T, given string) {
		host, err := schema.ParseHost(given)
		if err != nil {
			if host != "" {
				t.Fatalf("%q is both %q and %v", given, host, err)
			}
			return
		}
		if !utf8.ValidString(given) {
			t.Fatalf("%q was taken", given)
		}
		spellings := []string{string(host), strings.ToUpper(string(host))}
		if host.IsAddr() {
			addr := host.Addr()
			if !addr.IsValid() || addr.String() != string(host) || addr.Is4In6() || addr.Zone() != "" || embeds(addr) {
				t.Fatalf("%q became the address %q", given, host)
			}
			if (addr.IsLoopback() || addr.IsUnspecified()) && !host.IsLocal() {
				t.Fatalf("%q became %q, which is not local", given, host)
			}
		} else {
			spellings = append(spellings, string(host)+".")
			if strings.Trim(string(host), "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" ||
				len(host) > schema.MaxHostLen || host.Addr().IsValid() {
				t.Fatalf("%q became the name %q", given, host)
			}
		}
		inURL := string(host)
		if strings.Contains(inURL, ":") {
			inURL = "[" + inURL + "]"
		}
		if ofURL, err := schema.HostOfURL("http://" + inURL + ":8080/"); ofURL != host || err != nil {
			t.Fatalf("%q became %q, and the host of its URL is %q, %v", given, host, ofURL, err)
		}
		if unicode := host.Unicode(); unicode != "" {
			spellings = append(spellings, unicode)
		}
		for _, spelling := range spellings {
			if again, err := schema.ParseHost(spelling); again != host || err != nil {
				t.Fatalf("%q became %q, and that, as %q, became %q, %v", given, host, spelling, again, err)
			}
		}
	})
}

// embeds reports whether an IPv6 address stands for an IPv4 address.
func embeds(addr netip.Addr) bool {
	for _, prefix := range []string{"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16"} {
		if netip.MustParsePrefix(prefix).Contains(addr) && addr != netip.IPv6Unspecified() && !addr.IsLoopback() {
			return true
		}
	}
	return false
}
