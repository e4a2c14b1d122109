package certificate_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"

	"linkstream/edge/certificate"
	"linkstream/schema/linkstore"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/testkit"
)

var secret = strings.Repeat("s", 32)

func openStorage(t *testing.T, store *linkstore.Store, secret string) (certmagic.Storage, *testkit.Buffer) {
	t.Helper()
	log := new(testkit.Buffer)
	storage, err := certificate.NewStorage(store, secret, log.Logger())
	testkit.Must(t, err)
	return storage, log
}

func TestStorage(t *testing.T) {
	t.Parallel()
	t.Run("keeps files as certmagic expects", func(t *testing.T) {
		storage, _ := openStorage(t, sqlitetest.New(t), secret)
		if _, err := storage.Load(t.Context(), "a/b"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a missing file: %v", err)
		}
		if _, err := storage.Stat(t.Context(), "a"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a missing folder: %v", err)
		}
		if _, err := storage.List(t.Context(), "a", true); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("files in a missing folder: %v", err)
		}
		for _, key := range []string{"a/b", "a/c/d", "a/c/e", "x"} {
			testkit.Must(t, storage.Store(t.Context(), key, []byte("value of "+key)))
		}
		value, err := storage.Load(t.Context(), "a/c/d")
		testkit.Must(t, err)
		testkit.Equal(t, "value", string(value), "value of a/c/d")
		for key, want := range map[string]bool{"a": true, "a/b": true, "a/c": true, "b": false, "a/c/d/e": false} {
			testkit.Equal(t, key+" exists", storage.Exists(t.Context(), key), want)
		}
		for folder, want := range map[string]string{"": "a x", "a": "a/b a/c", "a/c": "a/c/d a/c/e"} {
			keys, err := storage.List(t.Context(), folder, false)
			testkit.Must(t, err)
			testkit.Equal(t, "in "+folder, strings.Join(keys, " "), want)
		}
		keys, err := storage.List(t.Context(), "a", true)
		testkit.Must(t, err)
		testkit.Equal(t, "below a", strings.Join(keys, " "), "a/b a/c/d a/c/e")
		info, err := storage.Stat(t.Context(), "a/c")
		testkit.Must(t, err)
		testkit.Equal(t, "a folder is no file", info.IsTerminal, false)
		testkit.Must(t, storage.Delete(t.Context(), "a"))
		testkit.Must(t, storage.Delete(t.Context(), "a"))
		testkit.Equal(t, "a exists", storage.Exists(t.Context(), "a/c/d"), false)
	})
	t.Run("encrypts, each file for itself", func(t *testing.T) {
		store := sqlitetest.New(t)
		storage, log := openStorage(t, store, secret)
		testkit.Must(t, storage.Store(t.Context(), "a.key", []byte("PRIVATE KEY")))
		file, err := store.CertificateFile(t.Context(), "a.key")
		testkit.Must(t, err)
		if bytes.Contains(file.Value, []byte("PRIVATE")) {
			t.Errorf("the store has %q", file.Value)
		}
		testkit.Must(t, store.PutCertificateFile(t.Context(), "b.key", file.Value)) // cannot change places
		for _, damaged := range [][]byte{{}, {1}, append([]byte{2}, file.Value[1:]...), append(bytes.Clone(file.Value), 0)} {
			testkit.Must(t, store.PutCertificateFile(t.Context(), "c.key", damaged))
			for _, key := range []string{"b.key", "c.key"} {
				if _, err := storage.Load(t.Context(), key); !errors.Is(err, fs.ErrNotExist) || storage.Exists(t.Context(), key) {
					t.Errorf("%s: error %v", key, err)
				}
			}
		}
		other, _ := openStorage(t, store, strings.Repeat("t", 32))
		if _, err := other.Load(t.Context(), "a.key"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("with another secret: %v", err)
		}
		testkit.Equal(t, "the log says so", log.Contains("-edge.acme-key"), true)
	})
	t.Run("a lock has one holder, across processes", func(t *testing.T) {
		store := sqlitetest.New(t)
		first, _ := openStorage(t, store, secret)
		second, _ := openStorage(t, store, secret)
		testkit.Must(t, first.Lock(t.Context(), "x"))
		short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		for _, storage := range []certmagic.Storage{first, second} {
			if err := storage.Lock(short, "x"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a second lock: %v", err)
			}
		}
		if err := second.Unlock(t.Context(), "x"); err == nil {
			t.Error("who does not have the lock can release it")
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		testkit.Must(t, first.Unlock(canceled, "x")) // of an attempt that was given up
		testkit.Must(t, second.Lock(t.Context(), "x"))
		testkit.Must(t, second.Unlock(t.Context(), "x"))
	})
}
