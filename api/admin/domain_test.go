package admin_test

import (
	"strings"
	"testing"

	"linkstream/schema"
)

func newCLIWithAccounts(t *testing.T) cli {
	t.Helper()
	c := newCLI(t)
	c.prints(t, "account add a@example.org")
	c.prints(t, "account add b@example.org")
	return c
}

func (c cli) domain(t *testing.T, id string) schema.Domain {
	t.Helper()
	domain, err := c.Domain(t.Context(), number(t, id))
	if err != nil {
		t.Fatal(err)
	}
	return domain
}

func TestDomainAdd(t *testing.T) {
	t.Run("prints the id of the claim it makes", func(t *testing.T) {
		c := newCLIWithAccounts(t)
		domain := c.domain(t, c.prints(t, "domain add A@example.org Go.Example.COM"))
		account, err := c.AccountByEmail(t.Context(), "a@example.org")
		if err != nil || domain.AccountID != account.ID || domain.Host != "go.example.com" || !domain.VerifiedAt.IsZero() {
			t.Errorf("%+v of account %d, %v", domain, account.ID, err)
		}
	})
	t.Run("makes a challenge that nobody can guess", func(t *testing.T) {
		c := newCLIWithAccounts(t)
		one := c.domain(t, c.prints(t, "domain add a@example.org go.example.com")).Challenge
		two := c.domain(t, c.prints(t, "domain add b@example.org go.example.com")).Challenge
		const mark = "linkstream-verification="
		if one == two || !strings.HasPrefix(one, mark) || len(one) < len(mark)+26 {
			t.Errorf("%q and %q", one, two)
		}
	})
	t.Run("verifies at once where it is told to", func(t *testing.T) {
		c := newCLIWithAccounts(t)
		id := c.prints(t, "domain add a@example.org go.example.com --verified")
		domain, err := c.VerifiedDomain(t.Context(), "go.example.com")
		if err != nil || domain.ID != number(t, id) || domain.VerifiedAt.IsZero() {
			t.Errorf("%+v, %v", domain, err)
		}
	})
	t.Run("lets claims coexist, but does not verify what another account holds", func(t *testing.T) {
		c := newCLIWithAccounts(t)
		c.prints(t, "domain add a@example.org go.example.com --verified")
		c.fails(t, "domain add b@example.org go.example.com --verified", schema.CodeConflict, "another account holds")
		c.prints(t, "domain add b@example.org go.example.com")
	})
	t.Run("refuses a second claim of one account", func(t *testing.T) {
		c := newCLIWithAccounts(t)
		id := c.prints(t, "domain add a@example.org go.example.com")
		for _, option := range []string{"", " --verified"} {
			line := "domain add a@example.org GO.example.com" + option
			c.fails(t, line, schema.CodeConflict, "claims \"go.example.com\" already: domain "+id)
		}
	})
	t.Run("refuses an unknown account", func(t *testing.T) {
		newCLI(t).fails(t, "domain add us@example.org go.example.com", schema.CodeNotFound, `no account "us@example.org"`)
	})
	t.Run("refuses the default domain", func(t *testing.T) {
		c := newCLIWithAccounts(t)
		for _, option := range []string{"", " --verified"} {
			c.fails(t, "domain add a@example.org SHO.rt."+option, schema.CodeInvalid, "default domain")
		}
	})
	t.Run("refuses what is no host", func(t *testing.T) {
		newCLIWithAccounts(t).fails(t, "domain add a@example.org http://go.example.com", schema.CodeInvalid, "hostname")
	})
}

func TestDomainVerify(t *testing.T) {
	t.Run("verifies a claim, and keeps it as it is when told again", func(t *testing.T) {
		c := newCLIWithAccounts(t)
		id := c.prints(t, "domain add a@example.org go.example.com")
		c.printsNothing(t, "domain verify GO.example.com")
		first := c.domain(t, id)
		c.printsNothing(t, "domain verify go.example.com")
		if again := c.domain(t, id); first.VerifiedAt.IsZero() || again != first {
			t.Errorf("%+v, then %+v", first, again)
		}
	})
	t.Run("verifies the oldest claim", func(t *testing.T) {
		c := newCLIWithAccounts(t)
		id := c.prints(t, "domain add b@example.org go.example.com")
		c.prints(t, "domain add a@example.org go.example.com")
		c.printsNothing(t, "domain verify go.example.com")
		if domain, err := c.VerifiedDomain(t.Context(), "go.example.com"); err != nil || domain.ID != number(t, id) {
			t.Errorf("%+v, %v, want domain %s", domain, err, id)
		}
	})
	t.Run("does not take a host from the account that holds it", func(t *testing.T) {
		c := newCLIWithAccounts(t)
		c.prints(t, "domain add b@example.org go.example.com")
		id := c.prints(t, "domain add a@example.org go.example.com --verified")
		c.fails(t, "domain verify go.example.com", schema.CodeConflict, "another account holds")
		if domain, err := c.VerifiedDomain(t.Context(), "go.example.com"); err != nil || domain.ID != number(t, id) {
			t.Errorf("%+v, %v, want domain %s", domain, err, id)
		}
	})
	t.Run("refuses a host that nobody claims", func(t *testing.T) {
		newCLI(t).fails(t, "domain verify go.example.com", schema.CodeNotFound, `no account claims "go.example.com"`)
	})
	t.Run("refuses what is no host", func(t *testing.T) {
		newCLI(t).fails(t, "domain verify go", schema.CodeInvalid, "hostname")
	})
}
