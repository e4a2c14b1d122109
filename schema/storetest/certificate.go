package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var certificateBehaviours = []behaviour[schema.Database]{
	{"PutCertificateFile keeps a file and replaces it", keepsCertificateFiles},
	{"CertificateFiles returns what is below a folder", listsCertificateFiles},
	{"DeleteCertificateFiles deletes a file and what is below it", deletesCertificateFiles},
	{"LockCertificate gives a lock to one holder until it is released", locksCertificates},
	{"LockCertificate gives a lock away when its lease ends", endsLeases},
	{"LockCertificate gives a lock to one of concurrent callers", locksOnce},
	{"NoteCertificate keeps the state of a host's certificate", notesCertificates},
}

func putFile(t *testing.T, store schema.CertificateStore, key, value string) {
	t.Helper()
	testkit.Must(t, store.PutCertificateFile(t.Context(), key, []byte(value)))
}

func keepsCertificateFiles(t *testing.T, store schema.Database) {
	_, err := store.CertificateFile(t.Context(), "a/b.crt")
	testkit.WantCode(t, err, schema.CodeNotFound)
	for _, value := range []string{"first", "", "the second\x00\xff"} {
		before := time.Now().Truncate(time.Millisecond)
		putFile(t, store, "a/b.crt", value)
		got, err := store.CertificateFile(t.Context(), "a/b.crt")
		testkit.Must(t, err)
		if got.ModifiedAt.Before(before) || got.ModifiedAt.After(time.Now()) {
			t.Errorf("modified at %v, want after %v", got.ModifiedAt, before)
		}
		want := schema.CertificateFile{Key: "a/b.crt", Value: []byte(value), Size: int64(len(value)),
			ModifiedAt: got.ModifiedAt}
		testkit.Equal(t, "file", got, want, cmpopts.EquateEmpty())
	}
	_, err = store.CertificateFile(t.Context(), "a")
	testkit.WantCode(t, err, schema.CodeNotFound)
}

func wantFiles(t *testing.T, store schema.CertificateStore, folder string, want ...string) {
	t.Helper()
	files, err := store.CertificateFiles(t.Context(), folder)
	testkit.Must(t, err)
	var got []string
	for _, file := range files {
		got = append(got, file.Key)
		testkit.Equal(t, "size of "+file.Key, file.Size, int64(len(file.Key)))
		testkit.Equal(t, "value of "+file.Key, len(file.Value), 0)
	}
	testkit.Equal(t, "files below "+folder, got, want, nilOrEmpty)
}

func fillFiles(t *testing.T, store schema.CertificateStore) {
	for _, key := range []string{"a0", "a/c/d", "a/b", "a", "a-b/c", "A/b", "b/a/b", "a%/b"} {
		putFile(t, store, key, key)
	}
}

func listsCertificateFiles(t *testing.T, store schema.Database) {
	fillFiles(t, store)
	wantFiles(t, store, "", "A/b", "a", "a%/b", "a-b/c", "a/b", "a/c/d", "a0", "b/a/b")
	wantFiles(t, store, "a", "a/b", "a/c/d")
	wantFiles(t, store, "a/c", "a/c/d")
	wantFiles(t, store, "a/b")
	wantFiles(t, store, "none")
}

func deletesCertificateFiles(t *testing.T, store schema.Database) {
	fillFiles(t, store)
	testkit.Must(t, store.DeleteCertificateFiles(t.Context(), "a"))
	wantFiles(t, store, "", "A/b", "a%/b", "a-b/c", "a0", "b/a/b")
	testkit.Must(t, store.DeleteCertificateFiles(t.Context(), "b/a/b"))
	testkit.Must(t, store.DeleteCertificateFiles(t.Context(), "none"))
	wantFiles(t, store, "", "A/b", "a%/b", "a-b/c", "a0")
}

func lock(t *testing.T, store schema.CertificateStore, name, holder string, lease time.Duration) bool {
	t.Helper()
	locked, err := store.LockCertificate(t.Context(), name, holder, lease)
	testkit.Must(t, err)
	return locked
}

func locksCertificates(t *testing.T, store schema.Database) {
	testkit.Equal(t, "a gets the lock", lock(t, store, "x", "a", time.Hour), true)
	testkit.Equal(t, "b does not", lock(t, store, "x", "b", time.Hour), false)
	testkit.Equal(t, "b gets another one", lock(t, store, "y", "b", time.Hour), true)
	testkit.Equal(t, "a renews its lease", lock(t, store, "x", "a", time.Hour), true)
	testkit.Must(t, store.UnlockCertificate(t.Context(), "x", "b")) // without having the lock
	testkit.Equal(t, "b does not get it", lock(t, store, "x", "b", time.Hour), false)
	testkit.Must(t, store.UnlockCertificate(t.Context(), "x", "a"))
	testkit.Must(t, store.UnlockCertificate(t.Context(), "x", "a"))
	testkit.Equal(t, "b gets it", lock(t, store, "x", "b", time.Hour), true)
}

func endsLeases(t *testing.T, store schema.Database) {
	const lease = 50 * time.Millisecond
	testkit.Equal(t, "a gets the lock", lock(t, store, "x", "a", lease), true)
	testkit.Eventually(t, "b gets it", func() bool { return lock(t, store, "x", "b", time.Hour) })
	testkit.Equal(t, "a does not get it back", lock(t, store, "x", "a", time.Hour), false)
	testkit.Must(t, store.UnlockCertificate(t.Context(), "x", "a"))
	testkit.Equal(t, "nor does it take it from b", lock(t, store, "x", "c", time.Hour), false)
}

func locksOnce(t *testing.T, store schema.Database) {
	for range 5 {
		errs := concurrently(8, func(i int) error {
			locked, err := store.LockCertificate(t.Context(), "x", string(rune('a'+i)), time.Hour)
			if err == nil && !locked {
				err = schema.Errorf(schema.CodeConflict, "another one has it")
			}
			return err
		})
		winner := onlyOne(t, errs, schema.CodeConflict)
		testkit.Must(t, store.UnlockCertificate(t.Context(), "x", string(rune('a'+winner))))
	}
}

func notesCertificates(t *testing.T, store schema.Database) {
	_, err := store.CertificateState(t.Context(), "go.example")
	testkit.WantCode(t, err, schema.CodeNotFound)
	state := schema.CertificateState{Host: "go.example", AttemptedAt: epoch, Error: "no such host"}
	check := func() {
		t.Helper()
		testkit.Must(t, store.NoteCertificate(t.Context(), state))
		got, err := store.CertificateState(t.Context(), state.Host)
		testkit.Must(t, err)
		testkit.Equal(t, "state", got, state)
	}
	check()
	state.ExpiresAt, state.AttemptedAt, state.Error = epoch.Add(time.Hour), epoch.Add(time.Minute), ""
	check()
	failed := schema.CertificateState{Host: "go.example", AttemptedAt: epoch.Add(time.Hour), Error: "no answer"}
	testkit.Must(t, store.NoteCertificate(t.Context(), failed))
	failed.ExpiresAt = state.ExpiresAt // of the certificate in use
	got, err := store.CertificateState(t.Context(), "go.example")
	testkit.Must(t, err)
	testkit.Equal(t, "state after a failure", got, failed)
}
