package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var domainBehaviours = []behaviour[schema.Database]{
	{"CreateDomain keeps every field and sets an ID", createsDomains},
	{"CreateDomain rejects a second domain of an account with the same host", refusesSecondClaim},
	{"CreateDomain accepts one host for several accounts", claimsCoexist},
	{"CreateDomain rejects a verified domain if another account has verified the host", refusesVerifiedClaim},
	{"Domain does not find an unknown ID", missesDomain},
	{"DomainsByHost returns the domains of all accounts, oldest first", listsClaims},
	{"VerifiedDomain finds only the verified domain", findsVerified},
	{"VerifiedHosts finds those of many hosts that are verified", findsVerifiedHosts},
	{"VerifiedDomains returns all verified domains, page by page", listsVerified},
	{"VerifyDomain verifies a domain and keeps the first time", verifies},
	{"VerifyDomain does not find an unknown domain", verifiesUnknown},
	{"VerifyDomain rejects a host that another account has verified", refusesHeldHost},
	{"SetSite sets what visitors get, and nothing else", setsSite},
	{"VerifyDomain succeeds for exactly one of concurrent calls for a host", verifiesOne},
}

func addDomain(t *testing.T, store schema.DomainStore, accountID int64, host string, verified bool) schema.Domain {
	t.Helper()
	domain := newDomain(accountID, host)
	if verified {
		domain.VerifiedAt = epoch.Add(time.Hour)
	}
	testkit.Must(t, store.CreateDomain(t.Context(), &domain))
	return domain
}

func newDomain(accountID int64, host string) schema.Domain {
	return schema.Domain{
		AccountID: accountID, Host: host, CreatedAt: epoch, Challenge: fmt.Sprintf("linkstream-%d-%s", accountID, host),
	}
}

func hasDomain(t *testing.T, store schema.DomainStore, want schema.Domain) {
	t.Helper()
	got, err := store.Domain(t.Context(), want.ID)
	testkit.Must(t, err)
	testkit.Equal(t, "domain", got, want)
}

func createsDomains(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	claimed := addDomain(t, store, owner.ID, "go.example.org", false)
	verified := addDomain(t, store, owner.ID, "xn--mnchen-3ya.example", true)
	if claimed.ID < 1 || verified.ID < 1 || claimed.ID == verified.ID {
		t.Fatalf("got IDs %d and %d", claimed.ID, verified.ID)
	}
	testkit.Equal(t, "zero time while unverified", claimed.VerifiedAt.IsZero(), true)
	hasDomain(t, store, claimed)
	hasDomain(t, store, verified)
}

func refusesSecondClaim(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	for _, verified := range []bool{false, true} {
		want := addDomain(t, store, owner.ID, fmt.Sprintf("%t.example.org", verified), verified)
		again := newDomain(owner.ID, want.Host)
		testkit.WantCode(t, store.CreateDomain(t.Context(), &again), schema.CodeConflict)
		claims, err := store.DomainsByHost(t.Context(), want.Host)
		testkit.Must(t, err)
		testkit.Equal(t, "claims", len(claims), 1)
		testkit.Equal(t, "domain", claims[0], want)
	}
}

func claimsCoexist(t *testing.T, store schema.Database) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	held := addDomain(t, store, a.ID, "go.example.org", true)
	claim := addDomain(t, store, b.ID, "go.example.org", false)
	hasDomain(t, store, held)
	hasDomain(t, store, claim)
}

func refusesVerifiedClaim(t *testing.T, store schema.Database) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	held := addDomain(t, store, a.ID, "go.example.org", true)
	other := newDomain(b.ID, "go.example.org")
	other.VerifiedAt = epoch
	testkit.WantCode(t, store.CreateDomain(t.Context(), &other), schema.CodeConflict)
	claims, err := store.DomainsByHost(t.Context(), "go.example.org")
	testkit.Must(t, err)
	testkit.Equal(t, "claims", len(claims), 1)
	testkit.Equal(t, "domain", claims[0], held)
}

func missesDomain(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", false)
	for _, id := range []int64{0, -1, domain.ID + 1000} {
		_, err := store.Domain(t.Context(), id)
		testkit.WantCode(t, err, schema.CodeNotFound)
	}
}

func listsClaims(t *testing.T, store schema.Database) {
	var want []schema.Domain
	for i := range 5 {
		account := addAccount(t, store, fmt.Sprintf("%d@example.org", i))
		want = append(want, addDomain(t, store, account.ID, "go.example.org", i == 3))
		addDomain(t, store, account.ID, fmt.Sprintf("go%d.example.org", i), true)
	}
	got, err := store.DomainsByHost(t.Context(), "go.example.org")
	testkit.Must(t, err)
	testkit.Equal(t, "claims", got, want, nilOrEmpty)
	got, err = store.DomainsByHost(t.Context(), "none.example.org")
	testkit.Must(t, err)
	testkit.Equal(t, "claims of an unknown host", len(got), 0)
}

func findsVerified(t *testing.T, store schema.Database) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	addDomain(t, store, a.ID, "go.example.org", false)
	for _, host := range []string{"go.example.org", "none.example.org", ""} {
		_, err := store.VerifiedDomain(t.Context(), host)
		testkit.WantCode(t, err, schema.CodeNotFound)
	}
	want := addDomain(t, store, b.ID, "go.example.org", true)
	got, err := store.VerifiedDomain(t.Context(), "go.example.org")
	testkit.Must(t, err)
	testkit.Equal(t, "domain", got, want)
}

func listsVerified(t *testing.T, store schema.Database) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	var want []schema.Domain
	for i := range 5 {
		want = append(want, addDomain(t, store, a.ID, fmt.Sprintf("%d.example.org", 9-i), true))
		addDomain(t, store, b.ID, fmt.Sprintf("%d.example.org", 9-i), false)
	}
	var got []schema.Domain
	for after, pages := int64(0), 0; ; pages++ {
		page, err := store.VerifiedDomains(t.Context(), after, 2)
		testkit.Must(t, err)
		if len(page) == 0 {
			testkit.Equal(t, "pages", pages, 3)
			break
		}
		got, after = append(got, page...), page[len(page)-1].ID
	}
	testkit.Equal(t, "verified domains", got, want)
}

func verifies(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", false)
	other := addDomain(t, store, owner.ID, "other.example.org", false)
	domain.VerifiedAt = epoch.Add(time.Minute)
	for i := range 3 {
		testkit.Must(t, store.VerifyDomain(t.Context(), domain.ID, domain.VerifiedAt.Add(time.Duration(i)*time.Hour)))
		hasDomain(t, store, domain)
	}
	hasDomain(t, store, other)
}

func verifiesUnknown(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", false)
	for _, id := range []int64{0, domain.ID + 1000} {
		testkit.WantCode(t, store.VerifyDomain(t.Context(), id, epoch), schema.CodeNotFound)
	}
}

func refusesHeldHost(t *testing.T, store schema.Database) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	claim := addDomain(t, store, a.ID, "go.example.org", false)
	held := addDomain(t, store, b.ID, "go.example.org", true)
	testkit.WantCode(t, store.VerifyDomain(t.Context(), claim.ID, epoch), schema.CodeConflict)
	hasDomain(t, store, claim)
	hasDomain(t, store, held)
}

func verifiesOne(t *testing.T, store schema.Database) {
	claims := make([]schema.Domain, 8)
	for i := range claims {
		account := addAccount(t, store, fmt.Sprintf("%d@example.org", i))
		claims[i] = addDomain(t, store, account.ID, "go.example.org", false)
	}
	winner := onlyOne(t, concurrently(len(claims), func(i int) error {
		return store.VerifyDomain(t.Context(), claims[i].ID, epoch)
	}), schema.CodeConflict)
	claims[winner].VerifiedAt = epoch
	for _, want := range claims {
		hasDomain(t, store, want)
	}
	got, err := store.VerifiedDomain(t.Context(), "go.example.org")
	testkit.Must(t, err)
	testkit.Equal(t, "domain", got, claims[winner])
}

func findsVerifiedHosts(t *testing.T, store schema.Database) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	addDomain(t, store, a.ID, "one.example.org", true)
	addDomain(t, store, b.ID, "one.example.org", false)
	addDomain(t, store, b.ID, "two.example.org", true)
	addDomain(t, store, b.ID, "claimed.example.org", false)
	addDomain(t, store, b.ID, "unasked.example.org", true)
	asked := []string{"one.example.org", "claimed.example.org", "none.example.org", "two.example.org", "one.example.org",
		"'\"", ""}
	for n, want := range map[int][]string{len(asked): {"one.example.org", "two.example.org"}, 3: {"one.example.org"},
		0: nil} {
		got, err := store.VerifiedHosts(t.Context(), asked[:n])
		testkit.Must(t, err)
		slices.Sort(got)
		testkit.Equal(t, "verified hosts", got, want, nilOrEmpty)
	}
}

func setsSite(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	other := addDomain(t, store, owner.ID, "other.example.org", true)
	for _, set := range []struct {
		site  schema.Site
		links schema.AppLinks
	}{
		{schema.Site{RootURL: "https://example.org/", NotFoundURL: "https://example.org/404",
			ExpiredURL: "https://example.org/ü"},
			schema.AppLinks{Apple: "{}", Android: strings.Repeat(" ", schema.MaxAppLinks-2) + "[]"}},
		{schema.Site{ExpiredURL: "https://example.org/late"}, schema.AppLinks{Apple: "{}"}},
		{schema.Site{PathMode: schema.PathIgnore, Name: "Müller & Söhne", Color: "#ffd400"}, schema.AppLinks{}},
		{schema.Site{}, schema.AppLinks{Android: "[]"}},
		{},
	} {
		testkit.Must(t, store.SetSite(t.Context(), domain.ID, set.site, set.links))
		domain.Site, domain.HasAppLinks = set.site, set.links != schema.AppLinks{}
		hasDomain(t, store, domain)
		verified, err := store.VerifiedDomain(t.Context(), domain.Host)
		testkit.Must(t, err)
		testkit.Equal(t, "verified domain", verified, domain)
		links, err := store.AppLinks(t.Context(), domain.ID)
		testkit.Must(t, err)
		testkit.Equal(t, "app links", links, set.links)
	}
	hasDomain(t, store, other)
	testkit.WantCode(t, store.SetSite(t.Context(), domain.ID+1000, schema.Site{}, schema.AppLinks{}), schema.CodeNotFound)
	_, err := store.AppLinks(t.Context(), domain.ID+1000)
	testkit.WantCode(t, err, schema.CodeNotFound)
}
