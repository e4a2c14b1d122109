package customdomain_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linkstream/api/customdomain"
	"linkstream/api/customdomain/dnstest"
	"linkstream/schema"
	"linkstream/schema/sqlite"
)

// fixture is claims on a real store, of two accounts, with a resolver of their own.
type fixture struct {
	*customdomain.Manager
	store   *sqlite.Store
	dns     *dnstest.Server
	account int64
	other   int64
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "links.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	f := &fixture{store: store, dns: dnstest.Start(t)}
	f.Manager = customdomain.NewManager(store, newVerifier(t, f.dns.Addr()))
	for email, id := range map[string]*int64{"a@example.org": &f.account, "b@example.org": &f.other} {
		account := schema.Account{Email: email, CreatedAt: time.Now()}
		if err := store.CreateAccount(t.Context(), &account); err != nil {
			t.Fatal(err)
		}
		*id = account.ID
	}
	return f
}

// add claims a host.
func (f *fixture) add(t *testing.T, account int64, host string) schema.Domain {
	t.Helper()
	domain, err := f.Add(t.Context(), account, host)
	if err != nil {
		t.Fatal(err)
	}
	return domain
}

// prove sets the records of a claim.
func (f *fixture) prove(t *testing.T, domain schema.Domain) {
	t.Helper()
	f.dns.Remove(domain.Host)
	f.dns.Remove("_linkstream." + domain.Host)
	f.dns.Add(t, domain.Host+". CNAME sho.example.", "_linkstream."+domain.Host+`. TXT "`+domain.Challenge+`"`)
}

func (f *fixture) verified(t *testing.T, account int64, host string) schema.Domain {
	t.Helper()
	domain := f.add(t, account, host)
	f.prove(t, domain)
	domain, result, err := f.Verify(t.Context(), domain)
	if err != nil || domain.VerifiedAt.IsZero() {
		t.Fatalf("%+v, %+v, %v", domain, result, err)
	}
	return domain
}

func wantCode(t *testing.T, err error, code schema.Code) {
	t.Helper()
	if schema.ErrorCode(err) != code {
		t.Errorf("got %v, want code %s", err, code)
	}
}

func TestAdd(t *testing.T) {
	f := newFixture(t)
	t.Run("makes a claim that is stored", func(t *testing.T) {
		domain := f.add(t, f.account, "GO.München.example.")
		stored, err := f.Domain(t.Context(), f.account, domain.ID)
		if err != nil || stored.Host != "go.xn--mnchen-3ya.example" || stored.Challenge != domain.Challenge ||
			!strings.HasPrefix(stored.Challenge, "linkstream-verification=") || !stored.VerifiedAt.IsZero() {
			t.Errorf("%+v, %v", stored, err)
		}
	})
	t.Run("lets several accounts claim a host", func(t *testing.T) {
		one, two := f.add(t, f.account, host), f.add(t, f.other, host)
		if one.Challenge == two.Challenge {
			t.Error("their challenges are the same")
		}
	})
	for given, says := range map[string]string{
		host: "already", "sho.example": "default domain", "SHO.example.": "default domain",
		"https://go.example.com": "http",
		"localhost":              "hostname", "192.0.2.1": "hostname", "": "hostname", strings.Repeat("ü.", 5000): "hostname",
	} {
		t.Run("refuses "+given[:min(len(given), 30)], func(t *testing.T) {
			_, err := f.Add(t.Context(), f.account, given)
			invalid := new(schema.Error)
			if !errors.As(err, &invalid) || invalid.Code != schema.CodeInvalid ||
				len(invalid.Fields[customdomain.FieldHost]) != 1 || !strings.Contains(invalid.Fields[customdomain.FieldHost][0], says) {
				t.Errorf("%v, %+v", err, invalid)
			}
		})
	}
	t.Run("refuses one more than a hundred", func(t *testing.T) {
		f := newFixture(t)
		for i := range customdomain.MaxPerAccount {
			f.add(t, f.account, fmt.Sprintf("h%d.example.com", i))
		}
		_, err := f.Add(t.Context(), f.account, "more.example.com")
		wantCode(t, err, schema.CodeInvalid)
		f.add(t, f.other, "more.example.com")
	})
}

func TestVerifyClaim(t *testing.T) {
	t.Run("verifies when both records are there, and not before", func(t *testing.T) {
		f := newFixture(t)
		domain := f.add(t, f.account, host)
		after, result, err := f.Verify(t.Context(), domain)
		if err != nil || result.OK() || !after.VerifiedAt.IsZero() {
			t.Errorf("%+v, %+v, %v", after, result, err)
		}
		f.prove(t, domain)
		after, result, err = f.Verify(t.Context(), domain)
		if err != nil || !result.OK() || after.VerifiedAt.IsZero() {
			t.Errorf("%+v, %+v, %v", after, result, err)
		}
		if stored, err := f.store.VerifiedDomain(t.Context(), host); err != nil || stored.ID != domain.ID {
			t.Errorf("%+v, %v", stored, err)
		}
	})
	t.Run("keeps a verified claim whatever DNS says later", func(t *testing.T) {
		f := newFixture(t)
		domain := f.verified(t, f.account, host)
		f.dns.Remove(host)
		after, result, err := f.Verify(t.Context(), domain)
		if err != nil || result.CNAME.Outcome != customdomain.NoName || !result.TXT.OK() || after != domain {
			t.Errorf("%+v, %+v, %v, want %+v", after, result, err, domain)
		}
	})
	t.Run("does not take a host from the account that holds it", func(t *testing.T) {
		f := newFixture(t)
		held := f.verified(t, f.account, host)
		domain := f.add(t, f.other, host)
		f.prove(t, domain)
		_, result, err := f.Verify(t.Context(), domain)
		wantCode(t, err, schema.CodeConflict)
		stored, err := f.store.VerifiedDomain(t.Context(), host)
		if !result.OK() || err != nil || stored.ID != held.ID {
			t.Errorf("%+v, %+v, %v", result, stored, err)
		}
	})
	t.Run("the challenge of one account proves nothing for another", func(t *testing.T) {
		f := newFixture(t)
		f.prove(t, f.add(t, f.account, host))
		domain := f.add(t, f.other, host)
		after, result, err := f.Verify(t.Context(), domain)
		if err != nil || result.TXT.Outcome != customdomain.OtherValue || !after.VerifiedAt.IsZero() {
			t.Errorf("%+v, %+v, %v", after, result, err)
		}
	})
}

func TestVerifyIsLimitedForEachAccount(t *testing.T) {
	f := newFixture(t)
	domain, other := f.add(t, f.account, host), f.add(t, f.other, host)
	f.dns.Add(t, host+`. TXT "x"`)
	window := time.Now().Truncate(time.Minute)
	for i := range 20 {
		if _, _, err := f.Verify(t.Context(), domain); err != nil {
			t.Fatal(i, err)
		}
	}
	asked := f.dns.Asked()
	_, _, err := f.Verify(t.Context(), domain)
	if !time.Now().Truncate(time.Minute).Equal(window) {
		return // the minute has turned, and with it the limit
	}
	var refused *customdomain.NotCheckedError
	if !errors.As(err, &refused) || refused.Wait <= 0 || refused.Wait > time.Hour || f.dns.Asked() != asked {
		t.Errorf("%v, %d questions after %d", err, f.dns.Asked(), asked)
	}
	if _, _, err := f.Verify(t.Context(), other); err != nil {
		t.Error(err)
	}
}

func TestDomain(t *testing.T) {
	f := newFixture(t)
	domain := f.add(t, f.account, host)
	t.Run("is the account's", func(t *testing.T) {
		if got, err := f.Domain(t.Context(), f.account, domain.ID); err != nil || got.Challenge != domain.Challenge {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("is not found by another account, nor if there is none", func(t *testing.T) {
		_, err := f.Domain(t.Context(), f.other, domain.ID)
		wantCode(t, err, schema.CodeNotFound)
		_, err = f.Domain(t.Context(), f.account, domain.ID+100)
		wantCode(t, err, schema.CodeNotFound)
	})
}

func TestRemove(t *testing.T) {
	f := newFixture(t)
	domain := f.verified(t, f.account, host)
	link := schema.Link{AccountID: f.account, DomainID: domain.ID, Hash: "there", URL: "https://example.com/",
		Active: true, CreatedAt: time.Now()}
	if err := f.store.CreateLink(t.Context(), &link); err != nil {
		t.Fatal(err)
	}
	t.Run("refuses a domain that a link is on", func(t *testing.T) {
		err := f.Remove(t.Context(), domain)
		wantCode(t, err, schema.CodeConflict)
		if !strings.Contains(err.Error(), "links") {
			t.Error(err)
		}
	})
	t.Run("ends a claim, verified or not, so that another account may hold the host", func(t *testing.T) {
		domain := f.verified(t, f.account, "end.example.com")
		if err := f.Remove(t.Context(), domain); err != nil {
			t.Fatal(err)
		}
		_, err := f.Domain(t.Context(), f.account, domain.ID)
		wantCode(t, err, schema.CodeNotFound)
		f.verified(t, f.other, "end.example.com")
	})
}
