package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var linkManageBehaviours = []behaviour[schema.Database]{
	{"CreateLink keeps title, tags, expiry and forwarding, alone and beside others", keepsDetails},
	{"UpdateLink changes what it is given and nothing else", updatesLinks},
	{"UpdateLink replaces only the extension that its caller has seen", updatesBehaviours},
	{"LinkPassword returns the password hash that a link was created or changed with", keepsPasswords},
	{"UpdateLink lets concurrent changes of different fields all take effect", updatesConcurrently},
	{"UpdateLink does not find an unknown or deleted link", updatesUnknown},
	{"RenameTag renames, merges and removes a tag of all links of an account", renamesTags},
	{"RenameTag lets concurrent calls all take effect", renamesTagsConcurrently},
	{"TagCounts counts the links of an account by tag", countsTags},
	{"TaggedLinks reads the links with tags in the order of their creation", readsTagged},
	{"DeleteLink hides a link and reserves its hash", deletesLinks},
	{"DeleteLink does not find an unknown or deleted link, or that of another account", deletesUnknownLinks},
	{"DeleteLink succeeds for exactly one of concurrent calls", deletesOnce},
	{"CreateLink makes a deleted link of the account anew, with another ID", remakesLinks},
	{"CreateLink never gives a deleted hash to another account", reservesDeletedHash},
	{"CreateLink makes a deleted link anew for exactly one of concurrent calls", remakesOnce},
	{"Links pages through what deletions have left", pagesRemaining},
	{"DeleteDomain deletes a domain whose links were deleted", deletesEmptiedDomain},
}

func keepsDetails(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	const n = 20
	links := make([]schema.Link, n)
	for _, err := range concurrently(n, func(i int) error {
		links[i] = newLink(owner.ID, 0, fmt.Sprintf("hash-%d", i))
		links[i].Title = fmt.Sprintf("Überschrift '%d' 🙂", i)
		links[i].Tags = [][]string{nil, {"one"}, {"a_b", "c-d", "z"}}[i%3]
		links[i].ForwardQuery = i%2 == 0
		if i%5 == 1 {
			links[i].Behaviour = extension(fmt.Sprint(i))
		}
		if i%4 > 0 {
			links[i].ExpiresAt = epoch.Add(time.Duration(i) * time.Hour)
		}
		if i%4 > 1 {
			links[i].ExpiredURL = fmt.Sprintf("https://example.net/%d", i)
		}
		return store.CreateLink(t.Context(), &links[i])
	}) {
		testkit.Must(t, err)
	}
	page, _, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{}, 1)
	testkit.Must(t, err)
	testkit.Equal(t, "links of the page", len(page), n)
	for _, want := range links {
		testkit.Equal(t, "UpdatedAt", want.UpdatedAt, want.CreatedAt)
		testkit.Equal(t, "Version", want.Version, 1)
		got, err := schema.FindLink(t.Context(), store, 0, want.Hash)
		testkit.Must(t, err)
		testkit.Equal(t, "link", got, want)
		testkit.Equal(t, "link of the page",
			page[slices.IndexFunc(page, func(l schema.Link) bool { return l.ID == want.ID })], want)
	}
}

func updatesLinks(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	link, other := addLink(t, store, owner.ID, domain.ID, "hash"), addLink(t, store, owner.ID, 0, "hash")
	link.Host = domain.Host
	for i, step := range []struct {
		edit  schema.LinkEdit
		apply func()
	}{
		{schema.LinkEdit{URL: new("https://new.example/")}, func() { link.URL = "https://new.example/" }},
		{schema.LinkEdit{Title: new("A title")}, func() { link.Title = "A title" }},
		{schema.LinkEdit{Tags: &[]string{"a", "b"}}, func() { link.Tags = []string{"a", "b"} }},
		{schema.LinkEdit{Active: new(false)}, func() { link.Active = false }},
		{schema.LinkEdit{ExpiresAt: new(hour(7))}, func() { link.ExpiresAt = hour(7) }},
		{schema.LinkEdit{ExpiredURL: new("https://late.example/")}, func() { link.ExpiredURL = "https://late.example/" }},
		{schema.LinkEdit{ForwardQuery: new(true)}, func() { link.ForwardQuery = true }},
		{schema.LinkEdit{}, func() {}},
		{schema.LinkEdit{Title: new(""), Tags: new([]string(nil)), Active: new(true), ExpiresAt: new(time.Time{}),
			ExpiredURL:   new(""),
			ForwardQuery: new(false)}, func() {
			link.Title, link.Tags, link.Active, link.ExpiresAt, link.ExpiredURL, link.ForwardQuery = "", nil, true, time.Time{},
				"", false
		}},
	} {
		step.apply()
		link.UpdatedAt, link.Version = hour(i+1), link.Version+1
		got := schema.Link{ID: link.ID}
		testkit.Must(t, store.UpdateLink(t.Context(), &got, step.edit, link.UpdatedAt))
		testkit.Equal(t, "updated link", got, link)
		got, err := schema.FindOwnedLink(t.Context(), store, owner.ID, "hash", &domain.ID)
		testkit.Must(t, err)
		testkit.Equal(t, "link", got, link)
	}
	got, err := schema.FindLink(t.Context(), store, 0, "hash")
	testkit.Must(t, err)
	testkit.Equal(t, "other link", got, other)
}

// behaviour returns a behaviour of every kind.
func extension(text string) *schema.Behaviour {
	e := &schema.Behaviour{
		Rules: []schema.Rule{{Name: "phones", URL: "https://example.org/m?" + text,
			If: schema.Conditions{Device: []string{"mobile"},
				Query: map[string]string{"a": "*", "b": text + "'\"\\<&"}, From: 1_800_000_000, Until: 1_900_000_000}}},
		Variants: []schema.Variant{{Name: "a", URL: "https://example.org/a", Weight: 30},
			{Name: "b", URL: "https://example.org/b", Weight: 70}},
		Card: &schema.Card{Title: text, Image: new("https://example.org/i.png")},
	}
	e.Share(nil)
	return e
}

func updatesBehaviours(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link := addLink(t, store, owner.ID, 0, "hash")
	plain, second := link, extension("second")
	for _, next := range []*schema.Behaviour{extension("first"), second, {}, extension("last")} {
		seen := link
		link.Behaviour, link.UpdatedAt, link.Version = next, hour(1), link.Version+1
		if next.IsZero() {
			link.Behaviour = nil
		}
		got := seen
		testkit.Must(t, store.UpdateLink(t.Context(), &got, schema.LinkEdit{Behaviour: next}, hour(1)))
		testkit.Equal(t, "link", got, link)
		for _, stale := range []schema.Link{plain, {ID: link.ID, Behaviour: second}} {
			if stale.Behaviour.Text() != link.Behaviour.Text() {
				edit := schema.LinkEdit{Behaviour: extension("lost"), Title: new("lost")}
				testkit.WantCode(t, store.UpdateLink(t.Context(), &stale, edit, hour(2)), schema.CodeConflict)
			}
		}
	}
	edits := []schema.LinkEdit{{Behaviour: extension("one")}, {Behaviour: extension("other")}}
	onlyOne(t, concurrently(2, func(i int) error {
		seen := link
		return store.UpdateLink(t.Context(), &seen, edits[i], hour(3))
	}), schema.CodeConflict)
	link, err := schema.FindLink(t.Context(), store, 0, "hash")
	testkit.Must(t, err)
	testkit.Must(t, store.DeleteLink(t.Context(), link, hour(4)))
	wantDeleted(t, store, link, hour(4))
	testkit.WantCode(t, store.UpdateLink(t.Context(), &link, edits[0], hour(5)), schema.CodeNotFound)
}

func keepsPasswords(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	want := func(what string, id int64, hash string, version int64) {
		t.Helper()
		gotHash, gotVersion, err := store.LinkPassword(t.Context(), id)
		testkit.Must(t, err)
		if gotHash != hash || gotVersion != version {
			t.Errorf("%s: hash %q of version %d, want %q of %d", what, gotHash, gotVersion, hash, version)
		}
	}
	with := func(hash string, version int64) schema.Link {
		return schema.Link{AccountID: owner.ID, Hash: "hash" + hash, URL: "https://example.org/", Active: true,
			CreatedAt: epoch,
			Behaviour: &schema.Behaviour{Password: version}, PasswordHash: hash}
	}
	one := with("1", 1<<62)
	testkit.Must(t, store.CreateLink(t.Context(), &one))
	want("a link", one.ID, "1", 1<<62)
	several := []schema.Link{with("2", 2), with("3", 3), with("4", 4)}
	create := func(i int) error { return store.CreateLink(t.Context(), &several[i]) }
	for i, err := range concurrently(len(several), create) {
		testkit.Must(t, err)
		want("a link of several", several[i].ID, several[i].PasswordHash, several[i].Behaviour.Password)
	}
	batch := &schema.LinkBatch{AccountID: owner.ID,
		Links: []schema.Link{with("5", 5), {Hash: "open", URL: "https://example.org/", CreatedAt: epoch}}}
	testkit.Must(t, store.CreateLinks(t.Context(), batch))
	want("a link of a batch", batch.Links[0].ID, "5", 5)
	want("an open link", batch.Links[1].ID, "", 0)
	got, err := schema.FindLink(t.Context(), store, 0, one.Hash)
	testkit.Must(t, err)
	testkit.Equal(t, "hash that a link is read with", got.PasswordHash, "")

	testkit.Must(t, store.UpdateLink(t.Context(), &got, schema.LinkEdit{Title: new("title")}, hour(1)))
	want("another edit", one.ID, "1", 1<<62)
	edit := schema.LinkEdit{Behaviour: &schema.Behaviour{Password: 9}, PasswordHash: new("9")}
	testkit.Must(t, store.UpdateLink(t.Context(), &got, edit, hour(2)))
	want("a new password", one.ID, "9", 9)
	testkit.Must(t,
		store.UpdateLink(t.Context(), &got, schema.LinkEdit{Behaviour: &schema.Behaviour{}, PasswordHash: new("")}, hour(3)))
	want("no password", one.ID, "", 0)
	testkit.Must(t, store.DeleteLink(t.Context(), batch.Links[0], hour(4)))
	_, _, err = store.LinkPassword(t.Context(), batch.Links[0].ID)
	testkit.WantCode(t, err, schema.CodeNotFound)
	again := with("5", 0)
	again.PasswordHash, again.Behaviour = "", nil
	testkit.Must(t, store.CreateLink(t.Context(), &again))
	want("a link made anew", again.ID, "", 0)
	testkit.Must(t, store.DeleteLink(t.Context(), again, hour(5)))
	again = with("5", 6)
	testkit.Must(t, store.CreateLink(t.Context(), &again))
	want("a link made anew with a password", again.ID, "5", 6)
}

func updatesConcurrently(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link := addLink(t, store, owner.ID, 0, "hash")
	edits := []schema.LinkEdit{{Title: new("title")}, {Tags: &[]string{"tag"}}, {Active: new(false)},
		{ForwardQuery: new(true)},
		{ExpiresAt: new(hour(9))}}
	for _, err := range concurrently(len(edits), func(i int) error {
		edited := link
		return store.UpdateLink(t.Context(), &edited, edits[i], hour(1))
	}) {
		testkit.Must(t, err)
	}
	link.Title, link.Tags, link.Active, link.ForwardQuery, link.ExpiresAt = "title", []string{"tag"}, false, true, hour(9)
	link.UpdatedAt, link.Version = hour(1), link.Version+int64(len(edits))
	got, err := schema.FindLink(t.Context(), store, 0, "hash")
	testkit.Must(t, err)
	testkit.Equal(t, "link", got, link)
}

func updatesUnknown(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link := addLink(t, store, owner.ID, 0, "hash")
	testkit.Must(t, store.DeleteLink(t.Context(), link, hour(1)))
	for _, id := range []int64{link.ID, link.ID + 1000, 0} {
		edited := schema.Link{ID: id}
		testkit.WantCode(t, store.UpdateLink(t.Context(), &edited, schema.LinkEdit{Title: new("x")}, hour(2)),
			schema.CodeNotFound)
	}
	testkit.WantCode(t, store.UpdateLink(t.Context(), &link, schema.LinkEdit{Active: new(true)}, hour(2)),
		schema.CodeNotFound)
}

// wantDeleted requires that a link which was deleted at a time is found by its hash only.
func wantDeleted(t *testing.T, store schema.LinkStore, link schema.Link, at time.Time) {
	t.Helper()
	_, err := schema.FindOwnedLink(t.Context(), store, link.AccountID, link.Hash, nil)
	testkit.WantCode(t, err, schema.CodeNotFound)
	_, err = schema.FindOwnedLink(t.Context(), store, link.AccountID, link.Hash, &link.DomainID)
	testkit.WantCode(t, err, schema.CodeNotFound)
	byID, err := store.LinksByID(t.Context(), link.AccountID, []int64{link.ID})
	testkit.Must(t, err)
	found, total, err := store.Links(t.Context(), link.AccountID, withWord(link.Hash), 1)
	testkit.Must(t, err)
	testkit.Equal(t, "found links", len(byID)+len(found)+int(total), 0)
	want := link
	want.Ordinal, want.UpdatedAt, want.Version, want.Stopped = -link.Ordinal, at, link.Version+1, schema.Deleted
	got, err := schema.FindLink(t.Context(), store, link.DomainID, link.Hash)
	testkit.Must(t, err)
	testkit.Equal(t, "deleted link", got, want)
	all, err := store.LinksByHash(t.Context(), []schema.LinkKey{link.Key()})
	testkit.Must(t, err)
	testkit.Equal(t, "rests of the link", len(all), 1)
	testkit.Equal(t, "stop", all[0].Stopped, schema.Deleted)
	reserved, err := store.EdgeLinks(t.Context(), []schema.LinkKey{link.Key()})
	testkit.Must(t, err)
	testkit.Equal(t, "destination", reserved, []schema.EdgeLink{destination(want)})
}

func deletesLinks(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	first := addLink(t, store, owner.ID, domain.ID, "first")
	link := newLink(owner.ID, domain.ID, "hash")
	link.Title, link.Tags, link.ForwardQuery, link.ExpiredURL = "title", []string{"tag"}, true, "https://late.example/"
	link.ExpiresAt = hour(1)
	testkit.Must(t, store.CreateLink(t.Context(), &link))
	link.Host, first.Host = domain.Host, domain.Host
	last := addLink(t, store, owner.ID, 0, "last")
	testkit.Must(t, store.DeleteLink(t.Context(), link, hour(2)))
	wantDeleted(t, store, link, hour(2))
	page, total, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{}, 1)
	testkit.Must(t, err)
	testkit.Equal(t, "links", page, []schema.Link{last, first})
	testkit.Equal(t, "total", total, 2)
}

func deletesUnknownLinks(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	link, kept := addLink(t, store, owner.ID, 0, "hash"), addLink(t, store, other.ID, 0, "kept")
	testkit.Must(t, store.DeleteLink(t.Context(), link, hour(1)))
	foreign := kept
	foreign.AccountID = owner.ID
	for _, l := range []schema.Link{link, foreign, {ID: kept.ID + 1000, AccountID: owner.ID}, {}} {
		testkit.WantCode(t, store.DeleteLink(t.Context(), l, hour(2)), schema.CodeNotFound)
	}
	wantDeleted(t, store, link, hour(1))
	sameOrdinals(t, store, other.ID, 1)
	_, total, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{}, 1)
	testkit.Must(t, err)
	testkit.Equal(t, "total", total, 0)
}

func deletesOnce(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	addLink(t, store, owner.ID, 0, "kept")
	for round := range 5 {
		link := addLink(t, store, owner.ID, 0, fmt.Sprintf("hash-%d", round))
		onlyOne(t, concurrently(8, func(int) error { return store.DeleteLink(t.Context(), link, hour(1)) }),
			schema.CodeNotFound)
		_, total, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{}, 1)
		testkit.Must(t, err)
		testkit.Equal(t, "total", total, 1)
	}
}

func remakesLinks(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	for _, domainID := range []int64{0, domain.ID} {
		link := addLink(t, store, owner.ID, domainID, "hash")
		ids := map[int64]bool{link.ID: true}
		for round := range 3 {
			testkit.Must(t, store.DeleteLink(t.Context(), link, hour(1)))
			again := newLink(owner.ID, domainID, "hash")
			again.Title, again.Tags, again.CreatedAt = "again", []string{"tag"}, hour(round+2)
			testkit.Must(t, store.CreateLink(t.Context(), &again))
			if ids[again.ID] || again.Ordinal != link.Ordinal+1 {
				t.Fatalf("made anew with ID %d and ordinal %d after %+v", again.ID, again.Ordinal, link)
			}
			got, err := schema.FindOwnedLink(t.Context(), store, owner.ID, "hash", &domainID)
			testkit.Must(t, err)
			got.Host = ""
			testkit.Equal(t, "link made anew", got, again)
			link, ids[again.ID] = again, true
		}
		taken := newLink(owner.ID, domainID, "hash")
		testkit.WantCode(t, store.CreateLink(t.Context(), &taken), schema.CodeConflict)
		testkit.Must(t, store.SetTakenDown(t.Context(), domainID, "hash", true))
		testkit.Must(t, store.DeleteLink(t.Context(), link, hour(9)))
		addLink(t, store, owner.ID, domainID, "hash")
		got, err := schema.FindLink(t.Context(), store, domainID, "hash")
		testkit.Must(t, err)
		testkit.Equal(t, "stop of a link that was taken down, deleted and made anew", got.Stopped, schema.TakenDown)
	}
	_, total, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{}, 1)
	testkit.Must(t, err)
	testkit.Equal(t, "total", total, 2)
}

func reservesDeletedHash(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	for round := range 8 {
		link := addLink(t, store, owner.ID, 0, fmt.Sprintf("hash-%d", round))
		errs := concurrently(6, func(i int) error {
			if i == round%6 {
				return store.DeleteLink(t.Context(), link, hour(1))
			}
			taken := newLink(other.ID, 0, link.Hash)
			return store.CreateLink(t.Context(), &taken)
		})
		for i, err := range errs {
			if i == round%6 {
				testkit.Must(t, err)
			} else {
				testkit.WantCode(t, err, schema.CodeConflict)
			}
		}
		wantDeleted(t, store, link, hour(1))
	}
	testkit.Equal(t, "ordinal of the other account's first link", addLink(t, store, other.ID, 0, "free").Ordinal, 1)
}

func remakesOnce(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	for round := range 5 {
		link := addLink(t, store, owner.ID, 0, fmt.Sprintf("hash-%d", round))
		testkit.Must(t, store.DeleteLink(t.Context(), link, hour(1)))
		links := make([]schema.Link, 12)
		winner := onlyOne(t, concurrently(len(links), func(i int) error {
			links[i] = newLink([]int64{owner.ID, other.ID}[i%2], 0, link.Hash)
			links[i].URL = fmt.Sprintf("https://example.org/%d", i)
			return store.CreateLink(t.Context(), &links[i])
		}), schema.CodeConflict)
		got, err := schema.FindLink(t.Context(), store, 0, link.Hash)
		testkit.Must(t, err)
		testkit.Equal(t, "link", got, links[winner])
		testkit.Equal(t, "account", got.AccountID, owner.ID)
		testkit.Equal(t, "ordinal", got.Ordinal, int64(2*round+2))
	}
}

func pagesRemaining(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	const n = 3*schema.PageSize + 5
	for _, err := range concurrently(n, func(i int) error {
		link := newLink(owner.ID, 0, fmt.Sprintf("hash-%d", i))
		return store.CreateLink(t.Context(), &link)
	}) {
		testkit.Must(t, err)
	}
	wantPages := func(want []schema.Link) {
		t.Helper()
		for _, filter := range []schema.LinkFilter{{}, {Rows: 50}} {
			for page := range n/filter.Size() + 3 {
				got, total, err := store.Links(t.Context(), owner.ID, filter, page+1)
				testkit.Must(t, err)
				testkit.Equal(t, "total", total, int64(len(want)))
				from, to := min(page*filter.Size(), total), min((page+1)*filter.Size(), total)
				testkit.Equal(t, fmt.Sprintf("page %d of %d", page+1, filter.Size()), got, want[from:to], nilOrEmpty)
			}
		}
	}
	var left []schema.Link
	for page := range int64(n/schema.PageSize + 1) {
		links, _, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{}, page+1)
		testkit.Must(t, err)
		left = append(left, links...)
	}
	wantPages(left)
	for _, deleted := range [][2]int{{0, 1}, {30, 21}, {2, 2}, {len(left) - 25, 1}, {0, 20}, {0, 20}} { // from, number
		for range deleted[1] {
			testkit.Must(t, store.DeleteLink(t.Context(), left[deleted[0]], hour(1)))
			left = slices.Delete(left, deleted[0], deleted[0]+1)
		}
		wantPages(left)
	}
}

func deletesEmptiedDomain(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	for _, hash := range []string{"one", "two"} {
		link := addLink(t, store, owner.ID, domain.ID, hash)
		testkit.WantCode(t, store.DeleteDomain(t.Context(), domain.ID), schema.CodeConflict)
		testkit.Must(t, store.DeleteLink(t.Context(), link, hour(1)))
	}
	testkit.Must(t, store.DeleteDomain(t.Context(), domain.ID))
	gone := newLink(owner.ID, domain.ID, "one")
	testkit.WantCode(t, store.CreateLink(t.Context(), &gone), schema.CodeNotFound)
	again := addDomain(t, store, owner.ID, "go.example.org", true)
	addLink(t, store, owner.ID, again.ID, "one")
	_, total, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{}, 1)
	testkit.Must(t, err)
	testkit.Equal(t, "total", total, 1)
}
