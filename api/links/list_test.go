package links_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linkstream/api/links"
	"linkstream/schema"
	"linkstream/schema/sqlitetest"
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

// TestTidy starts on a store that an older release has filled, and in which links have been in the trash for too long.
func TestTidy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "links.db")
	store := sqlitetest.At(t, path)
	s := links.New(schema.MustParseBaseURL("https://sho.rt"), store, store, nil)
	owner := addAccount(t, store, "a@example.org")
	const batches = 3
	for range batches {
		batch := schema.LinkBatch{AccountID: owner, NewHash: schema.NewHash}
		for range schema.MaxLinkBatch {
			batch.Links = append(batch.Links, schema.Link{URL: "https://example.org/", Title: "Größe", CreatedAt: time.Now()})
		}
		testkit.Must(t, store.CreateLinks(t.Context(), &batch))
	}
	ids, err := store.LinkIDs(t.Context(), owner, schema.LinkFilter{}, 1500)
	testkit.Must(t, err)
	_, _, err = s.ChangeByID(t.Context(), owner, ids, nil, time.Now().Add(-schema.TrashTTL))
	testkit.Must(t, err)
	_, err = sqlitetest.Raw(t, path).ExecContext(t.Context(), "UPDATE links SET folded_url = NULL, folded_title = NULL")
	testkit.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); s.Tidy(ctx, slog.New(slog.DiscardHandler)) }()
	defer func() { cancel(); <-ended }()
	testkit.SucceedsWithin(t, time.Minute, func() error {
		_, found, err := s.List(t.Context(), nil, links.ListRequest{AccountID: owner, Query: "GRÖSSE", Page: 1})
		testkit.Must(t, err)
		_, trash, err := store.Links(t.Context(), owner, schema.LinkFilter{DeletedAfter: time.Unix(0, 0)}, 1)
		testkit.Must(t, err)
		return testkit.Mismatch("found and in the trash", [2]int64{found, trash}, [2]int64{1500, 0})
	})
}
