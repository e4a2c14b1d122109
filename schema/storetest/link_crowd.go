package storetest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// What many calls of CreateLink at the same time do to each other, which stores may do together: nothing.
var linkCrowdBehaviours = []behaviour[LinkStores]{
	{"CreateLink gives each of many concurrent calls its own outcome", tellsCrowdApart},
	{"CreateLink fails for those of many concurrent calls whose context ends, and for no others", keepsContextsApart},
}

// tellsCrowdApart mixes links that nothing stands in the way of with all kinds that something does.
func tellsCrowdApart(t *testing.T, store LinkStores) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	domain := addDomain(t, store, a.ID, "go.example.org", true)
	gone := addDomain(t, store, a.ID, "gone.example.org", true)
	testkit.Must(t, store.DeleteDomain(t.Context(), gone.ID))
	addLink(t, store, a.ID, 0, "taken")
	const each = 12
	kinds := []struct {
		name                string
		accountID, domainID int64
		alias               string      // of all calls; "": each has its own
		winners             int         // of each
		code                schema.Code // what the others get
	}{
		{"own hash of a", a.ID, 0, "", each, ""},
		{"own hash of b", b.ID, 0, "", each, ""},
		{"own hash on domain", b.ID, domain.ID, "", each, ""},
		{"wanted by all of a", a.ID, 0, "wanted", 1, schema.CodeConflict},
		{"wanted by all of b on domain", b.ID, domain.ID, "wanted", 1, schema.CodeConflict},
		{"taken before", b.ID, 0, "taken", 0, schema.CodeConflict},
		{"unknown domain", a.ID, gone.ID, "", 0, schema.CodeNotFound},
		{"unknown account", b.ID + 1000, 0, "", 0, schema.CodeNotFound},
	}
	links := make([]schema.Link, each*len(kinds))
	errs := concurrently(len(links), func(i int) error {
		kind, hash := kinds[i%len(kinds)], fmt.Sprintf("own-%d", i)
		if kind.alias != "" {
			hash = kind.alias
		}
		links[i] = newLink(kind.accountID, kind.domainID, hash)
		links[i].URL = fmt.Sprintf("https://example.org/%d", i)
		return store.CreateLink(t.Context(), &links[i])
	})
	totals := map[int64]int64{a.ID: 1}
	won := make([]int, len(kinds))
	for i, err := range errs {
		kind := kinds[i%len(kinds)]
		if err != nil {
			testkit.WantCode(t, err, kind.code)
			continue
		}
		won[i%len(kinds)]++
		totals[kind.accountID]++
		if links[i].DomainID != 0 {
			links[i].Host = domain.Host
		}
		got, err := store.Link(t.Context(), kind.domainID, links[i].Hash)
		testkit.Must(t, err)
		testkit.Equal(t, "link", got, links[i])
	}
	for i, kind := range kinds {
		testkit.Equal(t, kind.name, won[i], kind.winners)
	}
	sameOrdinals(t, store, a.ID, totals[a.ID])
	sameOrdinals(t, store, b.ID, totals[b.ID])
}

func keepsContextsApart(t *testing.T, store LinkStores) {
	const rounds, crowd = 10, 32
	owner := addAccount(t, store, "a@example.org")
	var created atomic.Int64
	for round := range rounds {
		for _, err := range concurrently(crowd, func(i int) error {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			switch i % 4 {
			case 1:
				cancel()
			case 2: // at some moment of the call
				time.AfterFunc(time.Duration(i)*50*time.Microsecond, cancel)
			}
			link := newLink(owner.ID, 0, fmt.Sprintf("hash-%d-%d", round, i))
			err := store.CreateLink(ctx, &link)
			if err == nil {
				created.Add(1)
				return wantStored(t.Context(), store, link)
			}
			if code := schema.ErrorCode(err); ctx.Err() == nil || code == schema.CodeConflict || code == schema.CodeNotFound {
				return fmt.Errorf("create %q, context error %v: %w", link.Hash, ctx.Err(), err)
			}
			return nil
		}) {
			testkit.Must(t, err)
		}
	}
	if created.Load() < rounds*crowd/2 {
		t.Fatalf("%d links were created", created.Load())
	}
	// What ended unseen is there with its ordinal or is not there. It may still come in, so each page has a total of its own.
	for page, skipped := int64(1), int64(0); skipped < created.Load(); page, skipped = page+1, skipped+schema.PageSize {
		links, total, err := store.Links(t.Context(), owner.ID, page)
		testkit.Must(t, err)
		testkit.Equal(t, "length of the page", int64(len(links)), min(total-skipped, schema.PageSize))
		for i, link := range links {
			testkit.Equal(t, "ordinal", link.Ordinal, total-skipped-int64(i))
		}
	}
}

func wantStored(ctx context.Context, store schema.LinkStore, link schema.Link) error {
	got, err := store.Link(ctx, link.DomainID, link.Hash)
	if err == nil && (got.ID != link.ID || got.Ordinal != link.Ordinal || got.URL != link.URL) {
		err = fmt.Errorf("created %+v, but there is %+v", link, got)
	}
	return err
}
