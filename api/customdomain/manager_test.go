package customdomain_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"linkstream/api/customdomain"
	"linkstream/api/customdomain/dnstest"
	"linkstream/schema"
	"linkstream/schema/linkstore"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a manager on a real store with two accounts, and its DNS resolver.
type fixture struct {
	*customdomain.Manager
	store   *linkstore.Store
	dns     *dnstest.Server
	account int64
	other   int64
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	store, err := sqlitetest.Open(t.Context(), filepath.Join(t.TempDir(), "links.db"))
	testkit.Must(t, err)
	t.Cleanup(func() { store.Close() })
	f := &fixture{store: store, dns: dnstest.Start(t)}
	f.Manager = customdomain.NewManager(store, newVerifier(t, f.dns.Addr()))
	for email, id := range map[string]*int64{"a@example.org": &f.account, "b@example.org": &f.other} {
		account := schema.Account{Email: email, CreatedAt: time.Now()}
		testkit.Must(t, store.CreateAccount(t.Context(), &account))
		*id = account.ID
	}
	return f
}

// add adds a domain of an account.
func (f *fixture) add(t *testing.T, account int64, host string) schema.Domain {
	t.Helper()
	domain, err := f.Add(t.Context(), account, host)
	testkit.Must(t, err)
	return domain
}

// prove sets the records that the domain needs.
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

func TestAdd(t *testing.T) {
	f := newFixture(t)
	t.Run("stores an unverified domain", func(t *testing.T) {
		domain := f.add(t, f.account, "GO.München.example.")
		stored, err := f.Domain(t.Context(), f.account, domain.ID)
		if err != nil || stored.Host != "go.xn--mnchen-3ya.example" || stored.Challenge != domain.Challenge ||
			!strings.HasPrefix(stored.Challenge, "linkstream-verification=") || !stored.VerifiedAt.IsZero() {
			t.Errorf("%+v, %v", stored, err)
		}
	})
	t.Run("lets several accounts add one host", func(t *testing.T) {
		one, two := f.add(t, f.account, host), f.add(t, f.other, host)
		if one.Challenge == two.Challenge {
			t.Error("they have the same challenge")
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
				len(invalid.Fields[customdomain.FieldHost]) != 1 ||
				!strings.Contains(invalid.Fields[customdomain.FieldHost][0], says) {
				t.Errorf("%v, %+v", err, invalid)
			}
		})
	}
	t.Run("refuses the 101st domain of an account", func(t *testing.T) {
		f := newFixture(t)
		for i := range customdomain.MaxPerAccount {
			f.add(t, f.account, fmt.Sprintf("h%d.example.com", i))
		}
		_, err := f.Add(t.Context(), f.account, "more.example.com")
		testkit.WantCode(t, err, schema.CodeInvalid)
		f.add(t, f.other, "more.example.com")
	})
}

func TestVerifyDomain(t *testing.T) {
	t.Run("succeeds once both records are right", func(t *testing.T) {
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
	t.Run("keeps a verified domain verified when its records are gone", func(t *testing.T) {
		f := newFixture(t)
		domain := f.verified(t, f.account, host)
		f.dns.Remove(host)
		after, result, err := f.Verify(t.Context(), domain)
		if err != nil || result.CNAME.Outcome != customdomain.NoName || !result.TXT.OK() ||
			!after.VerifiedAt.Equal(domain.VerifiedAt) {
			t.Errorf("%+v, %+v, %v, want %+v", after, result, err, domain)
		}
	})
	t.Run("does not take a host from the account that has verified it at once", func(t *testing.T) {
		f := newFixture(t)
		first := f.verified(t, f.account, host)
		domain := f.add(t, f.other, host)
		f.prove(t, domain)
		_, result, err := f.Verify(t.Context(), domain)
		testkit.WantCode(t, err, schema.CodeConflict)
		stored, err := f.store.VerifiedDomain(t.Context(), host)
		if !result.OK() || err != nil || stored.ID != first.ID {
			t.Errorf("%+v, %+v, %v", result, stored, err)
		}
	})
	t.Run("fails with the challenge of another account", func(t *testing.T) {
		f := newFixture(t)
		f.prove(t, f.add(t, f.account, host))
		domain := f.add(t, f.other, host)
		after, result, err := f.Verify(t.Context(), domain)
		if err != nil || result.TXT.Outcome != customdomain.OtherValue || !after.VerifiedAt.IsZero() {
			t.Errorf("%+v, %+v, %v", after, result, err)
		}
	})
}

func TestVerifyIsLimitedPerAccount(t *testing.T) {
	f := newFixture(t)
	domain, other := f.add(t, f.account, host), f.add(t, f.other, host)
	f.dns.Add(t, host+`. TXT "x"`)
	for range 2 { // the limit starts again with each minute, and a minute ends at most once during this test
		minute := time.Now().Truncate(time.Minute)
		for range 20 {
			if _, _, err := f.Verify(t.Context(), domain); err != nil {
				break
			}
		}
		queries := f.dns.Queries()
		_, _, err := f.Verify(t.Context(), domain)
		if !time.Now().Truncate(time.Minute).Equal(minute) {
			continue
		}
		var refused *customdomain.NotCheckedError
		if !errors.As(err, &refused) || refused.Wait <= 0 || refused.Wait > time.Hour || f.dns.Queries() != queries {
			t.Errorf("error %v, %d queries after %d", err, f.dns.Queries(), queries)
		}
		_, _, err = f.Verify(t.Context(), other)
		testkit.Must(t, err)
		return
	}
	t.Error("the minute turned twice")
}

func TestDomain(t *testing.T) {
	f := newFixture(t)
	domain := f.add(t, f.account, host)
	t.Run("is returned to its account", func(t *testing.T) {
		if got, err := f.Domain(t.Context(), f.account, domain.ID); err != nil || got.Challenge != domain.Challenge {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("is not found by another account, like one that does not exist", func(t *testing.T) {
		_, err := f.Domain(t.Context(), f.other, domain.ID)
		testkit.WantCode(t, err, schema.CodeNotFound)
		_, err = f.Domain(t.Context(), f.account, domain.ID+100)
		testkit.WantCode(t, err, schema.CodeNotFound)
	})
}

func TestRemove(t *testing.T) {
	f := newFixture(t)
	domain := f.verified(t, f.account, host)
	link := schema.Link{AccountID: f.account, DomainID: domain.ID, Hash: "there", URL: "https://example.com/",
		Active: true, CreatedAt: time.Now()}
	testkit.Must(t, f.store.CreateLink(t.Context(), &link))
	t.Run("refuses a domain with links", func(t *testing.T) {
		err := f.Remove(t.Context(), domain)
		testkit.WantCode(t, err, schema.CodeConflict)
		if !strings.Contains(err.Error(), "links") {
			t.Error(err)
		}
	})
	t.Run("frees the host for another account", func(t *testing.T) {
		domain := f.verified(t, f.account, "end.example.com")
		testkit.Must(t, f.Remove(t.Context(), domain))
		_, err := f.Domain(t.Context(), f.account, domain.ID)
		testkit.WantCode(t, err, schema.CodeNotFound)
		f.verified(t, f.other, "end.example.com")
	})
}
