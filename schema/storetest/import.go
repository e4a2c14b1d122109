package storetest

import (
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var importBehaviours = []behaviour[schema.Database]{
	{"imports have a status, which is updated and takes the place of the account's earlier one", keepsImports},
	{"imports that are old are forgotten with the next one of any account", forgetsImports},
}

func wantImport(t *testing.T, store schema.Database, want schema.ImportStatus) {
	t.Helper()
	got, err := store.ImportStatus(t.Context(), want.AccountID)
	testkit.Must(t, err)
	got.Errors, err = store.ImportErrors(t.Context(), want.AccountID)
	testkit.Must(t, err)
	testkit.Equal(t, "import", got, want)
}

func keepsImports(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	_, err := store.ImportStatus(t.Context(), owner.ID)
	testkit.WantCode(t, err, schema.CodeNotFound)
	_, err = store.ImportErrors(t.Context(), owner.ID)
	testkit.WantCode(t, err, schema.CodeNotFound)
	first := schema.ImportStatus{AccountID: owner.ID, ID: "first", Status: `{"Name": "Links “2026”.csv"}`,
		UpdatedAt: hour(1).UTC()}
	testkit.WantCode(t, store.UpdateImport(t.Context(), first), schema.CodeNotFound)
	testkit.Must(t, store.PutImport(t.Context(), first, hour(0)))
	wantImport(t, store, first)
	testkit.Must(t, store.RequestImport(t.Context(), owner.ID, "first", hour(2)))
	first.Requested, first.UpdatedAt = true, hour(2).UTC()
	wantImport(t, store, first)
	first.Status, first.Errors, first.UpdatedAt = "{}", "2,“ü”\n", hour(3).UTC()
	update := first
	update.Requested = false // an update leaves it as it is
	testkit.Must(t, store.UpdateImport(t.Context(), update))
	wantImport(t, store, first)
	second := schema.ImportStatus{AccountID: owner.ID, ID: "second", Status: "{}", UpdatedAt: hour(4).UTC()}
	foreign := schema.ImportStatus{AccountID: other.ID, ID: "first", Status: "[]", UpdatedAt: hour(4).UTC()}
	for _, status := range []schema.ImportStatus{foreign, second} {
		testkit.Must(t, store.PutImport(t.Context(), status, hour(0)))
	}
	testkit.WantCode(t, store.UpdateImport(t.Context(), first), schema.CodeNotFound)
	testkit.WantCode(t, store.RequestImport(t.Context(), owner.ID, "first", hour(5)), schema.CodeNotFound)
	wantImport(t, store, second)
	wantImport(t, store, foreign)
}

func forgetsImports(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	old := schema.ImportStatus{AccountID: owner.ID, ID: "old", Status: "{}", UpdatedAt: hour(1).UTC()}
	testkit.Must(t, store.PutImport(t.Context(), old, hour(0)))
	next := schema.ImportStatus{AccountID: other.ID, ID: "next", Status: "{}", UpdatedAt: hour(2).UTC()}
	testkit.Must(t, store.PutImport(t.Context(), next, hour(1)))
	wantImport(t, store, old)
	testkit.Must(t, store.PutImport(t.Context(), next, hour(2)))
	_, err := store.ImportStatus(t.Context(), owner.ID)
	testkit.WantCode(t, err, schema.CodeNotFound)
	wantImport(t, store, next)
}
