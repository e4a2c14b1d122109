package shorten_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"linkstream/api/shorten"
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

func (s taggedLinks) TagCounts(_ context.Context, _ int64, after string, limit int) (tags []schema.TagCount, err error) {
	for n := int64(0); n < 10*s.count && len(tags) < limit; n++ {
		if tag := fmt.Sprintf("t%06d", n); tag > after {
			tags = append(tags, schema.TagCount{Tag: tag, Links: 1})
		}
	}
	return tags, nil
}

func (s taggedLinks) TaggedLinks(_ context.Context, _, ordinal int64, limit int) (links []schema.TaggedLink, err error) {
	for ; ordinal < s.count && len(links) < limit; ordinal++ {
		link := schema.TaggedLink{ID: ordinal + 1, Ordinal: ordinal + 1}
		for n := range int64(10) {
			link.Tags = append(link.Tags, s.tagOf(ordinal, n))
		}
		links = append(links, link)
	}
	return links, nil
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
	s := shorten.New(schema.MustParseBaseURL("https://sho.rt"), store, nil, nil)
	var want []shorten.TagCount
	for link := range store.count {
		for n := range int64(10) {
			want = append(want, shorten.TagCount{Tag: store.tagOf(link, n), Links: 1, Clicks: link + 1})
		}
	}
	slices.SortFunc(want, func(a, b shorten.TagCount) int { return compareTags(a, b) })
	after := ""
	for len(want) > 0 {
		tags, more, err := s.Tags(t.Context(), 1, after)
		testkit.Must(t, err)
		testkit.Must(t, s.CountClicks(t.Context(), store, 1, tags))
		testkit.Equal(t, "tags", len(tags), shorten.MaxTagCounts)
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

func compareTags(a, b shorten.TagCount) int {
	if a.Tag < b.Tag {
		return -1
	}
	return 1
}
