package auth_test

import (
	"strings"
	"testing"

	"linkstream/api/auth"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestParseEmail(t *testing.T) {
	domain := "@" + strings.Repeat("d", 187) + ".io"
	for given, want := range map[string]string{
		"me@example.org":                       "me@example.org",
		"Me.Too+X@Example.ORG":                 "me.too+x@example.org",
		"admin@localhost":                      "admin@localhost",
		"JÜRGEN@MÜNCHEN.example":               "jürgen@münchen.example",
		strings.Repeat("l", 63) + domain:       strings.Repeat("l", 63) + domain, // 254 bytes
		strings.Repeat("l", 64) + domain:       "",
		"":                                     "",
		"@":                                    "",
		"me":                                   "",
		"me@":                                  "",
		"@example.org":                         "",
		"me@you@example.org":                   "",
		"me@@example.org":                      "",
		" me@example.org":                      "",
		"me@example.org\n":                     "",
		"me and you@example.org":               "",
		"me\x00@example.org":                   "",
		"me\u00a0@example.org":                 "",
		"\xff@example.org":                     "",
		"Me <me@example.org>, you@example.org": "",
	} {
		t.Run(given, func(t *testing.T) {
			email, err := auth.ParseEmail(given)
			if want == "" {
				testkit.WantCode(t, err, schema.CodeInvalid)
			} else {
				testkit.Must(t, err)
			}
			testkit.Equal(t, "email", email, want)
		})
	}
}

// FuzzParseEmail checks that an address is kept in one form, which is an address.
func FuzzParseEmail(f *testing.F) {
	for _, email := range []string{"a@b", "A@B.example", "a@b@c", " a@b", "a@\u00a0b", "\xff@b", "İ@b",
		strings.Repeat("a", 250) + "@b.c"} {
		f.Add(email)
	}
	f.Fuzz(func(t *testing.T, email string) {
		kept, err := auth.ParseEmail(email)
		if err != nil {
			return
		}
		if again, err := auth.ParseEmail(kept); err != nil || again != kept || len(kept) > 254 {
			t.Errorf("%q is kept as %q, which is %q, error %v", email, kept, again, err)
		}
	})
}
