package sqlite_test

import (
	"path/filepath"
	"testing"

	"linkstream/schema/sqlite"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func openLinks(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	links, err := sqlite.Open(t.Context(), path)
	testkit.Must(t, err)
	t.Cleanup(func() { links.Close() })
	return links
}

// freshLinks is a storetest.Open.
func freshLinks(t *testing.T) (store storetest.LinkStores, reopen func() storetest.LinkStores) {
	path := filepath.Join(t.TempDir(), "links.db")
	links := openLinks(t, path)
	return links, func() storetest.LinkStores {
		testkit.Must(t, links.Close())
		return openLinks(t, path)
	}
}

func TestLinks(t *testing.T) { storetest.TestLinkStores(t, freshLinks) }
