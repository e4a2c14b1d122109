package auth_test

import (
	"crypto/sha256"
	"regexp"
	"strings"
	"testing"

	"linkstream/api/auth"
)

func TestNewToken(t *testing.T) {
	form := regexp.MustCompile(`^ls_[0-9A-Za-z_-]{43}$`) // 43 characters of 6 bits have room for 256
	seen := map[string]bool{}
	for range 1000 {
		secret, token := auth.NewToken(7, "laptop")
		switch {
		case !form.MatchString(secret):
			t.Fatalf("secret %q", secret)
		case seen[secret]:
			t.Fatalf("secret %q came twice", secret)
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
