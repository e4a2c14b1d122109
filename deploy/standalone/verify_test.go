package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"linkstream/schema/testkit"
)

// TestCommandsThatReadChangeNothing runs them on files that lack the migrations of this program.
func TestCommandsThatReadChangeNothing(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	paths := []string{filepath.Join(data, "clicks.db"), filepath.Join(data, "links.db")}
	for _, path := range paths {
		db, err := sql.Open("sqlite", path)
		testkit.Must(t, err)
		_, err = db.ExecContext(t.Context(), `
			CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY, version_id INTEGER,
				is_applied INTEGER, tstamp TIMESTAMP DEFAULT (datetime('now')));
			INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, 1)`)
		testkit.Must(t, err)
		testkit.Must(t, db.Close())
	}
	read := func() (files []string) {
		for _, path := range paths {
			content, err := os.ReadFile(path)
			testkit.Must(t, err)
			files = append(files, string(content))
		}
		return files
	}
	was := read()
	for _, args := range [][]string{{"verify"}, {"export", "you@example.com"},
		{"import", "you@example.com", "/dev/null", "-dry-run"}} {
		t.Run(args[0], func(t *testing.T) {
			_, err := command(t, append([]string{"-data", data}, args...)...)
			if err == nil || !strings.Contains(err.Error(), "made by an older linkstream") {
				t.Errorf("error %v", err)
			}
			if !slices.Equal(read(), was) {
				t.Error("a file has changed")
			}
		})
	}
}
