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

var outboxBehaviours = []behaviour[schema.Database]{
	{"each mutation that caches see leaves its change, and no other one does", leavesChanges},
	{"restoring a link leaves its change", restoringLeavesChange},
	{"a mutation that fails leaves no change", failuresLeaveNoChange},
	{"PendingChanges goes on from a position", pendingGoesOn},
	{"PendingChanges misses no change of transactions that overlap", pendingMissesNothing},
	{"TakeChanges removes what was published", takesChanges},
	{"TakeChanges keeps what was not published", keepsUnpublished},
	{"TakeChanges keeps what was published for a time", keepsPublished},
	{"TakeChanges gives each change to one of concurrent calls", takesOnce},
}

// wantPending requires that the changes with the keys wait, in any order, and takes them.
func wantPending(t *testing.T, what string, store schema.Outbox, keys ...string) {
	t.Helper()
	pending, err := store.PendingChanges(t.Context(), schema.OutboxPosition{})
	testkit.Must(t, err)
	slices.Sort(keys)
	testkit.Equal(t, what, keysOf(pending.Changes), keys, nilOrEmpty)
	testkit.Equal(t, what+", taken", keysOf(takeAll(t, store)), keys, nilOrEmpty)
}

func keysOf(changes []schema.Change) (keys []string) {
	for _, change := range changes {
		keys = append(keys, change.Key())
	}
	slices.Sort(keys)
	return keys
}

// takeAll takes all changes.
func takeAll(t *testing.T, store schema.Outbox) (all []schema.Change) {
	t.Helper()
	for {
		taken, err := store.TakeChanges(t.Context(), 0, func(changes []schema.Change) error {
			all = append(all, changes...)
			return nil
		})
		testkit.Must(t, err)
		if !taken {
			return all
		}
	}
}

func leavesChanges(t *testing.T, store schema.Database) {
	a, b := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	wantPending(t, "new accounts", store)
	link := addLink(t, store, a.ID, 0, "made")
	wantPending(t, "a new link", store, "link/0/made")
	batch := &schema.LinkBatch{AccountID: a.ID, NewHash: schema.NewHash, Links: []schema.Link{
		{Hash: "one", CreatedAt: epoch}, {Hash: "made", CreatedAt: epoch}, {Hash: "two", CreatedAt: epoch}}}
	testkit.Must(t, store.CreateLinks(t.Context(), batch))
	wantPending(t, "new links", store, "link/0/one", "link/0/two")

	for what, edit := range map[string]schema.LinkEdit{
		"URL": {URL: new("https://example.org/new")}, "active": {Active: new(false)}, "expiry": {ExpiresAt: new(hour(1))},
		"expired URL": {ExpiredURL: new("https://example.org/over")}, "forwarded query": {ForwardQuery: new(true)},
		"extension": {Behaviour: &schema.Behaviour{Card: &schema.Card{Title: "card"}}},
		"paths":     {Behaviour: &schema.Behaviour{PathMode: schema.PathAppend}},
	} {
		testkit.Must(t, store.UpdateLink(t.Context(), &link, edit, hour(1)))
		wantPending(t, what, store, "link/0/made")
	}
	testkit.Must(t, store.UpdateLink(t.Context(), &link, schema.LinkEdit{Title: new("title"), Tags: &[]string{"tag"}},
		hour(2)))
	_, err := store.RenameTag(t.Context(), a.ID, "tag", "renamed", hour(3))
	testkit.Must(t, err)
	wantPending(t, "title and tags", store)
	testkit.Must(t, store.SetTakenDown(t.Context(), 0, "made", true))
	wantPending(t, "a take-down", store, "link/0/made")
	testkit.Must(t, store.DeleteLink(t.Context(), link, hour(4)))
	wantPending(t, "a deleted link", store, "link/0/made")
	addLink(t, store, a.ID, 0, "made")
	wantPending(t, "a link made anew", store, "link/0/made")

	testkit.Must(t, store.SetSuspended(t.Context(), b.ID, true))
	wantPending(t, "a suspended account", store, fmt.Sprint("account/", b.ID))
	testkit.Must(t, store.SetPassword(t.Context(), b.ID, "hash", 0))
	wantPending(t, "a password", store)
	domainsLeaveChanges(t, store, a, b)
}

func domainsLeaveChanges(t *testing.T, store schema.Database, a, b schema.Account) {
	t.Helper()
	claim := addDomain(t, store, a.ID, "go.example.org", false)
	wantPending(t, "a claimed domain", store)
	testkit.Must(t, store.VerifyDomain(t.Context(), claim.ID, hour(1)))
	wantPending(t, "a verified domain", store, "host/go.example.org")
	other := addDomain(t, store, b.ID, "go.example.org", false)
	testkit.Must(t, store.NoteDomainCheck(t.Context(), claim.ID, hour(2), hour(3)))
	wantPending(t, "a check", store)
	testkit.Must(t, store.TransferDomain(t.Context(), other.ID, hour(4), hour(5)))
	wantPending(t, "a domain that changes hands", store, "host/go.example.org", "host/go.example.org")
	testkit.Must(t, store.ReleaseDomain(t.Context(), other.ID, hour(6)))
	wantPending(t, "a released domain", store, "host/go.example.org")
	verified := addDomain(t, store, a.ID, "verified.example.org", true)
	wantPending(t, "a domain that is verified at once", store, "host/verified.example.org")
	for _, set := range []struct {
		site  schema.Site
		links schema.AppLinks
	}{
		{schema.Site{RootURL: "https://example.org/"}, schema.AppLinks{}},
		{schema.Site{RootURL: "https://example.org/"}, schema.AppLinks{Apple: "{}"}},
		{schema.Site{PathMode: schema.PathAppend}, schema.AppLinks{Apple: "{}"}},
		{schema.Site{PathMode: schema.PathNone}, schema.AppLinks{Apple: "{}"}},
		{schema.Site{PathMode: schema.PathNone, Name: "A"}, schema.AppLinks{Apple: "{}"}},
		{schema.Site{PathMode: schema.PathNone, Name: "A", Color: "#ffd400"}, schema.AppLinks{Apple: "{}"}},
	} {
		testkit.Must(t, store.SetSite(t.Context(), verified.ID, set.site, set.links))
		wantPending(t, "a site", store, "host/verified.example.org")
		testkit.Must(t, store.SetSite(t.Context(), verified.ID, set.site, set.links))
		wantPending(t, "the same site", store)
	}
	custom := addLink(t, store, a.ID, verified.ID, "custom")
	wantPending(t, "a link on a domain", store, fmt.Sprintf("link/%d/custom", verified.ID))
	testkit.Must(t, store.DeleteLink(t.Context(), custom, hour(7)))
	testkit.Must(t, store.DeleteDomain(t.Context(), verified.ID))
	wantPending(t, "a deleted domain and its link", store, fmt.Sprintf("link/%d/custom", verified.ID),
		"host/verified.example.org")
}

func restoringLeavesChange(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	link := addLink(t, store, owner.ID, 0, "made")
	testkit.Must(t, store.DeleteLink(t.Context(), link, hour(1)))
	takeAll(t, store)
	_, err := store.RestoreLink(t.Context(), owner.ID, "made", nil, hour(0), hour(2))
	testkit.Must(t, err)
	wantPending(t, "a restored link", store, "link/0/made")
}

func failuresLeaveNoChange(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	domain := addDomain(t, store, owner.ID, "go.example.org", true)
	link := addLink(t, store, owner.ID, domain.ID, "known")
	takeAll(t, store)
	taken := schema.Link{AccountID: owner.ID, DomainID: domain.ID, Hash: "known", URL: "https://example.org/",
		CreatedAt: epoch}
	testkit.WantCode(t, store.CreateLink(t.Context(), &taken), schema.CodeConflict)
	nobody := &schema.LinkBatch{AccountID: owner.ID + 1, Links: []schema.Link{{Hash: "free", CreatedAt: epoch}}}
	testkit.WantCode(t, store.CreateLinks(t.Context(), nobody), schema.CodeNotFound)
	refused := errors.New("refused")
	failing := &schema.LinkBatch{AccountID: owner.ID, Links: []schema.Link{{Hash: "free", CreatedAt: epoch}}}
	failing.Call = &schema.IdempotentCall{AccountID: owner.ID, Key: [32]byte{1}, At: epoch}
	failing.Answer = func([]schema.Link, []error) ([]byte, error) { return nil, refused }
	if err := store.CreateLinks(t.Context(), failing); err == nil {
		t.Error("a batch whose answer fails is created")
	}
	stale := link
	stale.Version--
	edit := schema.LinkEdit{Active: new(false), Unchanged: true}
	testkit.WantCode(t, store.UpdateLink(t.Context(), &stale, edit, hour(1)), schema.CodeConflict)
	testkit.WantCode(t, store.DeleteUnchanged(t.Context(), stale, hour(1)), schema.CodeConflict)
	testkit.WantCode(t, store.SetTakenDown(t.Context(), 0, "known", true), schema.CodeNotFound)
	testkit.WantCode(t, store.SetSuspended(t.Context(), owner.ID+1, true), schema.CodeNotFound)
	testkit.WantCode(t, store.DeleteDomain(t.Context(), domain.ID), schema.CodeConflict)
	testkit.WantCode(t, store.ReleaseDomain(t.Context(), domain.ID+1, hour(1)), schema.CodeNotFound)
	wantPending(t, "mutations that fail", store)
}

func pendingGoesOn(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	pending, err := store.PendingChanges(t.Context(), schema.OutboxPosition{})
	testkit.Must(t, err)
	addLink(t, store, owner.ID, 0, "one")
	for _, hash := range []string{"two", "three"} {
		next, err := store.PendingChanges(t.Context(), pending.Next)
		testkit.Must(t, err)
		addLink(t, store, owner.ID, 0, hash)
		pending = next
	}
	last, err := store.PendingChanges(t.Context(), pending.Next)
	testkit.Must(t, err)
	if keys := keysOf(last.Changes); !slices.Contains(keys, "link/0/three") {
		t.Errorf("%q, without the last change", keys)
	}
	testkit.Eventually(t, "what was seen is not repeated, once earlier transactions have ended", func() bool {
		pending, err := store.PendingChanges(t.Context(), last.Next)
		testkit.Must(t, err)
		last = pending
		return len(pending.Changes) == 0
	})
	all, err := store.PendingChanges(t.Context(), schema.OutboxPosition{})
	testkit.Must(t, err)
	testkit.Equal(t, "all", keysOf(all.Changes), []string{"link/0/one", "link/0/three", "link/0/two"})
}

func pendingMissesNothing(t *testing.T, store schema.Database) {
	const writers, each = 8, 25
	owner := addAccount(t, store, "a@example.org")
	done := make(chan []error)
	go func() {
		done <- concurrently(writers, func(i int) error {
			for n := range each {
				link := schema.Link{AccountID: owner.ID, Hash: fmt.Sprintf("w%d-%d", i, n), URL: "https://example.org/",
					CreatedAt: epoch}
				if err := store.CreateLink(t.Context(), &link); err != nil {
					return err
				}
			}
			return nil
		})
	}()
	seen, after := map[string]bool{}, schema.OutboxPosition{}
	read := func() {
		pending, err := store.PendingChanges(t.Context(), after)
		testkit.Must(t, err)
		after = pending.Next
		for _, change := range pending.Changes {
			seen[change.Hash] = true
		}
	}
	for ended := false; !ended; read() {
		select {
		case errs := <-done:
			testkit.Must(t, errors.Join(errs...))
			ended = true
		default:
		}
	}
	testkit.Equal(t, "changes seen", len(seen), writers*each)
}

// TestMaxPending checks that PendingChanges reads no more than schema.MaxPending entries of an empty store. insert adds
// entries, each of which is a change of the link "many".
func TestMaxPending(t *testing.T, store schema.Database, insert func(entries int)) {
	insert(schema.MaxPending)
	most, err := store.PendingChanges(t.Context(), schema.OutboxPosition{})
	testkit.Must(t, err)
	testkit.Equal(t, "changes", len(most.Changes), schema.MaxPending)
	testkit.Equal(t, "missed", most.Missed, false)
	insert(1)
	more, err := store.PendingChanges(t.Context(), schema.OutboxPosition{})
	testkit.Must(t, err)
	testkit.Equal(t, "missed", more.Missed, true)
	testkit.Equal(t, "changes", len(more.Changes), 0)
	addLink(t, store, addAccount(t, store, "a@example.org").ID, 0, "next")
	afterwards, err := store.PendingChanges(t.Context(), more.Next)
	testkit.Must(t, err)
	if keys := keysOf(afterwards.Changes); !afterwards.Missed && !slices.Contains(keys, "link/0/next") {
		t.Errorf("%q, without the last change", keys)
	}
	testkit.Eventually(t, "what was missed is not repeated, once earlier transactions have ended", func() bool {
		afterwards, err = store.PendingChanges(t.Context(), afterwards.Next)
		testkit.Must(t, err)
		return !afterwards.Missed && len(afterwards.Changes) == 0
	})
}

func takesChanges(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	addLink(t, store, owner.ID, 0, "one")
	published := 0
	publish := func(changes []schema.Change) error {
		published += len(changes)
		return nil
	}
	taken, err := store.TakeChanges(t.Context(), 0, publish)
	testkit.Must(t, err)
	testkit.Equal(t, "taken", taken, true)
	testkit.Equal(t, "published", published, 1)
	taken, err = store.TakeChanges(t.Context(), 0, func([]schema.Change) error {
		t.Error("publish was called")
		return nil
	})
	testkit.Must(t, err)
	testkit.Equal(t, "taken from nothing", taken, false)
	pending, err := store.PendingChanges(t.Context(), schema.OutboxPosition{})
	testkit.Must(t, err)
	testkit.Equal(t, "pending", len(pending.Changes), 0)
}

func keepsUnpublished(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	addLink(t, store, owner.ID, 0, "one")
	away := errors.New("the broker is away")
	during := 0
	taken, err := store.TakeChanges(t.Context(), 0, func([]schema.Change) error {
		pending, err := store.PendingChanges(t.Context(), schema.OutboxPosition{})
		testkit.Must(t, err)
		during = len(pending.Changes)
		return away
	})
	if taken || !errors.Is(err, away) {
		t.Errorf("taken %v, %v", taken, err)
	}
	testkit.Equal(t, "pending while they are published", during, 1)
	wantPending(t, "afterwards", store, "link/0/one")
}

func keepsPublished(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	read, err := store.PendingChanges(t.Context(), schema.OutboxPosition{})
	testkit.Must(t, err)
	addLink(t, store, owner.ID, 0, "one")
	published := 0
	take := func(keep time.Duration) {
		for taken := true; taken; {
			taken, err = store.TakeChanges(t.Context(), keep, func(changes []schema.Change) error {
				published += len(changes)
				return nil
			})
			testkit.Must(t, err)
		}
	}
	take(time.Hour)
	read, err = store.PendingChanges(t.Context(), read.Next)
	testkit.Must(t, err)
	testkit.Equal(t, "pending after it was published", keysOf(read.Changes), []string{"link/0/one"})
	addLink(t, store, owner.ID, 0, "two")
	take(time.Millisecond)
	testkit.Eventually(t, "the time of the second one is over", func() bool {
		take(time.Hour)
		all, err := store.PendingChanges(t.Context(), schema.OutboxPosition{})
		testkit.Must(t, err)
		return slices.Equal(keysOf(all.Changes), []string{"link/0/one"})
	})
	testkit.Equal(t, "published once", published, 2)
}

func takesOnce(t *testing.T, store schema.Database) {
	const links = 100
	owner := addAccount(t, store, "a@example.org")
	for n := range links {
		addLink(t, store, owner.ID, 0, fmt.Sprint("link", n))
	}
	var taken [4][]schema.Change
	testkit.Must(t, errors.Join(concurrently(len(taken), func(i int) error {
		for {
			again, err := store.TakeChanges(t.Context(), 0, func(changes []schema.Change) error {
				taken[i] = append(taken[i], changes...)
				return nil
			})
			if err != nil || !again {
				return err
			}
		}
	})...))
	all := slices.Concat(append(taken[:], takeAll(t, store))...)
	testkit.Equal(t, "changes", len(all), links)
	testkit.Equal(t, "different ones", len(slices.Compact(keysOf(all))), links)
}
