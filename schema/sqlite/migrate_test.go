package sqlite_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"linkstream/schema/sqlite"
	"linkstream/schema/storetest"
	"linkstream/schema/testkit"
)

// The SHA-256 of released migrations.
var (
	releasedLinks  = map[string]string{"00001_links.sql": "9f4df27aabc16e4ef9b6e43a33018d31996b1ca768c7377c60ae76a19ec80247"}
	releasedClicks = map[string]string{"00001_clicks.sql": "d3e94deb6bb1f99ef0c989f81494de51fd168a2ca4d75d057cc9181d35a62d00"}
)

func TestMigrations(t *testing.T) {
	t.Run("links", func(t *testing.T) {
		storetest.TestMigrations(t, os.DirFS("migrations/links"), releasedLinks, func(t *testing.T, from int64) []string {
			path := filepath.Join(t.TempDir(), "links.db")
			testkit.Must(t, sqlite.MigrateLinksTo(t.Context(), path, from))
			openLinks(t, path)
			return catalogue(t, path)
		})
	})
	t.Run("clicks", func(t *testing.T) {
		storetest.TestMigrations(t, os.DirFS("migrations/clicks"), releasedClicks, func(t *testing.T, from int64) []string {
			path := filepath.Join(t.TempDir(), "clicks.db")
			testkit.Must(t, sqlite.MigrateClicksTo(t.Context(), path, from))
			openClicks(t, path)
			return catalogue(t, path)
		})
	})
}

func TestFailedMigrationChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "links.db")
	second := "-- a comment\nCREATE TABLE second (x INTEGER);\nINSERT INTO second VALUES (1), (2);\n"
	files := fstest.MapFS{
		"00001_first.sql":  {Data: []byte("CREATE TABLE first (x INTEGER);")},
		"00002_second.sql": {Data: []byte(second + "INSERT INTO missing VALUES (1);")},
	}
	if err := sqlite.ApplyMigrations(t.Context(), path, files); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("error %v", err)
	}
	files["00002_second.sql"] = &fstest.MapFile{Data: []byte(second)}
	testkit.Must(t, sqlite.ApplyMigrations(t.Context(), path, files))
	testkit.Must(t, sqlite.ApplyMigrations(t.Context(), path, files)) // has nothing to do
	var rows int
	testkit.Must(t, openRaw(t, path).QueryRowContext(t.Context(), `SELECT count(*) FROM first, second`).Scan(&rows))
	testkit.Equal(t, "rows of both tables", rows, 0)
	testkit.Must(t, openRaw(t, path).QueryRowContext(t.Context(), `SELECT count(*) FROM second`).Scan(&rows))
	testkit.Equal(t, "rows of the second table", rows, 2)
}

// catalogue returns the columns of all tables and the statements that made tables and indexes.
func catalogue(t *testing.T, path string) (all []string) {
	t.Helper()
	rows, err := openRaw(t, path).QueryContext(t.Context(), `
		SELECT concat_ws(' ', type, name, tbl_name, sql) FROM sqlite_schema
		UNION ALL
		SELECT concat_ws(' ', 'column', t.name, c.cid, c.name, c.type, c."notnull", c.dflt_value, c.pk)
		FROM sqlite_schema t, pragma_table_xinfo(t.name) c WHERE t.type = 'table'
		ORDER BY 1`)
	testkit.Must(t, err)
	defer testkit.Close(t, rows)
	for rows.Next() {
		var row string
		testkit.Must(t, rows.Scan(&row))
		all = append(all, row)
	}
	testkit.Must(t, rows.Err())
	return all
}

func TestOtherSchemas(t *testing.T) {
	dir := t.TempDir()
	links, clicks := filepath.Join(dir, "links.db"), filepath.Join(dir, "clicks.db")
	openLinks(t, links)
	openClicks(t, clicks)
	for path, check := range map[string]func() error{
		links: func() error {
			store, err := sqlite.OpenCurrent(t.Context(), links)
			if err == nil {
				err = store.Close()
			}
			return err
		},
		clicks: func() error {
			store, err := sqlite.OpenCurrentClickStore(t.Context(), clicks)
			if err == nil {
				err = store.Close()
			}
			return err
		},
	} {
		t.Run(filepath.Base(path), func(t *testing.T) {
			raw := openRaw(t, path)
			storetest.TestOtherSchemas(t, check,
				func(t *testing.T, statement string) {
					_, err := raw.ExecContext(t.Context(), statement)
					testkit.Must(t, err)
				},
				func(t *testing.T) (all []int64) {
					rows, err := raw.QueryContext(t.Context(), "SELECT version_id FROM goose_db_version ORDER BY version_id")
					testkit.Must(t, err)
					defer testkit.Close(t, rows)
					for rows.Next() {
						all = append(all, 0)
						testkit.Must(t, rows.Scan(&all[len(all)-1]))
					}
					return all
				})
		})
	}
	t.Run("a missing file stays missing", func(t *testing.T) {
		missing := filepath.Join(dir, "missing.db")
		if _, err := sqlite.OpenCurrentClickStore(t.Context(), missing); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error %v", err)
		}
		if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error %v", err)
		}
	})
}
