package sqlite_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"linkstream/schema/sqlite"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// The SHA-256 of released migrations.
var released = map[string]string{"00001_clicks.sql": "d3e94deb6bb1f99ef0c989f81494de51fd168a2ca4d75d057cc9181d35a62d00"}

func TestMigrations(t *testing.T) {
	files := os.DirFS("migrations")
	storetest.TestMigrations(t, files, released, func(t *testing.T, from int64) []string {
		path := filepath.Join(t.TempDir(), "clicks.db")
		testkit.Must(t, sqlitetest.MigrateTo(t.Context(), path, files, from))
		openClicks(t, path)
		return sqlitetest.Catalogue(t, path)
	})
}

func TestOtherSchemas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clicks.db")
	openClicks(t, path)
	open := func() error {
		store, err := sqlite.OpenCurrentClickStore(t.Context(), path)
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
	t.Run("a missing file stays missing", func(t *testing.T) {
		missing := filepath.Join(t.TempDir(), "missing.db")
		if _, err := sqlite.OpenCurrentClickStore(t.Context(), missing); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error %v", err)
		}
		if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error %v", err)
		}
	})
}
