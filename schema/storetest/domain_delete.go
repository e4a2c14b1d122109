package storetest

import (
	"fmt"
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var domainDeleteBehaviours = []behaviour[schema.Database]{
	{"Domains returns the account's domains in order of their hosts", listsDomains},
	{"DeleteDomain deletes a domain and frees its host", deletesDomain},
	{"DeleteDomain does not find an unknown domain", deletesUnknownDomain},
	{"DeleteDomain rejects a domain with links", refusesUsedDomain},
	{"CreateLink does not find a deleted domain, and spends no ordinal", missesDeletedDomain},
	{"DeleteDomain and CreateLink never both succeed", deletesOrLinks},
}

func wantDomains(t *testing.T, store schema.DomainStore, accountID int64, want ...schema.Domain) {
	t.Helper()
	got, err := store.Domains(t.Context(), accountID)
	testkit.Must(t, err)
	testkit.Equal(t, "domains", got, want, nilOrEmpty)
}

func listsDomains(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	domains := map[string]schema.Domain{}
	sorted := []string{"a.example", "b-c.example", "b.example", "bc.example", "go.example.org", "xn--a.example"}
	for _, i := range []int{3, 0, 5, 2, 1, 4} {
		domains[sorted[i]] = addDomain(t, store, owner.ID, sorted[i], i%2 == 0)
	}
	others := addDomain(t, store, other.ID, "b.example", false)
	want := make([]schema.Domain, len(sorted))
	for i, host := range sorted {
		want[i] = domains[host]
	}
	wantDomains(t, store, owner.ID, want...)
	wantDomains(t, store, other.ID, others)
	wantDomains(t, store, other.ID+1000)
}

func deletesDomain(t *testing.T, store schema.Database) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	held, kept := addDomain(t, store, a.ID, "go.example.org", true), addDomain(t, store, a.ID, "kept.example.org", false)
	claim := addDomain(t, store, b.ID, "go.example.org", false)
	testkit.Must(t, store.DeleteDomain(t.Context(), held.ID))
	_, err := store.Domain(t.Context(), held.ID)
	testkit.WantCode(t, err, schema.CodeNotFound)
	_, err = store.VerifiedDomain(t.Context(), held.Host)
	testkit.WantCode(t, err, schema.CodeNotFound)
	wantDomains(t, store, a.ID, kept)
	wantDomains(t, store, b.ID, claim)

	testkit.Must(t, store.VerifyDomain(t.Context(), claim.ID, epoch))
	again := addDomain(t, store, a.ID, "go.example.org", false)
	if again.ID == held.ID {
		t.Fatalf("ID %d was used twice", held.ID)
	}
}

func deletesUnknownDomain(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	addLink(t, store, owner.ID, 0, "hash") // on the default domain, which is not a row
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	testkit.Must(t, store.DeleteDomain(t.Context(), domain.ID))
	for _, id := range []int64{domain.ID, domain.ID + 1000, 0, -1} {
		testkit.WantCode(t, store.DeleteDomain(t.Context(), id), schema.CodeNotFound)
	}
}

func refusesUsedDomain(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	link := addLink(t, store, owner.ID, domain.ID, "hash")
	testkit.WantCode(t, store.DeleteDomain(t.Context(), domain.ID), schema.CodeConflict)
	SetActive(t, store, domain.ID, "hash", false)
	testkit.WantCode(t, store.DeleteDomain(t.Context(), domain.ID), schema.CodeConflict)
	hasDomain(t, store, domain)
	got, err := schema.FindLink(t.Context(), store, domain.ID, "hash")
	testkit.Must(t, err)
	link.Host, link.Active, link.Version = domain.Host, false, link.Version+1
	testkit.Equal(t, "link", got, link)
}

func missesDeletedDomain(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	testkit.Must(t, store.DeleteDomain(t.Context(), domain.ID))
	for _, id := range []int64{domain.ID, domain.ID + 1000, -1} {
		link := newLink(owner.ID, id, "hash")
		testkit.WantCode(t, store.CreateLink(t.Context(), &link), schema.CodeNotFound)
		_, err := schema.FindLink(t.Context(), store, id, "hash")
		testkit.WantCode(t, err, schema.CodeNotFound)
	}
	testkit.Equal(t, "next ordinal", addLink(t, store, owner.ID, 0, "hash").Ordinal, 1)
	sameOrdinals(t, store, owner.ID, 1)
}

// deletesOrLinks calls both methods concurrently for a domain: the first call that succeeds decides all outcomes.
func deletesOrLinks(t *testing.T, store schema.Database) {
	accounts := []schema.Account{addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")}
	totals := [2]int64{}
	for round := range 30 {
		domain := addDomain(t, store, accounts[0].ID, fmt.Sprintf("%d.example.org", round), true)
		errs := concurrently(8, func(i int) error {
			if i%4 == round%4 {
				return store.DeleteDomain(t.Context(), domain.ID)
			}
			link := newLink(accounts[i%2].ID, domain.ID, fmt.Sprintf("hash-%d", i))
			return store.CreateLink(t.Context(), &link)
		})
		_, err := store.Domain(t.Context(), domain.ID)
		gone := err != nil
		var deletes []error
		for i, err := range errs {
			switch {
			case i%4 == round%4:
				deletes = append(deletes, err)
			case gone:
				testkit.WantCode(t, err, schema.CodeNotFound)
			default:
				testkit.Must(t, err)
				totals[i%2]++
			}
		}
		if gone {
			onlyOne(t, deletes, schema.CodeNotFound)
			continue
		}
		for _, err := range deletes {
			testkit.WantCode(t, err, schema.CodeConflict)
		}
	}
	for i, account := range accounts { // rejected links have spent no ordinals
		sameOrdinals(t, store, account.ID, totals[i])
	}
}
