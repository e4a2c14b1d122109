package storetest

import (
	"fmt"
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var searchBehaviours = []behaviour[schema.Database]{
	{"Links finds parts of hash and URL, ignoring the case of ASCII letters", searchesText},
	{"Links treats no character of a word specially", searchesLiterally},
	{"LinksByID returns only the account's links", findsLinksByID},
	{"LinksByID returns nothing for no IDs", findsLinksByNoID},
}

// withWord returns a filter for links that match a word.
func withWord(text string) schema.LinkFilter {
	return schema.LinkFilter{Words: []schema.LinkWord{{Texts: []string{text}}}}
}

func addLinkTo(t *testing.T, store schema.LinkStore, accountID int64, hash, url string) schema.Link {
	t.Helper()
	link := newLink(accountID, 0, hash)
	link.URL = url
	testkit.Must(t, store.CreateLink(t.Context(), &link))
	return link
}

// wantFound requires that the results are want, in this order, all on page 1.
func wantFound(t *testing.T, store schema.LinkStore, accountID int64, query string, want ...schema.Link) {
	t.Helper()
	got, total, err := store.Links(t.Context(), accountID, withWord(query), 1)
	testkit.Must(t, err)
	testkit.Equal(t, fmt.Sprintf("total by %q", query), total, int64(len(want)))
	testkit.Equal(t, fmt.Sprintf("links by %q", query), len(got), len(want))
	for i := range want {
		testkit.Equal(t, "link", got[i], want[i])
	}
}

func searchesText(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	spring := addLinkTo(t, store, owner.ID, "SpringSale", "https://shop.example/Offers?id=7")
	summer := addLinkTo(t, store, owner.ID, "summer", "https://shop.example/spring-is-over")
	umlaut := addLinkTo(t, store, owner.ID, "xyz", "https://example.org/straße/Ärger")
	for _, query := range []string{"spring", "SPRING", "sPrInG"} {
		wantFound(t, store, owner.ID, query, summer, spring)
	}
	wantFound(t, store, owner.ID, "s", umlaut, summer, spring) // several times in each
	wantFound(t, store, owner.ID, "ngsal", spring)
	wantFound(t, store, owner.ID, "offers?ID=7", spring)
	wantFound(t, store, owner.ID, "HTTPS://EXAMPLE.org/STRAßE", umlaut)
	wantFound(t, store, owner.ID, "Ärger", umlaut)
	wantFound(t, store, owner.ID, "ärger") // not an ASCII letter
	wantFound(t, store, owner.ID, "summerhttps")
	wantFound(t, store, owner.ID, "winter")
}

func searchesLiterally(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	addLinkTo(t, store, owner.ID, "plain", "https://example.org/abc")
	percent := addLinkTo(t, store, owner.ID, "percent", "https://example.org/100%25")
	under := addLinkTo(t, store, owner.ID, "a_c", "https://example.org/")
	slash := addLinkTo(t, store, owner.ID, "slash", `https://example.org/a\b'"*[x]`)
	wantFound(t, store, owner.ID, "%", percent)
	wantFound(t, store, owner.ID, "0%2", percent)
	wantFound(t, store, owner.ID, "%example%")
	wantFound(t, store, owner.ID, "_", under)
	wantFound(t, store, owner.ID, "a_c", under)
	for _, query := range []string{`\`, `A\B`, `'`, `"`, `*`, `[x]`, `b'"*[`} {
		wantFound(t, store, owner.ID, query, slash)
	}
	for _, query := range []string{`\%`, `\_`, `\\`, `a.c`, `a*c`, `.*`, `^`, `' OR '1'='1`} {
		wantFound(t, store, owner.ID, query)
	}
}

func findsLinksByID(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	onDefault, onDomain := addLink(t, store, owner.ID, 0, "hash"), addLink(t, store, owner.ID, domain.ID, "hash")
	onDomain.Host = domain.Host
	others := addLink(t, store, other.ID, 0, "other")
	addLink(t, store, owner.ID, 0, "unasked")
	ids := []int64{onDomain.ID, 0, onDefault.ID, others.ID, onDomain.ID, others.ID + 1000, -1}
	got, err := store.LinksByID(t.Context(), owner.ID, ids)
	testkit.Must(t, err)
	testkit.Equal(t, "links", len(got), 2)
	for _, link := range got {
		if link.ID == onDomain.ID {
			testkit.Equal(t, "link", link, onDomain)
		} else {
			testkit.Equal(t, "link", link, onDefault)
		}
	}
	if got[0].ID == got[1].ID {
		t.Fatalf("link %d came twice", got[0].ID)
	}
}

func findsLinksByNoID(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	addLink(t, store, owner.ID, 0, "hash")
	for _, ids := range [][]int64{nil, {}} {
		got, err := store.LinksByID(t.Context(), owner.ID, ids)
		testkit.Must(t, err)
		testkit.Equal(t, "links", len(got), 0)
	}
}
