package invalidation_test

import (
	"path/filepath"
	"testing"
	"time"

	"linkstream/api/invalidation"
	"linkstream/schema"
	"linkstream/schema/sqlite/sqlitetest"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// recorder keeps the published changes. check, if set, is called with each.
type recorder struct {
	changes []schema.Change
	check   func(schema.Change)
}

func (r *recorder) Publish(change schema.Change) {
	r.changes = append(r.changes, change)
	if r.check != nil {
		r.check(change)
	}
}

func (r *recorder) PublishNew(changes []schema.Change) {
	for _, change := range changes {
		r.Publish(change)
	}
}

func TestChangesArePublished(t *testing.T) {
	store, err := sqlitetest.Open(t.Context(), filepath.Join(t.TempDir(), "links.db"))
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Close(t, store) })
	published := &recorder{}
	db := invalidation.Wrap(store, published)
	now := time.Now()
	account := schema.Account{Email: "a@example.org", CreatedAt: now}
	testkit.Must(t, db.CreateAccount(t.Context(), &account))
	domain := schema.Domain{AccountID: account.ID, Host: "go.example.org", CreatedAt: now}
	verified := schema.Domain{AccountID: account.ID, Host: "verified.example.org", CreatedAt: now, VerifiedAt: now}
	link := schema.Link{AccountID: account.ID, Hash: "known", URL: "https://example.org/", Active: true, CreatedAt: now}

	wantPublished := func(t *testing.T, want ...schema.Change) {
		t.Helper()
		testkit.Equal(t, "published changes", published.changes, want)
		published.changes = nil
	}
	t.Run("of links that are created and switched off", func(t *testing.T) {
		testkit.Must(t, db.CreateLink(t.Context(), &link))
		wantPublished(t, schema.Change{Hash: "known"})
		storetest.SetActive(t, db, 0, "known", false)
		wantPublished(t, schema.Change{Hash: "known"})
	})
	t.Run("of links that are created together", func(t *testing.T) {
		batch := &schema.LinkBatch{AccountID: account.ID, NewHash: schema.NewHash,
			Links: []schema.Link{{Hash: "one", CreatedAt: now}, {Hash: "known", CreatedAt: now}, {CreatedAt: now}}}
		testkit.Must(t, db.CreateLinks(t.Context(), batch))
		wantPublished(t, schema.Change{Hash: "one"}, schema.Change{Hash: batch.Links[2].Hash})
	})
	t.Run("of links that are changed and deleted", func(t *testing.T) {
		doomed := schema.Link{AccountID: account.ID, Hash: "doomed", URL: "https://example.org/", Active: true, CreatedAt: now}
		testkit.Must(t, store.CreateLink(t.Context(), &doomed))
		edited := schema.Link{ID: doomed.ID}
		testkit.Must(t, db.UpdateLink(t.Context(), &edited, schema.LinkEdit{Title: new("title")}, now))
		wantPublished(t, schema.Change{Hash: "doomed"})
		testkit.Must(t, db.DeleteLink(t.Context(), doomed, now))
		wantPublished(t, schema.Change{Hash: "doomed"})
		testkit.WantCode(t, db.UpdateLink(t.Context(), &edited, schema.LinkEdit{Title: new("title")}, now), schema.CodeNotFound)
		testkit.WantCode(t, db.DeleteLink(t.Context(), doomed, now), schema.CodeNotFound)
		wantPublished(t)
	})
	t.Run("of links that the operator stops", func(t *testing.T) {
		testkit.Must(t, db.SetTakenDown(t.Context(), 0, "known", true))
		wantPublished(t, schema.Change{Hash: "known"})
		testkit.Must(t, db.SetSuspended(t.Context(), account.ID, true))
		wantPublished(t, schema.Change{AccountID: account.ID})
	})
	t.Run("of domains that are verified, at once or later", func(t *testing.T) {
		testkit.Must(t, db.CreateDomain(t.Context(), &verified))
		wantPublished(t, schema.Change{Host: "verified.example.org"})
		testkit.Must(t, db.CreateDomain(t.Context(), &domain))
		wantPublished(t)
		testkit.Must(t, db.VerifyDomain(t.Context(), domain.ID, now))
		wantPublished(t, schema.Change{Host: "go.example.org"})
	})
	t.Run("with the domain of the link", func(t *testing.T) {
		custom := schema.Link{AccountID: account.ID, DomainID: verified.ID, Hash: "custom", URL: "https://example.org/", CreatedAt: now}
		testkit.Must(t, db.CreateLink(t.Context(), &custom))
		wantPublished(t, schema.Change{DomainID: verified.ID, Hash: "custom"})
		storetest.SetActive(t, db, verified.ID, "custom", true)
		wantPublished(t, schema.Change{DomainID: verified.ID, Hash: "custom"})
	})
	t.Run("of domains that change hands", func(t *testing.T) {
		testkit.Must(t, db.TransferDomain(t.Context(), domain.ID, now, now))
		wantPublished(t, schema.Change{Host: "go.example.org"})
		testkit.Must(t, db.ReleaseDomain(t.Context(), domain.ID, now))
		wantPublished(t, schema.Change{Host: "go.example.org"})
	})
	t.Run("of domains that are deleted, after they are", func(t *testing.T) {
		published.check = func(schema.Change) {
			if _, err := store.Domain(t.Context(), domain.ID); schema.ErrorCode(err) != schema.CodeNotFound {
				t.Errorf("published before it is stored: %v", err)
			}
		}
		defer func() { published.check = nil }()
		testkit.Must(t, db.DeleteDomain(t.Context(), domain.ID))
		wantPublished(t, schema.Change{Host: "go.example.org"})
	})
	t.Run("unless they fail", func(t *testing.T) {
		testkit.WantCode(t, db.CreateLink(t.Context(), &link), schema.CodeConflict)
		nobody := &schema.LinkBatch{AccountID: account.ID + 1, Links: []schema.Link{{Hash: "free", CreatedAt: now}}}
		testkit.WantCode(t, db.CreateLinks(t.Context(), nobody), schema.CodeNotFound)
		testkit.WantCode(t, db.UpdateLink(t.Context(), &schema.Link{}, schema.LinkEdit{Active: new(true)}, now), schema.CodeNotFound)
		again := verified
		testkit.WantCode(t, db.CreateDomain(t.Context(), &again), schema.CodeConflict)
		testkit.WantCode(t, db.VerifyDomain(t.Context(), domain.ID, now), schema.CodeNotFound)
		testkit.WantCode(t, db.DeleteDomain(t.Context(), domain.ID), schema.CodeNotFound)
		testkit.WantCode(t, db.TransferDomain(t.Context(), domain.ID, now, now), schema.CodeNotFound)
		testkit.WantCode(t, db.ReleaseDomain(t.Context(), domain.ID, now), schema.CodeNotFound)
		testkit.WantCode(t, db.SetTakenDown(t.Context(), 0, "none", true), schema.CodeNotFound)
		testkit.WantCode(t, db.SetSuspended(t.Context(), account.ID+1, true), schema.CodeNotFound)
		testkit.WantCode(t, db.DeleteDomain(t.Context(), verified.ID), schema.CodeConflict) // it has a link
		wantPublished(t)
	})
}
