package admin_test

import (
	"fmt"
	"testing"

	"linkstream/api/auth"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestTokenAdd(t *testing.T) {
	c := newCLI(t)
	c.prints(t, "account add me@example.org")

	t.Run("prints a new token of the account each time", func(t *testing.T) {
		seen := map[string]bool{}
		for range 3 {
			secret := c.prints(t, "token add ME@example.org")
			token, account, err := c.TokenByDigest(t.Context(), auth.Digest(secret))
			if err != nil || account.Email != "me@example.org" || token.CreatedAt.IsZero() || seen[secret] {
				t.Errorf("token %q is %+v of %+v, %v", secret, token, account, err)
			}
			seen[secret] = true
		}
	})
	t.Run("gives the token scopes and an end", func(t *testing.T) {
		secret := c.prints(t, "token add me@example.org --scope links.read --scope webhooks --expires "+
			"2099-01-31T12:00:00+01:00")
		token, _, err := c.TokenByDigest(t.Context(), auth.Digest(secret))
		if err != nil || token.Scopes != "links.read webhooks" || token.ExpiresAt.UTC().Format("15:04") != "11:00" {
			t.Errorf("%+v, %v", token, err)
		}
		c.fails(t, "token add me@example.org --scope everything", schema.CodeInvalid, `"everything" is no scope`)
		for _, time := range []string{"tomorrow", "2020-01-01T00:00:00Z"} {
			c.fails(t, "token add me@example.org --expires "+time, schema.CodeInvalid, "no time in the future")
		}
	})
	t.Run("refuses an unknown account", func(t *testing.T) {
		c.fails(t, "token add us@example.org", schema.CodeNotFound, `no account "us@example.org"`)
	})
}

func TestTokenRevoke(t *testing.T) {
	c := newCLI(t)
	c.prints(t, "account add me@example.org")
	other := c.prints(t, "token add me@example.org")
	valid := func(t *testing.T, secret string, want bool) schema.Token {
		t.Helper()
		token, _, err := c.TokenByDigest(t.Context(), auth.Digest(secret))
		if (err == nil) != want {
			t.Errorf("token %q: %v, want valid %t", secret, err, want)
		}
		return token
	}
	t.Run("accepts an ID, and is idempotent", func(t *testing.T) {
		secret := c.prints(t, "token add me@example.org")
		line := fmt.Sprintf("token revoke %d", valid(t, secret, true).ID)
		for range 2 {
			c.printsNothing(t, line)
			valid(t, secret, false)
			valid(t, other, true)
		}
	})
	t.Run("ends the shared reports of the token, unless they are kept", func(t *testing.T) {
		for options, kept := range map[string]int{"": 0, " --keep": 1} {
			token := valid(t, c.prints(t, "token add me@example.org"), true)
			share := schema.Share{AccountID: token.AccountID, Digest: token.Digest, TokenID: token.ID,
				CreatedAt: token.CreatedAt}
			testkit.Must(t, c.CreateShare(t.Context(), &share))
			c.printsNothing(t, fmt.Sprintf("token revoke %d%s", token.ID, options))
			shares, err := c.Shares(t.Context(), token.AccountID)
			testkit.Must(t, err)
			testkit.Equal(t, "shared reports"+options, len(shares), kept)
			for _, share := range shares {
				testkit.Must(t, c.DeleteShare(t.Context(), token.AccountID, share.ID))
			}
		}
	})
	t.Run("accepts the token itself, once", func(t *testing.T) {
		secret := c.prints(t, "token add me@example.org")
		c.printsNothing(t, "token revoke "+secret)
		valid(t, secret, false)
		valid(t, other, true)
		c.fails(t, "token revoke "+secret, schema.CodeNotFound, "already revoked")
	})
	t.Run("refuses unknown tokens", func(t *testing.T) {
		c.fails(t, "token revoke 1000", schema.CodeNotFound, "no token with ID 1000")
		c.fails(t, "token revoke ls_unknown", schema.CodeNotFound, "unknown")
	})
	t.Run("refuses an invalid ID", func(t *testing.T) {
		c.fails(t, "token revoke one", schema.CodeInvalid, `"one"`)
	})
}
