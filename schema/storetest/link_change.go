package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var linkChangeBehaviours = []behaviour[schema.Database]{
	{"ChangeLinks edits links of one account, each as it is then", editsMany},
	{"ChangeLinks deletes links of one account", deletesMany},
	{"ChangeLinks lets concurrent calls all take effect", editsManyConcurrently},
	{"ChangeLinks records its call with the changes, once", changesOnce},
	{"ChangeLinks changes nothing if its call cannot be recorded", changesNothingUnrecorded},
	{"OwnedLinks finds links by hash on every domain", readsOwnedByHash},
	{"RestoreLink restores a link as it was", restoresLinks},
	{"RestoreLink picks the default domain, then the oldest", restoresByDomain},
	{"RestoreLink finds only what can be restored", restoresOnlyTrash},
	{"RestoreLink restores a link once, and may be repeated for a minute", restoresOnce},
	{"RestoreLinks restores what was deleted together", restoresTogether},
	{"Links pages through the trash, the last deleted first", pagesTrash},
	{"PurgeLinks leaves only a reserved hash", purgesLinks},
}

func addTag(tag string) func(schema.Link) (schema.LinkEdit, error) {
	return func(link schema.Link) (schema.LinkEdit, error) {
		tags := append(slices.Clone(link.Tags), tag)
		slices.Sort(tags)
		return schema.LinkEdit{Tags: &tags}, nil
	}
}

func editsMany(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	one, two := addLink(t, store, owner.ID, 0, "one"), addLink(t, store, owner.ID, 0, "two")
	gone, foreign := addLink(t, store, owner.ID, 0, "gone"), addLink(t, store, other.ID, 0, "foreign")
	testkit.Must(t, store.DeleteLink(t.Context(), gone, hour(1)))
	refusal := schema.ClientErrorf(schema.CodeInvalid, "not this one")
	changes := &schema.LinkChanges{AccountID: owner.ID, IDs: []int64{two.ID, gone.ID, foreign.ID, one.ID, 1 << 40},
		At: hour(2),
		Edit: func(link schema.Link) (schema.LinkEdit, error) {
			if link.Hash == "one" {
				return schema.LinkEdit{}, refusal
			}
			tags := []string{"of-" + link.Hash}
			return schema.LinkEdit{Tags: &tags, Active: new(false), Behaviour: extension("new")}, nil
		}}
	testkit.Must(t, store.ChangeLinks(t.Context(), changes))
	testkit.Must(t, changes.Errs[0])
	for _, i := range []int{1, 2, 4} {
		testkit.WantCode(t, changes.Errs[i], schema.CodeNotFound)
	}
	if !errors.Is(changes.Errs[3], refusal) {
		t.Errorf("refused edit: %v", changes.Errs[3])
	}
	two.Tags, two.Active, two.Behaviour, two.UpdatedAt = []string{"of-two"}, false, extension("new"), hour(2)
	two.Version++
	for _, want := range []schema.Link{one, two, foreign} {
		got, err := schema.FindLink(t.Context(), store, 0, want.Hash)
		testkit.Must(t, err)
		testkit.Equal(t, "link", got, want)
	}
}

func deletesMany(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	var ids []int64
	var links []schema.Link
	for i := range 30 {
		link := addLink(t, store, owner.ID, 0, fmt.Sprintf("hash-%02d", i))
		if i < 25 {
			ids, links = append(ids, link.ID), append(links, link)
		}
	}
	foreign := addLink(t, store, other.ID, 0, "foreign")
	changes := &schema.LinkChanges{AccountID: owner.ID, IDs: append(slices.Clone(ids), foreign.ID), At: hour(1)}
	testkit.Must(t, store.ChangeLinks(t.Context(), changes))
	for i, link := range links {
		testkit.Must(t, changes.Errs[i])
		wantDeleted(t, store, link, hour(1))
	}
	testkit.WantCode(t, changes.Errs[25], schema.CodeNotFound)
	page, total, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{}, 1)
	testkit.Must(t, err)
	testkit.Equal(t, "links", len(page), 5)
	testkit.Equal(t, "total", total, 5)
	sameOrdinals(t, store, other.ID, 1)
}

func editsManyConcurrently(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	var ids []int64
	for i := range 12 {
		ids = append(ids, addLink(t, store, owner.ID, 0, fmt.Sprintf("hash-%d", i)).ID)
	}
	for _, err := range concurrently(8, func(i int) error {
		mine := slices.Clone(ids)
		if i%2 > 0 {
			slices.Reverse(mine)
		}
		changes := &schema.LinkChanges{AccountID: owner.ID, IDs: mine, At: hour(1), Edit: addTag(fmt.Sprintf("t%d", i))}
		return errors.Join(append([]error{store.ChangeLinks(t.Context(), changes)}, changes.Errs...)...)
	}) {
		testkit.Must(t, err)
	}
	links, err := store.LinksByID(t.Context(), owner.ID, ids)
	testkit.Must(t, err)
	for _, link := range links {
		testkit.Equal(t, "tags", len(link.Tags), 8)
	}
}

// newChange returns changes that are recorded.
func newChange(accountID int64, id int64, tag string) *schema.LinkChanges {
	return &schema.LinkChanges{AccountID: accountID, IDs: []int64{id}, At: hour(1), Edit: addTag(tag),
		Call:   &schema.IdempotentCall{AccountID: accountID, Key: [32]byte{1}, Request: [32]byte{1, 2, 3}, At: epoch},
		Answer: func(errs []error) ([]byte, error) { return fmt.Append(nil, tag, errs), nil }}
}

func changesOnce(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link := addLink(t, store, owner.ID, 0, "hash")
	calls := make([]*schema.LinkChanges, 6)
	winner := onlyOne(t, concurrently(len(calls), func(i int) error {
		calls[i] = newChange(owner.ID, link.ID, fmt.Sprintf("tag-%d", i))
		return store.ChangeLinks(t.Context(), calls[i])
	}), schema.CodeConflict)
	recorded, err := store.RecordedCall(t.Context(), *calls[winner].Call)
	testkit.Must(t, err)
	testkit.Equal(t, "answer", string(recorded.Answer), fmt.Sprintf("tag-%d[<nil>]", winner))
	err = store.ChangeLinks(t.Context(), newChange(owner.ID, link.ID, "again"))
	if !errors.Is(err, schema.ErrCallRepeated) {
		t.Errorf("repeated call: %v", err)
	}
	got, err := schema.FindLink(t.Context(), store, 0, "hash")
	testkit.Must(t, err)
	testkit.Equal(t, "tags", got.Tags, []string{fmt.Sprintf("tag-%d", winner)})
}

func changesNothingUnrecorded(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link := addLink(t, store, owner.ID, 0, "hash")
	failing := newChange(owner.ID, link.ID, "tag")
	failing.Answer = func([]error) ([]byte, error) { return nil, schema.Errorf(schema.CodeInternal, "no answer") }
	testkit.WantCode(t, store.ChangeLinks(t.Context(), failing), schema.CodeInternal)
	failing.Edit = nil
	testkit.WantCode(t, store.ChangeLinks(t.Context(), failing), schema.CodeInternal)
	got, err := schema.FindOwnedLink(t.Context(), store, owner.ID, "hash", nil)
	testkit.Must(t, err)
	testkit.Equal(t, "link", got, link)
	testkit.Must(t, store.ChangeLinks(t.Context(), newChange(owner.ID, link.ID, "tag")))
}

func readsOwnedByHash(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	custom := addLink(t, store, owner.ID, domain.ID, "hash")
	custom.Host = domain.Host
	def, second := addLink(t, store, owner.ID, 0, "hash"), addLink(t, store, owner.ID, 0, "second")
	addLink(t, store, owner.ID, 0, "unasked")
	addLink(t, store, other.ID, 0, "foreign")
	testkit.Must(t, store.DeleteLink(t.Context(), addLink(t, store, owner.ID, 0, "gone"), hour(1)))
	got, err := store.OwnedLinks(t.Context(), owner.ID, []string{"hash", "second", "foreign", "gone", "unknown", "hash"})
	testkit.Must(t, err)
	testkit.Equal(t, "links", got, []schema.Link{def, second, custom})
}

func restoresLinks(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	addLink(t, store, owner.ID, 0, "first")
	link := newLink(owner.ID, domain.ID, "hash")
	link.Title, link.Tags, link.ForwardQuery, link.ExpiredURL = "title", []string{"tag"}, true, "https://late.example/"
	link.ExpiresAt, link.Behaviour, link.Active = hour(1), extension("kept"), false
	testkit.Must(t, store.CreateLink(t.Context(), &link))
	link.Host = domain.Host
	addLink(t, store, owner.ID, 0, "last")
	before, _, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{}, 1)
	testkit.Must(t, err)
	for round := range 3 {
		testkit.Must(t, store.DeleteLink(t.Context(), link, hour(2+round)))
		wantDeleted(t, store, link, hour(2+round))
		tags, err := store.TagCounts(t.Context(), owner.ID, "", 10)
		testkit.Must(t, err)
		testkit.Equal(t, "tags of deleted links", len(tags), 0)
		got, err := store.RestoreLink(t.Context(), owner.ID, "hash", nil, hour(1), hour(10+round))
		testkit.Must(t, err)
		link.UpdatedAt, link.Version = hour(10+round), link.Version+2
		testkit.Equal(t, "restored link", got, link)
		before[1] = link
		after, total, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{}, 1)
		testkit.Must(t, err)
		testkit.Equal(t, "links", after, before)
		testkit.Equal(t, "total", total, 3)
		testkit.WantCode(t, store.DeleteDomain(t.Context(), domain.ID), schema.CodeConflict)
	}
}

func restoresByDomain(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	var links []schema.Link
	for _, host := range []string{"a.example.org", "b.example.org", ""} {
		domain := schema.Domain{}
		if host != "" {
			domain = addDomain(t, store, owner.ID, host, true)
		}
		link := addLink(t, store, owner.ID, domain.ID, "hash")
		testkit.Must(t, store.DeleteLink(t.Context(), link, hour(1)))
		links = append(links, link)
	}
	got, err := store.RestoreLink(t.Context(), owner.ID, "hash", &links[1].DomainID, hour(0), hour(2))
	testkit.Must(t, err)
	testkit.Equal(t, "link on a domain", got.ID, links[1].ID)
	testkit.Must(t, store.DeleteLink(t.Context(), got, hour(3)))
	for n, want := range []schema.Link{links[2], links[0], links[1]} {
		for range 2 { // a repetition restores no other link
			got, err := store.RestoreLink(t.Context(), owner.ID, "hash", nil, hour(0), hour(4+n))
			testkit.Must(t, err)
			testkit.Equal(t, "link", got.ID, want.ID)
		}
	}
}

func restoresOnlyTrash(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	addLink(t, store, owner.ID, 0, "live")
	remade, homeless := addLink(t, store, owner.ID, 0, "remade"), addLink(t, store, owner.ID, domain.ID, "homeless")
	early, purged := addLink(t, store, owner.ID, 0, "early"), addLink(t, store, owner.ID, 0, "purged")
	for i, link := range []schema.Link{purged, early, remade, homeless, addLink(t, store, other.ID, 0, "foreign"),
		addLink(t, store, owner.ID, 0, "batched")} {
		testkit.Must(t, store.DeleteLink(t.Context(), link, hour(i+1)))
	}
	addLink(t, store, owner.ID, 0, "remade")
	testkit.Must(t, store.DeleteDomain(t.Context(), domain.ID))
	purgedLinks, err := store.PurgeLinks(t.Context(), hour(1), 10)
	testkit.Must(t, err)
	testkit.Equal(t, "purged links", purgedLinks, 1)
	batch := schema.LinkBatch{AccountID: owner.ID,
		Links: []schema.Link{{Hash: "batched", URL: "https://example.org/", CreatedAt: hour(7)}}}
	testkit.Must(t, store.CreateLinks(t.Context(), &batch))
	for _, anew := range []string{"remade", "batched"} {
		_, err = store.RestoreLink(t.Context(), owner.ID, anew, nil, hour(0), hour(9))
		testkit.WantCode(t, err, schema.CodeConflict)
	}
	testkit.Must(t, store.DeleteLink(t.Context(), batch.Links[0], hour(8)))
	_, err = store.RestoreLink(t.Context(), owner.ID, "batched", nil, hour(0), hour(9))
	testkit.Must(t, err)
	for _, hash := range []string{"live", "batched", "homeless", "purged", "foreign", "unknown"} {
		_, err := store.RestoreLink(t.Context(), owner.ID, hash, nil, hour(0), hour(10))
		testkit.WantCode(t, err, schema.CodeNotFound)
	}
	_, err = store.RestoreLink(t.Context(), owner.ID, "early", nil, hour(2), hour(9))
	testkit.WantCode(t, err, schema.CodeNotFound)
	_, err = store.RestoreLink(t.Context(), owner.ID, "early", nil, hour(2).Add(-time.Second), hour(9))
	testkit.Must(t, err)
	_, total, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{DeletedAfter: hour(0)}, 1)
	testkit.Must(t, err)
	testkit.Equal(t, "links in the trash", total, 0)
	_, total, err = store.Links(t.Context(), owner.ID, schema.LinkFilter{}, 1)
	testkit.Must(t, err)
	testkit.Equal(t, "links", total, 4)
}

func restoresOnce(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link := addLink(t, store, owner.ID, 0, "hash")
	for round := range 3 {
		testkit.Must(t, store.DeleteLink(t.Context(), link, hour(round+1)))
		at := hour(9 + round)
		for _, err := range concurrently(8, func(int) error {
			restored, err := store.RestoreLink(t.Context(), owner.ID, "hash", nil, hour(0), at)
			if err == nil && restored.ID != link.ID {
				err = fmt.Errorf("got link %d", restored.ID)
			}
			return err
		}) {
			testkit.Must(t, err)
		}
		_, err := store.RestoreLink(t.Context(), owner.ID, "hash", nil, hour(0), at.Add(schema.RestoreAgain-time.Second))
		testkit.Must(t, err)
		_, err = store.RestoreLink(t.Context(), owner.ID, "hash", nil, hour(0), at.Add(schema.RestoreAgain))
		testkit.WantCode(t, err, schema.CodeNotFound)
		_, total, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{}, 1)
		testkit.Must(t, err)
		testkit.Equal(t, "total", total, 1)
	}
}

func restoresTogether(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	foreign, early := addLink(t, store, other.ID, 0, "foreign"), addLink(t, store, owner.ID, 0, "early")
	var ids []int64
	for i := range 30 {
		ids = append(ids, addLink(t, store, owner.ID, 0, fmt.Sprintf("hash-%d", i)).ID)
	}
	homeless := addLink(t, store, owner.ID, domain.ID, "homeless")
	before, total, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{}, 2)
	testkit.Must(t, err)
	at := hour(3).Add(7 * time.Millisecond)
	for _, deletion := range []*schema.LinkChanges{
		{AccountID: owner.ID, IDs: append([]int64{homeless.ID}, ids...), At: at},
		{AccountID: owner.ID, IDs: []int64{early.ID}, At: at.Add(-time.Millisecond)},
		{AccountID: other.ID, IDs: []int64{foreign.ID}, At: at},
	} {
		testkit.Must(t, store.ChangeLinks(t.Context(), deletion))
	}
	testkit.Must(t, store.DeleteDomain(t.Context(), domain.ID))
	remade := addLink(t, store, owner.ID, 0, "hash-3")
	found, err := store.LinkIDs(t.Context(), owner.ID, schema.LinkFilter{DeletedAfter: hour(0), ChangedAt: at}, 100)
	testkit.Must(t, err)
	slices.Sort(found)
	testkit.Equal(t, "links that were deleted together", found, slices.Delete(slices.Clone(ids), 3, 4))

	restored, err := store.RestoreLinks(t.Context(), owner.ID, found, at, hour(4))
	testkit.Must(t, err)
	testkit.Equal(t, "restored links that were deleted later", restored, 0)
	given := append([]int64{foreign.ID, homeless.ID, remade.ID, 0}, ids...)
	restored, err = store.RestoreLinks(t.Context(), owner.ID, given, hour(0), hour(4))
	testkit.Must(t, err)
	testkit.Equal(t, "restored links", restored, 29)
	restored, err = store.RestoreLinks(t.Context(), owner.ID, given, hour(0), hour(4))
	testkit.Must(t, err)
	testkit.Equal(t, "links that are restored again", restored, 0)
	testkit.Must(t, store.DeleteLink(t.Context(), remade, hour(5)))
	after, newTotal, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{}, 2)
	testkit.Must(t, err)
	testkit.Equal(t, "total", newTotal, total-3) // early, hash-3, homeless
	testkit.Equal(t, "last link", after[len(after)-1].Hash, "hash-0")
	testkit.Equal(t, "time of the change", after[0].UpdatedAt, hour(4))
	testkit.Equal(t, "ordinal", after[len(after)-1].Ordinal, before[len(before)-2].Ordinal)
}

func pagesTrash(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	var want []string
	for i := range schema.PageSize + 5 {
		link := addLink(t, store, owner.ID, 0, fmt.Sprintf("hash-%d", i))
		if i%2 == 0 {
			edited := link
			testkit.Must(t, store.UpdateLink(t.Context(), &edited, schema.LinkEdit{Title: new("even")}, hour(0)))
		}
		testkit.Must(t, store.DeleteLink(t.Context(), link, hour(i+1)))
		want = append(want, link.Hash)
	}
	addLink(t, store, owner.ID, 0, "live")
	slices.Reverse(want)
	trash := schema.LinkFilter{DeletedAfter: hour(2)}
	want = want[:len(want)-2]
	var got []string
	for page := int64(1); page <= 2; page++ {
		links, total, err := store.Links(t.Context(), owner.ID, trash, page)
		testkit.Must(t, err)
		testkit.Equal(t, "total", total, int64(len(want)))
		for _, link := range links {
			got = append(got, link.Hash)
			testkit.Equal(t, "stop", link.Stopped, schema.Deleted)
		}
	}
	testkit.Equal(t, "hashes", got, want)
	trash.Words = withWord("even").Words
	_, total, err := store.Links(t.Context(), owner.ID, trash, 1)
	testkit.Must(t, err)
	testkit.Equal(t, "found links", total, 12)
}

func purgesLinks(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	var links []schema.Link
	for i := range 5 {
		link := newLink(owner.ID, 0, fmt.Sprintf("hash-%d", i))
		link.Title, link.Tags, link.ForwardQuery, link.ExpiredURL = "title", []string{"tag"}, true, "https://late.example/"
		link.ExpiresAt, link.Behaviour = hour(1), extension("gone")
		testkit.Must(t, store.CreateLink(t.Context(), &link))
		testkit.Must(t, store.DeleteLink(t.Context(), link, hour(i+1)))
		links = append(links, link)
	}
	for _, want := range []int64{2, 1, 0} {
		purged, err := store.PurgeLinks(t.Context(), hour(3), 2)
		testkit.Must(t, err)
		testkit.Equal(t, "purged", purged, want)
	}
	for i, link := range links {
		want := link
		if i < 3 {
			want = schema.Link{ID: link.ID, AccountID: owner.ID, Hash: link.Hash, CreatedAt: link.CreatedAt}
		}
		want.Ordinal, want.UpdatedAt, want.Stopped = -link.Ordinal, hour(i+1), schema.Deleted
		want.Version = link.Version + 1
		got, err := schema.FindLink(t.Context(), store, 0, link.Hash)
		testkit.Must(t, err)
		testkit.Equal(t, "link", got, want)
	}
}
