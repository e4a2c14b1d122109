package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var domainCheckBehaviours = []behaviour[schema.Database]{
	{"CreateDomain and NoteDomainCheck schedule the next check", schedulesChecks},
	{"DomainsToCheck returns what is due, the longest due first, and not again", returnsDueDomains},
	{"DomainsToCheck returns each domain to one of concurrent calls", sharesChecks},
	{"ContestDomain contests a failing domain, until the contest ends", contests},
	{"NoteDomainCheck without a failure ends a contest", endsContest},
	{"NoteDomainCheck and ContestDomain find only verified domains", checksOnlyVerified},
	{"TransferDomain gives the host to another domain, and is idempotent", transfers},
	{"TransferDomain verifies a domain of a host that nobody has", transfersFreeHost},
	{"TransferDomain leaves one verified domain when calls are concurrent", transfersToOne},
	{"TransferDomain does not find an unknown domain", transfersUnknown},
	{"ReleaseDomain frees the host", releases},
}

// hour returns a moment n hours after epoch.
func hour(n int) time.Time { return epoch.Add(time.Duration(n) * time.Hour) }

// checkedDomain adds a verified domain whose next check is at the time checkAt.
func checkedDomain(
	t *testing.T, store schema.DomainStore, accountID int64, host string, checkAt time.Time,
) schema.Domain {
	t.Helper()
	domain := newDomain(accountID, host)
	domain.VerifiedAt, domain.CheckAt = epoch, checkAt
	testkit.Must(t, store.CreateDomain(t.Context(), &domain))
	return domain
}

// failingDomain adds a verified domain whose check fails.
func failingDomain(t *testing.T, store schema.DomainStore, accountID int64, host string) schema.Domain {
	t.Helper()
	domain := checkedDomain(t, store, accountID, host, hour(1))
	domain.FailingSince, domain.CheckAt = hour(1), hour(2)
	testkit.Must(t, store.NoteDomainCheck(t.Context(), domain.ID, domain.FailingSince, domain.CheckAt))
	return domain
}

// lost returns a verified domain as it is once it has lost its host.
func lost(domain schema.Domain, at time.Time) schema.Domain {
	return schema.Domain{ID: domain.ID, AccountID: domain.AccountID, Host: domain.Host, Challenge: domain.Challenge,
		CreatedAt: domain.CreatedAt, LostAt: at}
}

func schedulesChecks(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	domain, other := checkedDomain(t, store, owner.ID, "go.example.org", hour(1)),
		addDomain(t, store, owner.ID, "b.example.org", true)
	hasDomain(t, store, domain)
	for _, failing := range []time.Time{hour(3), hour(2), {}} {
		domain.FailingSince, domain.CheckAt = failing, hour(5)
		testkit.Must(t, store.NoteDomainCheck(t.Context(), domain.ID, failing, domain.CheckAt))
		hasDomain(t, store, domain)
	}
	domain.CheckAt = time.Time{}
	testkit.Must(t, store.NoteDomainCheck(t.Context(), domain.ID, time.Time{}, time.Time{}))
	hasDomain(t, store, domain)
	hasDomain(t, store, other)
}

func returnsDueDomains(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	var domains []schema.Domain // in order of their checks
	for i := range 5 {
		domains = append(domains, checkedDomain(t, store, owner.ID, fmt.Sprintf("%d.example.org", i), hour(i+1)))
	}
	addDomain(t, store, owner.ID, "never.example.org", true)
	addDomain(t, store, owner.ID, "unverified.example.org", false)
	for _, want := range [][]schema.Domain{domains[:2], domains[2:3], nil} {
		got, err := store.DomainsToCheck(t.Context(), hour(3), hour(4), 2)
		testkit.Must(t, err)
		for i := range want {
			want[i].CheckAt = hour(4)
		}
		slices.SortFunc(got, func(a, b schema.Domain) int { return int(a.ID - b.ID) })
		testkit.Equal(t, "domains to check", got, want, nilOrEmpty)
	}
	for _, domain := range domains {
		hasDomain(t, store, domain)
	}
	got, err := store.DomainsToCheck(t.Context(), hour(4), hour(9), 100)
	testkit.Must(t, err)
	testkit.Equal(t, "domains that are due again, and one more", len(got), 4)
}

func sharesChecks(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	const domains, calls = 40, 8
	for i := range domains {
		checkedDomain(t, store, owner.ID, fmt.Sprintf("%d.example.org", i), epoch)
	}
	got := make([][]schema.Domain, calls)
	for _, err := range concurrently(calls, func(i int) (err error) {
		got[i], err = store.DomainsToCheck(t.Context(), hour(1), hour(2), 7)
		return err
	}) {
		testkit.Must(t, err)
	}
	seen := map[int64]bool{}
	for _, domain := range slices.Concat(got...) {
		if seen[domain.ID] {
			t.Errorf("domain %d was returned twice", domain.ID)
		}
		seen[domain.ID] = true
	}
	rest, err := store.DomainsToCheck(t.Context(), hour(1), hour(2), domains)
	testkit.Must(t, err)
	testkit.Equal(t, "domains returned by one call or the next", len(seen)+len(rest), domains)
}

func contests(t *testing.T, store schema.Database) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	held, claim := failingDomain(t, store, a.ID, "go.example.org"), addDomain(t, store, b.ID, "go.example.org", false)
	held.ContestedBy, held.ContestedAt = claim.ID, hour(3)
	testkit.Must(t, store.ContestDomain(t.Context(), held.ID, claim.ID, hour(3)))
	hasDomain(t, store, held)
	held.CheckAt = hour(9)
	testkit.Must(t, store.NoteDomainCheck(t.Context(), held.ID, held.FailingSince, held.CheckAt))
	hasDomain(t, store, held)
	held.ContestedBy, held.ContestedAt = 0, time.Time{}
	testkit.Must(t, store.ContestDomain(t.Context(), held.ID, 0, time.Time{}))
	hasDomain(t, store, held)
	hasDomain(t, store, claim)
}

func endsContest(t *testing.T, store schema.Database) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	held, claim := failingDomain(t, store, a.ID, "go.example.org"), addDomain(t, store, b.ID, "go.example.org", false)
	testkit.Must(t, store.ContestDomain(t.Context(), held.ID, claim.ID, hour(3)))
	held.FailingSince = time.Time{}
	testkit.Must(t, store.NoteDomainCheck(t.Context(), held.ID, time.Time{}, held.CheckAt))
	hasDomain(t, store, held)
}

func checksOnlyVerified(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	claim, sound := addDomain(t, store, owner.ID, "go.example.org", false),
		checkedDomain(t, store, owner.ID, "b.example.org", epoch)
	for _, id := range []int64{claim.ID, sound.ID + 1000} {
		testkit.WantCode(t, store.NoteDomainCheck(t.Context(), id, epoch, epoch), schema.CodeNotFound)
		testkit.WantCode(t, store.ReleaseDomain(t.Context(), id, epoch), schema.CodeNotFound)
	}
	for _, id := range []int64{claim.ID, sound.ID, sound.ID + 1000} {
		testkit.WantCode(t, store.ContestDomain(t.Context(), id, 1, epoch), schema.CodeNotFound)
	}
	hasDomain(t, store, claim)
	hasDomain(t, store, sound)
}

func transfers(t *testing.T, store schema.Database) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	held, claim := failingDomain(t, store, a.ID, "go.example.org"), addDomain(t, store, b.ID, "go.example.org", false)
	other := addDomain(t, store, a.ID, "other.example.org", true)
	testkit.Must(t, store.ContestDomain(t.Context(), held.ID, claim.ID, hour(3)))
	claim.VerifiedAt = hour(4)
	for i := range 2 {
		claim.CheckAt = hour(5 + i)
		testkit.Must(t, store.TransferDomain(t.Context(), claim.ID, hour(4+i), claim.CheckAt))
		hasDomain(t, store, lost(held, hour(4)))
		hasDomain(t, store, claim)
		got, err := store.VerifiedDomain(t.Context(), "go.example.org")
		testkit.Must(t, err)
		testkit.Equal(t, "domain", got, claim)
	}
	held.VerifiedAt, held.CheckAt, held.FailingSince = hour(7), time.Time{}, time.Time{}
	testkit.Must(t, store.TransferDomain(t.Context(), held.ID, hour(7), time.Time{}))
	hasDomain(t, store, held)
	hasDomain(t, store, lost(claim, hour(7)))
	hasDomain(t, store, other)
}

func transfersFreeHost(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", false)
	domain.VerifiedAt, domain.CheckAt = hour(1), hour(2)
	testkit.Must(t, store.TransferDomain(t.Context(), domain.ID, hour(1), hour(2)))
	hasDomain(t, store, domain)
}

func transfersToOne(t *testing.T, store schema.Database) {
	claims := make([]schema.Domain, 6)
	for i := range claims {
		account := addAccount(t, store, fmt.Sprintf("%d@example.org", i))
		claims[i] = addDomain(t, store, account.ID, "go.example.org", i == 3)
	}
	for _, err := range concurrently(len(claims), func(i int) error {
		return store.TransferDomain(t.Context(), claims[i].ID, hour(1), hour(2))
	}) {
		testkit.Must(t, err)
	}
	domains, err := store.DomainsByHost(t.Context(), "go.example.org")
	testkit.Must(t, err)
	verified := 0
	for _, domain := range domains {
		if !domain.VerifiedAt.IsZero() {
			verified++
		} else if domain.LostAt.IsZero() {
			t.Errorf("domain %d has lost nothing", domain.ID)
		}
	}
	testkit.Equal(t, "verified domains", verified, 1)
}

func transfersUnknown(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	testkit.WantCode(t, store.TransferDomain(t.Context(), domain.ID+1000, epoch, epoch), schema.CodeNotFound)
	hasDomain(t, store, domain)
}

func releases(t *testing.T, store schema.Database) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	held, claim := failingDomain(t, store, a.ID, "go.example.org"), addDomain(t, store, b.ID, "go.example.org", false)
	testkit.Must(t, store.ContestDomain(t.Context(), held.ID, claim.ID, hour(3)))
	testkit.Must(t, store.ReleaseDomain(t.Context(), held.ID, hour(4)))
	hasDomain(t, store, lost(held, hour(4)))
	_, err := store.VerifiedDomain(t.Context(), "go.example.org")
	testkit.WantCode(t, err, schema.CodeNotFound)
	claim.VerifiedAt = hour(5)
	testkit.Must(t, store.VerifyDomain(t.Context(), claim.ID, hour(5)))
	hasDomain(t, store, claim)
	testkit.WantCode(t, store.VerifyDomain(t.Context(), held.ID, hour(6)), schema.CodeConflict)
	testkit.Must(t, store.ReleaseDomain(t.Context(), claim.ID, hour(7)))
	held.VerifiedAt, held.CheckAt, held.FailingSince = hour(8), time.Time{}, time.Time{}
	testkit.Must(t, store.VerifyDomain(t.Context(), held.ID, hour(8))) // and is not lost
	hasDomain(t, store, held)
}
