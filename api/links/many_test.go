//go:build !race

// Sequential tests of many rows: the race detector could find nothing in them, and slows SQLite down twentyfold.

package links_test

import (
	"context"
	"testing"
	"time"

	"linkstream/api/links"
	"linkstream/schema"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

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
		restored, left, err := s.RestoreAll(t.Context(), f.owner, schema.LinkFilter{ChangedAt: at}, time.Now(), time.Now())
		testkit.Must(t, err)
		testkit.Equal(t, "restored and left", [2]int64{restored, left}, want)
	}
	testkit.Equal(t, "calls of the store", calls, map[string]int{"LinkIDs": 4, "RestoreLinks": 3})
	_, total, err := f.store.Links(t.Context(), f.owner, schema.LinkFilter{}, 1)
	testkit.Must(t, err)
	testkit.Equal(t, "links", total, 2900)
}
