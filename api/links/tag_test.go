package links_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"linkstream/api/links"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

// taggedLinks is a store of links with ten tags each, no two the same.
type taggedLinks struct {
	schema.LinkStore
	count int64
}

// tagOf returns a tag of a link. Neither links nor tags are in the order of names.
func (s taggedLinks) tagOf(link, n int64) string {
	const prime = 7919
	return fmt.Sprintf("t%06d", (link*10+n)*prime%(10*s.count))
}

func (s taggedLinks) TagCounts(_ context.Context, _ int64, after string, limit int) (tags []schema.TagCount,
	err error) {
	for n := int64(0); n < 10*s.count && len(tags) < limit; n++ {
		if tag := fmt.Sprintf("t%06d", n); tag > after {
			tags = append(tags, schema.TagCount{Tag: tag, Links: 1})
		}
	}
	return tags, nil
}

func (s taggedLinks) TaggedLinks(_ context.Context, _, ordinal int64, limit int) (tagged []schema.TaggedLink,
	err error) {
	for ; ordinal < s.count && len(tagged) < limit; ordinal++ {
		link := schema.TaggedLink{ID: ordinal + 1, Ordinal: ordinal + 1}
		for n := range int64(10) {
			link.Tags = append(link.Tags, s.tagOf(ordinal, n))
		}
		tagged = append(tagged, link)
	}
	return tagged, nil
}

func (taggedLinks) ClickCounts(_ context.Context, ids []int64) (map[int64]int64, error) {
	counts := map[int64]int64{}
	for _, id := range ids {
		counts[id] = id
	}
	return counts, nil
}

func TestManyTags(t *testing.T) {
	store := taggedLinks{count: 10_000}
	s := links.New(schema.MustParseBaseURL("https://sho.rt"), store, nil, nil)
	var want []links.TagCount
	for link := range store.count {
		for n := range int64(10) {
			want = append(want, links.TagCount{Tag: store.tagOf(link, n), Links: 1, Clicks: link + 1})
		}
	}
	slices.SortFunc(want, func(a, b links.TagCount) int { return compareTags(a, b) })
	after := ""
	for len(want) > 0 {
		tags, more, err := s.Tags(t.Context(), 1, after)
		testkit.Must(t, err)
		testkit.Must(t, s.CountClicks(t.Context(), store, 1, tags))
		testkit.Equal(t, "tags", len(tags), links.MaxTagCounts)
		if !slices.Equal(tags, want[:len(tags)]) {
			t.Fatalf("after %q the tags are not the next %d ones", after, len(tags))
		}
		want = want[len(tags):]
		testkit.Equal(t, "more", more, len(want) > 0)
		after = tags[len(tags)-1].Tag
	}
	tags, more, err := s.Tags(t.Context(), 1, after)
	if len(tags) > 0 || more || err != nil {
		t.Errorf("after the last tag: %d tags, more %v, error %v", len(tags), more, err)
	}
	_, _, err = s.Tags(t.Context(), 1, "A")
	testkit.WantCode(t, err, schema.CodeInvalid)
}

// manyAlike is a store of n links with the tags a and b, whose counts of clicks take a while. The clicks of a link are
// the number of counts that have begun.
type manyAlike struct {
	schema.LinkStore
	n      int64
	tags   []string
	takes  time.Duration
	counts int64
}

func (s *manyAlike) TagCounts(context.Context, int64, string, int) (tags []schema.TagCount, err error) {
	for _, tag := range s.tags {
		tags = append(tags, schema.TagCount{Tag: tag, Links: s.n})
	}
	return tags, nil
}

func (s *manyAlike) TaggedLinks(ctx context.Context, _, ordinal int64, limit int) (tagged []schema.TaggedLink,
	err error) {
	if ordinal == 0 {
		s.counts++
		select {
		case <-time.After(s.takes):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	for ; ordinal < s.n && len(tagged) < limit; ordinal++ {
		tagged = append(tagged, schema.TaggedLink{ID: ordinal + 1, Ordinal: ordinal + 1, Tags: s.tags})
	}
	return tagged, nil
}

func (s *manyAlike) ClickCounts(_ context.Context, ids []int64) (map[int64]int64, error) {
	counts := map[int64]int64{}
	for _, id := range ids {
		counts[id] = s.counts
	}
	return counts, nil
}

// countTags returns the clicks of the tags of a store, with a deadline.
func countTags(t *testing.T, s *links.Shortener, store *manyAlike, patience time.Duration) (clicks []int64,
	err error) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tags, _, err := s.Tags(ctx, 1, "")
	testkit.Must(t, err)
	err = s.CountClicks(ctx, store, 1, tags)
	for _, tag := range tags {
		clicks = append(clicks, tag.Clicks)
	}
	return clicks, err
}

func TestTagsOfManyLinks(t *testing.T) {
	const takes, count = 7 * time.Second, 30_000
	for name, test := range map[string]func(t *testing.T, s *links.Shortener, store *manyAlike){
		"are counted on while nobody waits": func(t *testing.T, s *links.Shortener, store *manyAlike) {
			_, err := countTags(t, s, store, 5*time.Second)
			testkit.WantCode(t, err, schema.CodeBusy)
			clicks, err := countTags(t, s, store, 5*time.Second)
			testkit.Must(t, err)
			testkit.Equal(t, "clicks", clicks, []int64{count, count})
			testkit.Equal(t, "counts", store.counts, 1)
		},
		"are those of the last count": func(t *testing.T, s *links.Shortener, store *manyAlike) {
			for range 10 {
				clicks, err := countTags(t, s, store, time.Minute)
				testkit.Must(t, err)
				testkit.Equal(t, "clicks", clicks, []int64{count, count})
			}
		},
		"are counted again for a new tag": func(t *testing.T, s *links.Shortener, store *manyAlike) {
			_, err := countTags(t, s, store, time.Minute)
			testkit.Must(t, err)
			store.tags = []string{"a", "b", "c"}
			clicks, err := countTags(t, s, store, time.Minute)
			testkit.Must(t, err)
			testkit.Equal(t, "clicks", clicks, []int64{2 * count, 2 * count, 2 * count})
		},
		"are counted each time if they are few": func(t *testing.T, s *links.Shortener, store *manyAlike) {
			store.n = 25_000
			for n := range int64(3) {
				clicks, err := countTags(t, s, store, time.Minute)
				testkit.Must(t, err)
				testkit.Equal(t, "clicks", clicks, []int64{(n + 1) * store.n, (n + 1) * store.n})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &manyAlike{n: count, tags: []string{"a", "b"}, takes: takes}
				s := links.New(schema.MustParseBaseURL("https://sho.rt"), store, nil, nil)
				ctx, cancel := context.WithCancel(t.Context())
				stopped := make(chan struct{})
				go func() { s.Run(ctx); close(stopped) }()
				test(t, s, store)
				cancel()
				<-stopped
			})
		})
	}
}

func compareTags(a, b links.TagCount) int {
	if a.Tag < b.Tag {
		return -1
	}
	return 1
}
