package resttest

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"linkstream/schema/testkit"
)

func testShorten(t *testing.T, s System) {
	owner := s.account(t)
	id, host := s.domain(t, owner)

	t.Run("success is 201 with the fields of the table", func(t *testing.T) {
		a := owner.Shorten(t, Object{"long_url": "https://example.com/<a>?b=c&d='\"#é💩"})
		createdLink.Check(t, a.Want(t, http.StatusCreated).Body)
		testkit.Equal(t, "original_url", a.Body["original_url"], any("https://example.com/<a>?b=c&d='\"#é💩"))
		if !strings.Contains(a.Raw, "https://example.com/<a>?b=c&d=") {
			t.Errorf("the URL has more escapes than JSON needs: %v", a)
		}
	})
	t.Run("without custom_alias a hash of 7 characters of [0-9A-Za-z] without 0, O, 1, l and I is generated",
		func(t *testing.T) {
			form, seen := regexp.MustCompile(`^[2-9A-HJ-NP-Za-km-z]{7}$`), map[any]bool{}
			for range 30 {
				hash := owner.Link(t, Object{"long_url": "https://example.com/same"})["hash"].(string)
				if !form.MatchString(hash) || seen[hash] {
					t.Errorf("hash %q", hash)
				}
				seen[hash] = true
			}
		})
	t.Run("rule 1: with custom_alias hash equals the alias", func(t *testing.T) {
		for _, alias := range []string{"abc", "a-b_c", "0123456789", "---", "___", strings.Repeat("z", 20)} {
			made := owner.Link(t, Object{"long_url": "https://example.com/", "custom_alias": alias, "domain_id": id})
			testkit.Equal(t, "hash", made["hash"], any(alias))
		}
	})
	t.Run("rule 2: with domain_id short_url uses the custom domain, without a port", func(t *testing.T) {
		made := owner.Link(t, Object{"long_url": "https://example.com/", "domain_id": id})
		testkit.Equal(t, "short_url", made["short_url"], any(s.custom(host, made["hash"].(string))))
	})
	t.Run("without domain_id the default domain is used", func(t *testing.T) {
		made := owner.Link(t, Object{"long_url": "https://example.com/"})
		testkit.Equal(t, "short_url", made["short_url"], any(s.Short+"/"+made["hash"].(string)))
	})
	for name, body := range map[string]string{
		"null counts as missing":        `{"long_url":"https://example.com/","custom_alias":null,"domain_id":null}`,
		"unknown fields are ignored":    `{"long_url":"https://example.com/","unknown":"x","LONG_URL":5}`,
		"the last of two fields counts": `{"long_url":5,"long_url":"https://example.com/"}`,
		"white space around the object": " \r\n" + goodBody + "\t\n",
		"JSON escapes":                  `{"long\u005furl":"https:\/\/example.com\/\ud83d\udca9"}`,
	} {
		t.Run(name, func(t *testing.T) {
			owner.Call(t, http.MethodPost, "/api/v1/shorten", body).Want(t, http.StatusCreated)
		})
	}
	t.Run("rule 5: a flagged URL is 422 with error = unsafe_url", func(t *testing.T) {
		for _, long := range []string{"https://" + UnsafeHost + "/", "http://" + strings.ToUpper(UnsafeHost) + ":8080/x?y",
			"http://www." + UnsafeHost} {
			owner.Shorten(t, Object{"long_url": long}).WantError(t, http.StatusUnprocessableEntity)
		}
		owner.Link(t, Object{"long_url": "https://good.example/?u=https://" + UnsafeHost + "/"})
	})
	t.Run("an invalid field is reported with an unsafe URL", func(t *testing.T) {
		owner.Shorten(t, Object{"long_url": "https://" + UnsafeHost, "custom_alias": "X"}).
			WantError(t, http.StatusUnprocessableEntity, "custom_alias")
	})
}

func testTakenAliases(t *testing.T, s System) {
	owner, other := s.account(t), s.account(t)
	id, _ := s.domain(t, owner)

	t.Run("rule 3: an alias in use on the chosen domain is 422", func(t *testing.T) {
		taken := Object{"long_url": "https://example.com/", "custom_alias": label()}
		owner.Link(t, taken)
		owner.Shorten(t, taken).WantError(t, http.StatusUnprocessableEntity, "custom_alias")
		other.Shorten(t, taken).WantError(t, http.StatusUnprocessableEntity, "custom_alias")
		taken["domain_id"] = id
		owner.Link(t, taken)
		owner.Shorten(t, taken).WantError(t, http.StatusUnprocessableEntity, "custom_alias")
	})
	t.Run("of concurrent requests for an alias one is 201, all others are 422", func(t *testing.T) {
		body := `{"long_url":"https://example.com/","custom_alias":"` + label() + `"}`
		var wg sync.WaitGroup
		answers, errs := make([]Answer, 16), make([]error, 16)
		for i := range answers {
			wg.Go(func() { answers[i], errs[i] = owner.Try(t, http.MethodPost, "/api/v1/shorten", body) })
		}
		wg.Wait()
		created := 0
		for i, a := range answers {
			testkit.Must(t, errs[i])
			if a.Status == http.StatusCreated {
				created++
			} else {
				a.WantError(t, http.StatusUnprocessableEntity, "custom_alias")
			}
		}
		testkit.Equal(t, "answers that are 201", created, 1)
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
	{"an alias of 21 characters", `{"long_url":"https://example.com/","custom_alias":"aaaaaaaaaaaaaaaaaaaaa"}`,
		[]string{"custom_alias"}},
	{"an alias with upper case", `{"long_url":"https://example.com/","custom_alias":"Abcd"}`, []string{"custom_alias"}},
	{"an alias with a dot", `{"long_url":"https://example.com/","custom_alias":"a.bc"}`, []string{"custom_alias"}},
	{"an alias with a slash", `{"long_url":"https://example.com/","custom_alias":"a/bc"}`, []string{"custom_alias"}},
	{"an alias with a space", `{"long_url":"https://example.com/","custom_alias":"a bc"}`, []string{"custom_alias"}},
	{"an alias with a line end", `{"long_url":"https://example.com/","custom_alias":"abc\n"}`, []string{"custom_alias"}},
	{"an alias that is not ASCII", `{"long_url":"https://example.com/","custom_alias":"äbcd"}`, []string{"custom_alias"}},
	{"a number as alias", `{"long_url":"https://example.com/","custom_alias":12345}`, []string{"custom_alias"}},
	{"the reserved alias api", `{"long_url":"https://example.com/","custom_alias":"api"}`, []string{"custom_alias"}},
	{"the reserved alias dashboard", `{"long_url":"https://example.com/","custom_alias":"dashboard"}`,
		[]string{"custom_alias"}},
	{"the reserved alias healthz", `{"long_url":"https://example.com/","custom_alias":"healthz"}`,
		[]string{"custom_alias"}},
	{"the reserved alias readyz", `{"long_url":"https://example.com/","custom_alias":"readyz"}`, []string{"custom_alias"}},
	{"the reserved alias metrics", `{"long_url":"https://example.com/","custom_alias":"metrics"}`,
		[]string{"custom_alias"}},
	{"the reserved alias robots", `{"long_url":"https://example.com/","custom_alias":"robots"}`, []string{"custom_alias"}},
	{"a string as domain_id", `{"long_url":"https://example.com/","domain_id":"1"}`, []string{"domain_id"}},
	{"a fraction as domain_id", `{"long_url":"https://example.com/","domain_id":1.5}`, []string{"domain_id"}},
	{"a huge domain_id", `{"long_url":"https://example.com/","domain_id":99999999999999999999999}`, []string{"domain_id"}},
	{"a negative domain_id", `{"long_url":"https://example.com/","domain_id":-1}`, []string{"domain_id"}},
	{"an empty string as domain_id", `{"long_url":"https://example.com/","domain_id":""}`, []string{"domain_id"}},
	{"all fields invalid, all reported", `{"long_url":"nothing","custom_alias":"X","domain_id":999}`,
		[]string{"long_url", "custom_alias", "domain_id"}},
	{"all fields of a wrong type, all reported", `{"long_url":{},"custom_alias":[],"domain_id":"x"}`,
		[]string{"long_url", "custom_alias", "domain_id"}},
	{"an empty long_url", `{"long_url":""}`, []string{"long_url"}},
	{"half a surrogate pair", `{"long_url":"https://example.com/\ud800"}`, []string{"long_url"}},
	{"text that is not UTF-8", "{\"long_url\":\"https://example.com/\xff\"}", []string{"long_url"}},
	{"long_url in other letters", `{"Long_URL":"https://example.com/"}`, []string{"long_url"}},
	{"the last of two long_url invalid", `{"long_url":"https://example.com/","long_url":"x"}`, []string{"long_url"}},
	{"two fields invalid, both reported", `{"custom_alias":"X"}`, []string{"long_url", "custom_alias"}},
}

func testFields(t *testing.T, s System) {
	owner, other := s.account(t), s.account(t)
	for _, c := range invalidBodies {
		t.Run("rule 4: "+c.name, func(t *testing.T) {
			owner.Call(t, http.MethodPost, "/api/v1/shorten", c.body).WantError(t, http.StatusUnprocessableEntity, c.fields...)
		})
	}
	t.Run("an unknown, an unverified and another's domain_id have the same answer", func(t *testing.T) {
		others, _ := s.domain(t, other)
		answers := map[string]string{}
		for name, id := range map[string]any{"unknown": 987654, "unverified": s.addDomain(t, owner, newHost()),
			"another's": others} {
			a := owner.Shorten(t, Object{"long_url": "https://example.com/", "domain_id": id})
			answers[a.WantError(t, http.StatusUnprocessableEntity, "domain_id").Raw] = name
		}
		if len(answers) != 1 {
			t.Errorf("answers differ: %v", answers)
		}
	})
	t.Run("rejected links are not listed", func(t *testing.T) {
		if _, meta := owner.Page(t, ""); Number(t, meta, "total") != 0 {
			t.Errorf("links were created: %v", meta)
		}
	})
}

func testURLs(t *testing.T, s System) {
	owner := s.account(t)
	_, host := s.domain(t, owner)
	international := newHost()
	s.addDomain(t, owner, "kürzer-"+international, "--verified")
	short, err := url.Parse(s.Short)
	testkit.Must(t, err)
	for name, long := range invalidURLs(s.Short, short.Host, host, "kürzer-"+international) {
		t.Run("invalid: "+name, func(t *testing.T) {
			owner.Shorten(t, Object{"long_url": long}).WantError(t, http.StatusUnprocessableEntity, "long_url")
		})
	}
	for name, long := range ValidURLs {
		t.Run("kept as it is given: "+name, func(t *testing.T) {
			made := owner.Link(t, Object{"long_url": long})
			items, _ := owner.Page(t, "")
			for where, got := range map[string]any{"answer": made["original_url"], "list": items[0]["original_url"],
				"stats": owner.Get(t, "/api/v1/stats/"+made["hash"].(string)).Body["original_url"]} {
				if got != long {
					t.Errorf("%s: original_url is %.100v, want %.100q", where, got, long)
				}
			}
		})
	}
}

// invalidURLs are no long URLs. Some lead to the service's own short domains.
func invalidURLs(base, defaultHost, host, international string) map[string]string {
	return map[string]string{
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
		"the service's short domain": base + "/abc",
		"its domain by https":        "https://" + defaultHost + "/",
		"a custom short domain":      "https://" + host + "/abc",
		"a custom one, capitals":     "https://" + strings.ToUpper(host) + "/abc",
		"a custom one, other port":   "http://" + host + ":8080/abc",
		"a custom one, final dot":    "https://" + host + "./abc",
		"a custom one, full width":   "https://" + fullWidth(host) + "/abc",
		"a custom one, escaped":      "https://" + strings.Replace(host, ".", "%2E", 1) + "/abc",
		"a custom one, not ASCII":    "https://" + international + "/abc",
	}
}

// fullWidth writes a host in full-width letters and dots, which browsers read as ASCII.
func fullWidth(host string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '.':
			return '。'
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'ａ'
		}
		return r
	}, host)
}

// ValidURLs are long URLs of many forms.
var ValidURLs = map[string]string{
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
