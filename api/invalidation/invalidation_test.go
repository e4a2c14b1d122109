package invalidation_test

import (
	"errors"
	"testing"
	"time"

	"linkstream/api/invalidation"
	"linkstream/schema"
	"linkstream/schema/linkstore"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/testkit"
)

func open(t *testing.T) (store *linkstore.Store, owner schema.Account) {
	t.Helper()
	store = sqlitetest.New(t)
	owner = schema.Account{Email: "a@example.org", CreatedAt: time.Now()}
	testkit.Must(t, store.CreateAccount(t.Context(), &owner))
	return store, owner
}

func TestWrap(t *testing.T) {
	store, owner := open(t)
	called := 0
	db := invalidation.Wrap(store, func() {
		called++
		_, err := store.TakeChanges(t.Context(), 0, func([]schema.Change) error { return nil })
		testkit.Must(t, err)
	})
	now := time.Now()
	link := schema.Link{AccountID: owner.ID, Hash: "one", URL: "https://example.org/", Active: true, CreatedAt: now}
	claim := schema.Domain{AccountID: owner.ID, Host: "go.example.org", CreatedAt: now}
	verified := schema.Domain{AccountID: owner.ID, Host: "verified.example.org", CreatedAt: now, VerifiedAt: now}
	activate := func(schema.Link) (schema.LinkEdit, error) { return schema.LinkEdit{Active: new(true)}, nil }
	for _, method := range []struct {
		name string
		call func() error
	}{
		{"CreateLink", func() error { return db.CreateLink(t.Context(), &link) }},
		{"CreateLinks", func() error {
			return db.CreateLinks(t.Context(),
				&schema.LinkBatch{AccountID: owner.ID, Links: []schema.Link{{Hash: "two", CreatedAt: now}}})
		}},
		{"UpdateLink", func() error { return db.UpdateLink(t.Context(), &link, schema.LinkEdit{Active: new(false)}, now) }},
		{"ChangeLinks", func() error {
			return db.ChangeLinks(t.Context(), &schema.LinkChanges{AccountID: owner.ID, IDs: []int64{link.ID}, At: now,
				Edit: activate})
		}},
		{"SetTakenDown", func() error { return db.SetTakenDown(t.Context(), 0, "one", true) }},
		{"DeleteLink", func() error { return db.DeleteLink(t.Context(), link, now) }},
		{"RestoreLink", func() error {
			_, err := db.RestoreLink(t.Context(), owner.ID, "one", new(int64(0)), now.Add(-time.Hour), now)
			return err
		}},
		{"RestoreLinks", func() error {
			_, err := db.RestoreLinks(t.Context(), owner.ID, []int64{link.ID}, now.Add(-time.Hour), now)
			return err
		}},
		{"DeleteUnchanged", func() error {
			again, err := schema.FindLink(t.Context(), store, 0, "one")
			return errors.Join(err, db.DeleteUnchanged(t.Context(), again, now))
		}},
		{"SetSuspended", func() error { return db.SetSuspended(t.Context(), owner.ID, true) }},
		{"CreateDomain", func() error { return db.CreateDomain(t.Context(), &verified) }},
		{"SetSite", func() error {
			return db.SetSite(t.Context(), verified.ID, schema.Site{RootURL: "https://example.org/"}, schema.AppLinks{})
		}},
		{"VerifyDomain", func() error {
			testkit.Must(t, store.CreateDomain(t.Context(), &claim))
			return db.VerifyDomain(t.Context(), claim.ID, now)
		}},
		{"ReleaseDomain", func() error { return db.ReleaseDomain(t.Context(), claim.ID, now) }},
		{"TransferDomain", func() error { return db.TransferDomain(t.Context(), claim.ID, now, now) }},
		{"DeleteDomain", func() error { return db.DeleteDomain(t.Context(), claim.ID) }},
	} {
		before := called
		testkit.Must(t, method.call())
		testkit.Equal(t, method.name+" has called changed", called, before+1)
		pending, err := store.PendingChanges(t.Context(), schema.OutboxPosition{})
		testkit.Must(t, err)
		testkit.Equal(t, "changes left by "+method.name+" after changed", len(pending.Changes), 0)
	}
	before := called
	testkit.WantCode(t, db.DeleteDomain(t.Context(), claim.ID), schema.CodeNotFound)
	testkit.Equal(t, "a method that fails has called changed", called, before)
}
