package e2e_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"linkstream/schema/testkit"

	"golang.org/x/net/idna"
)

func TestSection4Shorten(t *testing.T) { t.Parallel(); onBothKinds(t, testSection4Shorten) }

func testSection4Shorten(t *testing.T, s *system) {
	owner := s.owner()
	id := s.domain(t, s.email, "links.example.org")

	t.Run("success is 201 with the fields of the table", func(t *testing.T) {
		made := owner.link(t, object{"long_url": "https://example.com/page?a=1&b=2#part"})
		createdLink.check(t, made)
		if made["original_url"] != "https://example.com/page?a=1&b=2#part" {
			t.Errorf("original_url is %v", made["original_url"])
		}
	})
	t.Run("without custom_alias a hash of 7 characters of [0-9A-Za-z] is generated", func(t *testing.T) {
		form, seen := regexp.MustCompile(`^[0-9A-Za-z]{7}$`), map[any]bool{}
		for range 30 {
			hash := owner.link(t, object{"long_url": "https://example.com/same"})["hash"].(string)
			if !form.MatchString(hash) || seen[hash] {
				t.Errorf("hash %q", hash)
			}
			seen[hash] = true
		}
	})
	t.Run("rule 1: with custom_alias hash equals the alias", func(t *testing.T) {
		for _, alias := range []string{"abc", "a-b_c", "0123456789", "---", "___", strings.Repeat("z", 20)} {
			if made := owner.alias(t, alias, "https://example.com/"); made["hash"] != alias {
				t.Errorf("hash is %v, want %q", made["hash"], alias)
			}
		}
	})
	t.Run("rule 2: with domain_id short_url uses the custom domain, without a port", func(t *testing.T) {
		made := owner.link(t, object{"long_url": "https://example.com/", "domain_id": id})
		if want := "http://links.example.org/" + made["hash"].(string); made["short_url"] != want {
			t.Errorf("short_url is %v, want %q", made["short_url"], want)
		}
	})
	t.Run("without domain_id the default domain is used", func(t *testing.T) {
		made := owner.link(t, object{"long_url": "https://example.com/"})
		if want := s.edge + "/" + made["hash"].(string); made["short_url"] != want {
			t.Errorf("short_url is %v, want %q", made["short_url"], want)
		}
	})
}

func TestSection4ShortenRefusesTakenAliases(t *testing.T) {
	t.Parallel()
	onBothKinds(t, testSection4ShortenRefusesTakenAliases)
}

func testSection4ShortenRefusesTakenAliases(t *testing.T, s *system) {
	owner := s.owner()
	id := s.domain(t, s.email, "links.example.org")

	t.Run("rule 3: an alias in use on the chosen domain is 422", func(t *testing.T) {
		other, _ := s.another(t, "other")
		taken := object{"long_url": "https://example.com/", "custom_alias": "taken"}
		owner.link(t, taken)
		owner.shorten(t, taken).wantError(t, http.StatusUnprocessableEntity, "custom_alias")
		other.shorten(t, taken).wantError(t, http.StatusUnprocessableEntity, "custom_alias")
		taken["domain_id"] = id
		owner.link(t, taken)
		owner.shorten(t, taken).wantError(t, http.StatusUnprocessableEntity, "custom_alias")
	})
	t.Run("one of several concurrent requests for an alias is 201, the others are 422", func(t *testing.T) {
		const body = `{"long_url":"https://example.com/","custom_alias":"race"}`
		var wg sync.WaitGroup
		answers, errs := make([]answer, 16), make([]error, 16)
		for i := range answers {
			wg.Go(func() { answers[i], errs[i] = owner.try(t, http.MethodPost, "/api/v1/shorten", body) })
		}
		wg.Wait()
		created := 0
		for i, a := range answers {
			if errs[i] != nil {
				t.Error(errs[i])
			} else if a.status == http.StatusCreated {
				created++
			} else {
				a.wantError(t, http.StatusUnprocessableEntity, "custom_alias")
			}
		}
		if created != 1 {
			t.Errorf("%d answers are 201, want 1", created)
		}
	})
}

var invalidBodies = []struct {
	name   string
	body   string
	fields []string
}{
	{"no long_url", `{}`, []string{"long_url"}},
	{"no long_url but an alias", `{"custom_alias":"alone"}`, []string{"long_url"}},
	{"null as long_url", `{"long_url":null}`, []string{"long_url"}},
	{"a number as long_url", `{"long_url":5}`, []string{"long_url"}},
	{"an array as long_url", `{"long_url":["https://example.com/"]}`, []string{"long_url"}},
	{"an empty alias", `{"long_url":"https://example.com/","custom_alias":""}`, []string{"custom_alias"}},
	{"an alias of 2 characters", `{"long_url":"https://example.com/","custom_alias":"ab"}`, []string{"custom_alias"}},
	{"an alias of 21 characters", `{"long_url":"https://example.com/","custom_alias":"aaaaaaaaaaaaaaaaaaaaa"}`, []string{"custom_alias"}},
	{"an alias with upper case", `{"long_url":"https://example.com/","custom_alias":"Abcd"}`, []string{"custom_alias"}},
	{"an alias with a dot", `{"long_url":"https://example.com/","custom_alias":"a.bc"}`, []string{"custom_alias"}},
	{"an alias with a slash", `{"long_url":"https://example.com/","custom_alias":"a/bc"}`, []string{"custom_alias"}},
	{"an alias with a space", `{"long_url":"https://example.com/","custom_alias":"a bc"}`, []string{"custom_alias"}},
	{"an alias with a line end", `{"long_url":"https://example.com/","custom_alias":"abc\n"}`, []string{"custom_alias"}},
	{"an alias that is not ASCII", `{"long_url":"https://example.com/","custom_alias":"äbcd"}`, []string{"custom_alias"}},
	{"a number as alias", `{"long_url":"https://example.com/","custom_alias":12345}`, []string{"custom_alias"}},
	{"the reserved alias api", `{"long_url":"https://example.com/","custom_alias":"api"}`, []string{"custom_alias"}},
	{"the reserved alias dashboard", `{"long_url":"https://example.com/","custom_alias":"dashboard"}`, []string{"custom_alias"}},
	{"the reserved alias healthz", `{"long_url":"https://example.com/","custom_alias":"healthz"}`, []string{"custom_alias"}},
	{"the reserved alias readyz", `{"long_url":"https://example.com/","custom_alias":"readyz"}`, []string{"custom_alias"}},
	{"the reserved alias metrics", `{"long_url":"https://example.com/","custom_alias":"metrics"}`, []string{"custom_alias"}},
	{"the reserved alias robots", `{"long_url":"https://example.com/","custom_alias":"robots"}`, []string{"custom_alias"}},
	{"a string as domain_id", `{"long_url":"https://example.com/","domain_id":"1"}`, []string{"domain_id"}},
	{"a fraction as domain_id", `{"long_url":"https://example.com/","domain_id":1.5}`, []string{"domain_id"}},
	{"a huge domain_id", `{"long_url":"https://example.com/","domain_id":99999999999999999999999}`, []string{"domain_id"}},
	{"a negative domain_id", `{"long_url":"https://example.com/","domain_id":-1}`, []string{"domain_id"}},
	{"zero as domain_id", `{"long_url":"https://example.com/","domain_id":0}`, []string{"domain_id"}},
	{"all fields invalid, all reported", `{"long_url":"nothing","custom_alias":"X","domain_id":999}`,
		[]string{"long_url", "custom_alias", "domain_id"}},
	{"all fields of a wrong type, all reported", `{"long_url":{},"custom_alias":[],"domain_id":"x"}`,
		[]string{"long_url", "custom_alias", "domain_id"}},
	{"two fields invalid, both reported", `{"custom_alias":"X"}`, []string{"long_url", "custom_alias"}},
}

func TestSection4ShortenRefusesInvalidFields(t *testing.T) {
	t.Parallel()
	onBothKinds(t, testSection4ShortenRefusesInvalidFields)
}

func testSection4ShortenRefusesInvalidFields(t *testing.T, s *system) {
	owner := s.owner()
	_, email := s.another(t, "other")
	for _, c := range invalidBodies {
		t.Run("rule 4: "+c.name, func(t *testing.T) {
			a := owner.call(t, http.MethodPost, "/api/v1/shorten", c.body)
			a.wantError(t, http.StatusUnprocessableEntity, c.fields...)
		})
	}
	t.Run("an unknown, an unverified and another's domain_id have the same answer", func(t *testing.T) {
		use := func(id any) answer {
			return owner.shorten(t, object{"long_url": "https://example.com/", "domain_id": id})
		}
		unknown := use(987654)
		unknown.wantError(t, http.StatusUnprocessableEntity, "domain_id")
		unverified := decode(s.admin(t, "domain", "add", s.email, "unverified.example.org"))
		others := s.domain(t, email, "others.example.org")
		for name, id := range map[string]any{"unverified": unverified, "another's": others} {
			if a := use(id); a.status != unknown.status || a.raw != unknown.raw {
				t.Errorf("%s: %v\nwant the same as %v", name, a, unknown)
			}
		}
	})
	t.Run("rejected links are not listed", func(t *testing.T) {
		if _, meta := owner.page(t, ""); number(t, meta, "total") != 0 {
			t.Errorf("links were created: %v", meta)
		}
	})
}

func TestSection4ShortenRefusesInvalidURLs(t *testing.T) {
	t.Parallel()
	onBothKinds(t, testSection4ShortenRefusesInvalidURLs)
}

func testSection4ShortenRefusesInvalidURLs(t *testing.T, s *system) {
	owner := s.owner()
	s.domain(t, s.email, "links.example.org")
	s.domain(t, s.email, "xn--krzer-kva.example.org")
	cases := map[string]string{
		"an empty one":               "",
		"no URL":                     "not a url",
		"no scheme":                  "example.com/page",
		"no scheme but a host":       "//example.com/page",
		"another scheme":             "ftp://example.com/",
		"a script":                   "javascript:alert(1)",
		"a mail address":             "mailto:someone@example.com",
		"inline data":                "data:text/html,hello",
		"no host":                    "http://",
		"no host but a path":         "https:///path",
		"no host but a port":         "https://:443/",
		"no slashes":                 "https:example.com",
		"a user":                     "https://user@example.com/",
		"a user and a password":      "https://user:secret@example.com/",
		"an empty user":              "https://@example.com/",
		"a line end":                 "https://example.com/a\nb",
		"a carriage return":          "https://example.com/\r\nSet-Cookie: a=b",
		"a tab":                      "https://example.com/\t",
		"a NUL":                      "https://example.com/\x00",
		"a DEL":                      "https://example.com/\x7f",
		"a control character of C1":  "https://example.com/\u0085",
		"a space in the host":        "https://exa mple.com/",
		"a port that is no number":   "https://example.com:http/",
		"2049 characters":            "https://example.com/" + strings.Repeat("a", 2049-20),
		"2049 characters, not ASCII": "https://example.com/" + strings.Repeat("é", 2049-20),
		"the service's short domain": s.edge + "/abc",
		"its domain by https":        "https://" + address(s.edge) + "/",
		"a custom short domain":      "https://links.example.org/abc",
		"a custom one, capitals":     "https://LINKS.Example.ORG/abc",
		"a custom one, other port":   "http://links.example.org:8080/abc",
		"a custom one, final dot":    "https://links.example.org./abc",
		"a custom one, full width":   "https://ｌｉｎｋｓ.example。org/abc",
		"a custom one, escaped":      "https://links%2Eexample.org/abc",
		"a custom one, not ASCII":    "https://kürzer.example.org/abc",
	}
	for name, long := range cases {
		t.Run(name, func(t *testing.T) {
			owner.shorten(t, object{"long_url": long}).wantError(t, http.StatusUnprocessableEntity, "long_url")
		})
	}
}

func TestSection4ShortenKeepsURLsAsGiven(t *testing.T) {
	t.Parallel()
	onBothKinds(t, testSection4ShortenKeepsURLsAsGiven)
}

func testSection4ShortenKeepsURLsAsGiven(t *testing.T, s *system) {
	owner := s.owner()
	cases := map[string]string{
		"http":                      "http://example.com/",
		"https without a path":      "https://example.com",
		"a scheme in upper case":    "HTTPS://Example.COM/Path",
		"a port":                    "https://example.com:8443/x",
		"an IPv4 address":           "http://192.0.2.7/x",
		"an IPv6 address":           "http://[2001:db8::1]:8080/x",
		"a query and a fragment":    "https://example.com/?q=1&r=a+b%20c&empty=#top",
		"escapes":                   "https://example.com/%7Euser/a%2Fb/%E4%B8%AD?x=%26",
		"dots and double slashes":   "https://example.com/a/../b//c/./d",
		"quotes and brackets":       `https://example.com/'a'("b")<c>&d;e`,
		"a host that is not ASCII":  "https://bücher.example/lesen",
		"a path that is not ASCII":  "https://example.com/straße/中文",
		"a query that is not ASCII": "https://例え.テスト/パス?ключ=значение#часть",
		"2048 characters":           "https://example.com/" + strings.Repeat("a", 2048-20),
		"2048 characters, 8 KiB":    "https://example.com/" + strings.Repeat("😀", 2048-20),
		"characters of 2 bytes":     "https://example.com/?" + strings.Repeat("é", 2048-21),
	}
	for name, long := range cases {
		t.Run(name, func(t *testing.T) {
			made := owner.link(t, object{"long_url": long})
			hash := made["hash"].(string)
			if made["original_url"] != long {
				t.Errorf("original_url is %.100v, want %.100q", made["original_url"], long)
			}
			if got := owner.get(t, "/api/v1/stats/"+hash).body["original_url"]; got != long {
				t.Errorf("stats: original_url is %.100v, want %.100q", got, long)
			}
			if items, _ := owner.page(t, ""); items[0]["original_url"] != long {
				t.Errorf("list: original_url is %.100v, want %.100q", items[0]["original_url"], long)
			}
			sameTarget(t, s.click(t, hash).header.Get("Location"), long)
		})
	}
}

// sameTarget requires that a Location header is a URI by RFC 3986, so ASCII only, and equivalent to the long URL.
func sameTarget(t *testing.T, location, long string) {
	t.Helper()
	for i := range len(location) {
		if location[i] <= ' ' || location[i] >= 0x7f {
			t.Fatalf("Location has byte %#x: %.200q", location[i], location)
		}
	}
	got, err := url.Parse(location)
	if err != nil {
		t.Fatalf("Location: %v", err)
	}
	want, err := url.Parse(long)
	if err != nil {
		t.Fatal(err)
	}
	host, err := idna.Lookup.ToASCII(strings.ToLower(want.Hostname()))
	if err != nil || strings.Contains(want.Host, "[") {
		host = want.Hostname()
	}
	query, err := url.QueryUnescape(got.RawQuery)
	if err != nil {
		t.Fatalf("query of Location: %v", err)
	}
	wantQuery, _ := url.QueryUnescape(want.RawQuery)
	if got.Scheme != want.Scheme || !strings.EqualFold(got.Hostname(), host) || got.Port() != want.Port() ||
		strings.TrimPrefix(got.Path, "/") != strings.TrimPrefix(want.Path, "/") || query != wantQuery ||
		got.Fragment != want.Fragment || got.RawPath != "" && want.RawPath != "" && got.EscapedPath() != want.EscapedPath() {
		t.Errorf("Location %.200q is not equivalent to %.200q", location, long)
	}
}

func TestSection4ShortenRefusesUnsafeURLs(t *testing.T) {
	t.Parallel()
	blocklist := t.TempDir() + "/hosts"
	writeFile(t, blocklist, "# a list of hosts\n0.0.0.0 bad.example\n127.0.0.1\tworse.example # a comment\n")
	s := startSystem(t, "LINKSTREAM_API_BLOCKLIST="+blocklist)
	owner := s.owner()

	for _, long := range []string{"https://bad.example/", "http://BAD.example:8080/x?y", "https://worse.example"} {
		t.Run("rule 5: a flagged URL is 422 with error = unsafe_url: "+long, func(t *testing.T) {
			owner.shorten(t, object{"long_url": long}).wantError(t, http.StatusUnprocessableEntity)
		})
	}
	t.Run("a host that is not on the list is accepted", func(t *testing.T) {
		owner.link(t, object{"long_url": "https://good.example/?u=https://bad.example/"})
	})
	t.Run("an invalid field beside an unsafe URL is reported", func(t *testing.T) {
		if a := owner.shorten(t, object{"long_url": "https://bad.example/", "custom_alias": "X"}); a.status != 422 {
			t.Error(a)
		}
	})
	t.Run("a changed list is read again", func(t *testing.T) {
		writeFile(t, blocklist, "0.0.0.0 later.example\n")
		testkit.Succeeds(t, func() error {
			return owner.shorten(t, object{"long_url": "https://later.example/"}).isStatus(http.StatusUnprocessableEntity)
		})
		owner.link(t, object{"long_url": "https://bad.example/"})
	})
}
