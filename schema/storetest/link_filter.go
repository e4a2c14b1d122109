package storetest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var linkFilterBehaviours = []behaviour[schema.Database]{
	{"Links with a filter and LinkIDs find what matches, in the order of the filter", filtersLinks},
	{"Links with a filter finds by what visitors are answered", filtersStopped},
	{"Links with a filter pages through its results", pagesFiltered},
	{"Links with a filter finds nothing with a text that no link can have", filtersUnstorable},
}

func filtersLinks(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	all := addFilteredLinks(t, store, owner, other, domain)
	word := func(text string) schema.LinkWord { return schema.LinkWord{Text: text} }
	key := func(domainID int64, hash string) schema.LinkWord {
		return schema.LinkWord{Key: &schema.LinkKey{DomainID: domainID, Hash: hash}}
	}
	for name, c := range map[string]struct {
		filter schema.LinkFilter
		want   []int // of all
	}{
		"everything":               {schema.LinkFilter{}, []int{3, 2, 1, 0}},
		"everything, oldest first": {schema.LinkFilter{OldestFirst: true}, []int{0, 1, 2, 3}},
		"a word of the hash":       {schema.LinkFilter{Words: []schema.LinkWord{word("GSALE")}}, []int{0}},
		"a word of the URL":        {schema.LinkFilter{Words: []schema.LinkWord{word("offers?ID")}}, []int{0}},
		"a word of the title":      {schema.LinkFilter{Words: []schema.LinkWord{word("20% OFF")}}, []int{0}},
		"a part of a tag as word":  {schema.LinkFilter{Words: []schema.LinkWord{word("ALE-2")}}, []int{2}},
		"words of tag and URL":     {schema.LinkFilter{Words: []schema.LinkWord{word("sale-2"), word("blog")}}, []int{2}},
		"nothing is special":       {schema.LinkFilter{Words: []schema.LinkWord{word("a_b")}}, []int{2}},
		"no escapes":               {schema.LinkFilter{Words: []schema.LinkWord{word(`20\% off`)}}, nil},
		"several words":            {schema.LinkFilter{Words: []schema.LinkWord{word("SHOP"), word("summer")}}, []int{1}},
		"a word of Unicode":        {schema.LinkFilter{Words: []schema.LinkWord{word("ÄRGER")}}, []int{1}},
		"words of different links": {schema.LinkFilter{Words: []schema.LinkWord{word("offers"), word("blog")}}, nil},
		"a word without a match":   {schema.LinkFilter{Words: []schema.LinkWord{{}}}, nil},
		"a key":                    {schema.LinkFilter{Words: []schema.LinkWord{key(domain.ID, "SUMMER")}}, []int{2}},
		"a key and a word": {schema.LinkFilter{Words: []schema.LinkWord{key(0, "springsale"), word("spring")}},
			[]int{0}},
		"the key of another":  {schema.LinkFilter{Words: []schema.LinkWord{key(0, "foreign")}}, nil},
		"a tag":               {schema.LinkFilter{Tag: "sale"}, []int{1, 0}},
		"a tag, oldest first": {schema.LinkFilter{Tag: "sale", OldestFirst: true}, []int{0, 1}},
		"a part of a tag":     {schema.LinkFilter{Tag: "sal"}, nil},
		"a domain":            {schema.LinkFilter{DomainID: &domain.ID}, []int{3, 2}},
		"the default domain":  {schema.LinkFilter{DomainID: new(int64(0))}, []int{1, 0}},
		"an unknown domain":   {schema.LinkFilter{DomainID: new(int64(99))}, nil},
		"expired":             {schema.LinkFilter{ExpiredAt: hour(20)}, []int{2}},
		"nothing expired yet": {schema.LinkFilter{ExpiredAt: hour(20).Add(-time.Millisecond)}, nil},
		"created from":        {schema.LinkFilter{CreatedFrom: hour(2)}, []int{3, 2}},
		"created before":      {schema.LinkFilter{CreatedBefore: hour(2)}, []int{1, 0}},
		"everything at once": {schema.LinkFilter{Words: []schema.LinkWord{word("summer")}, Tag: "sale",
			DomainID:  new(int64(0)),
			Redirects: new(true), CreatedFrom: hour(1), CreatedBefore: hour(2)}, []int{1}},
	} {
		want := make([]schema.Link, len(c.want))
		wantIDs := make([]int64, len(c.want))
		for i, n := range c.want {
			want[i], wantIDs[i] = all[n], all[n].ID
		}
		got, total, err := store.Links(t.Context(), owner.ID, c.filter, 1)
		testkit.Must(t, err)
		testkit.Equal(t, name, got, want, nilOrEmpty)
		testkit.Equal(t, "total of "+name, total, int64(len(want)))
		readsAfterEach(t, store, owner, c.filter, want)
		for limit := range len(want) + 2 {
			ids, err := store.LinkIDs(t.Context(), owner.ID, c.filter, limit)
			testkit.Must(t, err)
			testkit.Equal(t, name, ids, wantIDs[:min(limit, len(want))], nilOrEmpty)
		}
	}
}

// readsAfterEach requires that LinksAfter reads the links that match filter, from the first on and after each.
func readsAfterEach(
	t *testing.T, store schema.Database, owner schema.Account, filter schema.LinkFilter, want []schema.Link,
) {
	t.Helper()
	for i, after := 0, (schema.LinkPosition{}); ; i++ {
		got, err := store.LinksAfter(t.Context(), owner.ID, filter, after, len(want)+1)
		testkit.Must(t, err)
		testkit.Equal(t, "links after one", got, want[i:], nilOrEmpty)
		if i == len(want) {
			return
		}
		after = schema.PositionOf(want[i])
	}
}

// addFilteredLinks adds links of owner, which it returns by creation, a similar link of other, and a deleted link of
// owner.
func addFilteredLinks(
	t *testing.T, store schema.Database, owner, other schema.Account, domain schema.Domain,
) (all []schema.Link) {
	t.Helper()
	for _, l := range []schema.Link{
		{Hash: "SpringSale", URL: "https://shop.example/Offers?id=7", Title: "Spring, 20% off",
			Tags: []string{"sale", "spring"}},
		{Hash: "summer", URL: "https://shop.example/summer", Title: "Sommer-Ärger", Tags: []string{"sale", "summer"}},
		{Hash: "summer", DomainID: domain.ID, URL: "https://blog.example/a_b", Tags: []string{"sale-2"}},
		{Hash: "none", DomainID: domain.ID, URL: "https://blog.example/"},
	} {
		link := newLink(owner.ID, l.DomainID, l.Hash)
		link.URL, link.Title, link.Tags = l.URL, l.Title, l.Tags
		link.CreatedAt, link.UpdatedAt = hour(len(all)), hour(len(all))
		if link.Hash == "summer" && link.DomainID != 0 {
			link.ExpiresAt = hour(20)
		}
		testkit.Must(t, store.CreateLink(t.Context(), &link))
		if link.DomainID != 0 {
			link.Host = domain.Host
		}
		all = append(all, link)
	}
	foreign := newLink(other.ID, 0, "foreign")
	foreign.Title, foreign.Tags = "Spring", []string{"sale"}
	testkit.Must(t, store.CreateLink(t.Context(), &foreign))
	gone := addLink(t, store, owner.ID, 0, "springtime")
	testkit.Must(t, store.DeleteLink(t.Context(), gone, hour(1)))
	return all
}

func filtersStopped(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	domain := addDomain(t, store, owner.ID, "later.example.org", false)
	hashes := func(redirects bool) (found []string) {
		t.Helper()
		links, total, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{Redirects: &redirects}, 1)
		testkit.Must(t, err)
		testkit.Equal(t, "total", total, int64(len(links)))
		for _, link := range links {
			testkit.Equal(t, "Redirects", link.Redirects(), redirects)
			found = append(found, link.Hash)
		}
		slices.Sort(found)
		return found
	}
	for _, hash := range []string{"on", "off", "down"} {
		addLink(t, store, owner.ID, 0, hash)
	}
	addLink(t, store, owner.ID, domain.ID, "lost")
	SetActive(t, store, 0, "off", false)
	testkit.Must(t, store.SetTakenDown(t.Context(), 0, "down", true))
	testkit.Equal(t, "active", hashes(true), []string{"on"})
	testkit.Equal(t, "inactive", hashes(false), []string{"down", "lost", "off"})
	testkit.Must(t, store.SetSuspended(t.Context(), owner.ID, true))
	testkit.Equal(t, "active links of a suspended account", len(hashes(true)), 0)
}

func pagesFiltered(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	const n, rows = 2*schema.PageSize + 1, 15
	for i := range n {
		addLink(t, store, owner.ID, 0, fmt.Sprintf("found-%d", i))
		addLink(t, store, owner.ID, 0, fmt.Sprintf("other-%d", i))
	}
	for _, oldest := range []bool{false, true} {
		filter := schema.LinkFilter{Words: []schema.LinkWord{{Text: "found"}}, OldestFirst: oldest}
		var hashes []string
		for page := range int64(4) {
			links, total, err := store.Links(t.Context(), owner.ID, filter, page+1)
			testkit.Must(t, err)
			testkit.Equal(t, "total", total, n)
			testkit.Equal(t, "length", len(links), []int{schema.PageSize, schema.PageSize, 1, 0}[page])
			for _, link := range links {
				hashes = append(hashes, link.Hash)
			}
		}
		if !oldest {
			slices.Reverse(hashes)
		}
		for i, hash := range hashes {
			testkit.Equal(t, "hash", hash, fmt.Sprintf("found-%d", i))
		}
		filter.Rows = rows
		links, total, err := store.Links(t.Context(), owner.ID, filter, 3)
		testkit.Must(t, err)
		testkit.Equal(t, "links of a page of its own size", len(links), n-2*rows)
		testkit.Equal(t, "total", total, n)
		links, total, err = store.Links(t.Context(), owner.ID, filter, math.MaxInt64)
		testkit.Must(t, err)
		testkit.Equal(t, "links and total of the last page", []int64{int64(len(links)), total}, []int64{0, n})
	}
}

func filtersUnstorable(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	addLink(t, store, owner.ID, 0, "hash")
	for _, text := range []string{"a\x00b", "\xff", strings.Repeat("ﷺ", schema.MaxURLLen)} {
		filter := schema.LinkFilter{Words: []schema.LinkWord{{Text: text}}}
		links, total, err := store.Links(t.Context(), owner.ID, filter, 1)
		testkit.Must(t, err)
		ids, err := store.LinkIDs(t.Context(), owner.ID, filter, 10)
		testkit.Must(t, err)
		testkit.Equal(t, "found", len(links)+len(ids)+int(total), 0)
	}
}
