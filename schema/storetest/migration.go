package storetest

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// TestMigrations checks that released migrations stay as they are, and that a schema is the same whether a database is
// new or is upgraded from any earlier version.
//
// released has the SHA-256 of each released migration by its file name. A database never applies a migration again, so
// after an edit old and new databases would have other schemas.
//
// migrate makes a database with the given version, 0 being an empty one, opens it with the store, which upgrades it,
// and returns its schema as rows of the engine's own catalogue.
func TestMigrations(
	t *testing.T, files fs.FS, released map[string]string, migrate func(t *testing.T, from int64) (catalogue []string),
) {
	for name, sum := range released {
		text, err := fs.ReadFile(files, name)
		testkit.Must(t, err)
		if got := fmt.Sprintf("%x", sha256.Sum256(text)); got != sum {
			t.Errorf("%s is released and has changed. Restore it, and put the change into a new migration.", name)
		}
	}
	names, err := fs.Glob(files, "*.sql")
	testkit.Must(t, err)
	fresh := migrate(t, 0)
	if len(fresh) < 10 {
		t.Fatalf("the catalogue of a new database has only %d rows: %q", len(fresh), fresh)
	}
	for version := int64(1); version <= int64(len(names)); version++ {
		t.Run(fmt.Sprintf("from version %d", version), func(t *testing.T) {
			testkit.Equal(t, "catalogue", migrate(t, version), fresh)
		})
	}
}

// TestOtherSchemas checks that open, which opens and closes a database, refuses the schema of another release and
// changes nothing. exec executes a statement in the database, which is up to date, and versions returns the versions in
// it.
func TestOtherSchemas(
	t *testing.T, open func() error, exec func(t *testing.T, statement string), versions func(t *testing.T) []int64,
) {
	testkit.Must(t, open())
	for _, other := range []struct {
		statement, says string
		versions        []int64
	}{
		{"DELETE FROM goose_db_version WHERE version_id > 0", "made by an older linkstream", []int64{0}},
		{"INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, true)", "made by a newer linkstream",
			[]int64{0, 99}},
	} {
		exec(t, other.statement)
		if err := open(); schema.ErrorCode(err) != schema.CodeInternal || !strings.Contains(err.Error(), other.says) {
			t.Errorf("error %v, want one that says %q", err, other.says)
		}
		testkit.Equal(t, "versions", versions(t), other.versions)
	}
}
