package schema_test

import (
	"flag"
	"io"
	"testing"

	"linkstream/schema"
)

func TestParseBaseURL(t *testing.T) {
	for given, want := range map[string]struct {
		text, scheme string
		host         schema.Host
		port         string
	}{
		"http://127.0.0.1:8080":           {"http://127.0.0.1:8080", "http", "127.0.0.1", "8080"},
		"http://[::1]:8080":               {"http://[::1]:8080", "http", "::1", "8080"},
		"https://go.example.org":          {"https://go.example.org", "https", "go.example.org", ""},
		"https://go.example.org/":         {"https://go.example.org", "https", "go.example.org", ""},
		"https://go.example.org:":         {"https://go.example.org", "https", "go.example.org", ""},
		"https://go.example.org:443/":     {"https://go.example.org:443", "https", "go.example.org", "443"},
		"https://go.example.org:0443":     {"https://go.example.org:443", "https", "go.example.org", "443"},
		"HTTPS://GO.Example.org.":         {"https://go.example.org", "https", "go.example.org", ""},
		"https://Bücher.example.:8443":    {"https://xn--bcher-kva.example:8443", "https", "xn--bcher-kva.example", "8443"},
		"http://localhost":                {"http://localhost", "http", "localhost", ""},
		"http://edge_1:65535":             {"http://edge_1:65535", "http", "edge_1", "65535"},
		"http://[::ffff:192.0.2.1]:8080/": {"http://192.0.2.1:8080", "http", "192.0.2.1", "8080"},
	} {
		base, err := schema.ParseBaseURL(given)
		if err != nil || base.String() != want.text || base.Scheme() != want.scheme || base.Host() != want.host ||
			base.Port() != want.port || base.IsZero() {
			t.Errorf("%q: %q with scheme %q, host %q, port %q, error %v; want %+v",
				given, base, base.Scheme(), base.Host(), base.Port(), err, want)
		}
		if again, err := schema.ParseBaseURL(base.String()); again != base || err != nil {
			t.Errorf("%q became %q, and that %q, %v", given, base, again, err)
		}
	}
	for _, given := range []string{
		"", "go.example.org", "ftp://go.example.org", "https://", "https://:80", "http:///", "//go.example.org", "%",
		"https://go.example.org/path", "https://go.example.org//", "https://go.example.org?q", "https://go.example.org?",
		"https://go.example.org#f", "https://go.example.org#", "https://user@go.example.org", "https://@go.example.org",
		"https://go.example.org:port", "https://go.example.org:0", "https://go.example.org:65536", "https://go..example",
		"https://127.1", "http://[fe80::1%25eth0]", "https:go.example.org", "https://go.example.org ",
	} {
		if base, err := schema.ParseBaseURL(given); err == nil || !base.IsZero() {
			t.Errorf("%q: %q, %v", given, base, err)
		}
	}
}

func TestShortURL(t *testing.T) {
	base := schema.MustParseBaseURL("https://Sho.RT:8443/")
	if got := base.ShortURL(schema.Link{Hash: "abc"}); got != "https://sho.rt:8443/abc" {
		t.Errorf("on the default domain: %q", got)
	}
	custom := schema.Link{DomainID: 1, Host: "go.example.org", Hash: "abc"}
	if got := base.ShortURL(custom); got != "https://go.example.org/abc" {
		t.Errorf("on a custom domain: %q", got)
	}
}

func TestBaseURLIsAFlag(t *testing.T) {
	fallback := schema.MustParseBaseURL("http://127.0.0.1:8080")
	parse := func(preset schema.BaseURL, args ...string) (schema.BaseURL, error) {
		var base schema.BaseURL
		fs := flag.NewFlagSet("test", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		fs.TextVar(&base, "url", preset, "")
		return base, fs.Parse(args)
	}
	for _, c := range []struct {
		what   string
		preset schema.BaseURL
		args   []string
		want   string
		valid  bool
	}{
		{"no flag means the default", fallback, nil, "http://127.0.0.1:8080", true},
		{"no flag and no default mean that it is not set", schema.BaseURL{}, nil, "", true},
		{"a flag replaces the default", fallback, []string{"-url=https://sho.rt/"}, "https://sho.rt", true},
		{"an empty flag means that it is not set", fallback, []string{"-url="}, "", true},
		{"an invalid flag is an error and keeps the default", fallback, []string{"-url=sho.rt"},
			"http://127.0.0.1:8080", false},
	} {
		t.Run(c.what, func(t *testing.T) {
			base, err := parse(c.preset, c.args...)
			if base.String() != c.want || base.IsZero() != (c.want == "") || (err == nil) != c.valid {
				t.Errorf("%q, error %v", base, err)
			}
		})
	}
}

func TestSameOrigin(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"https://links.example.org", "https://links.example.org/", true},
		{"https://links.example.org", "https://LINKS.example.org:443", true},
		{"http://links.example.org:80", "http://links.example.org", true},
		{"http://[::1]:8081", "http://[0:0::1]:8081", true},
		{"http://links.example.org", "https://links.example.org", false},
		{"http://links.example.org:443", "https://links.example.org:443", false},
		{"https://links.example.org", "https://links.example.org:80", false},
		{"https://links.example.org", "https://example.org", false},
	} {
		a, b := schema.MustParseBaseURL(c.a), schema.MustParseBaseURL(c.b)
		if a.SameOrigin(b) != c.same || b.SameOrigin(a) != c.same {
			t.Errorf("%s and %s: %v, want %v", c.a, c.b, !c.same, c.same)
		}
	}
}
