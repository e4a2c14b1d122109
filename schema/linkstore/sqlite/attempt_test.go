package sqlite_test

import (
	"path/filepath"
	"testing"

	"linkstream/schema/sqlitetest"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

func TestOldAttempts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "links.db")
	raw := sqlitetest.Raw(t, path)
	storetest.TestOldAttempts(t, openLinks(t, path), func() (n int) {
		testkit.Must(t, raw.QueryRowContext(t.Context(), `SELECT count(*) FROM attempts`).Scan(&n))
		return n
	})
}
