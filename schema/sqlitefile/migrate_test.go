package sqlitefile_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"linkstream/schema/sqlitefile"
	"linkstream/schema/sqlitetest"
	"linkstream/schema/testkit"
)

func TestFailedMigrationChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "links.db")
	second := "-- a comment\nCREATE TABLE second (x INTEGER);\nINSERT INTO second VALUES (1), (2);\n"
	files := fstest.MapFS{
		"00001_first.sql":  {Data: []byte("CREATE TABLE first (x INTEGER);")},
		"00002_second.sql": {Data: []byte(second + "INSERT INTO missing VALUES (1);")},
	}
	apply := func(files fs.FS) error {
		file, err := sqlitefile.Open(t.Context(), path, files)
		if err == nil {
			err = file.Close()
		}
		return err
	}
	if err := apply(files); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("error %v", err)
	}
	files["00002_second.sql"] = &fstest.MapFile{Data: []byte(second)}
	testkit.Must(t, apply(files))
	testkit.Must(t, apply(files)) // has nothing to do
	var rows int
	testkit.Must(t, sqlitetest.Raw(t, path).QueryRowContext(t.Context(), `SELECT count(*) FROM first, second`).Scan(&rows))
	testkit.Equal(t, "rows of both tables", rows, 0)
	testkit.Must(t, sqlitetest.Raw(t, path).QueryRowContext(t.Context(), `SELECT count(*) FROM second`).Scan(&rows))
	testkit.Equal(t, "rows of the second table", rows, 2)
}
