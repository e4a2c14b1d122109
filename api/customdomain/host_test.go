package customdomain_test

import (
	"strings"
	"testing"

	"linkstream/api/customdomain"
)

func TestHost(t *testing.T) {
	label := strings.Repeat("a", 63)
	longest := strings.Repeat("a."+label[:61]+".", 3) + label[:46] + ".io" // 241 characters
	for given, want := range map[string]string{
		"go.example.com":           "go.example.com",
		"GO.Example.COM":           "go.example.com",
		"go.example.com.":          "go.example.com",
		"1.2.3.a-b.io":             "1.2.3.a-b.io",
		"münchen.example":          "xn--mnchen-3ya.example",
		"MÜNCHEN.example":          "xn--mnchen-3ya.example",
		"xn--mnchen-3ya.example":   "xn--mnchen-3ya.example",
		"例え。テスト":                   "xn--r8jz45g.xn--zckzah",
		label + ".io":              label + ".io",
		label + "a.io":             "",
		longest:                    longest,
		longest + ".":              longest,
		"a" + longest:              "",
		"":                         "",
		".":                        "",
		"..":                       "",
		"localhost":                "",
		"io.":                      "",
		".io":                      "",
		"go..io":                   "",
		"go.io..":                  "",
		"go.example.com:80":        "",
		"http://go.example.com":    "",
		"go.example.com/x":         "",
		"go.example.com?x":         "",
		"me@go.example.com":        "",
		"*.example.com":            "",
		"go_on.example.com":        "",
		"-go.example.com":          "",
		"go-.example.com":          "",
		"ä-.example":               "",
		"xn----zfa.example":        "",
		"ä_b.example":              "",
		"go example.com":           "",
		"go.example.com\n":         "",
		"go\x00.example.com":       "",
		"\xff.example.com":         "",
		"xn--a.example":            "",
		"192.0.2.1":                "",
		"127.1":                    "",
		"0x7f.0x1":                 "",
		"[2001:db8::1]":            "",
		"2001:db8::1":              "",
		"１２７.０.０.１":                "",
		strings.Repeat("a.", 5000): "",
	} {
		t.Run(given[:min(len(given), 40)], func(t *testing.T) {
			host, err := customdomain.ParseHost(given)
			if host != want || (err == nil) != (want != "") {
				t.Errorf("%q, %v, want %q", host, err, want)
			}
		})
	}
}

// Invariants: a host that is accepted is its own only form, and has at most 241 characters, all of [a-z0-9.-].
func FuzzHost(f *testing.F) {
	for _, host := range []string{
		"go.example.com.", "MÜNCHEN.example", "例え。テスト", "xn--mnchen-3ya.example", "192.0.2.1", "a..",
	} {
		f.Add(host)
	}
	f.Fuzz(func(t *testing.T, given string) {
		host, err := customdomain.ParseHost(given)
		if err != nil {
			return
		}
		again, err := customdomain.ParseHost(host)
		others := strings.Trim(host, "abcdefghijklmnopqrstuvwxyz0123456789.-")
		if again != host || err != nil || len(host) > 241 || others != "" {
			t.Errorf("%q gave %q, and then %q, %v", given, host, again, err)
		}
	})
}
