package storetest

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// addTagged adds a link whose tags stand in text, separated by spaces.
func addTagged(t *testing.T, store schema.Database, accountID int64, hash, text string) schema.Link {
	t.Helper()
	link := newLink(accountID, 0, hash)
	link.Tags = strings.Fields(text)
	testkit.Must(t, store.CreateLink(t.Context(), &link))
	return link
}

func renamesTags(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	links := []schema.Link{addTagged(t, store, owner.ID, "first", "mid old z"),
		addTagged(t, store, owner.ID, "second", "old"), addTagged(t, store, owner.ID, "third", "old-2 the-old"),
		addTagged(t, store, owner.ID, "fourth", "")}
	addTagged(t, store, other.ID, "foreign", "old")
	testkit.Must(t, store.DeleteLink(t.Context(), addTagged(t, store, owner.ID, "gone", "old"), hour(1)))
	now := hour(1)
	for _, step := range []struct {
		from, to string
		links    int64
		tags     [4]string
	}{
		{"none", "new", 0, [4]string{"mid old z", "old", "old-2 the-old", ""}},
		{"old", "a_new", 2, [4]string{"a_new mid z", "a_new", "old-2 the-old", ""}},
		{"a_new", "zz", 2, [4]string{"mid z zz", "zz", "old-2 the-old", ""}},
		{"z", "zz", 1, [4]string{"mid zz", "zz", "old-2 the-old", ""}}, // which the link has already
		{"the-old", "zz", 1, [4]string{"mid zz", "zz", "old-2 zz", ""}},
		{"zz", "zz", 3, [4]string{"mid zz", "zz", "old-2 zz", ""}},
		{"zz", "", 3, [4]string{"mid", "", "old-2", ""}},
	} {
		now = now.Add(1e9)
		n, err := store.RenameTag(t.Context(), owner.ID, step.from, step.to, now)
		testkit.Must(t, err)
		testkit.Equal(t, "links with "+step.from, n, step.links)
		for i := range links {
			want := links[i]
			if want.Tags = strings.Fields(step.tags[i]); len(want.Tags) == 0 {
				want.Tags = nil
			}
			got, err := schema.FindLink(t.Context(), store, 0, want.Hash)
			testkit.Must(t, err)
			if had := " " + strings.Join(links[i].Tags, " ") + " "; strings.Contains(had, " "+step.from+" ") {
				want.UpdatedAt, want.Version = now, want.Version+1
			}
			testkit.Equal(t, fmt.Sprintf("link %s after %s became %q", want.Hash, step.from, step.to), got, want)
			links[i] = got
		}
	}
	foreign, err := schema.FindLink(t.Context(), store, 0, "foreign")
	testkit.Must(t, err)
	testkit.Equal(t, "tags of another account", foreign.Tags, []string{"old"})
}

func countsTags(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	for i, tags := range []string{"b z", "a b c", "", "b z", "a-1 a_1 a0", "b"} {
		addTagged(t, store, owner.ID, fmt.Sprintf("hash-%d", i), tags)
	}
	addTagged(t, store, other.ID, "foreign", "a other")
	testkit.Must(t, store.DeleteLink(t.Context(), addTagged(t, store, owner.ID, "gone", "b gone"), hour(1)))
	all := []schema.TagCount{{Tag: "a", Links: 1}, {Tag: "a-1", Links: 1}, {Tag: "a0", Links: 1}, {Tag: "a_1", Links: 1},
		{Tag: "b", Links: 4},
		{Tag: "c", Links: 1}, {Tag: "z", Links: 2}}
	for _, c := range []struct {
		account int64
		after   string
		limit   int
		want    []schema.TagCount
	}{
		{owner.ID, "", 100, all}, {owner.ID, "", 7, all}, {owner.ID, "", 2, all[:2]}, {owner.ID, "a-1", 3, all[2:5]},
		{owner.ID, "aa", 100, all[4:]},
		{owner.ID, "z", 100, nil}, {other.ID, "", 100, []schema.TagCount{{Tag: "a", Links: 1}, {Tag: "other", Links: 1}}},
		{1 << 40, "", 100, nil},
	} {
		got, err := store.TagCounts(t.Context(), c.account, c.after, c.limit)
		testkit.Must(t, err)
		testkit.Equal(t, fmt.Sprintf("%d tags after %q", c.limit, c.after), got, c.want, nilOrEmpty)
	}
}

func readsTagged(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	var want []schema.TaggedLink
	for i := range 7 {
		link := addTagged(t, store, owner.ID, fmt.Sprintf("hash-%d", i), []string{"one two", "", "three"}[i%3])
		addTagged(t, store, other.ID, fmt.Sprintf("other-%d", i), "other")
		if i == 3 {
			testkit.Must(t, store.DeleteLink(t.Context(), link, hour(1)))
		} else if len(link.Tags) > 0 {
			want = append(want, schema.TaggedLink{ID: link.ID, Ordinal: link.Ordinal, Tags: link.Tags})
		}
	}
	var got []schema.TaggedLink
	for after := int64(math.MinInt64); ; after = got[len(got)-1].Ordinal {
		links, err := store.TaggedLinks(t.Context(), owner.ID, after, 2)
		testkit.Must(t, err)
		if got = append(got, links...); len(links) == 0 {
			break
		}
	}
	testkit.Equal(t, "links", got, want)
}

func renamesTagsConcurrently(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	const n = 8
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("tag-%d", i))
	}
	for i := range 3 * n {
		addTagged(t, store, owner.ID, fmt.Sprintf("hash-%d", i), strings.Join(all, " "))
	}
	for _, err := range concurrently(n, func(i int) error {
		_, err := store.RenameTag(t.Context(), owner.ID, all[i], fmt.Sprintf("new-%d", i), hour(i))
		return err
	}) {
		testkit.Must(t, err)
	}
	for i := range all {
		all[i] = fmt.Sprintf("new-%d", i)
	}
	links, err := store.LinksAfter(t.Context(), owner.ID, schema.LinkFilter{}, schema.LinkPosition{}, 3*n)
	testkit.Must(t, err)
	testkit.Equal(t, "links", len(links), 3*n)
	for _, link := range links {
		testkit.Equal(t, "tags of "+link.Hash, link.Tags, all)
	}
}
