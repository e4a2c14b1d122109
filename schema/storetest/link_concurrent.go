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

// Stores may execute concurrent calls of CreateLink together. These checks require that the callers do not notice.
var linkConcurrencyBehaviours = []behaviour[schema.Database]{
	{"CreateLink returns to each concurrent call its own outcome", createsManyAtOnce},
	{"CreateLink fails only for those concurrent calls whose contexts end", cancelsSomeOfMany},
}

// createsManyAtOnce creates valid links concurrently with links that fail for every possible reason.
func createsManyAtOnce(t *testing.T, store schema.Database) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	domain := addDomain(t, store, a.ID, "go.example.org", true)
	gone := addDomain(t, store, a.ID, "gone.example.org", true)
	testkit.Must(t, store.DeleteDomain(t.Context(), gone.ID))
	addLink(t, store, a.ID, 0, "taken")
	const each = 12
	kinds := []struct {
		name                string
		accountID, domainID int64
		alias               string      // the hash of all calls; "": each call has its own
		winners             int         // calls that succeed
		code                schema.Code // of the other calls
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
		got, err := schema.FindLink(t.Context(), store, kind.domainID, links[i].Hash)
		testkit.Must(t, err)
		testkit.Equal(t, "link", got, links[i])
	}
	for i, kind := range kinds {
		testkit.Equal(t, kind.name, won[i], kind.winners)
	}
	sameOrdinals(t, store, a.ID, totals[a.ID])
	sameOrdinals(t, store, b.ID, totals[b.ID])
}

func cancelsSomeOfMany(t *testing.T, store schema.Database) {
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
			case 2: // at any moment of the call
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
	// A canceled call may have created its link, or may still create it: so each page is compared with its own total.
	for page, skipped := int64(1), int64(0); skipped < created.Load(); page, skipped = page+1, skipped+schema.PageSize {
		links, total, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{}, page)
		testkit.Must(t, err)
		testkit.Equal(t, "length of the page", int64(len(links)), min(total-skipped, schema.PageSize))
		for i, link := range links {
			testkit.Equal(t, "ordinal", link.Ordinal, total-skipped-int64(i))
		}
	}
}

func wantStored(ctx context.Context, store schema.LinkStore, link schema.Link) error {
	got, err := schema.FindLink(ctx, store, link.DomainID, link.Hash)
	if err == nil && (got.ID != link.ID || got.Ordinal != link.Ordinal || got.URL != link.URL) {
		err = fmt.Errorf("created %+v, but there is %+v", link, got)
	}
	return err
}
