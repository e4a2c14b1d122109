package sqlite_test

import (
	"path/filepath"
	"testing"

	"linkstream/schema"
	"linkstream/schema/linkstore"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// openLinks is openClicks for links.
func openLinks(t testing.TB, path string) *linkstore.Store {
	t.Helper()
	links, err := sqlitetest.Open(t.Context(), path)
	testkit.Must(t, err)
	t.Cleanup(func() { links.Close() })
	return links
}

// openFresh returns a storetest.Open of stores whose statements are added to texts.
func openFresh(texts *storetest.Texts) storetest.Open[schema.Database] {
	return func(t *testing.T) (store schema.Database, reopen func() schema.Database) {
		path := filepath.Join(t.TempDir(), "links.db")
		links := openLinks(t, path)
		return texts.Of(links), func() schema.Database {
			testkit.Must(t, links.Close())
			return texts.Of(openLinks(t, path))
		}
	}
}

func TestStore(t *testing.T) {
	var texts storetest.Texts
	storetest.TestDatabase(t, openFresh(&texts))
	t.Run("every statement finds its rows by an index", func(t *testing.T) { testPlans(t, &texts) })
	t.Run("a late holder of a webhook loses no clicks", func(t *testing.T) {
		storetest.TestLateHolder(t, openLinks(t, filepath.Join(t.TempDir(), "links.db")))
	})
	t.Run("a call takes effect as a whole", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "links.db")
		links, raw := openLinks(t, path), sqlitetest.Raw(t, path)
		storetest.TestAtomicity(t, links, func(t *testing.T) []string { return sqlitetest.Rows(t, raw) }, &texts)
	})
}

func TestFolding(t *testing.T) {
	path := filepath.Join(t.TempDir(), "links.db")
	links, raw := openLinks(t, path), sqlitetest.Raw(t, path)
	storetest.TestFolding(t, links, func(statement string) {
		_, err := raw.ExecContext(t.Context(), statement)
		testkit.Must(t, err)
	})
}

func TestTakenNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "links.db")
	links, raw := openLinks(t, path), sqlitetest.Raw(t, path)
	storetest.TestTakenNames(t, links, func(statement string) {
		_, err := raw.ExecContext(t.Context(), statement)
		testkit.Must(t, err)
	})
}
