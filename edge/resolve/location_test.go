package resolve_test

import (
	"net/url"
	"strings"
	"testing"

	"linkstream/edge/resolve"
)

func TestLocation(t *testing.T) {
	for _, c := range []struct{ name, url, want string }{
		{"ASCII is unchanged", "https://A.Example:8443/A%2fb/?q=a+b#'\"<>|", "https://A.Example:8443/A%2fb/?q=a+b#'\"<>|"},
		{"no path", "http://example.com", "http://example.com"},
		{"a host in punycode", "https://bücher.example", "https://xn--bcher-kva.example"},
		{"a host with a port", "https://bücher.example:8443/x", "https://xn--bcher-kva.example:8443/x"},
		{"a host in capitals", "https://BÜCHER.Example/x", "https://xn--bcher-kva.example/x"},
		{"a host with an ASCII label", "https://www.münchen.de?x", "https://www.xn--mnchen-3ya.de?x"},
		{"sharp s", "https://straße.example/", "https://xn--strae-oqa.example/"},
		{"an emoji", "https://i❤.ws/", "https://xn--i-7iq.ws/"},
		{"right to left", "https://مثال.إختبار/", "https://xn--mgbh0fb.xn--kgbechtv/"},
		{"an ideographic full stop", "https://例え。テスト/", "https://xn--r8jz45g.xn--zckzah/"},
		{"an IPv6 address", "http://[2001:db8::1]:80/ü", "http://[2001:db8::1]:80/%C3%BC"},
		{"path, query and fragment in UTF-8", "https://e.example/日?é=ñ#ß",
			"https://e.example/%E6%97%A5?%C3%A9=%C3%B1#%C3%9F"},
		{"existing escapes stay", "https://e.example/%C3%A4ä%", "https://e.example/%C3%A4%C3%A4%"},
		{"spaces and control characters", "https://e.example/a b\r\nX: \x00\x7f", "https://e.example/a%20b%0D%0AX:%20%00%7F"},
		{"bytes that are not UTF-8", "https://e.example/\xff\xfe", "https://e.example/%FF%FE"},
		{"a host that is not UTF-8", "https://\xff.example/", "https://%FF.example/"},
		{"no host", "/a://ä", "/a://%C3%A4"},
		{"a host with an underscore", "https://ä_b.example/", "https://xn--_b-uia.example/"},
		{"a host with a hyphen at the end of a label", "https://ä-.example/", "https://xn----zfa.example/"},
		{"a host without a Punycode form", "https://ä\u200d.example/", "https://%C3%A4%E2%80%8D.example/"},
		{"a host that would become another one", "https://good／.evil.example/", "https://good%EF%BC%8F.evil.example/"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(resolve.EncodeLocation(c.url)); got != c.want {
				t.Errorf("EncodeLocation(%q)\n got %q\nwant %q", c.url, got, c.want)
			}
		})
	}
}

// FuzzLocation checks that every location
//   - is visible ASCII, so that it cannot end the header and means the same to every client,
//   - is the location of itself, so that nothing is escaped twice,
//   - is the URL itself if that is visible ASCII,
//   - has the same path and port, and the same number of delimiters, as the URL.
func FuzzLocation(f *testing.F) {
	for _, url := range []string{
		"https://example.com/a?b#c", "https://bücher.example:80/ä?ö#ü", "http://u@a:1@ä.example:x/", "http://[::1]ä",
		"ä://ö", "/://\xff", "http://\xff", "https://ä／b", "https://xn--a.ä/", "http://ä%2f.example\\x",
		"://", "\r\n", "https://a\u00a0ä.example/",
	} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, long string) {
		got := string(resolve.EncodeLocation(long))
		visible := !strings.ContainsFunc(long, notVisible)
		if strings.ContainsFunc(got, notVisible) {
			t.Fatalf("EncodeLocation(%q) = %q is not visible ASCII", long, got)
		}
		if again := string(resolve.EncodeLocation(got)); again != got {
			t.Fatalf("EncodeLocation(%q) = %q", got, again)
		}
		if visible && got != long {
			t.Fatalf("EncodeLocation(%q) = %q", long, got)
		}
		for _, delimiter := range []string{"/", "?", "#", "@", ":", "\\"} {
			if strings.Count(got, delimiter) != strings.Count(long, delimiter) {
				t.Fatalf("EncodeLocation(%q) = %q has more or fewer %q", long, got, delimiter)
			}
		}
		before, err := url.Parse(long)
		if err != nil {
			return
		}
		after, err := url.Parse(got)
		if err != nil {
			t.Fatalf("EncodeLocation(%q) = %q: %v", long, got, err)
		}
		if before.Path != after.Path || before.Port() != after.Port() {
			t.Fatalf("EncodeLocation(%q) = %q has another path or port", long, got)
		}
	})
}

func notVisible(r rune) bool { return r <= ' ' || r >= 0x7f }
