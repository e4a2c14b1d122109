package customdomain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"linkstream/api/customdomain"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

const day = 24 * time.Hour

// clock is the clock of a fixture's manager.
type clock struct{ now time.Time }

func newClock(f *fixture) *clock {
	c := &clock{time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
	f.SetClock(func() time.Time { return c.now })
	return c
}

// pass lets a time pass and checks the domains that are due then.
func (f *fixture) pass(t *testing.T, c *clock, d time.Duration) {
	t.Helper()
	c.now = c.now.Add(d)
	testkit.Must(t, f.CheckDue(t.Context()))
}

// stored returns a domain as it is in the store.
func (f *fixture) stored(t *testing.T, domain schema.Domain) schema.Domain {
	t.Helper()
	stored, err := f.store.Domain(t.Context(), domain.ID)
	testkit.Must(t, err)
	return stored
}

// refused verifies a claim and requires that another account keeps the host, for a reason.
func (f *fixture) refused(t *testing.T, claim schema.Domain, why string) {
	t.Helper()
	_, result, err := f.Verify(t.Context(), claim)
	testkit.WantCode(t, err, schema.CodeConflict)
	if !result.OK() || !strings.Contains(err.Error(), why) {
		t.Errorf("%+v, %v, want %q", result, err, why)
	}
	if stored := f.stored(t, claim); !stored.VerifiedAt.IsZero() {
		t.Errorf("the claim was verified: %+v", stored)
	}
}

// holds requires that a domain has its host.
func (f *fixture) holds(t *testing.T, domain schema.Domain) {
	t.Helper()
	if held, err := f.store.VerifiedDomain(t.Context(), domain.Host); err != nil || held.ID != domain.ID {
		t.Errorf("%+v, %v, want domain %d", held, err, domain.ID)
	}
}

func (f *fixture) wantTakeover(t *testing.T, domain schema.Domain, want time.Time) {
	t.Helper()
	if at, err := f.TakeoverAt(t.Context(), f.stored(t, domain)); err != nil || !at.Equal(want) {
		t.Errorf("domain %d changes hands at %v, error %v, want %v", domain.ID, at, err, want)
	}
}

func TestDailyCheck(t *testing.T) {
	f := newFixture(t)
	c := newClock(f)
	domain := f.verified(t, f.account, host)
	queries := f.dns.Queries()
	f.pass(t, c, day-time.Second)
	testkit.Equal(t, "queries before a day has passed", f.dns.Queries(), queries)
	f.pass(t, c, time.Second)
	f.pass(t, c, time.Second)
	testkit.Equal(t, "queries of a check", f.dns.Queries(), queries+2)
	for _, record := range []string{host, "_linkstream." + host} {
		f.dns.Remove(record)
		f.pass(t, c, day)
		testkit.Equal(t, "failing since", f.stored(t, domain).FailingSince, c.now)
		since := c.now
		f.pass(t, c, day)
		testkit.Equal(t, "failing since", f.stored(t, domain).FailingSince, since)
		f.prove(t, domain)
		f.pass(t, c, day)
		testkit.Equal(t, "failing since", f.stored(t, domain).FailingSince, time.Time{})
	}
	t.Run("counts no failure of name servers, and asks them again after an hour", func(t *testing.T) {
		for _, code := range []int{dns.RcodeServerFailure, dns.RcodeRefused} {
			f.dns.Fail("_linkstream."+host, code)
			f.pass(t, c, day)
			f.pass(t, c, time.Hour)
			testkit.Equal(t, "failing since", f.stored(t, domain).FailingSince, time.Time{})
		}
		f.dns.Handle("_linkstream."+host, nil)
		f.dns.Remove(host)
		f.pass(t, c, time.Hour)
		testkit.Equal(t, "failing since", f.stored(t, domain).FailingSince, c.now)
	})
	t.Run("is done for its owner at any time", func(t *testing.T) {
		f.prove(t, domain)
		after, result, err := f.Verify(t.Context(), f.stored(t, domain))
		if err != nil || !result.OK() || !after.FailingSince.IsZero() || !after.CheckAt.Equal(c.now.Add(day)) {
			t.Errorf("%+v, %+v, %v", after, result, err)
		}
	})
	t.Run("leaves out a domain for which the operator has vouched", func(t *testing.T) {
		vouched := f.add(t, f.account, "vouched.example.com")
		testkit.Must(t, f.store.VerifyDomain(t.Context(), vouched.ID, c.now))
		before := f.stored(t, vouched)
		f.dns.Add(t, `vouched.example.com. TXT "x"`)
		f.pass(t, c, 30*day)
		after, _, err := f.Verify(t.Context(), before)
		testkit.Must(t, err)
		testkit.Equal(t, "domain", after, before)
		claim := f.add(t, f.other, "vouched.example.com")
		f.prove(t, claim)
		f.refused(t, claim, "operator")
	})
	t.Run("reaches more domains than one batch", func(t *testing.T) {
		var domains []schema.Domain
		for i := range 40 {
			domain := customdomain.New(f.account, fmt.Sprintf("h%d.example.com", i))
			domain.VerifiedAt, domain.CheckAt = c.now, c.now
			testkit.Must(t, f.store.CreateDomain(t.Context(), &domain))
			domains = append(domains, domain)
		}
		f.pass(t, c, time.Second)
		for _, domain := range domains {
			testkit.Equal(t, "failing since", f.stored(t, domain).FailingSince, c.now)
		}
	})
}

// contestedFixture has a domain whose records are gone, and a claim of another account that contests it.
func contestedFixture(t *testing.T) (f *fixture, c *clock, held, claim schema.Domain) {
	t.Helper()
	f = newFixture(t)
	c = newClock(f)
	held, claim = f.verified(t, f.account, host), f.add(t, f.other, host)
	f.prove(t, claim)
	f.refused(t, claim, "you get the domain on 29 November 2026, 12:00 UTC")
	return f, c, held, claim
}

func TestDomainChangesHands(t *testing.T) {
	for name, last := range map[string]func(t *testing.T, f *fixture, c *clock, claim schema.Domain){
		"by the daily check": func(t *testing.T, f *fixture, c *clock, _ schema.Domain) { f.pass(t, c, 0) },
		"when the new owner asks": func(t *testing.T, f *fixture, c *clock, claim schema.Domain) {
			after, result, err := f.Verify(t.Context(), claim)
			if err != nil || !result.OK() || !after.VerifiedAt.Equal(c.now) {
				t.Errorf("%+v, %+v, %v", after, result, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, c, held, claim := contestedFixture(t)
			end := c.now.Add(customdomain.Grace)
			f.wantTakeover(t, held, end)
			f.wantTakeover(t, claim, end)
			for range 6 {
				f.pass(t, c, day)
				f.refused(t, claim, "you get the domain on 29 November")
			}
			c.now = c.now.Add(day - time.Second)
			f.refused(t, claim, "you get the domain on 29 November")
			f.pass(t, c, 0)
			f.holds(t, held)
			c.now = c.now.Add(time.Second)
			last(t, f, c, claim)
			f.holds(t, claim)
			lost := f.stored(t, held)
			if !lost.LostAt.Equal(end) || !lost.VerifiedAt.IsZero() {
				t.Errorf("%+v", lost)
			}
			f.wantTakeover(t, held, time.Time{})
			f.wantTakeover(t, claim, time.Time{})
			f.pass(t, c, 30*day) // both accounts' domains go on like any other
			f.holds(t, claim)
			testkit.Equal(t, "failing since", f.stored(t, claim).FailingSince, time.Time{})
		})
	}
}

func TestDomainDoesNotChangeHands(t *testing.T) {
	t.Run("while the proof of the account that has it is there", func(t *testing.T) {
		f := newFixture(t)
		c := newClock(f)
		held, claim := f.verified(t, f.account, host), f.add(t, f.other, host)
		f.dns.Add(t, "_linkstream."+host+`. TXT "`+claim.Challenge+`"`)
		for range 3 {
			f.refused(t, claim, "its TXT record is still there")
			f.wantTakeover(t, claim, time.Time{})
			f.pass(t, c, 5*day)
		}
		f.holds(t, held)
	})
	t.Run("while its name servers fail", func(t *testing.T) {
		f := newFixture(t)
		c := newClock(f)
		held, claim := f.verified(t, f.account, host), f.add(t, f.other, host)
		f.prove(t, claim)
		answers := 0
		f.dns.Handle("_linkstream."+host, func(w dns.ResponseWriter, query *dns.Msg) {
			reply := new(dns.Msg).SetRcode(query, dns.RcodeServerFailure)
			if answers++; answers%3 == 1 { // the look-up of the claim succeeds, the look-up of the other proof is tried twice
				record, err := dns.NewRR("_linkstream." + host + `. TXT "` + claim.Challenge + `"`)
				testkit.Must(t, err)
				reply.Rcode, reply.Answer = dns.RcodeSuccess, []dns.RR{record}
			}
			testkit.Must(t, w.WriteMsg(reply))
		})
		f.refused(t, claim, "look-up of its record failed")
		f.pass(t, c, 8*day)
		f.wantTakeover(t, claim, time.Time{})
		f.holds(t, held)
	})
	t.Run("if the account that has it proves it again, and the grace period begins again", func(t *testing.T) {
		f, c, held, claim := contestedFixture(t)
		f.pass(t, c, 6*day)
		f.prove(t, held)
		f.pass(t, c, day)
		f.holds(t, held)
		f.wantTakeover(t, held, time.Time{})
		testkit.Equal(t, "failing since", f.stored(t, held).FailingSince, time.Time{})
		f.prove(t, claim)
		f.refused(t, claim, "you get the domain on 6 December")
	})
	t.Run("if only its CNAME record is missing", func(t *testing.T) {
		f, c, held, claim := contestedFixture(t)
		f.prove(t, held)
		f.dns.Remove(host)
		f.pass(t, c, 7*day)
		f.holds(t, held)
		f.wantTakeover(t, claim, time.Time{})
	})
	t.Run("if the proof of the claim is gone", func(t *testing.T) {
		f, c, held, claim := contestedFixture(t)
		f.dns.Remove("_linkstream." + host)
		f.pass(t, c, 6*day)
		f.prove(t, claim)
		f.pass(t, c, 2*day)
		f.holds(t, held)
		f.refused(t, claim, "you get the domain on 7 December")
	})
	t.Run("if the claim was removed", func(t *testing.T) {
		f, c, held, claim := contestedFixture(t)
		testkit.Must(t, f.Remove(t.Context(), claim))
		f.pass(t, c, 7*day)
		f.holds(t, held)
		f.wantTakeover(t, held, time.Time{})
	})
	t.Run("to the second of two claims", func(t *testing.T) {
		f, c, _, claim := contestedFixture(t)
		account := schema.Account{Email: "c@example.org", CreatedAt: time.Now()}
		testkit.Must(t, f.store.CreateAccount(t.Context(), &account))
		third := f.add(t, account.ID, host)
		f.dns.Add(t, "_linkstream."+host+`. TXT "`+third.Challenge+`"`)
		f.refused(t, third, "third account")
		f.pass(t, c, 7*day)
		f.holds(t, claim)
	})
}
