package storetest

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// TestDatabase checks every outcome that the contracts of Database document.
func TestDatabase(t *testing.T, open Open[schema.Database]) {
	t.Run("accounts", func(t *testing.T) { run(t, open, accountBehaviours) })
	t.Run("tokens", func(t *testing.T) { run(t, open, tokenBehaviours) })
	t.Run("sessions", func(t *testing.T) { run(t, open, sessionBehaviours) })
	t.Run("shares", func(t *testing.T) { run(t, open, shareBehaviours) })
	t.Run("shared values", func(t *testing.T) { run(t, open, sharedBehaviours) })
	t.Run("leases", func(t *testing.T) { run(t, open, leaseBehaviours) })
	t.Run("attempts", func(t *testing.T) { run(t, open, attemptBehaviours) })
	t.Run("certificates", func(t *testing.T) { run(t, open, certificateBehaviours) })
	t.Run("imports", func(t *testing.T) { run(t, open, importBehaviours) })
	t.Run("webhooks", func(t *testing.T) { run(t, open, webhookBehaviours) })
	t.Run("clicks for webhooks", func(t *testing.T) { run(t, open, clickHookBehaviours) })
	t.Run("domains", func(t *testing.T) { run(t, open, domainBehaviours) })
	t.Run("deleted domains", func(t *testing.T) { run(t, open, domainDeleteBehaviours) })
	t.Run("checked domains", func(t *testing.T) { run(t, open, domainCheckBehaviours) })
	t.Run("stopped links", func(t *testing.T) { run(t, open, linkStopBehaviours) })
	t.Run("links", func(t *testing.T) { run(t, open, linkBehaviours) })
	t.Run("filtered links", func(t *testing.T) { run(t, open, linkFilterBehaviours) })
	t.Run("links after a position", func(t *testing.T) { run(t, open, linkKeysetBehaviours) })
	t.Run("managed links", func(t *testing.T) { run(t, open, linkManageBehaviours) })
	t.Run("versions of links", func(t *testing.T) { run(t, open, linkVersionBehaviours) })
	t.Run("names of links", func(t *testing.T) { run(t, open, linkNameBehaviours) })
	t.Run("external IDs of links", func(t *testing.T) { run(t, open, linkExternalBehaviours) })
	t.Run("reused links", func(t *testing.T) { run(t, open, linkReuseBehaviours) })
	t.Run("changed links", func(t *testing.T) { run(t, open, linkChangeBehaviours) })
	t.Run("concurrent creation of links", func(t *testing.T) { run(t, open, linkConcurrencyBehaviours) })
	t.Run("batches of links", func(t *testing.T) { run(t, open, linkBatchBehaviours) })
	t.Run("calls with keys", func(t *testing.T) { run(t, open, idempotencyBehaviours) })
	t.Run("rate limits", func(t *testing.T) { run(t, open, rateBehaviours) })
	t.Run("outbox", func(t *testing.T) { run(t, open, outboxBehaviours) })
	t.Run("search", func(t *testing.T) { run(t, open, searchBehaviours) })
	t.Run("everything survives reopening", func(t *testing.T) { keepsLinks(t, open) })
	t.Run("leases survive reopening", func(t *testing.T) { keepsLeases(t, open) })
}

var linkBehaviours = []behaviour[schema.Database]{
	{"CreateLink keeps every field and sets ID and Ordinal", createsLinks},
	{"CreateLink stores URLs unchanged", keepsURLs},
	{"CreateLink numbers the links of each account separately", numbersLinksByAccount},
	{"CreateLink rejects a taken hash and spends no ordinal", refusesTakenHash},
	{"CreateLink accepts one hash on several domains", takesHashPerDomain},
	{"CreateLink distinguishes upper and lower case", tellsHashCase},
	{"CreateLink succeeds for exactly one of concurrent calls with one hash", createsOneOfConcurrentLinks},
	{"CreateLink leaves no gaps in ordinals under concurrency", numbersConcurrentLinks},
	{"Link finds a link by domain and hash, and fills in the host", findsLinks},
	{"Link does not find an unknown hash, or one of another domain", missesLinks},
	{"OwnedLink prefers the default domain", ownedPrefersDefault},
	{"OwnedLink falls back to the oldest link", ownedFallsBackToOldest},
	{"OwnedLink searches only the given domain", ownedOnDomain},
	{"OwnedLink does not find another account's link", ownedMissesOthers},
	{"Links pages through an account's links, newest first", pagesLinks},
	{"Links returns nothing beyond the last page and without links", pagesBeyondLast},
	{"Links returns page and total of one moment", pagesOfOneMoment},
	{"LinksByHash returns what Link returns for each key", findsLinksByHash},
	{"EdgeLinks returns what Link returns for each key", findsEdgeLinks},
	{"LinksByHash returns many links at once", findsManyLinksByHash},
	{"EdgeLinks returns many links at once", findsManyEdgeLinks},
	{"EdgeLinks says whether there are names beneath", findsNamesBeneath},
	{"UpdateLink deactivates and activates repeatedly", setsActive},
}

// addLink creates a link whose fields depend on its hash.
func addLink(t *testing.T, store schema.LinkStore, accountID, domainID int64, hash string) schema.Link {
	t.Helper()
	link := newLink(accountID, domainID, hash)
	testkit.Must(t, store.CreateLink(t.Context(), &link))
	return link
}

func newLink(accountID, domainID int64, hash string) schema.Link {
	return schema.Link{
		AccountID: accountID, DomainID: domainID, Hash: hash, URL: "https://example.org/" + hash, Active: true,
		CreatedAt: epoch.Add(time.Duration(len(hash)) * time.Hour),
	}
}

func createsLinks(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	first := addLink(t, store, owner.ID, 0, "first")
	second := newLink(owner.ID, 0, "second")
	second.Active = false
	testkit.Must(t, store.CreateLink(t.Context(), &second))
	if first.ID == 0 || first.ID == second.ID {
		t.Fatalf("got IDs %d and %d", first.ID, second.ID)
	}
	testkit.Equal(t, "first ordinal", first.Ordinal, 1)
	testkit.Equal(t, "second ordinal", second.Ordinal, 2)
	for _, want := range []schema.Link{first, second} {
		got, err := schema.FindLink(t.Context(), store, 0, want.Hash)
		testkit.Must(t, err)
		testkit.Equal(t, "link", got, want)
	}
}

func keepsURLs(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	for i, url := range []string{
		"https://example.org/" + strings.Repeat("ü", schema.MaxURLLen-20),
		"https://münchen.example/straße?q=日本語&x=%20#'\"\\🙂",
		"HTTP://EXAMPLE.ORG:80/../a//b?",
	} {
		link := newLink(owner.ID, 0, fmt.Sprintf("url-%d", i))
		link.URL = url
		testkit.Must(t, store.CreateLink(t.Context(), &link))
		got, err := schema.FindLink(t.Context(), store, 0, link.Hash)
		testkit.Must(t, err)
		testkit.Equal(t, "URL", got.URL, url)
	}
}

func numbersLinksByAccount(t *testing.T, store schema.Database) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	for i := range int64(3) {
		testkit.Equal(t, "ordinal of a", addLink(t, store, a.ID, 0, fmt.Sprintf("a%d", i)).Ordinal, i+1)
		testkit.Equal(t, "ordinal of b", addLink(t, store, b.ID, 0, fmt.Sprintf("b%d", i)).Ordinal, i+1)
	}
}

func refusesTakenHash(t *testing.T, store schema.Database) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	taken := addLink(t, store, a.ID, 0, "taken")
	for _, accountID := range []int64{a.ID, b.ID} {
		other := newLink(accountID, 0, "taken")
		other.URL = "https://example.net/"
		testkit.WantCode(t, store.CreateLink(t.Context(), &other), schema.CodeConflict)
	}
	got, err := schema.FindLink(t.Context(), store, 0, "taken")
	testkit.Must(t, err)
	testkit.Equal(t, "link", got, taken)
	testkit.Equal(t, "next ordinal of a", addLink(t, store, a.ID, 0, "free").Ordinal, 2)
	testkit.Equal(t, "next ordinal of b", addLink(t, store, b.ID, 0, "free2").Ordinal, 1)
	_, total, err := store.Links(t.Context(), b.ID, schema.LinkFilter{}, 1)
	testkit.Must(t, err)
	testkit.Equal(t, "total of b", total, 1)
}

func takesHashPerDomain(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	onDefault := addLink(t, store, owner.ID, 0, "same")
	onDomain := addLink(t, store, owner.ID, domain.ID, "same")
	again := newLink(owner.ID, domain.ID, "same")
	testkit.WantCode(t, store.CreateLink(t.Context(), &again), schema.CodeConflict)
	if onDefault.ID == onDomain.ID {
		t.Fatalf("both links have ID %d", onDefault.ID)
	}
}

func tellsHashCase(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	lower, upper := addLink(t, store, owner.ID, 0, "abc"), addLink(t, store, owner.ID, 0, "aBc")
	for _, want := range []schema.Link{lower, upper} {
		got, err := schema.FindLink(t.Context(), store, 0, want.Hash)
		testkit.Must(t, err)
		testkit.Equal(t, "link", got, want)
		got, err = schema.FindOwnedLink(t.Context(), store, owner.ID, want.Hash, nil)
		testkit.Must(t, err)
		testkit.Equal(t, "link", got, want)
	}
	_, err := schema.FindLink(t.Context(), store, 0, "ABC")
	testkit.WantCode(t, err, schema.CodeNotFound)
}

func createsOneOfConcurrentLinks(t *testing.T, store schema.Database) {
	accounts := []schema.Account{addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")}
	created := map[int64]int64{}
	for round := range 5 {
		hash := fmt.Sprintf("alias-%d", round)
		links := make([]schema.Link, 16)
		winner := onlyOne(t, concurrently(len(links), func(i int) error {
			links[i] = newLink(accounts[i%2].ID, 0, hash)
			links[i].URL = fmt.Sprintf("https://example.org/%d", i)
			return store.CreateLink(t.Context(), &links[i])
		}), schema.CodeConflict)
		got, err := schema.FindLink(t.Context(), store, 0, hash)
		testkit.Must(t, err)
		testkit.Equal(t, "link", got, links[winner])
		created[got.AccountID]++
		testkit.Equal(t, "ordinal", got.Ordinal, created[got.AccountID])
	}
}

func numbersConcurrentLinks(t *testing.T, store schema.Database) {
	const n = 45
	owner := addAccount(t, store, "a@example.org")
	addLink(t, store, owner.ID, 0, "taken")
	for i, err := range concurrently(n, func(i int) error {
		hash := fmt.Sprintf("free-%d", i)
		if i%3 == 0 {
			hash = "taken" // a rejected link between created ones must not leave a gap
		}
		link := newLink(owner.ID, 0, hash)
		return store.CreateLink(t.Context(), &link)
	}) {
		if i%3 == 0 {
			testkit.WantCode(t, err, schema.CodeConflict)
		} else {
			testkit.Must(t, err)
		}
	}
	sameOrdinals(t, store, owner.ID, 1+n*2/3)
}

// sameOrdinals requires that an account has total links, with the ordinals total, …, 2, 1 over all pages.
func sameOrdinals(t *testing.T, store schema.LinkStore, accountID, total int64) {
	t.Helper()
	want := total
	for page := int64(1); want > 0; page++ {
		links, gotTotal, err := store.Links(t.Context(), accountID, schema.LinkFilter{}, page)
		testkit.Must(t, err)
		testkit.Equal(t, "total", gotTotal, total)
		testkit.Equal(t, "length of the page", int64(len(links)), min(want, schema.PageSize))
		for _, link := range links {
			testkit.Equal(t, "ordinal", link.Ordinal, want)
			want--
		}
	}
}

func findsLinks(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	verified := addDomain(t, store, owner.ID, "go.example.org", true)
	claimed := addDomain(t, store, owner.ID, "later.example.org", false)
	for domainID, host := range map[int64]string{0: "", verified.ID: verified.Host, claimed.ID: claimed.Host} {
		want := addLink(t, store, owner.ID, domainID, "hash")
		want.Host = host
		edited := want
		testkit.Must(t, store.UpdateLink(t.Context(), &edited, schema.LinkEdit{Active: new(false)}, hour(1)))
		want.Active, want.UpdatedAt, want.Version = false, hour(1), want.Version+1
		if domainID == claimed.ID {
			want.Stopped = schema.HostLost
		}
		got, err := schema.FindLink(t.Context(), store, domainID, "hash")
		testkit.Must(t, err)
		testkit.Equal(t, "link", got, want)
	}
}

func missesLinks(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	addLink(t, store, owner.ID, 0, "default")
	addLink(t, store, owner.ID, domain.ID, "custom")
	for hash, domainID := range map[string]int64{"none": 0, "default": domain.ID, "custom": 0, "": 0} {
		_, err := schema.FindLink(t.Context(), store, domainID, hash)
		testkit.WantCode(t, err, schema.CodeNotFound)
	}
}

func findsLinksByHash(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	domain, claimed := addDomain(t, store, owner.ID, "go.example.org", true),
		addDomain(t, store, owner.ID, "later.example.org", false)
	want := map[schema.LinkKey]schema.Link{}
	for _, l := range []schema.Link{
		addLink(t, store, owner.ID, 0, "same"), addLink(t, store, owner.ID, domain.ID, "same"),
		addLink(t, store, owner.ID, 0, "SAME"), addLink(t, store, owner.ID, claimed.ID, "lost"),
		addLink(t, store, other.ID, 0, "123"), addLink(t, store, other.ID, 0, "off"),
	} {
		SetActive(t, store, l.DomainID, l.Hash, l.Hash != "off")
		link, err := schema.FindLink(t.Context(), store, l.DomainID, l.Hash)
		testkit.Must(t, err)
		want[l.Key()] = link
	}
	addLink(t, store, owner.ID, 0, "unasked")
	keys := []schema.LinkKey{{DomainID: 0, Hash: "none"}, {DomainID: domain.ID, Hash: "123"}, {DomainID: 0, Hash: "lost"},
		{DomainID: 99, Hash: "same"},
		{DomainID: 0, Hash: ""}, {DomainID: 0, Hash: "'\"\\"}, {DomainID: 0, Hash: "same"}}
	for key := range want {
		keys = append(keys, key)
	}
	for _, asked := range [][]schema.LinkKey{keys, keys[6:7], keys[:3], nil} {
		got, err := store.LinksByHash(t.Context(), asked)
		testkit.Must(t, err)
		found := map[schema.LinkKey]schema.Link{}
		for _, link := range got {
			found[link.Key()] = link
		}
		expected := map[schema.LinkKey]schema.Link{}
		for _, key := range asked {
			if link, ok := want[key]; ok {
				expected[key] = link
			}
		}
		testkit.Equal(t, "links", found, expected)
	}
}

func findsManyLinksByHash(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	const links, asked = 20, 256
	for i := range links {
		addLink(t, store, owner.ID, 0, fmt.Sprintf("hash-%d", i))
	}
	keys := make([]schema.LinkKey, asked)
	for i := range keys {
		keys[i].Hash = fmt.Sprintf("hash-%d", i)
	}
	got, err := store.LinksByHash(t.Context(), keys)
	testkit.Must(t, err)
	testkit.Equal(t, "links", len(got), links)
}

// destination is a link as EdgeLinks returns it.
func destination(l schema.Link) schema.EdgeLink {
	return schema.EdgeLink{LinkID: l.ID, AccountID: l.AccountID, URL: l.URL, Active: l.Active, ExpiresAt: l.ExpiresAt,
		ExpiredURL: l.ExpiredURL, ForwardQuery: l.ForwardQuery, Behaviour: l.Behaviour, Stopped: l.Stopped}
}

func findsEdgeLinks(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	domain, claimed := addDomain(t, store, owner.ID, "go.example.org", true),
		addDomain(t, store, owner.ID, "later.example.org", false)
	expiring := schema.Link{AccountID: owner.ID, Hash: "expiring", URL: "https://example.org/ü", Active: true,
		CreatedAt: time.Now(),
		ExpiresAt: time.Now().Add(time.Hour).Truncate(time.Second).UTC(), ExpiredURL: "https://example.org/late",
		ForwardQuery: true,
		Behaviour:    extension("ü")}
	testkit.Must(t, store.CreateLink(t.Context(), &expiring))
	want := map[schema.LinkKey]schema.EdgeLink{}
	for _, l := range []schema.Link{
		addLink(t, store, owner.ID, 0, "same"), addLink(t, store, owner.ID, domain.ID, "same"),
		addLink(t, store, owner.ID, 0, "SAME"), addLink(t, store, owner.ID, claimed.ID, "lost"),
		addLink(t, store, other.ID, 0, "123"), addLink(t, store, other.ID, 0, "off"), expiring,
	} {
		SetActive(t, store, l.DomainID, l.Hash, l.Hash != "off")
		link, err := schema.FindLink(t.Context(), store, l.DomainID, l.Hash)
		testkit.Must(t, err)
		want[l.Key()] = destination(link)
	}
	addLink(t, store, owner.ID, 0, "unasked")
	keys := []schema.LinkKey{{DomainID: 0, Hash: "none"}, {DomainID: domain.ID, Hash: "123"}, {DomainID: 0, Hash: "lost"},
		{DomainID: 99, Hash: "same"},
		{DomainID: 0, Hash: ""}, {DomainID: 0, Hash: "'\"\\"}, {DomainID: 0, Hash: "same"}, {DomainID: 0, Hash: "same"}}
	for key := range want {
		keys = append(keys, key)
	}
	for _, asked := range [][]schema.LinkKey{keys, keys[6:7], keys[:3], nil} {
		got, err := store.EdgeLinks(t.Context(), asked)
		testkit.Must(t, err)
		expected := make([]schema.EdgeLink, len(asked))
		for i, key := range asked {
			expected[i] = want[key]
		}
		testkit.Equal(t, "destinations", got, expected)
	}
}

func findsManyEdgeLinks(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	const links, asked = 20, 256
	keys, want := make([]schema.LinkKey, asked), make([]int64, asked)
	for i := range keys {
		keys[i].Hash = fmt.Sprintf("hash-%d", i)
		if i < links {
			want[i] = addLink(t, store, owner.ID, 0, keys[i].Hash).ID
		}
	}
	found, err := store.EdgeLinks(t.Context(), keys)
	testkit.Must(t, err)
	got := make([]int64, len(found))
	for i, d := range found {
		got[i] = d.LinkID
	}
	testkit.Equal(t, "links", got, want)
}

func findsNamesBeneath(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	for _, hash := range []string{"a", "a/b/c", "a/b", "ab", "a.b", "a-", "a~", "A", "b", "b0", "c", "d", "d/1", "e",
		"old/1"} {
		addLink(t, store, owner.ID, 0, hash)
	}
	addLink(t, store, owner.ID, domain.ID, "a")
	addLink(t, store, owner.ID, domain.ID, "c/1")
	deleted, err := schema.FindLink(t.Context(), store, 0, "d/1")
	testkit.Must(t, err)
	testkit.Must(t, store.DeleteLink(t.Context(), deleted, hour(1)))
	renamed, err := schema.FindLink(t.Context(), store, 0, "old/1")
	testkit.Must(t, err)
	names := renamed.Names()
	names.Hash, names.Former = "e/2", []string{"old/1"}
	testkit.Must(t, store.UpdateLink(t.Context(), &renamed, schema.LinkEdit{Names: &names}, hour(2)))
	addLink(t, store, owner.ID, 0, "old")
	for hash, want := range map[string]bool{"a": true, "a/b": true, "a/b/c": false, "ab": false, "a.b": false, "A": false,
		"b": false, "c": false, "d": true, "e": true, "old": true, "e/2": false, "old/1": false} {
		found, err := store.EdgeLinks(t.Context(), []schema.LinkKey{{Hash: hash}, {DomainID: domain.ID, Hash: hash}})
		testkit.Must(t, err)
		testkit.Equal(t, hash, found[0].Beneath, want)
		testkit.Equal(t, hash+" on the domain", found[1].Beneath, false)
	}
}

func setsActive(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link, other := addLink(t, store, owner.ID, 0, "hash"), addLink(t, store, owner.ID, 0, "other")
	for i, active := range []bool{false, false, true, true, false} {
		edited := link
		testkit.Must(t, store.UpdateLink(t.Context(), &edited, schema.LinkEdit{Active: &active}, hour(i)))
		got, err := schema.FindLink(t.Context(), store, 0, "hash")
		testkit.Must(t, err)
		link.Active, link.UpdatedAt, link.Version = active, hour(i), link.Version+1
		testkit.Equal(t, "link", got, link)
	}
	got, err := schema.FindLink(t.Context(), store, 0, "other")
	testkit.Must(t, err)
	testkit.Equal(t, "link", got, other)
}

func pagesLinks(t *testing.T, store schema.Database) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	domain := addDomain(t, store, a.ID, "go.example.org", true)
	const total = 2*schema.PageSize + 1
	created := make([]schema.Link, 0, total)
	for i := range total {
		link := addLink(t, store, a.ID, int64(i%2)*domain.ID, fmt.Sprintf("a%d", i))
		if i%2 == 1 {
			link.Host = domain.Host
		}
		created = append(created, link)
		addLink(t, store, b.ID, 0, fmt.Sprintf("b%d", i))
	}
	sameOrdinals(t, store, a.ID, total)
	for page := range 3 {
		links, _, err := store.Links(t.Context(), a.ID, schema.LinkFilter{}, int64(page)+1)
		testkit.Must(t, err)
		for i, link := range links {
			testkit.Equal(t, "link", link, created[total-1-page*schema.PageSize-i])
		}
	}
}

func pagesBeyondLast(t *testing.T, store schema.Database) {
	owner, without := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	for i := range schema.PageSize {
		addLink(t, store, owner.ID, 0, fmt.Sprintf("a%d", i))
	}
	// The ordinals of the last two pages overflow. The page 1<<62 + 1 would wrap around to the ordinals of page 1.
	for _, page := range []int64{2, 3, 5000, 1<<62 + 1, math.MaxInt64} {
		links, total, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{}, page)
		testkit.Must(t, err)
		testkit.Equal(t, "links of the page", len(links), 0)
		testkit.Equal(t, "total", total, schema.PageSize)
	}
	links, total, err := store.Links(t.Context(), without.ID, schema.LinkFilter{}, 1)
	testkit.Must(t, err)
	testkit.Equal(t, "links without links", len(links), 0)
	testkit.Equal(t, "total without links", total, 0)
}

func pagesOfOneMoment(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	const writers, each = 3, 15
	done := make(chan []error, 1)
	go func() {
		done <- concurrently(writers, func(w int) error {
			for i := range each {
				link := newLink(owner.ID, 0, fmt.Sprintf("w%d-%d", w, i))
				if err := store.CreateLink(t.Context(), &link); err != nil {
					return err
				}
			}
			return nil
		})
	}()
	var errs []error
	for errs == nil {
		links, total, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{}, 1)
		testkit.Must(t, err)
		testkit.Equal(t, "length of page 1", int64(len(links)), min(total, schema.PageSize))
		for i, link := range links {
			testkit.Equal(t, "ordinal", link.Ordinal, total-int64(i))
		}
		select {
		case errs = <-done:
		default:
		}
	}
	for _, err := range errs {
		testkit.Must(t, err)
	}
	sameOrdinals(t, store, owner.ID, writers*each)
}
