package certificate_test

import (
	"testing"

	"linkstream/edge/certificate"
	"linkstream/schema"
)

// FuzzServerName checks that what a client asks for is a name in canonical form, or none.
func FuzzServerName(f *testing.F) {
	for _, name := range []string{"", "go.example", "GO.Example.", "..", "192.0.2.1", "[::1]", "a..b", "-a.example",
		"xn--mnchen-3ya.example",
		"a/b.example", "../../key", "a\x00.example", "*.example", "münchen.example", "a.example:443"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, given string) {
		name := certificate.ServerName(given)
		if name == "" {
			return
		}
		if host, err := schema.ParseHost(name); !schema.ValidHostName(name) || err == nil && string(host) != name {
			t.Errorf("%q becomes %q", given, name)
		}
		if again := certificate.ServerName(name); again != name {
			t.Errorf("%q becomes %q and then %q", given, name, again)
		}
	})
}
