package links_test

import (
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestCreateRefusesUnsafeHosts(t *testing.T) {
	f := newFixture(t, "https://sho.rt", "bad.example", "bücher.example", "198.51.100.7", "2001:DB8::7")
	for name, urls := range map[string][]string{
		"names and addresses":              {"http://bad.example", "http://198.51.100.7/", "http://[2001:db8::7]/"},
		"subdomains":                       {"http://www.bad.example", "http://a.b.c.bad.example/"},
		"case, port, path, dot at the end": {"HTTPS://BAD.example.:8443/x?y"},
		"names outside ASCII":              {"http://bücher.example", "http://xn--bcher-kva.example", "http://ｂad.example"},
		"IPv4 addresses in IPv6": {"http://[::ffff:c633:6407]/", "http://[::198.51.100.7]/", "http://[64:ff9b::c633:6407]/",
			"http://[2001:db8:0:0::7]/"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, longURL := range urls {
				_, err := f.create(t, longURL, "", 0)
				if schema.ErrorCode(err) != schema.CodeUnsafeURL {
					t.Errorf("%q: %v", longURL, err)
				}
			}
		})
	}
	t.Run("and nothing else", func(t *testing.T) {
		for _, longURL := range []string{"http://notbad.example", "http://bad.example.com",
			"http://a.b/?u=http://bad.example"} {
			_, err := f.create(t, longURL, "", 0)
			testkit.Must(t, err)
		}
	})
	t.Run("after the fields are validated", func(t *testing.T) {
		_, err := f.create(t, "http://bad.example", "NO", 0)
		wantInvalid(t, err, "custom_alias")
	})
	t.Run("before the alias is taken", func(t *testing.T) {
		_, err := f.create(t, "http://fine.example", "used", 0)
		testkit.Must(t, err)
		_, err = f.create(t, "http://bad.example", "used", 0)
		testkit.WantCode(t, err, schema.CodeUnsafeURL)
	})
}
