package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var linkVersionBehaviours = []behaviour[schema.Database]{
	{"Version grows with each edit, deletion and restoring, and with nothing else", countsVersions},
	{"UpdateLink and DeleteUnchanged change only the version that they are given", changesVersion},
	{"UpdateLink and DeleteUnchanged do not find a version of a link that was deleted", changesNoDeletedVersion},
	{"UpdateLink and DeleteUnchanged succeed once for a version", changesVersionOnce},
}

// versionEdits has an edit of each field, and one that changes nothing.
var versionEdits = []schema.LinkEdit{{URL: new("https://new.example/")}, {Title: new("A title")},
	{Tags: &[]string{"a", "b"}}, {Active: new(false)}, {ExpiresAt: new(hour(7))}, {ExpiresAt: new(time.Time{})},
	{ExpiredURL: new("https://late.example/")}, {ForwardQuery: new(true)}, {Behaviour: extension("new")},
	{PasswordHash: new("hash")}, {ExternalID: new("id")}, {ExternalID: new("")}, {Title: new("A title")}, {}}

// wantVersion requires that a link has a version, however it is read.
func wantVersion(t *testing.T, store schema.Database, after string, link schema.Link, version int64) {
	t.Helper()
	byHash, err := schema.FindLink(t.Context(), store, link.DomainID, link.Hash)
	testkit.Must(t, err)
	testkit.Equal(t, "version by hash after "+after, byHash.Version, version)
	page, _, err := store.Links(t.Context(), link.AccountID, schema.LinkFilter{}, 1)
	testkit.Must(t, err)
	for _, found := range page {
		if found.ID == link.ID {
			testkit.Equal(t, "version in the list after "+after, found.Version, version)
		}
	}
}

func countsVersions(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link, other := addLink(t, store, owner.ID, 0, "hash"), addLink(t, store, owner.ID, 0, "other")
	version := int64(1)
	wantVersion(t, store, "CreateLink", link, version)
	for i, edit := range versionEdits {
		testkit.Must(t, store.UpdateLink(t.Context(), &link, edit, hour(1)))
		version++
		testkit.Equal(t, "version that an edit returns", link.Version, version)
		wantVersion(t, store, fmt.Sprintf("edit %d", i), link, version)
	}
	change := func(edit func(schema.Link) (schema.LinkEdit, error)) {
		changes := &schema.LinkChanges{AccountID: owner.ID, IDs: []int64{link.ID}, At: hour(2), Edit: edit}
		testkit.Must(t, store.ChangeLinks(t.Context(), changes))
	}
	restore := func() {
		_, err := store.RestoreLink(t.Context(), owner.ID, "hash", nil, hour(0), hour(3))
		testkit.Must(t, err)
	}
	for _, step := range []struct {
		name string
		adds int64
		do   func()
	}{
		{"ChangeLinks", 1, func() { change(addTag("c")) }},
		{"ChangeLinks that refuses the link", 0, func() {
			change(func(schema.Link) (schema.LinkEdit, error) { return schema.LinkEdit{}, errors.New("refused") })
		}},
		{"RenameTag", 1, func() {
			_, err := store.RenameTag(t.Context(), owner.ID, "c", "d", hour(2))
			testkit.Must(t, err)
		}},
		{"RenameTag of another tag", 0, func() {
			_, err := store.RenameTag(t.Context(), owner.ID, "c", "d", hour(2))
			testkit.Must(t, err)
		}},
		{"a take-down", 0, func() { testkit.Must(t, store.SetTakenDown(t.Context(), 0, "hash", true)) }},
		{"FoldLinks", 0, func() { _, err := store.FoldLinks(t.Context(), 10); testkit.Must(t, err) }},
		{"DeleteLink", 1, func() { testkit.Must(t, store.DeleteLink(t.Context(), link, hour(3))) }},
		{"RestoreLink", 1, restore},
		{"RestoreLink again", 0, restore},
		{"ChangeLinks that deletes", 1, func() { change(nil) }},
		{"RestoreLinks", 1, func() {
			_, err := store.RestoreLinks(t.Context(), owner.ID, []int64{link.ID}, hour(0), hour(4))
			testkit.Must(t, err)
		}},
	} {
		step.do()
		version += step.adds
		wantVersion(t, store, step.name, link, version)
	}
	wantVersion(t, store, "changes of another link", other, 1)
}

func changesVersion(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	seen := addLink(t, store, owner.ID, 0, "hash")
	for _, by := range versionEdits {
		link := seen
		by.Unchanged = true
		testkit.Must(t, store.UpdateLink(t.Context(), &link, by, hour(1)))
		for _, version := range []int64{seen.Version, link.Version + 1, 0, -1} {
			stale := link
			stale.Version = version
			lost := schema.LinkEdit{URL: new("https://lost.example/"), Unchanged: true}
			testkit.WantCode(t, store.UpdateLink(t.Context(), &stale, lost, hour(2)), schema.CodeConflict)
			testkit.WantCode(t, store.DeleteUnchanged(t.Context(), stale, hour(2)), schema.CodeConflict)
		}
		got, err := schema.FindLink(t.Context(), store, 0, "hash")
		testkit.Must(t, err)
		testkit.Equal(t, "link after the conflicts", got, link)
		seen = link
	}
	testkit.Must(t, store.DeleteUnchanged(t.Context(), seen, hour(3)))
	wantDeleted(t, store, seen, hour(3))
}

func changesNoDeletedVersion(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	link := addLink(t, store, owner.ID, 0, "hash")
	foreign := link
	foreign.AccountID = other.ID
	testkit.WantCode(t, store.DeleteUnchanged(t.Context(), foreign, hour(1)), schema.CodeNotFound)
	testkit.Must(t, store.DeleteLink(t.Context(), link, hour(1)))
	edit := schema.LinkEdit{Title: new("deleted"), Unchanged: true}
	for _, gone := range []schema.Link{link, {ID: link.ID, AccountID: owner.ID, Version: link.Version + 1},
		{ID: link.ID + 1000, AccountID: owner.ID, Version: 1}, {ID: link.ID, AccountID: other.ID + 1000, Version: 1}} {
		testkit.WantCode(t, store.UpdateLink(t.Context(), &gone, edit, hour(2)), schema.CodeNotFound)
		testkit.WantCode(t, store.DeleteUnchanged(t.Context(), gone, hour(2)), schema.CodeNotFound)
	}
}

func changesVersionOnce(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link := addLink(t, store, owner.ID, 0, "hash")
	edit := func(i int) error {
		seen := link
		edit := schema.LinkEdit{Title: new(fmt.Sprintf("by %d", i)), Unchanged: true}
		return store.UpdateLink(t.Context(), &seen, edit, hour(1))
	}
	for round := range 4 {
		winner := onlyOne(t, concurrently(64, edit), schema.CodeConflict)
		got, err := schema.FindLink(t.Context(), store, 0, "hash")
		testkit.Must(t, err)
		testkit.Equal(t, "title", got.Title, fmt.Sprintf("by %d", winner))
		testkit.Equal(t, "version", got.Version, int64(round+2))
		link = got
	}
	won := 0
	for i, err := range concurrently(64, func(i int) error {
		if i%2 > 0 {
			return edit(i)
		}
		return store.DeleteUnchanged(t.Context(), link, hour(2))
	}) {
		switch code := schema.ErrorCode(err); {
		case code == "":
			won++
		case code != schema.CodeConflict && code != schema.CodeNotFound:
			t.Errorf("call %d: %v", i, err)
		}
	}
	testkit.Equal(t, "calls that succeeded", won, 1)
	links, total, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{}, 1)
	testkit.Must(t, err)
	testkit.Equal(t, "links of the list, and their number", int64(len(links)), total)
}
