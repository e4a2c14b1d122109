package links_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"linkstream/api/links"
	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestSearch(t *testing.T) {
	f := newFixture(t, "https://sho.rt")
	domain := f.addDomain(t, f.owner, "xn--mnchen-3ya.example", true)
	add := func(alias, title string, domainID int64) {
		t.Helper()
		link := schema.Link{AccountID: f.owner, DomainID: domainID, Hash: alias, URL: "https://example.org/", Title: title,
			CreatedAt: time.Now()}
		testkit.Must(t, f.store.CreateLink(t.Context(), &link))
	}
	add("nine", "Ein Titel aus neun Wörtern ist schnell zu finden", 0)
	add("Sale", "", 0)
	add("own", "", domain)
	add("letters", strings.Repeat("a b c d ", 25), 0)
	for query, want := range map[string]string{
		"Ein Titel aus neun Wörtern ist schnell zu finden":       "nine",
		"EIN TITEL AUS NEUN WO\u0308RTERN IST SCHNELL ZU FINDEN": "nine",
		"Ein Titel aus zehn Wörtern ist schnell zu finden":       "",
		strings.Repeat("a b c d ", 37):                           "letters",
		"\u3000ｓａｌｅ\u00a0":                                       "Sale",
		"https://SHO.rt/sale+":                                   "Sale",
		"sho.rt/ｓａｌｅ":                                            "Sale",
		"MÜNCHEN.example/OWN":                                    "own",
		"xn--mnchen-3ya.example/own?x#y":                         "own",
		"\u200b \ufeff":                                          "letters own Sale nine",
		"%":                                                      "",
	} {
		found, _, err := f.List(t.Context(), nil, links.ListRequest{AccountID: f.owner, Query: query, Page: 1})
		testkit.Must(t, err)
		var hashes []string
		for _, link := range found {
			hashes = append(hashes, link.Hash)
		}
		testkit.Equal(t, query, strings.Join(hashes, " "), want)
	}
	for _, query := range []string{strings.Repeat("x", schema.MaxURLLen), "a b c d e f g " + strings.Repeat("y", 1000)} {
		_, _, err := f.List(t.Context(), nil, links.ListRequest{AccountID: f.owner, Query: query, Page: 1})
		testkit.Must(t, err)
	}
	for _, query := range []string{strings.Repeat("x", schema.MaxURLLen+1), strings.Repeat("ab ", 101)} {
		_, _, err := f.List(t.Context(), nil, links.ListRequest{AccountID: f.owner, Query: query, Page: 1})
		testkit.WantCode(t, err, schema.CodeInvalid)
	}
}

// TestRestoreAll restores what was deleted at one time, in parts.
func TestRestoreAll(t *testing.T) {
	f := newFixture(t, "https://sho.rt")
	reqs := make([]links.Request, schema.MaxLinkBatch)
	for i := range reqs {
		reqs[i] = links.Request{AccountID: f.owner, LongURL: "https://example.org/"}
	}
	const batches = 3
	for range batches {
		_, err := f.CreateAll(t.Context(), reqs)
		testkit.Must(t, err)
	}
	at := time.Now().UTC().Truncate(time.Millisecond)
	remove := func(n int, at time.Time) {
		t.Helper()
		ids, err := f.store.LinkIDs(t.Context(), f.owner, schema.LinkFilter{}, n)
		testkit.Must(t, err)
		_, _, err = f.ChangeByID(t.Context(), f.owner, ids, nil, at)
		testkit.Must(t, err)
	}
	remove(100, at.Add(-time.Millisecond))
	remove(batches*schema.MaxLinkBatch, at)
	calls := map[string]int{}
	counting := storetest.Faulty(f.store, func(_ context.Context, method string) error { calls[method]++; return nil })
	s := links.New(schema.MustParseBaseURL("https://sho.rt"), counting, counting, nil)
	for _, want := range [][2]int64{{1000, 1900}, {1000, 900}, {900, 0}, {0, 0}} {
		restored, left, err := s.RestoreAll(t.Context(), f.owner, at, time.Now())
		testkit.Must(t, err)
		testkit.Equal(t, "restored and left", [2]int64{restored, left}, want)
	}
	testkit.Equal(t, "calls of the store", calls, map[string]int{"LinkIDs": 4, "RestoreLinks": 3})
	_, total, err := f.store.Links(t.Context(), f.owner, schema.LinkFilter{}, 1)
	testkit.Must(t, err)
	testkit.Equal(t, "links", total, 2900)
}
