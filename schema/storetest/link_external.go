package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var linkExternalBehaviours = []behaviour[schema.Database]{
	{"an external ID is of one link of an account, however the link gets it", givesExternalIDs},
	{"CreateLinks gives each external ID to the first link", givesExternalIDsOfBatch},
	{"concurrent calls give an external ID to one link", givesExternalIDOnce},
	{"a deleted link keeps its external ID as long as it can be restored", keepsExternalIDs},
	{"RestoreAs restores a link with other values, in one event", restoresAs},
	{"RestoreAs restores a version of a link once", restoresAsOnce},
}

func withExternalID(link schema.Link, id string) schema.Link {
	link.ExternalID = id
	return link
}

func wantIDTaken(t *testing.T, err error) {
	t.Helper()
	if testkit.WantCode(t, err, schema.CodeConflict); !errors.Is(err, schema.ErrExternalIDTaken) {
		t.Fatalf("error %v, want that the external ID is taken", err)
	}
}

// wantExternal requires that a link has an external ID; the zero Link stands for none.
func wantExternal(t *testing.T, store schema.Database, accountID int64, id string, want schema.Link) {
	t.Helper()
	got, err := store.ExternalLink(t.Context(), accountID, id, hour(0))
	if want.ID == 0 {
		testkit.WantCode(t, err, schema.CodeNotFound)
		return
	}
	testkit.Must(t, err)
	testkit.Equal(t, "link with external ID "+id, got, want)
}

func givesExternalIDs(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	hook := addWebhook(t, store, owner.ID, nil)
	ids := []string{"a/b%2F;:@?#[]", "A", "a", strings.Repeat("~", schema.MaxExternalIDLen)}
	for i, id := range ids {
		for _, of := range []schema.Account{owner, other} {
			link := withExternalID(newLink(of.ID, 0, fmt.Sprintf("hash-%d-%d", i, of.ID)), id)
			testkit.Must(t, store.CreateLink(t.Context(), &link))
			wantExternal(t, store, of.ID, id, link)
			for _, hash := range []string{link.Hash, fmt.Sprintf("other-%d", i)} {
				again := withExternalID(newLink(of.ID, 0, hash), id)
				wantIDTaken(t, store.CreateLink(t.Context(), &again))
			}
		}
	}
	wantExternal(t, store, owner.ID, "b", schema.Link{})
	sameOrdinals(t, store, owner.ID, int64(len(ids)))
	plain := addLink(t, store, owner.ID, 0, "plain")
	wantIDTaken(t, store.UpdateLink(t.Context(), new(plain), schema.LinkEdit{ExternalID: new("a")}, hour(1)))
	for _, id := range []string{"b", "c", "c", "", "d"} {
		testkit.Must(t, store.UpdateLink(t.Context(), &plain, schema.LinkEdit{ExternalID: &id}, hour(1)))
		testkit.Equal(t, "external ID", plain.ExternalID, id)
		if id != "" {
			wantExternal(t, store, owner.ID, id, plain)
		}
	}
	wantExternal(t, store, owner.ID, "c", schema.Link{})
	events, err := store.WaitingDeliveries(t.Context(), owner.ID, hook.ID, 1000)
	testkit.Must(t, err)
	testkit.Equal(t, "events", len(events), len(ids)+5) // none for a change to what the link has
	last, err := schema.LinkOfEvent(events[len(events)-1].Data)
	testkit.Must(t, err)
	testkit.Equal(t, "external ID of the event", last.ExternalID, "d")
	page, _, err := store.Links(t.Context(), owner.ID, schema.LinkFilter{}, 1)
	testkit.Must(t, err)
	testkit.Equal(t, "link of the page", page[0], plain)
}

func givesExternalIDsOfBatch(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	taken := withExternalID(newLink(owner.ID, 0, "taken"), "taken")
	testkit.Must(t, store.CreateLink(t.Context(), &taken))
	for _, lost := range []bool{false, true} { // with a link whose time in the trash is over, too
		name := fmt.Sprint("-", lost)
		free := "free" + name
		if lost {
			link := withExternalID(newLink(owner.ID, 0, "old"), free)
			testkit.Must(t, store.CreateLink(t.Context(), &link))
			testkit.Must(t, store.DeleteLink(t.Context(), link, epoch.Add(-schema.TrashTTL)))
		}
		batch := newBatch(owner.ID, "one"+name, "", "two"+name, "", "three"+name)
		for i, id := range []string{free, free, "taken", "", "x" + name} {
			batch.Links[i].ExternalID, batch.Links[i].CreatedAt = id, epoch
		}
		createBatch(t, store, batch, "", schema.CodeConflict, schema.CodeConflict, "", "")
		wantIDTaken(t, batch.Errs[1])
		wantIDTaken(t, batch.Errs[2])
		wantExternal(t, store, owner.ID, free, batch.Links[0])
		wantExternal(t, store, owner.ID, "x"+name, batch.Links[4])
	}
	wantExternal(t, store, owner.ID, "taken", taken)
}

func givesExternalIDOnce(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	for round := range 3 {
		id := fmt.Sprintf("id-%d", round)
		onlyOne(t, concurrently(64, func(i int) error {
			link := withExternalID(newLink(owner.ID, 0, fmt.Sprintf("hash-%d-%d", round, i)), id)
			switch i % 3 {
			case 0:
				return store.CreateLink(t.Context(), &link)
			case 1:
				batch := &schema.LinkBatch{AccountID: owner.ID, NewHash: schema.NewHash, Links: []schema.Link{link}}
				if err := store.CreateLinks(t.Context(), batch); err != nil {
					return err
				}
				return batch.Errs[0]
			}
			link.ExternalID = ""
			if err := store.CreateLink(t.Context(), &link); err != nil {
				return err
			}
			return store.UpdateLink(t.Context(), &link, schema.LinkEdit{ExternalID: &id}, hour(1))
		}), schema.CodeConflict)
	}
}

func keepsExternalIDs(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	gone := addDomain(t, store, owner.ID, "gone.example.org", true)
	link := withExternalID(newLink(owner.ID, 0, "hash"), "id")
	testkit.Must(t, store.CreateLink(t.Context(), &link))
	lost := withExternalID(newLink(owner.ID, gone.ID, "hash"), "lost")
	testkit.Must(t, store.CreateLink(t.Context(), &lost))
	testkit.Must(t, store.DeleteLink(t.Context(), lost, hour(1)))
	testkit.Must(t, store.DeleteDomain(t.Context(), gone.ID))
	wantExternal(t, store, owner.ID, "lost", schema.Link{})
	testkit.Must(t, store.DeleteLink(t.Context(), link, hour(1)))
	deleted, err := store.ExternalLink(t.Context(), owner.ID, "id", hour(0))
	testkit.Must(t, err)
	testkit.Equal(t, "it is deleted", deleted.Stopped, schema.Deleted)
	again := withExternalID(newLink(owner.ID, 0, "again"), "id")
	wantIDTaken(t, store.CreateLink(t.Context(), &again))
	other := addLink(t, store, owner.ID, 0, "other")
	edit := schema.LinkEdit{ExternalID: new("id")}
	wantIDTaken(t, store.UpdateLink(t.Context(), new(other), edit, hour(2)))
	restored, err := store.RestoreLink(t.Context(), owner.ID, "hash", nil, hour(0), hour(2))
	testkit.Must(t, err)
	wantExternal(t, store, owner.ID, "id", restored)

	testkit.Must(t, store.DeleteLink(t.Context(), restored, hour(3)))
	_, err = store.ExternalLink(t.Context(), owner.ID, "id", hour(3))
	testkit.WantCode(t, err, schema.CodeNotFound)
	late := hour(3).Add(schema.TrashTTL)
	testkit.Must(t, store.UpdateLink(t.Context(), &other, edit, late))
	wantExternal(t, store, owner.ID, "id", other)
	testkit.Must(t, store.UpdateLink(t.Context(), &other, schema.LinkEdit{ExternalID: new("lost")}, late))
	wantExternal(t, store, owner.ID, "lost", other)

	testkit.Must(t, store.DeleteLink(t.Context(), other, hour(4)))
	_, err = store.PurgeLinks(t.Context(), hour(4), 10)
	testkit.Must(t, err)
	wantExternal(t, store, owner.ID, "lost", schema.Link{})
	remade := withExternalID(newLink(owner.ID, 0, "other"), "lost")
	testkit.Must(t, store.CreateLink(t.Context(), &remade))
	testkit.Must(t, store.DeleteLink(t.Context(), remade, hour(5)))
	anew := addLink(t, store, owner.ID, 0, "other") // in the place of the one with the ID
	wantExternal(t, store, owner.ID, "lost", schema.Link{})
	testkit.Must(t, store.UpdateLink(t.Context(), &anew, schema.LinkEdit{ExternalID: new("lost")}, hour(6)))
	wantExternal(t, store, owner.ID, "lost", anew)
}

func restoresAs(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link := withExternalID(newLink(owner.ID, 0, "hash"), "id")
	link.Behaviour = extension("old")
	testkit.Must(t, store.CreateLink(t.Context(), &link))
	testkit.Must(t, store.DeleteLink(t.Context(), link, hour(1)))
	hook := addWebhook(t, store, owner.ID, nil)
	deleted, err := store.ExternalLink(t.Context(), owner.ID, "id", hour(0))
	testkit.Must(t, err)
	edit := schema.LinkEdit{URL: new("https://new.example/"), Title: new("new"), Active: new(true),
		Behaviour: &schema.Behaviour{}}
	testkit.WantCode(t, store.RestoreAs(t.Context(), new(deleted), edit, hour(1), hour(2)), schema.CodeConflict)
	foreign := deleted
	foreign.AccountID = addAccount(t, store, "b@example.org").ID
	testkit.WantCode(t, store.RestoreAs(t.Context(), &foreign, edit, hour(0), hour(2)), schema.CodeConflict)
	got := deleted
	testkit.Must(t, store.RestoreAs(t.Context(), &got, edit, hour(0), hour(2)))
	want := link
	want.URL, want.Title, want.Behaviour, want.UpdatedAt = "https://new.example/", "new", nil, hour(2)
	want.Version = got.Version
	testkit.Equal(t, "restored link", got, want)
	if got.Version <= deleted.Version {
		t.Errorf("version %d follows %d", got.Version, deleted.Version)
	}
	wantExternal(t, store, owner.ID, "id", want)
	sameOrdinals(t, store, owner.ID, 1)
	testkit.Equal(t, "events", waiting(t, store, hook), []string{"link.created hash new"})
	testkit.WantCode(t, store.RestoreAs(t.Context(), new(got), edit, hour(0), hour(3)), schema.CodeConflict)
}

func restoresAsOnce(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link := withExternalID(newLink(owner.ID, 0, "hash"), "id")
	testkit.Must(t, store.CreateLink(t.Context(), &link))
	for round := range 3 {
		at := hour(10 * round)
		testkit.Must(t, store.DeleteLink(t.Context(), link, at.Add(time.Hour)))
		deleted, err := store.ExternalLink(t.Context(), owner.ID, "id", at)
		testkit.Must(t, err)
		winner := onlyOne(t, concurrently(64, func(i int) error {
			edit := schema.LinkEdit{Title: new(fmt.Sprint(i))}
			return store.RestoreAs(t.Context(), new(deleted), edit, at, at.Add(2*time.Hour))
		}), schema.CodeConflict)
		link, err = store.ExternalLink(t.Context(), owner.ID, "id", at)
		testkit.Must(t, err)
		testkit.Equal(t, "title", link.Title, fmt.Sprint(winner))
		sameOrdinals(t, store, owner.ID, 1)
	}
}
