package links_test

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"linkstream/api/links"
	"linkstream/schema"
)

// longURL returns a URL of n characters. Characters after the host have width bytes each.
func longURL(n, width int) string {
	const start = "https://example.com/"
	return start + strings.Repeat(map[int]string{1: "a", 2: "ä", 4: "💩"}[width], n-len(start))
}

func TestValidLongURLs(t *testing.T) {
	f := newFixture(t, "https://sho.rt")
	for name, urls := range map[string][]string{
		"http and https in any case": {"http://example.com", "HTTPS://EXAMPLE.com/"},
		"2048 characters of any size": {longURL(schema.MaxURLLen, 1), longURL(schema.MaxURLLen, 2),
			longURL(schema.MaxURLLen, 4)},
		"path, query and fragment": {"https://example.com/a/../b//;x?q=1&q=%C3%A4&<\"'>&u=http://x@y#f?/"},
		"characters outside ASCII": {"https://example.com/ä/日本?q=💩#ü"},
		"hosts outside ASCII": {
			"https://bücher.example/", "http://日本語.jp:8080", "https://💩.la", "http://ex%C3%A4mple.com",
		},
		"hosts with underscores":     {"https://a_b.example.com/", "https://_dmarc.example.com/", "http://ä_b.c"},
		"hosts with runs of hyphens": {"https://r3---sn-4g5e.example.com/", "http://ab--cd.example", "http://ab--ä.example"},
		"labels that begin or end with a hyphen": {
			"https://foo-.tumblr.com/", "http://-a.b", "http://a-.b", "http://-", "http://-ä.b", "https://xn----zfa.example/",
		},
		"hosts without a dot":         {"http://wiki/", "http://intranet:8080/x"},
		"hosts with a dot at the end": {"https://example.com./"},
		"labels of 63 characters":     {"https://" + strings.Repeat("a", 63) + ".example"},
		"IPv4 and IPv6 addresses": {
			"http://192.0.2.1/", "http://[2001:db8::1]/", "http://[2001:db8::1]:8080",
		},
		"ports from 1 to 65535": {
			"http://example.com:1", "https://example.com:65535/", "http://example.com:/",
		},
		"escapes in path and in query": {"https://example.com/%2F%20?%3d=%41#%42"},
		"numeric labels, not last":     {"http://1.2.example/", "http://0x7f.example"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, want := range urls {
				link, err := f.create(t, want, "", 0)
				if err != nil {
					t.Errorf("%.99q: %v", want, err)
				} else if stored, err := schema.FindLink(t.Context(), f.store, 0, link.Hash); err != nil || stored.URL != want {
					t.Errorf("stored %q, want %q", stored.URL, want)
				}
			}
		})
	}
}

func TestInvalidLongURLs(t *testing.T) {
	f := newFixture(t, "https://sho.rt")
	for name, urls := range map[string][]string{
		"empty":                     {""},
		"more than 2048 characters": {longURL(schema.MaxURLLen+1, 1), longURL(schema.MaxURLLen+1, 2)},
		"no scheme":                 {"example.com", "//example.com", "/path", "www.example.com/x"},
		"other schemes": {
			"ftp://example.com", "javascript:alert(1)", "data:text/html,x", "mailto:a@b.c", "httpx://a.b",
		},
		"no host": {
			"http://", "http:///path", "https:example.com", "http://:80", "http:\\\\example.com",
			"http://?q",
		},
		"user names and passwords": {
			"http://user@example.com", "http://user:secret@example.com/", "http://@example.com",
			"http://:@a.b",
		},
		"white space": {
			" https://example.com", "https://example.com ", "https://exa mple.com", "https://a.b/c d",
			"https://a.b/\u00a0", "https://a.b/\u2028",
		},
		"control characters": {
			"https://a.b/\n", "https://a.b/\x00", "https://a.b/\x7f", "https://a.b/\u0085", "https://a.b/\u009b",
			"\thttps://a.b",
		},
		"broken UTF-8": {"https://a.b/\xff", "https://a.b/\xed\xa0\x80", "https://a.b/\ufffd"},
		"broken escapes": {
			"https://a.b/%", "https://a.b/%4", "https://a.b/%zz", "https://a.b/?q=100%", "https://a.b/#%x1",
		},
		"ports over 65535 and 0": {
			"http://a.b:0", "http://a.b:65536", "http://a.b:99999999999999999999", "http://a.b:x",
			"http://a.b:-1", "http://a.b:1:2",
		},
		"malformed labels": {
			"http://a..b", "http://.a.b", "http://a.b..", "http://.", "http://a,b.c", "http://a*b.c",
		},
		"labels that are too long": {"http://" + strings.Repeat("a", 64) + ".b", "http://" + strings.Repeat("a.", 127) + "b"},
		"hosts that IDNA refuses": {
			"http://\u202eä.b", "http://ä..b", "http://ä\u200d.b", "http://xn--a.b", "http://xn--.b", "http://a／b.c",
		},
		"hosts whose ASCII form is too long": {"http://" + strings.Repeat("ä", 60) + ".b"},
		"numbers that are not four decimal octets": {"http://2130706433/", "http://127.1", "http://0x7f.0.0.1",
			"http://0177.0.0.1",
			"http://1.2.3.4.5", "http://256.1.1.1", "http://a.1", "http://１.２.３", "http://0x"},
		"malformed IPv6 addresses": {
			"http://[::1", "http://::1/", "http://[::g]", "http://[fe80::1%25eth0]/", "http://[::1]x",
			"http://[1.2.3.4]",
		},
		"backslashes around the host": {"http://a.b\\@c.d/", "http://a.b\\c"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, longURL := range urls {
				link, err := f.create(t, longURL, "", 0)
				if err == nil {
					t.Errorf("%.99q was accepted: %+v", longURL, link)
					continue
				}
				wantInvalid(t, err, "long_url")
			}
		})
	}
}

// FuzzParseTarget checks that a long URL is either refused as invalid, or stored as it is and leads to a valid host.
func FuzzParseTarget(f *testing.F) {
	for _, s := range []string{"https://example.com/a?b#c", "http://[::1]:80/", "http://bücher.example",
		"http://a.b:0/%zz",
		"http://user@a", "http://１２７.0.0.1:1", "https://a_b.c./", "http://0x7f.1"} {
		f.Add(s)
	}
	shortener := links.New(schema.MustParseBaseURL("https://sho.rt"), anyLinks{}, &domainCalls{}, nil)
	f.Fuzz(func(t *testing.T, longURL string) {
		link, err := shortener.Create(t.Context(), links.Request{AccountID: 1, LongURL: longURL})
		if err != nil {
			wantInvalid(t, err, "long_url")
			return
		}
		if !utf8.ValidString(longURL) || utf8.RuneCountInString(longURL) > schema.MaxURLLen || link.URL != longURL {
			t.Fatalf("%q was accepted as %q", longURL, link.URL)
		}
		u, err := url.Parse(longURL)
		if err != nil || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
			t.Fatalf("%q was accepted: %v", longURL, err)
		}
		if _, err := schema.ParseHost(u.Hostname()); err != nil {
			t.Fatalf("%q was accepted: %v", longURL, err)
		}
	})
}
