package sqlite_test

import (
	"path/filepath"
	"testing"

	"linkstream/schema/sqlitetest"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestMaxPending(t *testing.T) {
	path := filepath.Join(t.TempDir(), "links.db")
	store, raw := openLinks(t, path), sqlitetest.Raw(t, path)
	storetest.TestMaxPending(t, store, func(entries int) {
		_, err := raw.ExecContext(t.Context(), `WITH RECURSIVE i (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < ?)
			INSERT INTO outbox (changes) SELECT 'link/0/many' FROM i`, entries)
		testkit.Must(t, err)
	})
}
