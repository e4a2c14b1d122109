package namebound_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/namebound"
	"linkstream/schema/testkit"
)

var day = time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)

// store has the names that a store would answer, and counts the queries.
type store struct {
	names   map[namebound.Key][]string
	queries int
	err     error
}

func (s *store) load(_ context.Context, keys []namebound.Key, each func(namebound.Key, string)) error {
	s.queries++
	for _, key := range keys {
		for _, name := range s.names[key] {
			each(key, name)
			each(namebound.Key{Link: key.Link, Day: key.Day + 1}, "of another day") // as a query of several links may
		}
	}
	return s.err
}

// batch returns a click on a link per name.
func batch(link int64, at time.Time, names ...string) *schema.ClickBatch {
	b := new(schema.ClickBatch)
	for _, name := range names {
		b.LinkID, b.ClickedAt, b.Referrer = append(b.LinkID, link), append(b.ClickedAt, at), append(b.Referrer, name)
	}
	return b
}

// distinct returns the names from-1 to to-1.
func distinct(from, to int) (names []string) {
	for i := from; i < to; i++ {
		names = append(names, fmt.Sprint("host-", i))
	}
	return names
}

// apply returns the referrers of a batch, and checks that the batch keeps its own.
func apply(t *testing.T, b *namebound.Bound, batch *schema.ClickBatch) []string {
	t.Helper()
	given := slices.Clone(batch.Referrer)
	names, err := b.Referrers(t.Context(), batch, new([]string))
	testkit.Must(t, err)
	testkit.Equal(t, "referrers of the batch", batch.Referrer, given)
	return names
}

func others(names []string) (n int) {
	for _, name := range names {
		if name == schema.OtherName {
			n++
		}
	}
	return n
}

func TestBound(t *testing.T) {
	key := namebound.Key{Link: 1, Day: schema.DayNumber(day)}
	t.Run("counts the names in the store", func(t *testing.T) {
		s := &store{names: map[namebound.Key][]string{key: append(distinct(0, schema.MaxNames-7), schema.OtherName)}}
		names := apply(t, namebound.New(s.load), batch(1, day, distinct(0, 2*schema.MaxNames)...))
		testkit.Equal(t, "others", others(names), schema.MaxNames)
		testkit.Equal(t, "named", names[:schema.MaxNames], distinct(0, schema.MaxNames))
	})
	t.Run("asks the store once per link and day, and not for few clicks", func(t *testing.T) {
		s := new(store)
		b := namebound.New(s.load)
		apply(t, b, batch(2, day, distinct(0, 100)...))
		testkit.Equal(t, "queries", s.queries, 0)
		for i := range 5 {
			apply(t, b, batch(1, day, distinct(i, i+300)...))
		}
		testkit.Equal(t, "queries", s.queries, 1)
		apply(t, b, batch(1, day.AddDate(0, 0, -1), distinct(0, 300)...))
		testkit.Equal(t, "queries", s.queries, 2)
	})
	t.Run("leaves clicks without a referrer alone", func(t *testing.T) {
		b := namebound.New(new(store).load)
		names := apply(t, b, batch(1, day, append(make([]string, 50), distinct(0, schema.MaxNames+1)...)...))
		testkit.Equal(t, "unknown", names[:50], make([]string, 50))
		testkit.Equal(t, "others", others(names), 1)
	})
	t.Run("fails while the store cannot be asked, and asks again", func(t *testing.T) {
		s := &store{err: errors.New("away")}
		b := namebound.New(s.load)
		for range 2 {
			if _, err := b.Referrers(t.Context(), batch(1, day, distinct(0, 2000)...), new([]string)); !errors.Is(err, s.err) {
				t.Errorf("error %v", err)
			}
		}
		s.err = nil
		testkit.Equal(t, "others", others(apply(t, b, batch(1, day, distinct(0, 2000)...))), 2000-schema.MaxNames)
	})
	t.Run("bounds its memory, and goes on from what the store has", func(t *testing.T) {
		s := &store{names: map[namebound.Key][]string{key: distinct(0, schema.MaxNames)}}
		b := namebound.New(s.load)
		flood := batch(1, day, distinct(0, 2*schema.MaxNames)...)
		apply(t, b, flood)
		for i := range int64(140) { // links with a click each, more than are remembered
			many := new(schema.ClickBatch)
			for j := range int64(1000) {
				one := batch(10+i*1000+j, day, "a.example.org")
				many.LinkID, many.ClickedAt = append(many.LinkID, one.LinkID...), append(many.ClickedAt, one.ClickedAt...)
				many.Referrer = append(many.Referrer, one.Referrer...)
			}
			apply(t, b, many)
		}
		testkit.Equal(t, "queries", s.queries, 1)
		testkit.Equal(t, "others", others(apply(t, b, flood)), schema.MaxNames)
		testkit.Equal(t, "queries after it was full", s.queries, 2)
	})
}

// The scratch memory must never be the batch's own.
func TestBoundScratch(t *testing.T) {
	b := namebound.New(new(store).load)
	var scratch []string
	first := batch(1, day, distinct(0, 1500)...)
	names, err := b.Referrers(t.Context(), first, &scratch)
	testkit.Must(t, err)
	testkit.Equal(t, "others", others(names), 500)
	second := batch(2, day, distinct(0, 10)...)
	names, err = b.Referrers(t.Context(), second, &scratch)
	testkit.Must(t, err)
	testkit.Equal(t, "names", names, distinct(0, 10))
	names, err = b.Referrers(t.Context(), first, &scratch)
	testkit.Must(t, err)
	testkit.Equal(t, "others", others(names), 500)
	testkit.Equal(t, "first batch", first.Referrer, distinct(0, 1500))
}

func BenchmarkReferrers(b *testing.B) {
	batches := map[string]*schema.ClickBatch{"of cold links": new(schema.ClickBatch), "of a hot link": batch(1, day, distinct(0, 0)...)}
	for i := range 10_000 {
		for name, to := range batches {
			link := int64(1)
			if name == "of cold links" {
				link = int64(i)
			}
			to.LinkID, to.ClickedAt = append(to.LinkID, link), append(to.ClickedAt, day)
			to.Referrer = append(to.Referrer, fmt.Sprint("host-", i%50))
		}
	}
	for name, clicks := range batches {
		b.Run(name, func(b *testing.B) {
			bound := namebound.New(new(store).load)
			var scratch []string
			b.ReportAllocs()
			for b.Loop() {
				_, err := bound.Referrers(b.Context(), clicks, &scratch)
				testkit.Must(b, err)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10_000, "ns/click")
		})
	}
}
