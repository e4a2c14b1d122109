package auth

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"linkstream/schema"
)

// maxEmailLen is the length in bytes of the longest address that mail can be sent to (RFC 5321, erratum 1690).
const maxEmailLen = 254

// ParseEmail returns email in the form in which accounts keep it, lower case. CodeInvalid if it is not an address. The
// check is shallow: only mail that arrives proves that an address works.
func ParseEmail(email string) (string, error) {
	local, domain, _ := strings.Cut(email, "@")
	blank := func(c rune) bool { return c == utf8.RuneError || unicode.IsSpace(c) || unicode.IsControl(c) }
	if local == "" || domain == "" || strings.Contains(domain, "@") || strings.ContainsFunc(email, blank) {
		return "", schema.ClientErrorf(schema.CodeInvalid, "The email %q must be a name, one @ and a domain.", email)
	}
	if email = strings.ToLower(email); len(email) > maxEmailLen {
		return "", schema.ClientErrorf(schema.CodeInvalid, "The email must have at most %d bytes.", maxEmailLen)
	}
	return email, nil
}
