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

// store has the answers of a store for names, and counts the queries.
type store struct {
	names   map[namebound.Key][][]string
	queries int
	err     error
}

func (s *store) load(_ context.Context, keys []namebound.Key, each func(namebound.Key, int64, []string)) error {
	s.queries++
	for _, key := range keys {
		for _, names := range s.names[key] {
			each(key, schema.QuarterNumber(day), names)
			each(namebound.Key{Account: 1, Link: key.Link, Day: key.Day + 1}, 0, names) // as a query of several links may
		}
	}
	return s.err
}

// batch returns a click on a link per referrer.
func batch(link int64, at time.Time, referrers ...string) *schema.ClickBatch {
	b := new(schema.ClickBatch)
	for _, name := range referrers {
		b.LinkID, b.AccountID, b.ClickedAt = append(b.LinkID, link), append(b.AccountID, 1), append(b.ClickedAt, at)
		for _, by := range schema.Dimensions() {
			column := b.Names(by)
			*column = append(*column, "any")
		}
		b.Referrer[len(b.Referrer)-1] = name
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

// rows returns the names of the clicks of a batch.
func rows(b *schema.ClickBatch) (all [][]string) {
	for i := range b.LinkID {
		var names []string
		for _, by := range schema.Dimensions() {
			names = append(names, (*b.Names(by))[i])
		}
		all = append(all, names)
	}
	return all
}

// apply returns the names of the clicks of a batch, and checks that the batch keeps its own.
func apply(t *testing.T, b *namebound.Bound, batch *schema.ClickBatch) *schema.ClickBatch {
	t.Helper()
	given := rows(batch)
	bounded, err := b.Apply(t.Context(), batch, new(namebound.Memory))
	testkit.Must(t, err)
	testkit.Equal(t, "names of the batch", rows(batch), given)
	return bounded
}

func others(b *schema.ClickBatch) (n int) {
	for _, name := range b.Referrer {
		if name == schema.OtherName {
			n++
		}
	}
	return n
}

func TestBound(t *testing.T) {
	key := namebound.Key{Account: 1, Link: 1, Day: schema.DayNumber(day)}
	t.Run("counts the names in the store", func(t *testing.T) {
		s := &store{names: map[namebound.Key][][]string{
			key: rows(batch(1, day, append(distinct(0, schema.MaxNames-7), schema.OtherName, "")...))}}
		bounded := apply(t, namebound.New(s.load), batch(1, day, distinct(0, 2*schema.MaxNames)...))
		testkit.Equal(t, "others", others(bounded), schema.MaxNames)
		testkit.Equal(t, "named", bounded.Referrer[:schema.MaxNames], distinct(0, schema.MaxNames))
	})
	t.Run("asks the store once per link and day, and not for few clicks", func(t *testing.T) {
		s := new(store)
		b := namebound.New(s.load)
		apply(t, b, batch(2, day, distinct(0, 100)...))
		testkit.Equal(t, "queries", s.queries, 0)
		for i := range 5 {
			apply(t, b, batch(1, day, distinct(i, i+600)...))
		}
		testkit.Equal(t, "queries", s.queries, 1)
		apply(t, b, batch(1, day.AddDate(0, 0, -1), distinct(0, 600)...))
		testkit.Equal(t, "queries", s.queries, 2)
	})
	t.Run("leaves clicks without a referrer alone", func(t *testing.T) {
		b := namebound.New(new(store).load)
		bounded := apply(t, b, batch(1, day, append(make([]string, 50), distinct(0, schema.MaxNames+1)...)...))
		testkit.Equal(t, "unknown", bounded.Referrer[:50], make([]string, 50))
		testkit.Equal(t, "others", others(bounded), 1)
	})
	t.Run("counts the combinations in the store, and leaves the rest names that no visitor chooses", func(t *testing.T) {
		const more = 100
		clicks := batch(1, day, make([]string, schema.MaxCombinations+more)...)
		for i := range clicks.LinkID {
			clicks.Browser[i], clicks.OS[i] = fmt.Sprint(i%200), fmt.Sprint(i/200)
		}
		want := rows(clicks)
		s := &store{names: map[namebound.Key][][]string{key: slices.Clone(want[more:])}}
		kept := schema.Dimensions(schema.FixedNames, schema.OwnedNames)
		for i := range more {
			for d, by := range schema.Dimensions() {
				if !slices.Contains(kept, by) {
					want[i][d] = schema.OtherName
				}
			}
		}
		bounded := apply(t, namebound.New(s.load), clicks)
		testkit.Equal(t, "names", rows(bounded), want)
	})
	t.Run("counts the combinations of quarters of an hour that there is room for, those in the store to begin with",
		func(t *testing.T) {
			const each = schema.MaxCombinations / 2
			s := &store{names: map[namebound.Key][][]string{}}
			b, quarters := namebound.New(s.load), schema.MaxQuarterRows/each
			for quarter := range quarters + 1 {
				clicks := batch(1, day.Add(time.Duration(quarter)*schema.ReportResolution), make([]string, each)...)
				for i := range clicks.LinkID {
					clicks.Browser[i], clicks.OS[i] = fmt.Sprint(i%200), fmt.Sprint(i/200)
				}
				if quarter == 0 { // the store has another combination in the first quarter
					s.names[key] = rows(batch(1, day, "t.co"))
				}
				want := 0
				switch quarter {
				case quarters - 1:
					want = 1
				case quarters:
					want = each
				}
				testkit.Equal(t, fmt.Sprint("others of quarter ", quarter), others(apply(t, b, clicks)), want)
			}
		})
	t.Run("fails while the store cannot be asked, and asks again", func(t *testing.T) {
		s := &store{err: errors.New("away")}
		b := namebound.New(s.load)
		for range 2 {
			if _, err := b.Apply(t.Context(), batch(1, day, distinct(0, 2000)...),
				new(namebound.Memory)); !errors.Is(err, s.err) {
				t.Errorf("error %v", err)
			}
		}
		s.err = nil
		testkit.Equal(t, "others", others(apply(t, b, batch(1, day, distinct(0, 2000)...))), 2000-schema.MaxNames)
	})
	t.Run("bounds its memory, and goes on from the names in the store", func(t *testing.T) {
		s := &store{names: map[namebound.Key][][]string{key: rows(batch(1, day, distinct(0, schema.MaxNames)...))}}
		b := namebound.New(s.load)
		flood := batch(1, day, distinct(0, 2*schema.MaxNames)...)
		apply(t, b, flood)
		for i := range int64(140) { // links with a click each, more than are kept in memory
			many := batch(0, day, make([]string, 1000)...)
			for j := range many.LinkID {
				many.LinkID[j] = 10 + i*1000 + int64(j)
			}
			apply(t, b, many)
		}
		testkit.Equal(t, "others", others(apply(t, b, flood)), schema.MaxNames)
		testkit.Equal(t, "queries", s.queries, 1)
		for i := range int64(60) { // more combinations than a Bound keeps
			many := batch(200_000+i, day, make([]string, schema.MaxCombinations)...)
			for j := range many.OS {
				many.OS[j] = fmt.Sprint(j)
			}
			apply(t, b, many)
		}
		s.queries = 0
		testkit.Equal(t, "others", others(apply(t, b, flood)), schema.MaxNames)
		testkit.Equal(t, "queries after it was full", s.queries, 1)
	})
}

// The memory must never be the batch's own.
func TestBoundMemory(t *testing.T) {
	b := namebound.New(new(store).load)
	var memory namebound.Memory
	first := batch(1, day, distinct(0, 1500)...)
	for range 2 {
		bounded, err := b.Apply(t.Context(), first, &memory)
		testkit.Must(t, err)
		testkit.Equal(t, "others", others(bounded), 500)
		second := batch(2, day, distinct(0, 10)...)
		bounded, err = b.Apply(t.Context(), second, &memory)
		testkit.Must(t, err)
		testkit.Equal(t, "names", bounded.Referrer, distinct(0, 10))
	}
	testkit.Equal(t, "first batch", first.Referrer, distinct(0, 1500))
}

func BenchmarkApply(b *testing.B) {
	batches := map[string]*schema.ClickBatch{"of cold links": batch(1, day, distinct(0, 10_000)...),
		"of a hot link": batch(1, day, distinct(0, 10_000)...)}
	for i := range 10_000 {
		batches["of cold links"].LinkID[i] = int64(i)
		for _, to := range batches {
			to.Referrer[i], to.Language[i] = to.Referrer[i%50], []string{"de", "en", "fr"}[i%3]
		}
	}
	for name, clicks := range batches {
		b.Run(name, func(b *testing.B) {
			bound := namebound.New(new(store).load)
			var memory namebound.Memory
			b.ReportAllocs()
			for b.Loop() {
				_, err := bound.Apply(b.Context(), clicks, &memory)
				testkit.Must(b, err)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10_000, "ns/click")
		})
	}
}
