package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// Sizes of BenchmarkPages.
const (
	pagedLinks  = 200_000
	pagedAtOnce = 1000
	madeMeans   = time.Second / 50 // between two links that are made meanwhile
)

// BenchmarkPages reads 200,000 links of an account in pages of 1000, and as many changes, while 50 links per second are
// made. It reports the quantiles of the times of pages, and fails unless each link comes once.
func BenchmarkPages(b *testing.B, store schema.Database) {
	owner := schema.Account{Email: "many@example.org", CreatedAt: epoch}
	testkit.Must(b, store.CreateAccount(b.Context(), &owner))
	for i := 0; i < pagedLinks; i += pagedAtOnce {
		batch := &schema.LinkBatch{AccountID: owner.ID, Unused: true}
		for n := range pagedAtOnce {
			batch.Links = append(batch.Links, newLink(owner.ID, 0, fmt.Sprintf("link-%d", i+n)))
		}
		testkit.Must(b, store.CreateLinks(b.Context(), batch))
	}
	newestFirst := func(after *schema.LinkPosition) ([]schema.Link, error) {
		links, err := store.LinksAfter(b.Context(), owner.ID, schema.LinkFilter{}, *after, pagedAtOnce)
		if len(links) > 0 {
			*after = schema.PositionOf(links[len(links)-1])
		}
		return links, err
	}
	b.Run("list", func(b *testing.B) { benchmarkPages(b, store, owner, newestFirst) })
	changes := func(at *schema.LinkChangePosition) ([]schema.Link, error) {
		if _, err := store.NumberChanges(b.Context(), owner.ID, pagedAtOnce); err != nil {
			return nil, err
		}
		links, next, err := store.ChangedLinks(b.Context(), owner.ID, schema.LinkFilter{}, *at, pagedAtOnce)
		*at = next
		return links, err
	}
	b.Run("new links", func(b *testing.B) { benchmarkPages(b, store, owner, changes) })
	for i := 0; i < pagedLinks; i += pagedAtOnce {
		page, err := store.LinksAfter(b.Context(), owner.ID, schema.LinkFilter{OldestFirst: true},
			schema.LinkPosition{Ordinal: int64(i)}, pagedAtOnce)
		testkit.Must(b, err)
		ids := make([]int64, len(page))
		for n := range page {
			ids[n] = page[n].ID
		}
		testkit.Must(b, store.ChangeLinks(b.Context(), &schema.LinkChanges{AccountID: owner.ID, IDs: ids, Edit: addTag("t"),
			At: hour(i)}))
	}
	b.Run("changed links", func(b *testing.B) { benchmarkPages(b, store, owner, changes) })
}

// benchmarkPages reads all pages b.N times.
func benchmarkPages[P any](
	b *testing.B, store schema.Database, owner schema.Account, read func(*P) ([]schema.Link, error),
) {
	stop, made := make(chan struct{}), 0
	var making sync.WaitGroup
	making.Go(func() {
		for ticks := time.Tick(madeMeans); ; made++ {
			select {
			case <-stop:
				return
			case <-ticks:
			}
			link := newLink(owner.ID, 0, fmt.Sprintf("new-%s-%d-%d", b.Name(), b.N, made))
			if err := store.CreateLink(b.Context(), &link); err != nil {
				b.Error(err)
			}
		}
	})
	var times []time.Duration
	for b.Loop() {
		seen := make(map[int64]int, pagedLinks)
		for at := new(P); ; {
			began := time.Now()
			links, err := read(at)
			testkit.Must(b, err)
			if len(links) == 0 {
				break
			}
			times = append(times, time.Since(began))
			for _, l := range links {
				seen[l.Ordinal]++
			}
		}
		for ordinal := int64(1); ordinal <= pagedLinks; ordinal++ {
			if seen[ordinal] != 1 {
				b.Fatalf("link %d came %d times", ordinal, seen[ordinal])
			}
		}
	}
	close(stop)
	making.Wait()
	slices.Sort(times)
	for _, q := range []int{50, 99} {
		b.ReportMetric(float64(times[len(times)*q/100].Microseconds())/1000, fmt.Sprintf("p%d-ms/page", q))
	}
}
