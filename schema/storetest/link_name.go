package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var linkNameBehaviours = []behaviour[schema.Database]{
	{"UpdateLink renames a link, which is found by all of its names", renamesLinks},
	{"UpdateLink gives a link a former hash back, and gives others up", givesNamesUp},
	{"UpdateLink lets free hashes lead to a link, as former ones", addsNames},
	{"UpdateLink takes no name of another link, and one of a deleted link of the account", renamesToUsedNames},
	{"UpdateLink replaces only the names that its caller has seen", renamesUnchanged},
	{"UpdateLink renames a link for one of concurrent calls", renamesOnce},
	{"CreateLink never gets the hash of a link that is being renamed", keepsNamesInBetween},
	{"links that get each other's hashes at once keep all of their names", swapsNames},
	{"a deleted link keeps its names, and comes back with them", deletesNames},
	{"CreateLink makes a former hash of a deleted link of the account anew", remakesNames},
	{"the other names of a deleted link that was made anew stay reserved", reservesNames},
	{"a take-down concerns all names, which stay", takesNamesDown},
	{"a renamed link leaves a change for each of its names", namesLeaveChanges},
	{"webhooks and shares of a link follow its hash", namesOfHooks},
	{"searches find a link by its former hashes", searchesNames},
	{"names stay with the links of a domain that another account gets", keepsNamesOnDomain},
}

// rename renames a link.
func rename(t *testing.T, store schema.LinkStore, link *schema.Link, hash string) {
	t.Helper()
	testkit.Must(t, store.UpdateLink(t.Context(), link, schema.LinkEdit{Names: new(link.Names().Rename(hash))}, hour(1)))
}

// renamed returns a link that has had the first hashes and has the last one.
func renamed(t *testing.T, store schema.LinkStore, accountID, domainID int64, hashes ...string) schema.Link {
	t.Helper()
	link := addLink(t, store, accountID, domainID, hashes[0])
	for _, hash := range hashes[1:] {
		rename(t, store, &link, hash)
	}
	return link
}

// wantNames requires that all methods find a link by each of its names.
func wantNames(t *testing.T, store schema.Database, link schema.Link) {
	t.Helper()
	names := append(slices.Clone(link.FormerHashes), link.Hash)
	keys := make([]schema.LinkKey, len(names))
	for i, name := range names {
		keys[i] = schema.LinkKey{DomainID: link.DomainID, Hash: name}
		got, err := schema.FindLink(t.Context(), store, link.DomainID, name)
		testkit.Must(t, err)
		testkit.Equal(t, "FindLink "+name, got, link)
		if link.Stopped == schema.Deleted {
			continue
		}
		got, err = schema.FindOwnedLink(t.Context(), store, link.AccountID, name, &link.DomainID)
		testkit.Must(t, err)
		testkit.Equal(t, "FindOwnedLink "+name, got, link)
	}
	edges, err := store.EdgeLinks(t.Context(), keys)
	testkit.Must(t, err)
	for i, edge := range edges {
		testkit.Equal(t, "EdgeLinks "+names[i], fmt.Sprint(edge.LinkID, edge.AccountID, edge.URL, edge.Stopped),
			fmt.Sprint(link.ID, link.AccountID, link.URL, link.Stopped))
	}
}

// wantTaken requires that accounts cannot create links with the hashes.
func wantTaken(t *testing.T, store schema.LinkStore, accountID, domainID int64, hashes ...string) {
	t.Helper()
	for _, hash := range hashes {
		link := newLink(accountID, domainID, hash)
		testkit.WantCode(t, store.CreateLink(t.Context(), &link), schema.CodeConflict)
		batch := &schema.LinkBatch{AccountID: accountID, Links: []schema.Link{newLink(accountID, domainID, hash)}}
		testkit.Must(t, store.CreateLinks(t.Context(), batch))
		testkit.WantCode(t, batch.Errs[0], schema.CodeConflict)
	}
}

func renamesLinks(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	addLink(t, store, other.ID, 0, "unrelated")
	for _, id := range []int64{0, domain.ID} {
		link := addLink(t, store, owner.ID, id, "0")
		if id != 0 {
			link.Host = domain.Host
		}
		for n := 1; n <= schema.MaxFormer; n++ {
			want := link
			want.Hash, want.FormerHashes = fmt.Sprintf("%d/N.~-_", n), append(slices.Clone(link.FormerHashes), link.Hash)
			want.Version, want.UpdatedAt, want.Title = link.Version+1, hour(n), fmt.Sprint(n)
			edit := schema.LinkEdit{Names: new(link.Names().Rename(want.Hash)), Title: new(want.Title)}
			testkit.Must(t, store.UpdateLink(t.Context(), &link, edit, hour(n)))
			testkit.Equal(t, "renamed link", link, want)
			wantNames(t, store, link)
		}
		wantTaken(t, store, owner.ID, id, "0", "3/N.~-_", "10/N.~-_")
		wantTaken(t, store, other.ID, id, "0", "3/N.~-_", "10/N.~-_")
		page, total, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{DomainID: &id}, 1)
		testkit.Must(t, err)
		testkit.Equal(t, "links in the list", total, int64(1))
		testkit.Equal(t, "link of the list", page[0], link)
	}
	page, total, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{}, 1)
	testkit.Must(t, err)
	testkit.Equal(t, "links", total, int64(2))
	testkit.Equal(t, "former hashes", len(page[0].FormerHashes), schema.MaxFormer)
	both, err := store.OwnedLinks(t.Context(), owner.ID, []string{"0"})
	testkit.Must(t, err)
	testkit.Equal(t, "links with a former hash on two domains", len(both), 2)
	sameOrdinals(t, store, owner.ID, 2)
}

func givesNamesUp(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	link := renamed(t, store, owner.ID, 0, "a", "b", "c")
	for _, step := range []struct {
		hash   string
		former []string
	}{{"a", []string{"b", "c"}}, {"c", []string{"b", "a"}}, {"c", []string{"b", "a"}}, {"c", []string{"a"}}, {"c", nil}} {
		names := link.Names().Rename(step.hash)
		if step.hash == link.Hash {
			names.Former = step.former
		}
		testkit.Must(t, store.UpdateLink(t.Context(), &link, schema.LinkEdit{Names: &names}, hour(1)))
		testkit.Equal(t, "former hashes", link.FormerHashes, step.former, nilOrEmpty)
		wantNames(t, store, link)
	}
	addLink(t, store, other.ID, 0, "a")
	addLink(t, store, owner.ID, 0, "b")
	wantTaken(t, store, other.ID, 0, "b", "c")
	rename(t, store, &link, "d")
	wantNames(t, store, link)
}

func renamesToUsedNames(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	link := addLink(t, store, owner.ID, 0, "link")
	addLink(t, store, other.ID, 0, "theirs")
	renamed(t, store, other.ID, 0, "theirs-former", "theirs-now")
	renamed(t, store, owner.ID, 0, "own-former", "own-now")
	for account, hash := range map[int64]string{owner.ID: "own-down", other.ID: "theirs-gone"} {
		gone := addLink(t, store, account, 0, hash)
		testkit.Must(t, store.SetTakenDown(t.Context(), 0, hash, account == owner.ID))
		testkit.Must(t, store.DeleteLink(t.Context(), gone, hour(1)))
	}
	before := link
	for _, hash := range []string{"theirs", "theirs-former", "theirs-now", "own-former", "own-now", "own-down",
		"theirs-gone"} {
		err := store.UpdateLink(t.Context(), &link, schema.LinkEdit{Names: new(link.Names().Rename(hash))}, hour(2))
		if !errors.Is(err, schema.ErrHashTaken) {
			t.Errorf("%s: %v", hash, err)
		}
	}
	got, err := schema.FindLink(t.Context(), store, 0, "link")
	testkit.Must(t, err)
	testkit.Equal(t, "link", got, before)

	gone := renamed(t, store, owner.ID, 0, "gone-a", "gone-b", "gone-c")
	testkit.Must(t, store.DeleteLink(t.Context(), gone, hour(3)))
	rename(t, store, &link, "gone-b") // the deleted link loses the name
	gone.FormerHashes = []string{"gone-a"}
	got, err = store.RestoreLink(t.Context(), owner.ID, "gone-a", nil, hour(0), hour(4))
	testkit.Must(t, err)
	testkit.Equal(t, "names of the restored link", got.Names(), gone.Names())
	testkit.Must(t, store.DeleteLink(t.Context(), gone, hour(5)))
	rename(t, store, &link, "gone-c") // the deleted link goes, and its other name stays reserved
	wantNames(t, store, link)
	wantTaken(t, store, other.ID, 0, "gone-a", "gone-b", "gone-c", "link")
	addLink(t, store, owner.ID, 0, "gone-a")

	custom := addLink(t, store, owner.ID, domain.ID, "custom")
	rename(t, store, &custom, "link") // which is another one on the default domain
	wantNames(t, store, custom)
}

func renamesUnchanged(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link := addLink(t, store, owner.ID, 0, "a")
	stale := link
	rename(t, store, &link, "b")
	for name, edit := range map[string]schema.LinkEdit{
		"hash": {Names: new(stale.Names().Rename("c"))}, "version": {Unchanged: true, Names: new(link.Names().Rename("c"))},
		"behaviour": {Behaviour: extension("x"), Names: new(link.Names().Rename("c"))},
		"former":    {Names: new(schema.LinkNames{Hash: "b"})},
	} {
		seen := link
		switch name {
		case "hash":
			seen = stale
		case "version":
			seen.Version--
		case "behaviour":
			seen.Behaviour = extension("y")
		case "former":
			seen.FormerHashes = nil
		}
		testkit.WantCode(t, store.UpdateLink(t.Context(), &seen, edit, hour(2)), schema.CodeConflict)
		wantNames(t, store, link)
	}
	testkit.Must(t, store.DeleteLink(t.Context(), link, hour(3)))
	edit := schema.LinkEdit{Names: new(link.Names().Rename("c"))}
	testkit.WantCode(t, store.UpdateLink(t.Context(), &link, edit, hour(4)), schema.CodeNotFound)
	addLink(t, store, owner.ID, 0, "c")
}

func renamesOnce(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link := addLink(t, store, owner.ID, 0, "a")
	results := make([]schema.Link, 16)
	winner := onlyOne(t, concurrently(len(results), func(i int) error {
		results[i] = link
		edit := schema.LinkEdit{Names: new(link.Names().Rename(fmt.Sprint("to-", i)))}
		return store.UpdateLink(t.Context(), &results[i], edit, hour(1))
	}), schema.CodeConflict)
	wantNames(t, store, results[winner])
	testkit.Equal(t, "former hashes", results[winner].FormerHashes, []string{"a"})
}

func keepsNamesInBetween(t *testing.T, store schema.Database) {
	const creators, rounds = 32, 5
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	for n := range rounds {
		link := addLink(t, store, owner.ID, 0, fmt.Sprint("from-", n))
		errs := concurrently(2*creators+1, func(i int) error {
			if i == creators { // in the middle
				edit := schema.LinkEdit{Names: new(link.Names().Rename(fmt.Sprint("to-", n)))}
				return store.UpdateLink(t.Context(), &link, edit, hour(n))
			}
			wanted := newLink([]int64{owner.ID, other.ID}[i%2], 0, fmt.Sprint("from-", n))
			if i > creators {
				wanted.Hash = fmt.Sprint("to-", n)
			}
			if i%4 < 2 {
				return store.CreateLink(t.Context(), &wanted)
			}
			batch := &schema.LinkBatch{AccountID: wanted.AccountID, Links: []schema.Link{wanted}}
			if err := store.CreateLinks(t.Context(), batch); err != nil {
				return err
			}
			return batch.Errs[0]
		})
		for _, err := range errs[:creators] {
			testkit.WantCode(t, err, schema.CodeConflict)
		}
		onlyOne(t, errs[creators:], schema.CodeConflict)
		wantNames(t, store, link)
	}
}

func swapsNames(t *testing.T, store schema.Database) {
	const rounds = 10
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	for n := range rounds {
		owners := []int64{owner.ID, []int64{owner.ID, other.ID}[n%2]}
		links := []schema.Link{addLink(t, store, owners[0], 0, fmt.Sprint("a-", n)),
			addLink(t, store, owners[1], 0, fmt.Sprint("b-", n))}
		for _, err := range concurrently(len(links), func(i int) error {
			edit := schema.LinkEdit{Names: new(links[i].Names().Rename(links[1-i].Hash))}
			return store.UpdateLink(t.Context(), new(links[i]), edit, hour(n))
		}) {
			testkit.WantCode(t, err, schema.CodeConflict)
		}
		for _, link := range links {
			wantNames(t, store, link)
		}
	}
}

func deletesNames(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	for n, back := range []string{"a", "b", "c"} {
		link := renamed(t, store, owner.ID, 0, back+"a", back+"b", back+"c")
		testkit.Must(t, store.DeleteLink(t.Context(), link, hour(3)))
		deleted := link
		deleted.Ordinal, deleted.UpdatedAt, deleted.Version, deleted.Stopped = -link.Ordinal, hour(3), link.Version+1,
			schema.Deleted
		wantNames(t, store, deleted)
		wantTaken(t, store, other.ID, 0, back+"a", back+"b", back+"c")
		trash, total, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{DeletedAfter: hour(0)}, 1)
		testkit.Must(t, err)
		testkit.Equal(t, "links in the trash", total, int64(1))
		testkit.Equal(t, "link in the trash", trash[0], deleted)
		restored, err := store.RestoreLink(t.Context(), owner.ID, back+back, nil, hour(0), hour(4+n))
		testkit.Must(t, err)
		link.UpdatedAt, link.Version = hour(4+n), link.Version+2
		testkit.Equal(t, "restored link", restored, link)
		wantNames(t, store, link)
		testkit.Must(t, store.DeleteLink(t.Context(), link, hour(10)))
		purged, err := store.PurgeLinks(t.Context(), hour(11), 100)
		testkit.Must(t, err)
		testkit.Equal(t, "purged links", purged, int64(1))
		wantTaken(t, store, other.ID, 0, back+"a", back+"b", back+"c")
	}
	sameOrdinals(t, store, owner.ID, 0)
}

func remakesNames(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	gone := renamed(t, store, owner.ID, 0, "a", "b", "c")
	testkit.Must(t, store.DeleteLink(t.Context(), gone, hour(2)))
	anew := addLink(t, store, owner.ID, 0, "a")
	batch := &schema.LinkBatch{AccountID: owner.ID, Links: []schema.Link{newLink(owner.ID, 0, "b")}}
	testkit.Must(t, store.CreateLinks(t.Context(), batch))
	testkit.Must(t, batch.Errs[0])
	wantNames(t, store, anew)
	if anew.ID == gone.ID || batch.Links[0].ID == gone.ID {
		t.Errorf("%+v and %+v are the deleted link", anew, batch.Links[0])
	}
	restored, err := store.RestoreLink(t.Context(), owner.ID, "c", nil, hour(0), hour(3))
	testkit.Must(t, err)
	testkit.Equal(t, "names of the restored link", restored.Names(), schema.LinkNames{Hash: "c"})
	wantNames(t, store, restored)
	wantNames(t, store, anew)
	wantTaken(t, store, other.ID, 0, "a", "b", "c")
}

func reservesNames(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	gone := renamed(t, store, owner.ID, 0, "a", "b", "c")
	testkit.Must(t, store.DeleteLink(t.Context(), gone, hour(2)))
	anew := addLink(t, store, owner.ID, 0, "c")
	wantTaken(t, store, other.ID, 0, "a", "b", "c")
	for _, hash := range []string{"a", "b"} {
		got, err := schema.FindLink(t.Context(), store, 0, hash)
		testkit.Must(t, err)
		testkit.Equal(t, "reserved name", fmt.Sprint(got.Hash, got.AccountID, got.URL, got.Stopped),
			fmt.Sprint(hash, owner.ID, "", schema.Deleted))
	}
	trash, total, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{DeletedAfter: hour(0)}, 1)
	testkit.Must(t, err)
	testkit.Equal(t, "links in the trash", fmt.Sprint(len(trash), total), "0 0")
	_, err = store.RestoreLink(t.Context(), owner.ID, "a", nil, hour(0), hour(3))
	testkit.WantCode(t, err, schema.CodeNotFound)
	addLink(t, store, owner.ID, 0, "a")
	rename(t, store, &anew, "b")
	wantNames(t, store, anew)
}

func takesNamesDown(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	for _, by := range []string{"a", "b", "c"} {
		link := renamed(t, store, owner.ID, 0, by+"a", by+"b", by+"c")
		testkit.Must(t, store.SetTakenDown(t.Context(), 0, by+by, true))
		down := link
		down.Stopped = schema.TakenDown
		wantNames(t, store, down)
		for _, names := range []schema.LinkNames{link.Names().Rename(by + "d"), link.Names().Rename(by + "a"),
			{Hash: by + "c"}} {
			testkit.WantCode(t, store.UpdateLink(t.Context(), new(link), schema.LinkEdit{Names: &names}, hour(1)),
				schema.CodeConflict)
		}
		testkit.Must(t, store.SetTakenDown(t.Context(), 0, by+"a", false))
		wantNames(t, store, link)
		testkit.Must(t, store.SetTakenDown(t.Context(), 0, by+"b", true))
		testkit.Must(t, store.DeleteLink(t.Context(), link, hour(2)))
		for _, hash := range []string{by + "a", by + "c", by + "b"} { // of the link, of the link itself, reserved
			anew := addLink(t, store, owner.ID, 0, hash)
			got, err := schema.FindLink(t.Context(), store, 0, hash)
			testkit.Must(t, err)
			testkit.Equal(t, "link made anew", fmt.Sprint(got.ID, got.Stopped), fmt.Sprint(anew.ID, schema.TakenDown))
		}
	}
}

func namesLeaveChanges(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	link := addLink(t, store, owner.ID, domain.ID, "a/1")
	key := func(hash string) string { return fmt.Sprintf("link/%d/%s", domain.ID, hash) }
	wantChanges := func(what string, change func(), hashes ...string) {
		t.Helper()
		takeAll(t, store)
		change()
		pending, err := store.PendingChanges(t.Context(), schema.OutboxPosition{})
		testkit.Must(t, err)
		for i := range hashes {
			hashes[i] = key(hashes[i])
		}
		slices.Sort(hashes)
		testkit.Equal(t, what, slices.Compact(keysOf(pending.Changes)), hashes)
		testkit.Equal(t, what+", taken", slices.Compact(keysOf(takeAll(t, store))), hashes)
	}
	names := func(hash string, former ...string) func() {
		return func() {
			edit := schema.LinkEdit{Names: &schema.LinkNames{Hash: hash, Former: former}}
			testkit.Must(t, store.UpdateLink(t.Context(), &link, edit, hour(1)))
		}
	}
	wantChanges("a new name", names("b", "a/1"), "a/1", "b")
	wantChanges("another one", names("c", "a/1", "b"), "a/1", "b", "c")
	wantChanges("a former one", names("b", "a/1", "c"), "a/1", "b", "c")
	wantChanges("an edit", func() {
		testkit.Must(t, store.UpdateLink(t.Context(), &link, schema.LinkEdit{Active: new(false)}, hour(1)))
	}, "a/1", "b", "c")
	wantChanges("a take-down", func() { testkit.Must(t, store.SetTakenDown(t.Context(), domain.ID, "a/1", true)) },
		"a/1", "b", "c")
	testkit.Must(t, store.SetTakenDown(t.Context(), domain.ID, "a/1", false))
	wantChanges("a name that is given up", names("b", "c"), "a/1", "b", "c")
	wantChanges("a deletion", func() { testkit.Must(t, store.DeleteLink(t.Context(), link, hour(2))) }, "b", "c")
	wantChanges("a link made anew", func() { addLink(t, store, owner.ID, domain.ID, "b") }, "b", "c")
}

func namesOfHooks(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link, other := addLink(t, store, owner.ID, 0, "a"), addLink(t, store, owner.ID, 0, "other")
	hook := addWebhook(t, store, owner.ID, func(h *schema.Webhook) { h.Hash = "a" })
	ofOther := addWebhook(t, store, owner.ID, func(h *schema.Webhook) { h.Hash = "other" })
	of := func(link schema.Link) func(*schema.Share) {
		return func(s *schema.Share) { s.LinkID, s.Hash, s.DomainID = link.ID, link.Hash, new(int64) }
	}
	shares := []schema.Share{addShare(t, store, owner.ID, "one", of(link)), addShare(t, store, owner.ID, "two", of(other))}
	rename(t, store, &link, "b")
	testkit.Must(t, store.UpdateLink(t.Context(), &link, schema.LinkEdit{Title: new("T")}, hour(2)))
	testkit.Equal(t, "deliveries", waiting(t, store, hook), []string{"link.updated b", "link.updated b T"})
	testkit.Equal(t, "deliveries of another link", waiting(t, store, ofOther), nil, nilOrEmpty)
	deliveries, err := store.WaitingDeliveries(t.Context(), owner.ID, hook.ID, 1<<20)
	testkit.Must(t, err)
	sent, err := schema.LinkOfEvent(deliveries[0].Data)
	testkit.Must(t, err)
	testkit.Equal(t, "names in the event", sent.Names(), link.Names())
	for i, want := range []string{"b", "other"} {
		share, err := store.Share(t.Context(), owner.ID, shares[i].ID)
		testkit.Must(t, err)
		testkit.Equal(t, "share", share.Hash, want)
	}
}

func searchesNames(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link := renamed(t, store, owner.ID, 0, "Spring/Sale_1", "two", "three")
	addLink(t, store, owner.ID, 0, "spring-other")
	for _, word := range []schema.LinkWord{{Text: "ING/SALE_"}, {Text: "two"}, {Text: "three"},
		{Key: &schema.LinkKey{Hash: "spring/sale_1"}}, {Key: &schema.LinkKey{Hash: "TWO"}},
		{Key: &schema.LinkKey{Hash: "three"}}} {
		found, total, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{Words: []schema.LinkWord{word}}, 1)
		testkit.Must(t, err)
		testkit.Equal(t, fmt.Sprintf("links by %+v", word), total, int64(1))
		testkit.Equal(t, "link", found[0], link)
	}
	for _, word := range []schema.LinkWord{{Text: "sale_1two"}, {Key: &schema.LinkKey{Hash: "tw"}},
		{Key: &schema.LinkKey{DomainID: 1, Hash: "two"}}} {
		_, total, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{Words: []schema.LinkWord{word}}, 1)
		testkit.Must(t, err)
		testkit.Equal(t, fmt.Sprintf("links by %+v", word), total, int64(0))
	}
}

func keepsNamesOnDomain(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	theirs := addDomain(t, store, other.ID, "go.example.org", false)
	link := renamed(t, store, owner.ID, domain.ID, "a", "b")
	testkit.Must(t, store.TransferDomain(t.Context(), theirs.ID, hour(2), hour(3)))
	lost := link
	lost.Stopped = schema.HostLost
	wantNames(t, store, lost)
	for _, hash := range []string{"a", "b"} { // which are other names on the other account's domain
		addLink(t, store, other.ID, theirs.ID, hash)
	}
	testkit.Must(t, store.TransferDomain(t.Context(), domain.ID, hour(4), hour(5)))
	wantNames(t, store, link)
	testkit.Must(t, store.DeleteLink(t.Context(), link, hour(6)))
	testkit.Must(t, store.DeleteDomain(t.Context(), domain.ID))
}

func addsNames(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	link, gone := addLink(t, store, owner.ID, 0, "a"), addLink(t, store, owner.ID, 0, "gone")
	addLink(t, store, other.ID, 0, "theirs")
	testkit.Must(t, store.DeleteLink(t.Context(), gone, hour(1)))
	for _, former := range [][]string{{"x", "y"}, {"x", "y", "gone"}} {
		edit := schema.LinkEdit{Names: &schema.LinkNames{Hash: "a", Former: former}}
		testkit.Must(t, store.UpdateLink(t.Context(), &link, edit, hour(2)))
		testkit.Equal(t, "former hashes", link.FormerHashes, former)
		wantNames(t, store, link)
		wantTaken(t, store, owner.ID, 0, former...)
	}
	edit := schema.LinkEdit{Names: &schema.LinkNames{Hash: "a", Former: []string{"x", "theirs"}}}
	if err := store.UpdateLink(t.Context(), new(link), edit, hour(3)); !errors.Is(err, schema.ErrHashTaken) {
		t.Error(err)
	}
	wantNames(t, store, link)
}
