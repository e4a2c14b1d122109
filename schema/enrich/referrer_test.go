package enrich_test

import (
	"net/netip"
	"strings"
	"testing"

	"linkstream/schema"
	"linkstream/schema/enrich"
)

var (
	longLabel = strings.Repeat("a", 63)
	longHost  = strings.Repeat(longLabel+".", 3) + strings.Repeat("b", 61) // 253 characters
)

var referrers = []struct{ name, header, host string }{
	{"an origin", "https://news.example/", "news.example"},
	{"an origin without a slash", "https://news.example", "news.example"},
	{"http", "http://news.example/a/b", "news.example"},
	{"upper case, port, path and query", "https://www.News.example:8443/x?y", "news.example"},
	{"a scheme in upper case", "HTTPS://news.example/", "news.example"},
	{"a query without a path", "https://news.example?x=https://other.example/", "news.example"},
	{"a fragment", "https://news.example#@other.example", "news.example"},
	{"a backslash, which browsers read as a slash", `https://news.example\@other.example/`, "news.example"},
	{"an empty port", "https://news.example:/", "news.example"},
	{"a dot at the end", "https://news.example./", "news.example"},
	{"a subdomain", "https://m.news.example/", "m.news.example"},
	{"a label that begins with www", "https://wwwnews.example/", "wwwnews.example"},
	{"www twice", "https://www.www.example/", "www.example"},
	{"www twice below a site", "https://www.www.news.example/", "news.example"},
	{"www.de", "https://www.de/", "www.de"},
	{"www.de below www", "https://www.www.de/", "www.de"},
	{"www.de in capitals, with a dot and a port", "HTTPS://WWW.DE.:443/a", "www.de"},
	{"www.com", "http://www.com", "www.com"},
	{"www below a public suffix of two labels", "https://www.co.uk/", "www.co.uk"},
	{"www below a public suffix of a rule for all", "https://www.foo.ck/", "www.foo.ck"},
	{"www.ck, an exception to that rule", "https://www.ck/", "www.ck"},
	{"a site below a public suffix of two labels", "https://www.bbc.co.uk/", "bbc.co.uk"},
	{"www below a suffix of a service", "https://www.github.io/", "www.github.io"},
	{"a site below a suffix of a service", "https://www.pages.github.io/", "pages.github.io"},
	{"www below a suffix that is not ASCII", "https://www.рф/", "www.xn--p1ai"},
	{"a site below a suffix that is not ASCII", "https://WWW.ПРИМЕР.рф:8080/", "xn--e1afmkfd.xn--p1ai"},
	{"www below one name", "http://www.intranet/", "www.intranet"},
	{"a name without a dot", "http://intranet/", "intranet"},
	{"www alone", "http://www/", "www"},
	{"an underscore", "https://my_page.example/", "my_page.example"},
	{"a name in punycode", "https://xn--bcher-kva.example/", "xn--bcher-kva.example"},
	{"a name that is not ASCII", "https://WWW.BÜCHER.example/", "xn--bcher-kva.example"},
	{"full-width letters", "https://ｎｅｗｓ。example/", "news.example"},
	{"an Android app", "android-app://com.google.android.gm/", "com.google.android.gm"},
	{"an Android app in mixed case", "android-app://com.Slack", "com.slack"},
	{"an Android app with a page", "ANDROID-APP://com.google.android.gm/https/www.de", "com.google.android.gm"},
	{"the longest name", "https://" + longHost + "/", longHost},
	{"a path cut at the limit", "https://news.example/" + strings.Repeat("x", 1000), "news.example"},

	{"an empty header", "", ""},
	{"a dash", "-", ""},
	{"a scheme alone", "https://", ""},
	{"no host", "https:///path", ""},
	{"a port alone", "https://:80/", ""},
	{"a path", "/path", ""},
	{"a host without a scheme", "news.example", ""},
	{"a host after slashes", "//news.example/", ""},
	{"another scheme", "ftp://news.example/", ""},
	{"an iOS app", "ios-app://544007664/", ""},
	{"a data URL", "data:text/html,https://news.example/", ""},
	{"about:blank", "about:blank", ""},
	{"one slash", "https:/news.example/", ""},
	{"a leading space", " https://news.example/", ""},
	{"an IPv4 address", "https://203.0.113.7/", ""},
	{"an IPv4 address with a port", "http://203.0.113.7:8080/", ""},
	{"an IPv4 address as a number", "http://3405803783/", ""},
	{"an IPv4 address in hexadecimal", "http://0xcb.0.0x71.0x7/", ""},
	{"an IPv4 address in full-width digits", "http://２０３.0.113.7/", ""},
	{"an IPv6 address", "http://[2001:db8::7]/", ""},
	{"an IPv6 address with a port", "http://[2001:db8::7]:80/", ""},
	{"user information", "https://user:secret@news.example/", ""},
	{"a port that is not a number", "https://news.example:http/", ""},
	{"an empty label", "https://news..example/", ""},
	{"dots", "https://../", ""},
	{"a label that is too long", "https://" + longLabel + "a.example/", ""},
	{"a name that is too long", "https://" + longHost + "b/", ""},
	{"a name longer than the header limit", "https://" + strings.Repeat("a.", 1000) + "example/", ""},
	{"a hyphen at the end of a label", "https://news-.example/", "news-.example"},
	{"a space", "https://news example/", ""},
	{"an escape", "https://%6eews.example/", ""},
	{"a control character", "https://news\x00.example/", ""},
	{"a line break", "https://news.example\r\n/", ""},
	{"invalid UTF-8", "https://news\xff.example/", ""},
	{"a name that IDNA refuses", "https://\u200d.example/", ""},
}

func TestReferrer(t *testing.T) {
	for _, r := range referrers {
		t.Run(r.name, func(t *testing.T) {
			if got := referrer(enrich.New(nil), []byte(r.header)); got != r.host {
				t.Errorf("%q: got %q, want %q", r.header, got, r.host)
			}
		})
	}
}

func referrer(e *enrich.Enricher, header []byte) string {
	return e.Enrich(&schema.Click{Referrer: header}).Referrer
}

func FuzzParseReferrer(f *testing.F) {
	for _, r := range referrers {
		f.Add([]byte(r.header))
	}
	f.Fuzz(func(t *testing.T, header []byte) {
		e := enrich.NewSmall(nil)
		got := referrer(e, header)
		if again := referrer(e, header); again != got { // computed, then memoized
			t.Errorf("got referrer %q, then %q", got, again)
		}
		if got == "" {
			return
		}
		if len(got) > 253 || strings.Trim(got, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
			t.Errorf("got %q, want a host name in lower case", got)
		}
		if _, err := netip.ParseAddr(got); err == nil {
			t.Errorf("got the address %q, want no host", got)
		}
		// A result is a fixed point.
		if again := referrer(e, []byte("https://"+got+":80/")); again != got {
			t.Errorf("%q is parsed as %q", got, again)
		}
	})
}
