package admin_test

import (
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
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
	testkit.Must(t, err)
	return domain
}

func TestDomainAdd(t *testing.T) {
	t.Run("prints the id of the new domain", func(t *testing.T) {
		c := newCLIWithAccounts(t)
		domain := c.domain(t, c.prints(t, "domain add A@example.org Go.Example.COM"))
		account, err := c.AccountByEmail(t.Context(), "a@example.org")
		if err != nil || domain.AccountID != account.ID || domain.Host != "go.example.com" || !domain.VerifiedAt.IsZero() {
			t.Errorf("%+v of account %d, %v", domain, account.ID, err)
		}
	})
	t.Run("creates a random challenge", func(t *testing.T) {
		c := newCLIWithAccounts(t)
		one := c.domain(t, c.prints(t, "domain add a@example.org go.example.com")).Challenge
		two := c.domain(t, c.prints(t, "domain add b@example.org go.example.com")).Challenge
		const prefix = "linkstream-verification="
		if one == two || !strings.HasPrefix(one, prefix) || len(one) < len(prefix)+26 {
			t.Errorf("%q and %q", one, two)
		}
	})
	t.Run("stores the domain as verified with --verified", func(t *testing.T) {
		c := newCLIWithAccounts(t)
		id := c.prints(t, "domain add a@example.org go.example.com --verified")
		domain, err := c.VerifiedDomain(t.Context(), "go.example.com")
		if err != nil || domain.ID != number(t, id) || domain.VerifiedAt.IsZero() {
			t.Errorf("%+v, %v", domain, err)
		}
	})
	t.Run("adds a host that another account has verified, but not as verified", func(t *testing.T) {
		c := newCLIWithAccounts(t)
		c.prints(t, "domain add a@example.org go.example.com --verified")
		c.fails(t, "domain add b@example.org go.example.com --verified", schema.CodeConflict, "another account has verified")
		c.prints(t, "domain add b@example.org go.example.com")
	})
	t.Run("refuses a host that the account has already", func(t *testing.T) {
		c := newCLIWithAccounts(t)
		id := c.prints(t, "domain add a@example.org go.example.com")
		for _, option := range []string{"", " --verified"} {
			line := "domain add a@example.org GO.example.com" + option
			c.fails(t, line, schema.CodeConflict, "has \"go.example.com\" already: domain "+id)
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
	t.Run("refuses an invalid host", func(t *testing.T) {
		newCLIWithAccounts(t).fails(t, "domain add a@example.org http://go.example.com", schema.CodeInvalid, "hostname")
	})
}

func TestDomainVerify(t *testing.T) {
	t.Run("verifies a domain, and is idempotent", func(t *testing.T) {
		c := newCLIWithAccounts(t)
		id := c.prints(t, "domain add a@example.org go.example.com")
		c.printsNothing(t, "domain verify GO.example.com")
		first := c.domain(t, id)
		c.printsNothing(t, "domain verify go.example.com")
		if again := c.domain(t, id); first.VerifiedAt.IsZero() || again != first {
			t.Errorf("%+v, then %+v", first, again)
		}
	})
	t.Run("verifies the oldest domain of the host", func(t *testing.T) {
		c := newCLIWithAccounts(t)
		id := c.prints(t, "domain add b@example.org go.example.com")
		c.prints(t, "domain add a@example.org go.example.com")
		c.printsNothing(t, "domain verify go.example.com")
		if domain, err := c.VerifiedDomain(t.Context(), "go.example.com"); err != nil || domain.ID != number(t, id) {
			t.Errorf("%+v, %v, want domain %s", domain, err, id)
		}
	})
	t.Run("does not take a host from the account that has verified it", func(t *testing.T) {
		for _, commands := range [][]string{
			{"domain add b@example.org go.example.com", "domain add a@example.org go.example.com --verified"},
			{"domain add a@example.org go.example.com --verified", "domain add b@example.org go.example.com"},
		} {
			c := newCLIWithAccounts(t)
			for _, command := range commands {
				c.prints(t, command)
			}
			c.fails(t, "domain verify go.example.com", schema.CodeConflict, "another account has verified")
			owner, err := c.AccountByEmail(t.Context(), "a@example.org")
			testkit.Must(t, err)
			domain, err := c.VerifiedDomain(t.Context(), "go.example.com")
			testkit.Must(t, err)
			testkit.Equal(t, "owner of the host", domain.AccountID, owner.ID)
		}
	})
	t.Run("refuses a host that no account has added", func(t *testing.T) {
		newCLI(t).fails(t, "domain verify go.example.com", schema.CodeNotFound, `no account has added "go.example.com"`)
	})
	t.Run("refuses an invalid host", func(t *testing.T) {
		newCLI(t).fails(t, "domain verify go", schema.CodeInvalid, "hostname")
	})
}

func TestDomainVerifyVouches(t *testing.T) {
	c := newCLIWithAccounts(t)
	id := c.prints(t, "domain add a@example.org go.example.com --verified")
	testkit.Must(t, c.NoteDomainCheck(t.Context(), number(t, id), time.Now(), time.Now()))
	c.printsNothing(t, "domain verify go.example.com")
	if domain := c.domain(t, id); !domain.CheckAt.IsZero() || !domain.FailingSince.IsZero() {
		t.Errorf("DNS records are still checked: %+v", domain)
	}
}

// holder requires that the domain with an ID has go.example.com, and that the other one has lost it.
func (c cli) holder(t *testing.T, id, loser string) {
	t.Helper()
	domain, err := c.VerifiedDomain(t.Context(), "go.example.com")
	if err != nil || domain.ID != number(t, id) || !domain.CheckAt.IsZero() {
		t.Errorf("%+v, %v, want domain %s, whose records are not checked", domain, err, id)
	}
	if lost := c.domain(t, loser); lost.LostAt.IsZero() || !lost.VerifiedAt.IsZero() {
		t.Errorf("%+v is not lost", lost)
	}
}

func TestDomainTransfer(t *testing.T) {
	for name, add := range map[string]func(t *testing.T, c cli) string{
		"an account that has not added it": func(*testing.T, cli) string { return "" },
		"an account that has": func(t *testing.T,
			c cli) string {
			return c.prints(t, "domain add b@example.org go.example.com")
		},
	} {
		t.Run("gives a host to "+name+", and is idempotent", func(t *testing.T) {
			c := newCLIWithAccounts(t)
			first := c.prints(t, "domain add a@example.org go.example.com --verified")
			claim := add(t, c)
			id := c.prints(t, "domain transfer GO.example.com B@example.org")
			c.holder(t, id, first)
			if claim != "" && id != claim {
				t.Errorf("printed %s, want %s", id, claim)
			}
			testkit.Equal(t, "printed again", c.prints(t, "domain transfer go.example.com b@example.org"), id)
			c.holder(t, id, first)
			testkit.Equal(t, "printed back", c.prints(t, "domain transfer go.example.com a@example.org"), first)
			c.holder(t, first, id)
		})
	}
	t.Run("refuses impossible values", func(t *testing.T) {
		c := newCLIWithAccounts(t)
		c.fails(t, "domain transfer go.example.com us@example.org", schema.CodeNotFound, `no account "us@example.org"`)
		c.fails(t, "domain transfer sho.rt a@example.org", schema.CodeInvalid, "default domain")
		c.fails(t, "domain transfer go a@example.org", schema.CodeInvalid, "hostname")
	})
}

func TestDomainRemove(t *testing.T) {
	c := newCLIWithAccounts(t)
	first := c.prints(t, "domain add a@example.org go.example.com --verified")
	c.printsNothing(t, "domain remove GO.example.com.")
	if lost := c.domain(t, first); lost.LostAt.IsZero() || !lost.VerifiedAt.IsZero() {
		t.Errorf("%+v is not lost", lost)
	}
	c.fails(t, "domain remove go.example.com", schema.CodeNotFound, `no account has verified "go.example.com"`)
	c.fails(t, "domain remove go", schema.CodeInvalid, "hostname")
	second := c.prints(t, "domain add b@example.org go.example.com --verified")
	c.holder(t, second, first)
}
