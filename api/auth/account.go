package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"linkstream/schema"
)

// DefaultEmail is that of the first account where none is given.
const DefaultEmail = "admin@localhost"

// maxEmailLen is the longest address that mail can be sent to (RFC 5321, erratum 1690), in bytes.
const maxEmailLen = 254

// Credentials are what an account's owner needs: the password for the dashboard, the token for the API.
type Credentials struct{ Email, Password, Token string }

// Bootstrap makes the first account, with one token, and returns its credentials and true; if there is an account
// already, it changes nothing and returns false. Empty values are made up. CodeInvalid names all values that are wrong,
// also if there is an account.
func Bootstrap(
	ctx context.Context, accounts schema.AccountStore, email, password, token string,
) (c Credentials, created bool, err error) {
	c = Credentials{cmp.Or(email, DefaultEmail), cmp.Or(password, NewPassword()), cmp.Or(token, newSecret())}
	parsed, err := ParseEmail(c.Email)
	if err := errors.Join(err, CheckPassword(c.Password), checkToken(c.Token)); err != nil {
		return Credentials{}, false, fmt.Errorf("make first account: %w", err)
	}
	c.Email = parsed
	account := schema.Account{Email: c.Email, PasswordHash: HashPassword(c.Password), CreatedAt: time.Now().UTC()}
	first := tokenOf(0, "first token", c.Token)
	switch err := accounts.CreateFirstAccount(ctx, &account, &first); schema.ErrorCode(err) {
	case "":
		return c, true, nil
	case schema.CodeConflict:
		return Credentials{}, false, nil
	default:
		return Credentials{}, false, fmt.Errorf("make first account: %w", err)
	}
}

// ParseEmail returns email as accounts have it, in lower case. CodeInvalid if it is no address; only mail that arrives
// can prove that it is one.
func ParseEmail(email string) (string, error) {
	local, domain, _ := strings.Cut(email, "@")
	blank := func(c rune) bool { return c == utf8.RuneError || unicode.IsSpace(c) || unicode.IsControl(c) }
	if local == "" || domain == "" || strings.Contains(domain, "@") || strings.ContainsFunc(email, blank) {
		return "", schema.Errorf(schema.CodeInvalid, "The email %q must be a name, one @ and a domain.", email)
	}
	if email = strings.ToLower(email); len(email) > maxEmailLen {
		return "", schema.Errorf(schema.CodeInvalid, "The email must have at most %d bytes.", maxEmailLen)
	}
	return email, nil
}
