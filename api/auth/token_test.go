package auth_test

import (
	"crypto/sha256"
	"regexp"
	"strings"
	"testing"

	"linkstream/api/auth"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestNewToken(t *testing.T) {
	form := regexp.MustCompile(`^ls_[0-9A-Za-z_-]{43}$`) // 43 characters of 6 bits hold 256 bits
	seen := map[string]bool{}
	for range 1000 {
		secret, token := auth.NewToken(7, "laptop")
		switch {
		case !form.MatchString(secret):
			t.Fatalf("secret %q", secret)
		case seen[secret]:
			t.Fatalf("secret %q twice", secret)
		case token.Digest != sha256.Sum256([]byte(secret)) || token.Digest != auth.Digest(secret):
			t.Fatalf("digest %x is not SHA-256 of the secret", token.Digest)
		case len(token.Prefix) != 8 || !strings.HasPrefix(secret, token.Prefix):
			t.Fatalf("prefix %q of %q", token.Prefix, secret)
		case token.AccountID != 7 || token.Name != "laptop" || token.CreatedAt.IsZero() || !token.RevokedAt.IsZero():
			t.Fatalf("token %+v", token)
		}
		seen[secret] = true
	}
}

func TestParseToken(t *testing.T) {
	long := strings.Repeat("x", 253)
	for name, c := range map[string]struct {
		secret string
		code   schema.Code
	}{
		"32 characters":                      {"ls_" + long[:32], ""},
		"31 characters":                      {"ls_" + long[:31], schema.CodeInvalid},
		"253 characters":                     {"ls_" + long, ""},
		"254 characters":                     {"ls_x" + long, schema.CodeInvalid},
		"no prefix":                          {long[:43], schema.CodeInvalid},
		"the prefix in upper case":           {"LS_" + long[:43], schema.CodeInvalid},
		"a space":                            {"ls_" + long[:32] + " x", schema.CodeInvalid},
		"a character of two bytes":           {"ls_" + long[:32] + "ü", schema.CodeInvalid},
		"characters of base64, not for URLs": {"ls_" + long[:32] + "+/", schema.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			token, err := auth.ParseToken(7, "laptop", c.secret)
			testkit.WantCode(t, err, c.code)
			if err == nil && (token.Digest != auth.Digest(c.secret) || token.Prefix != c.secret[:8] || token.AccountID != 7 ||
				token.Name != "laptop" || token.CreatedAt.IsZero()) {
				t.Errorf("token %+v", token)
			}
		})
	}
}
