package storetest

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"testing"

	"linkstream/schema/testkit"
)

// TestFrozenMigrations checks that the migrations in files are those of frozen, which has the SHA-256 of each by its
// name. A database never applies a migration again, so after an edit old and new databases would have other schemas.
func TestFrozenMigrations(t *testing.T, files fs.FS, frozen map[string]string) {
	names, err := fs.Glob(files, "*.sql")
	testkit.Must(t, err)
	found := map[string]bool{}
	for _, name := range names {
		found[name] = true
		text, err := fs.ReadFile(files, name)
		testkit.Must(t, err)
		switch sum := fmt.Sprintf("%x", sha256.Sum256(text)); frozen[name] {
		case sum:
		case "":
			t.Errorf("%s is new. Freeze it when it is done: add %q: %q to the table of this test.", name, name, sum)
		default:
			t.Errorf("%s has changed. Databases that have applied it would keep the old schema: "+
				"restore the file, and put the change into a new migration.", name)
		}
	}
	for name := range frozen {
		if !found[name] {
			t.Errorf("%s is gone. New databases would miss it: restore the file.", name)
		}
	}
}

// TestUpgrades checks that a schema is the same whether a database is new or is upgraded from any earlier version.
// migrate makes a database with the given version, 0 being an empty one, opens it with the store, which upgrades it, and
// returns its schema as rows of the engine's own catalogue.
func TestUpgrades(t *testing.T, migrations fs.FS, migrate func(t *testing.T, from int64) (catalogue []string)) {
	names, err := fs.Glob(migrations, "*.sql")
	testkit.Must(t, err)
	fresh := migrate(t, 0)
	if len(fresh) < 10 {
		t.Fatalf("the catalogue of a new database has only %d rows: %q", len(fresh), fresh)
	}
	for version := int64(1); version < int64(len(names)); version++ {
		t.Run(fmt.Sprintf("from version %d", version), func(t *testing.T) {
			testkit.Equal(t, "catalogue", migrate(t, version), fresh)
		})
	}
}
