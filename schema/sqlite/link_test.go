package sqlite_test

import (
	"path/filepath"
	"testing"

	"linkstream/schema/sqlite"
	"linkstream/schema/storetest"
)

func openLinks(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	links, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { links.Close() })
	return links
}

// freshLinks is a storetest.Open.
func freshLinks(t *testing.T) (store storetest.LinkStores, reopen func() storetest.LinkStores) {
	path := filepath.Join(t.TempDir(), "links.db")
	links := openLinks(t, path)
	return links, func() storetest.LinkStores {
		if err := links.Close(); err != nil {
			t.Fatal(err)
		}
		return openLinks(t, path)
	}
}

func TestLinks(t *testing.T) { storetest.TestLinkStores(t, freshLinks) }
