package sqlite_test

import (
	"path/filepath"
	"testing"

	"linkstream/schema/linkstore/sqlite"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// The SHA-256 of released migrations.
var released = map[string]string{"00001_links.sql": "9f4df27aabc16e4ef9b6e43a33018d31996b1ca768c7377c60ae76a19ec80247"}

func TestMigrations(t *testing.T) {
	files := sqlite.Migrations()
	storetest.TestMigrations(t, files, released, func(t *testing.T, from int64) []string {
		path := filepath.Join(t.TempDir(), "links.db")
		testkit.Must(t, sqlitetest.MigrateTo(t.Context(), path, files, from))
		openLinks(t, path)
		return sqlitetest.Catalogue(t, path)
	})
}

func TestOtherSchemas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "links.db")
	openLinks(t, path)
	open := func() error {
		store, err := sqlite.OpenCurrent(t.Context(), path)
		if err == nil {
			err = store.Close()
		}
		return err
	}
	raw := sqlitetest.Raw(t, path)
	exec := func(t *testing.T, statement string) {
		_, err := raw.ExecContext(t.Context(), statement)
		testkit.Must(t, err)
	}
	storetest.TestOtherSchemas(t, open, exec, func(t *testing.T) (all []int64) {
		rows, err := raw.QueryContext(t.Context(), "SELECT version_id FROM goose_db_version ORDER BY version_id")
		testkit.Must(t, err)
		defer testkit.Close(t, rows)
		for rows.Next() {
			all = append(all, 0)
			testkit.Must(t, rows.Scan(&all[len(all)-1]))
		}
		return all
	})
}
