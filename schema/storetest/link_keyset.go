package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/linkstore"
	"linkstream/schema/testkit"
)

var linkKeysetBehaviours = []behaviour[schema.Database]{
	{"LinksAfter reads each link once, in every order, while links are made and deleted", readsEachOnce},
	{"LinksAfter reads the trash in its order", readsTrashAfter},
	{"ChangedLinks returns what was made, changed and deleted, in this order", readsChanges},
	{"ChangedLinks returns links after each kind of change, and after nothing else", readsEachKind},
	{"ChangedLinks returns the links of a domain when it is lost or verified", readsDomains},
	{"ChangedLinks leaves out what was last changed before a time, and nothing that follows", readsSince},
	{"ChangedLinks filters", filtersChanges},
	{"ChangedLinks refuses a position that the store has not reached", refusesLaterPositions},
	{"NumberChanges takes as many changes as it may, the earliest first", numbersSome},
}

// readsEachOnce reads pages of several lengths. Each link that exists throughout must come once.
func readsEachOnce(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	var links []schema.Link
	for i := range 23 {
		links = append(links, addLink(t, store, owner.ID, 0, fmt.Sprintf("hash-%d", i)))
		addLink(t, store, other.ID, 0, fmt.Sprintf("other-%d", i))
	}
	made := 0
	for _, oldestFirst := range []bool{false, true} {
		for _, limit := range []int{1, 2, 7, 30} {
			var stay, got []string
			passing := addLink(t, store, owner.ID, 0, fmt.Sprint("passing-", oldestFirst, limit))
			for _, l := range links {
				stay = append(stay, l.Hash)
			}
			var after schema.LinkPosition
			for pages := 0; pages < 100; pages++ {
				page, err := store.LinksAfter(t.Context(), owner.ID, schema.LinkFilter{OldestFirst: oldestFirst}, after, limit)
				testkit.Must(t, err)
				if len(page) == 0 {
					break
				}
				for _, l := range page {
					if slices.Contains(stay, l.Hash) {
						got = append(got, l.Hash)
					}
				}
				after = schema.PositionOf(page[len(page)-1])
				if pages == 1 {
					testkit.Must(t, store.DeleteLink(t.Context(), passing, hour(1)))
				}
				if pages < 20 {
					made++
					addLink(t, store, owner.ID, 0, fmt.Sprintf("new-%d", made))
				}
			}
			if !oldestFirst {
				slices.Reverse(got)
			}
			testkit.Equal(t, fmt.Sprintf("links by %d, oldest first: %v", limit, oldestFirst), got, stay)
		}
	}
}

func readsTrashAfter(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	var want []string
	for i := range 9 {
		link := addLink(t, store, owner.ID, 0, fmt.Sprintf("hash-%d", i))
		testkit.Must(t, store.DeleteLink(t.Context(), link, hour(3-i/3))) // three at a time
	}
	filter := schema.LinkFilter{DeletedAfter: hour(0)}
	all, total, err := store.Links(t.Context(), owner.ID, filter, 1)
	testkit.Must(t, err)
	testkit.Equal(t, "links in the trash", total, int64(9))
	for _, l := range all {
		want = append(want, l.Hash)
	}
	for _, limit := range []int{1, 2, 3, 4, 10} {
		var got []string
		for after := (schema.LinkPosition{}); ; {
			page, err := store.LinksAfter(t.Context(), owner.ID, filter, after, limit)
			testkit.Must(t, err)
			for _, l := range page {
				got = append(got, l.Hash)
			}
			if len(page) == 0 || len(got) > len(want) {
				break
			}
			after = schema.PositionOf(page[len(page)-1])
		}
		testkit.Equal(t, fmt.Sprintf("trash by %d", limit), got, want)
	}
}

// poller reads the changes of an account's links.
type poller struct {
	store  schema.Database
	owner  int64
	filter schema.LinkFilter
	at     schema.LinkChangePosition
	limit  int
}

// poll returns the hashes of the links that have changed since the last call.
func (p *poller) poll(t testing.TB) (hashes []string) {
	t.Helper()
	for {
		for {
			n, err := p.store.NumberChanges(t.Context(), p.owner, 3)
			testkit.Must(t, err)
			if n < 3 {
				break
			}
		}
		links, next, err := p.store.ChangedLinks(t.Context(), p.owner, p.filter, p.at, p.limit)
		testkit.Must(t, err)
		for _, l := range links {
			hash := l.Hash
			if l.Ordinal < 0 {
				hash = "-" + hash
			}
			hashes = append(hashes, hash)
		}
		if p.at = next; len(links) == 0 {
			return hashes
		}
	}
}

func readsChanges(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	var links []schema.Link
	for i := range 6 {
		link := newLink(owner.ID, 0, fmt.Sprint(i))
		link.CreatedAt = hour(i)
		testkit.Must(t, store.CreateLink(t.Context(), &link))
		links = append(links, link)
		addLink(t, store, other.ID, 0, fmt.Sprintf("other-%d", i))
	}
	all := make([]*poller, 0, 4)
	for _, limit := range []int{1, 2, 5, 100} {
		p := &poller{store: store, owner: owner.ID, limit: limit}
		testkit.Equal(t, "made", p.poll(t), []string{"0", "1", "2", "3", "4", "5"})
		testkit.Equal(t, "at the end", p.poll(t), nil, nilOrEmpty)
		all = append(all, p)
	}
	testkit.Must(t, store.UpdateLink(t.Context(), &links[4], schema.LinkEdit{Title: new("new")}, hour(10)))
	made := newLink(owner.ID, 0, "made")
	made.CreatedAt = hour(11)
	testkit.Must(t, store.CreateLink(t.Context(), &made))
	testkit.Must(t, store.DeleteLink(t.Context(), links[1], hour(12)))
	testkit.Must(t, store.UpdateLink(t.Context(), &links[0], schema.LinkEdit{Title: new("new")}, hour(13)))
	for _, p := range all {
		testkit.Equal(t, "changed", p.poll(t), []string{"4", "made", "-1", "0"})
		testkit.Equal(t, "at the end", p.poll(t), nil, nilOrEmpty)
	}
	for i, edit := range []string{"one", "two"} {
		testkit.Must(t, store.UpdateLink(t.Context(), &made, schema.LinkEdit{Title: &edit}, hour(20+i)))
		for _, p := range all {
			testkit.Equal(t, "changed", p.poll(t), []string{"made"})
		}
	}
	late := &poller{store: store, owner: owner.ID, limit: 4}
	testkit.Equal(t, "everything", late.poll(t), []string{"2", "3", "5", "4", "-1", "0", "made"})
	testkit.Equal(t, "of another account", (&poller{store: store, owner: other.ID, limit: 4}).poll(t),
		[]string{"other-0", "other-1", "other-2", "other-3", "other-4", "other-5"})
}

func readsEachKind(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link, second := addLink(t, store, owner.ID, 0, "hash"), addLink(t, store, owner.ID, 0, "second")
	must := func(err error) { t.Helper(); testkit.Must(t, err) }
	change := func(edit func(schema.Link) (schema.LinkEdit, error)) {
		must(store.ChangeLinks(t.Context(), &schema.LinkChanges{AccountID: owner.ID, IDs: []int64{link.ID, second.ID},
			Edit: edit, At: hour(2)}))
	}
	both := []string{"hash", "second"}
	p := &poller{store: store, owner: owner.ID, limit: 3}
	p.poll(t)
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"UpdateLink", func() { must(store.UpdateLink(t.Context(), &link, schema.LinkEdit{Title: new("a")}, hour(1))) },
			[]string{"hash"}},
		{"ChangeLinks", func() { change(addTag("c")) }, both},
		{"ChangeLinks that refuses", func() {
			change(func(schema.Link) (schema.LinkEdit, error) { return schema.LinkEdit{}, errors.New("refused") })
		}, nil},
		{"RenameTag", func() { _, err := store.RenameTag(t.Context(), owner.ID, "c", "d", hour(2)); must(err) }, both},
		{"a take-down", func() { must(store.SetTakenDown(t.Context(), 0, "hash", true)) }, []string{"hash"}},
		{"a take-down again", func() { must(store.SetTakenDown(t.Context(), 0, "hash", true)) }, nil},
		{"its end", func() { must(store.SetTakenDown(t.Context(), 0, "hash", false)) }, []string{"hash"}},
		{"FoldLinks", func() { _, err := store.FoldLinks(t.Context(), 10); must(err) }, nil},
		{"DeleteLink", func() { must(store.DeleteLink(t.Context(), link, hour(3))) }, []string{"-hash"}},
		{"RestoreLink", func() {
			_, err := store.RestoreLink(t.Context(), owner.ID, "hash", nil, hour(0), hour(3))
			must(err)
		}, []string{"hash"}},
		{"ChangeLinks that deletes", func() { change(nil) }, []string{"-hash", "-second"}},
		{"RestoreLinks", func() {
			_, err := store.RestoreLinks(t.Context(), owner.ID, []int64{link.ID, second.ID}, hour(0), hour(4))
			must(err)
		}, both},
		{"DeleteUnchanged", func() {
			must(store.DeleteUnchanged(t.Context(), schema.Link{ID: second.ID, AccountID: owner.ID, Version: 5}, hour(5)))
		}, []string{"-second"}},
		{"a link made anew", func() { addLink(t, store, owner.ID, 0, "second") }, []string{"second"}},
	} {
		step.do()
		testkit.Equal(t, "links after "+step.name, slices.Sorted(slices.Values(p.poll(t))), step.want, nilOrEmpty)
	}
	testkit.Must(t, store.DeleteLink(t.Context(), link, hour(6)))
	_, err := store.PurgeLinks(t.Context(), hour(7), 10)
	testkit.Must(t, err)
	testkit.Equal(t, "links after a purge", p.poll(t), []string{"-hash"})
	testkit.Equal(t, "links after a purge, again", p.poll(t), nil, nilOrEmpty)
}

func readsDomains(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	rival := addDomain(t, store, other.ID, "go.example.org", false)
	for i := range 4 {
		addLink(t, store, owner.ID, domain.ID, fmt.Sprintf("d%d", i))
	}
	addLink(t, store, owner.ID, 0, "hash")
	onDomain := []string{"d0", "d1", "d2", "d3"}
	must := func(err error) { t.Helper(); testkit.Must(t, err) }
	p := &poller{store: store, owner: owner.ID, limit: 3}
	p.poll(t)
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"a domain that another account gets", func() {
			must(store.TransferDomain(t.Context(), rival.ID, hour(3), hour(4)))
		}, onDomain},
		{"a domain that comes back", func() { must(store.TransferDomain(t.Context(), domain.ID, hour(3), hour(4))) },
			onDomain},
		{"a domain that comes back again", func() {
			must(store.TransferDomain(t.Context(), domain.ID, hour(3), hour(4)))
			must(store.VerifyDomain(t.Context(), domain.ID, hour(4)))
		}, nil},
		{"a domain that is released", func() { must(store.ReleaseDomain(t.Context(), domain.ID, hour(3))) }, onDomain},
		{"a domain that is verified", func() { must(store.VerifyDomain(t.Context(), domain.ID, hour(3))) }, onDomain},
	} {
		step.do()
		testkit.Equal(t, "links after "+step.name, slices.Sorted(slices.Values(p.poll(t))), step.want, nilOrEmpty)
	}
}

func readsSince(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	var links []schema.Link
	for i := range 8 {
		link := newLink(owner.ID, 0, fmt.Sprint(i))
		link.CreatedAt = hour(i)
		testkit.Must(t, store.CreateLink(t.Context(), &link))
		links = append(links, link)
	}
	for i := range 4 {
		testkit.Must(t, store.UpdateLink(t.Context(), &links[i], schema.LinkEdit{Title: new("new")}, hour(6+2*i)))
	}
	testkit.Must(t, store.DeleteLink(t.Context(), links[7], hour(7)))
	for since, want := range map[int][]string{
		0: {"4", "5", "6", "0", "-7", "1", "2", "3"}, 6: {"6", "0", "-7", "1", "2", "3"}, 7: {"-7", "1", "2", "3"},
		8: {"1", "2", "3"}, 13: nil,
	} {
		for _, limit := range []int{1, 3, 50} {
			p := &poller{store: store, owner: owner.ID, limit: limit, at: schema.LinkChangePosition{Since: hour(since)}}
			testkit.Equal(t, fmt.Sprintf("links since hour %d by %d", since, limit), p.poll(t), want, nilOrEmpty)
		}
	}
	// Clocks of processes differ.
	p := &poller{store: store, owner: owner.ID, limit: 2, at: schema.LinkChangePosition{Since: hour(20)}}
	testkit.Equal(t, "links since hour 20", p.poll(t), nil, nilOrEmpty)
	testkit.Must(t, store.UpdateLink(t.Context(), &links[5], schema.LinkEdit{Title: new("late")}, hour(19)))
	addLink(t, store, owner.ID, 0, "late")
	testkit.Equal(t, "later changes", len(p.poll(t)), 2)
	imported := newLink(owner.ID, 0, "imported")
	imported.CreatedAt, imported.UpdatedAt = hour(-1000), hour(30)
	testkit.Must(t, store.CreateLink(t.Context(), &imported))
	since := &poller{store: store, owner: owner.ID, limit: 2, at: schema.LinkChangePosition{Since: hour(30)}}
	testkit.Equal(t, "links since hour 30", since.poll(t), []string{"imported"})

	empty := addAccount(t, store, "b@example.org")
	first := &poller{store: store, owner: empty.ID, limit: 2, at: schema.LinkChangePosition{Since: hour(20)}}
	testkit.Equal(t, "links of an empty account", first.poll(t), nil, nilOrEmpty)
	addLink(t, store, empty.ID, 0, "first")
	testkit.Equal(t, "the first link", first.poll(t), []string{"first"})
}

func filtersChanges(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	add := func(hash string, domainID int64, tags ...string) schema.Link {
		link := newLink(owner.ID, domainID, hash)
		link.Tags = tags
		testkit.Must(t, store.CreateLink(t.Context(), &link))
		return link
	}
	tagged, deleted, plain := add("tagged", 0, "sale"), add("deleted", domain.ID, "sale"), add("plain", domain.ID)
	testkit.Must(t, store.UpdateLink(t.Context(), &tagged, schema.LinkEdit{Title: new("edited")}, hour(1)))
	testkit.Must(t, store.DeleteLink(t.Context(), deleted, hour(2)))
	testkit.Must(t, store.UpdateLink(t.Context(), &plain, schema.LinkEdit{Active: new(false)}, hour(3)))
	for name, c := range map[string]struct {
		filter schema.LinkFilter
		want   []string
	}{
		"all":      {schema.LinkFilter{}, []string{"tagged", "-deleted", "plain"}},
		"a tag":    {schema.LinkFilter{Tag: "sale"}, []string{"tagged", "-deleted"}},
		"a domain": {schema.LinkFilter{DomainID: &domain.ID}, []string{"-deleted", "plain"}},
		"a word":   {withWord("edited"), []string{"tagged"}},
		"active":   {schema.LinkFilter{Redirects: new(true)}, []string{"tagged"}},
		"inactive": {schema.LinkFilter{Redirects: new(false)}, []string{"-deleted", "plain"}},
		"no text":  {schema.LinkFilter{Tag: "\xff"}, nil},
	} {
		p := &poller{store: store, owner: owner.ID, filter: c.filter, limit: 1}
		testkit.Equal(t, name, p.poll(t), c.want, nilOrEmpty)
	}
	testkit.Must(t, store.DeleteLink(t.Context(), plain, hour(4)))
	testkit.Must(t, store.DeleteDomain(t.Context(), domain.ID))
	p := &poller{store: store, owner: owner.ID, limit: 3}
	testkit.Equal(t, "without the domain", p.poll(t), []string{"tagged"})
}

func refusesLaterPositions(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	addLink(t, store, owner.ID, 0, "one")
	for _, at := range []schema.LinkChangePosition{{Begun: true, Ordinal: 2}, {Begun: true, Ordinal: 1, Number: 1}} {
		_, _, err := store.ChangedLinks(t.Context(), owner.ID, schema.LinkFilter{}, at, 1)
		testkit.WantCode(t, err, schema.CodeNotFound)
	}
}

func numbersSome(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	for i := range 5 {
		link := addLink(t, store, owner.ID, 0, fmt.Sprint(i))
		testkit.Must(t, store.UpdateLink(t.Context(), &link, schema.LinkEdit{Title: new("new")}, hour(9-i)))
	}
	var got []string
	at := schema.LinkChangePosition{}
	for _, want := range []int64{2, 2, 1, 0} {
		n, err := store.NumberChanges(t.Context(), owner.ID, 2)
		testkit.Must(t, err)
		testkit.Equal(t, "numbered changes", n, want)
		var links []schema.Link
		links, at, err = store.ChangedLinks(t.Context(), owner.ID, schema.LinkFilter{}, at, 10)
		testkit.Must(t, err)
		for _, l := range links {
			got = append(got, l.Hash)
		}
	}
	testkit.Equal(t, "links", got, []string{"4", "3", "2", "1", "0"})
}

// TestChangesUnderWay polls for changes while transactions of several processes are open for a while, and commit in
// another order than they began. The last state of every link must be read.
func TestChangesUnderWay(t *testing.T, stores ...*linkstore.Store) {
	const writers, each = 8, 30
	owner := addAccount(t, stores[0], "a@example.org")
	var all []schema.Link
	for i := range writers {
		all = append(all, addLink(t, stores[0], owner.ID, 0, fmt.Sprint("shared-", i)))
	}
	var group sync.WaitGroup
	for w := range writers {
		// Each step of a transaction takes a while.
		slow := Watched(stores[w%len(stores)], func(_ context.Context, s Step) error {
			if s.Nested {
				time.Sleep(time.Duration(w) * time.Millisecond)
			}
			return nil
		})
		group.Go(func() {
			for i := range each {
				if err := changeSomething(t.Context(), slow, owner.ID, all, w, i); err != nil {
					t.Errorf("writer %d, change %d: %v", w, i, err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	v := &versions{poller{store: stores[0], owner: owner.ID, limit: 7}, map[string]int64{}}
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(time.Millisecond): // a poller has a pace
		}
		v.read(t)
	}
	for v.read(t) > 0 {
	}
	want := map[string]int64{}
	for after := (schema.LinkPosition{}); ; {
		page, err := stores[0].LinksAfter(t.Context(), owner.ID, schema.LinkFilter{}, after, 100)
		testkit.Must(t, err)
		if len(page) == 0 {
			break
		}
		for _, l := range page {
			want[l.Hash] = l.Version
		}
		after = schema.PositionOf(page[len(page)-1])
	}
	testkit.Equal(t, "links made", len(want), writers*(1+each))
	testkit.Equal(t, "versions", v.seen, want)
}

// versions are the versions of links that a poller has read.
type versions struct {
	poller
	seen map[string]int64 // by hash
}

// read reads a page, and returns how many links it has. No link becomes older.
func (v *versions) read(t *testing.T) int {
	t.Helper()
	_, err := v.store.NumberChanges(t.Context(), v.owner, 1000)
	testkit.Must(t, err)
	links, next, err := v.store.ChangedLinks(t.Context(), v.owner, v.filter, v.at, v.limit)
	testkit.Must(t, err)
	for _, l := range links {
		if l.Version < v.seen[l.Hash] {
			t.Errorf("link %s has version %d after %d", l.Hash, l.Version, v.seen[l.Hash])
		}
		v.seen[l.Hash] = l.Version
	}
	v.at = next
	return len(links)
}

// changeSomething makes a change of a kind that depends on n. Times go backwards.
func changeSomething(
	ctx context.Context, store schema.Database, owner int64, shared []schema.Link, writer, n int,
) error {
	at := hour(1000 - n)
	switch n % 3 {
	case 0:
		batch := &schema.LinkBatch{AccountID: owner}
		for i := range 3 {
			link := newLink(owner, 0, fmt.Sprintf("new-%d-%d-%d", writer, n, i))
			link.CreatedAt = at
			batch.Links = append(batch.Links, link)
		}
		return store.CreateLinks(ctx, batch)
	case 1:
		ids := []int64{shared[n%len(shared)].ID, shared[(n+writer)%len(shared)].ID}
		return store.ChangeLinks(ctx, &schema.LinkChanges{AccountID: owner, IDs: ids, Edit: addTag("t"), At: at})
	}
	link := shared[(n*writer)%len(shared)]
	return store.UpdateLink(ctx, &link, schema.LinkEdit{Title: new(fmt.Sprint(writer, n))}, at)
}
