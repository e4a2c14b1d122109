package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var uploadBehaviours = []behaviour[schema.Database]{
	{"uploads keep a file in parts, and what is noted about them", keepsUploads},
	{"uploads take the place of the account's earlier one, unless somebody works on it", replacesUploads},
	{"uploads are given to one holder until its lease ends", leasesUploads},
	{"uploads that are old are deleted with the next one of any account", deletesOldUploads},
	{"uploads of all accounts are bounded together", boundsUploads},
}

const longLease = time.Hour

func addUpload(t *testing.T, store schema.Database, accountID int64, id string, lease time.Duration) schema.Upload {
	t.Helper()
	upload := schema.Upload{ID: id, AccountID: accountID, FileName: "Links “2026”.csv", CreatedAt: hour(1).UTC(), Status: `{"phase": "receiving"}`}
	testkit.Must(t, store.CreateUpload(t.Context(), upload, "holder of "+id, lease, keptSince(hour(0))))
	return upload
}

func keptSince(at time.Time) schema.UploadsKept { return schema.UploadsKept{Since: at, Parts: 1 << 20} }

func wantNoted(t *testing.T, store schema.Database, id, holder string, note schema.UploadNote, want bool) {
	t.Helper()
	got, err := store.NoteUpload(t.Context(), id, holder, note)
	testkit.Must(t, err)
	testkit.Equal(t, "noted by "+holder, got, want)
}

func keepsUploads(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	_, err := store.Upload(t.Context(), owner.ID)
	testkit.WantCode(t, err, schema.CodeNotFound)
	want := addUpload(t, store, owner.ID, "first", longLease)
	parts := [][]byte{bytes.Repeat([]byte("a,b\r\n\x00\xff"), schema.MaxUploadPart/8), []byte("end")}
	for i, part := range parts {
		testkit.Must(t, store.AddUploadPart(t.Context(), "first", i, part))
	}
	testkit.WantCode(t, store.AddUploadPart(t.Context(), "first", 1, []byte("again")), schema.CodeConflict)
	testkit.WantCode(t, store.AddUploadPart(t.Context(), "none", 0, []byte("x")), schema.CodeNotFound)
	for i, part := range parts {
		got, err := store.UploadPart(t.Context(), "first", i)
		testkit.Must(t, err)
		if !bytes.Equal(got, part) {
			t.Errorf("part %d has %d bytes, want %d", i, len(got), len(part))
		}
	}
	_, err = store.UploadPart(t.Context(), "first", 2)
	testkit.WantCode(t, err, schema.CodeNotFound)
	for _, note := range []struct {
		schema.UploadNote
		errors string
	}{
		{schema.UploadNote{Status: "one", Errors: "2,alias\n", Lease: longLease}, "2,alias\n"},
		{schema.UploadNote{Status: "two", Errors: "3,“ü”\n", Lease: longLease}, "2,alias\n3,“ü”\n"},
		{schema.UploadNote{Status: "three", Errors: "4\n", Restart: true, Lease: longLease}, "4\n"},
		{schema.UploadNote{Status: "four"}, "4\n"},
		{schema.UploadNote{Status: "five", Restart: true, Drop: true}, ""},
	} {
		wantNoted(t, store, "first", "holder of first", note.UploadNote, true)
		want.Status, want.Leased = note.Status, note.Lease > 0
		got, err := store.Upload(t.Context(), owner.ID)
		testkit.Must(t, err)
		testkit.Equal(t, "upload", got, want)
		lines, err := store.UploadErrors(t.Context(), "first")
		testkit.Must(t, err)
		testkit.Equal(t, "errors", lines, note.errors)
		_, err = store.UploadPart(t.Context(), "first", 0)
		testkit.Equal(t, "the file is gone", schema.ErrorCode(err) == schema.CodeNotFound, note.Drop)
	}
	_, err = store.UploadErrors(t.Context(), "none")
	testkit.WantCode(t, err, schema.CodeNotFound)
}

func replacesUploads(t *testing.T, store schema.Database) {
	owner, other := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org")
	addUpload(t, store, owner.ID, "first", longLease)
	testkit.Must(t, store.AddUploadPart(t.Context(), "first", 0, []byte("x")))
	addUpload(t, store, other.ID, "foreign", longLease)
	second := schema.Upload{ID: "second", AccountID: owner.ID, CreatedAt: hour(2)}
	testkit.WantCode(t, store.CreateUpload(t.Context(), second, "holder", longLease, keptSince(hour(0))), schema.CodeConflict)
	wantNoted(t, store, "first", "holder of first", schema.UploadNote{}, true)
	errs := concurrently(4, func(i int) error {
		second := second
		second.ID += string(rune('a' + i))
		return store.CreateUpload(t.Context(), second, second.ID, longLease, keptSince(hour(0)))
	})
	onlyOne(t, errs, schema.CodeConflict)
	_, err := store.UploadPart(t.Context(), "first", 0)
	testkit.WantCode(t, err, schema.CodeNotFound)
	wantNoted(t, store, "first", "holder of first", schema.UploadNote{}, false)
	got, err := store.Upload(t.Context(), other.ID)
	testkit.Must(t, err)
	testkit.Equal(t, "upload of another account", got.ID, "foreign")
}

func leasesUploads(t *testing.T, store schema.Database) {
	owner := addAccount(t, store, "a@example.org")
	addUpload(t, store, owner.ID, "first", longLease)
	wantNoted(t, store, "first", "another", schema.UploadNote{Lease: longLease}, false)
	wantNoted(t, store, "first", "holder of first", schema.UploadNote{Lease: time.Millisecond}, true)
	testkit.Eventually(t, "the lease ends", func() bool {
		upload, err := store.Upload(t.Context(), owner.ID)
		testkit.Must(t, err)
		return !upload.Leased
	})
	wantNoted(t, store, "first", "another", schema.UploadNote{Status: "another's", Lease: longLease}, true)
	wantNoted(t, store, "first", "holder of first", schema.UploadNote{Lease: longLease, Drop: true}, false)
	upload, err := store.Upload(t.Context(), owner.ID)
	testkit.Must(t, err)
	testkit.Equal(t, "status", upload.Status, "another's")
}

func deletesOldUploads(t *testing.T, store schema.Database) {
	old, busy, recent, owner := addAccount(t, store, "a@example.org"), addAccount(t, store, "b@example.org"),
		addAccount(t, store, "c@example.org"), addAccount(t, store, "d@example.org")
	for _, account := range []schema.Account{old, busy, recent} {
		addUpload(t, store, account.ID, account.Email, longLease)
	}
	wantNoted(t, store, old.Email, "holder of "+old.Email, schema.UploadNote{}, true)
	create := func(id string, before time.Time) {
		upload := schema.Upload{ID: id, AccountID: owner.ID, CreatedAt: hour(3)}
		testkit.Must(t, store.CreateUpload(t.Context(), upload, id, longLease, keptSince(before)))
		wantNoted(t, store, id, id, schema.UploadNote{}, true)
	}
	create("before", hour(1))
	_, err := store.Upload(t.Context(), old.ID)
	testkit.Must(t, err)
	create("after", hour(2))
	_, err = store.Upload(t.Context(), old.ID)
	testkit.WantCode(t, err, schema.CodeNotFound)
	for _, account := range []schema.Account{busy, recent, owner} {
		_, err := store.Upload(t.Context(), account.ID)
		testkit.Must(t, err)
	}
}

func boundsUploads(t *testing.T, store schema.Database) {
	ids := map[string]int64{}
	for i, id := range []string{"busy", "oldest", "older", "newest"} {
		account := addAccount(t, store, id+"@example.org")
		ids[id] = account.ID
		upload := schema.Upload{ID: id, AccountID: account.ID, CreatedAt: hour(i + 1)}
		testkit.Must(t, store.CreateUpload(t.Context(), upload, id, longLease, keptSince(hour(0))))
		for part := range 2 {
			testkit.Must(t, store.AddUploadPart(t.Context(), id, part, []byte("x")))
		}
		if id != "busy" {
			wantNoted(t, store, id, id, schema.UploadNote{}, true)
		}
	}
	for i, c := range []struct {
		parts int
		gone  []string
	}{ // each call adds an upload without parts
		{12, nil}, {10, nil}, {10, []string{"oldest"}}, {9, []string{"oldest"}}, {9, []string{"oldest", "older"}},
		{0, []string{"oldest", "older", "newest"}},
	} {
		last := addAccount(t, store, fmt.Sprintf("last%d@example.org", i))
		upload := schema.Upload{ID: last.Email, AccountID: last.ID, CreatedAt: hour(9)}
		testkit.Must(t, store.CreateUpload(t.Context(), upload, "holder", longLease, schema.UploadsKept{Since: hour(0), Parts: c.parts}))
		for id, account := range ids {
			_, err := store.Upload(t.Context(), account)
			testkit.Equal(t, fmt.Sprintf("upload %s is gone with %d parts", id, c.parts), schema.ErrorCode(err) == schema.CodeNotFound, slices.Contains(c.gone, id))
		}
	}
}
