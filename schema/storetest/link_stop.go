package storetest

import (
	"fmt"
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var linkStopBehaviours = []behaviour[schema.Database]{
	{"SetTakenDown takes a link down and puts it back, repeatedly", takesDown},
	{"SetTakenDown does not find an unknown link", takesDownUnknown},
	{"a suspended account stops its links, a reinstated one does not", suspensionStops},
	{"a domain that is lost stops its links, one that is won back does not", lossStops},
}

// stops requires that every method that reads links says why the link is stopped.
func stops(t *testing.T, store schema.LinkStore, link schema.Link, want schema.Stop) {
	t.Helper()
	link.Stopped = want
	got, err := schema.FindLink(t.Context(), store, link.DomainID, link.Hash)
	testkit.Must(t, err)
	testkit.Equal(t, "FindLink", got, link)
	got, err = schema.FindOwnedLink(t.Context(), store, link.AccountID, link.Hash, &link.DomainID)
	testkit.Must(t, err)
	testkit.Equal(t, "FindOwnedLink", got, link)
	page, _, err := store.Links(t.Context(), link.AccountID, schema.LinkFilter{}, 1)
	testkit.Must(t, err)
	found, _, err := store.Links(t.Context(), link.AccountID, withWord(link.Hash), 1)
	testkit.Must(t, err)
	byID, err := store.LinksByID(t.Context(), link.AccountID, []int64{link.ID})
	testkit.Must(t, err)
	for method, links := range map[string][]schema.Link{"Links": page, "Links by a word": found, "LinksByID": byID} {
		testkit.Equal(t, method, links, []schema.Link{link})
	}
	testkit.Equal(t, "Redirects", got.Redirects(), link.Active && want == schema.NotStopped)
}

func takesDown(t *testing.T, store schema.Database) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	link, other := addLink(t, store, a.ID, 0, "down"), addLink(t, store, b.ID, 0, "other")
	for _, down := range []bool{true, true, false, false, true} {
		testkit.Must(t, store.SetTakenDown(t.Context(), 0, "down", down))
		want := schema.NotStopped
		if down {
			want = schema.TakenDown
		}
		stops(t, store, link, want)
		stops(t, store, other, schema.NotStopped)
	}
	SetActive(t, store, 0, "down", false) // the owner's switch is another one
	link.Active, link.Version = false, link.Version+1
	stops(t, store, link, schema.TakenDown)
	testkit.Must(t, store.SetTakenDown(t.Context(), 0, "down", false))
	stops(t, store, link, schema.NotStopped)
}

func takesDownUnknown(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	link := addLink(t, store, owner.ID, 0, "known")
	testkit.WantCode(t, store.SetTakenDown(t.Context(), 0, "unknown", true), schema.CodeNotFound)
	testkit.WantCode(t, store.SetTakenDown(t.Context(), domain.ID, "known", true), schema.CodeNotFound)
	stops(t, store, link, schema.NotStopped)
}

func suspensionStops(t *testing.T, store schema.Database) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	link, other := addLink(t, store, a.ID, 0, "suspended"), addLink(t, store, b.ID, 0, "other")
	testkit.Must(t, store.SetSuspended(t.Context(), a.ID, true))
	stops(t, store, link, schema.Suspended)
	stops(t, store, other, schema.NotStopped)
	testkit.Must(t, store.SetTakenDown(t.Context(), 0, "suspended", true))
	stops(t, store, link, schema.TakenDown)
	testkit.Must(t, store.SetSuspended(t.Context(), a.ID, false))
	stops(t, store, link, schema.TakenDown)
	testkit.Must(t, store.SetTakenDown(t.Context(), 0, "suspended", false))
	stops(t, store, link, schema.NotStopped)
}

func lossStops(t *testing.T, store schema.Database) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	held, claim := addDomain(t, store, a.ID, "go.example.org", true), addDomain(t, store, b.ID, "go.example.org", false)
	link := addLink(t, store, a.ID, held.ID, "there")
	link.Host = held.Host
	stops(t, store, link, schema.NotStopped)
	testkit.Must(t, store.TransferDomain(t.Context(), claim.ID, hour(1), hour(2)))
	stops(t, store, link, schema.HostLost)
	taken := addLink(t, store, b.ID, claim.ID, "there") // the hash is free on the other domain
	taken.Host = claim.Host
	stops(t, store, taken, schema.NotStopped)
	testkit.Must(t, store.TransferDomain(t.Context(), held.ID, hour(3), hour(4)))
	stops(t, store, link, schema.NotStopped)
	stops(t, store, taken, schema.HostLost)
}

// SetActive switches a link on or off, as its owner does, at the time of the last edit: nothing else of the link
// changes.
func SetActive(tb testing.TB, store schema.LinkStore, domainID int64, hash string, active bool) {
	tb.Helper()
	link, err := schema.FindLink(tb.Context(), store, domainID, hash)
	testkit.Must(tb, err)
	testkit.Must(tb, store.UpdateLink(tb.Context(), &link, schema.LinkEdit{Active: &active}, link.UpdatedAt))
}

// TestTakenNames requires that a take-down of a link spares a link that an api of 1.0.0 has given one of its former
// hashes: it deletes the row of a deleted name and leaves the list of former hashes as it is.
func TestTakenNames(t *testing.T, store schema.Database, exec func(statement string)) {
	owner := addAccount(t, store, "names@example.org")
	gone := renamed(t, store, owner.ID, 0, "stale-a", "stale-b")
	testkit.Must(t, store.DeleteLink(t.Context(), gone, hour(2)))
	exec(`DELETE FROM links WHERE domain_id = 0 AND hash = 'stale-a'`)
	anew := addLink(t, store, owner.ID, 0, "stale-a")
	testkit.Must(t, store.SetTakenDown(t.Context(), 0, "stale-b", true))
	got, err := schema.FindLink(t.Context(), store, 0, "stale-a")
	testkit.Must(t, err)
	testkit.Equal(t, "link made anew", fmt.Sprint(got.ID, got.Stopped), fmt.Sprint(anew.ID, anew.Stopped))
}
