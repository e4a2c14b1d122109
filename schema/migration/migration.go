// Package migration brings the schema of a store up to date.
package migration

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"path"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"linkstream/schema"
)

// Up applies the migrations of provider that the database lacks. It refuses a database that a newer program migrated.
func Up(ctx context.Context, provider *goose.Provider) error {
	current, latest, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if current > latest {
		return newer(current, latest)
	}
	if current == latest {
		return nil
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate from version %d to %d: %w", current, latest, err)
	}
	return nil
}

func newer(current, latest int64) error {
	return schema.Errorf(schema.CodeInternal, "the schema has version %d, made by a newer linkstream: this one knows %d",
		current, latest)
}

// Check returns an error unless db has applied exactly the migrations in files. It changes nothing, for programs that
// only read: data that they have migrated could not be read by the release that made it.
func Check(ctx context.Context, dialect goose.Dialect, db *sql.DB, files fs.FS) error {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return err
	}
	var latest int64
	for _, name := range names {
		version, err := goose.NumericComponent(path.Base(name))
		if err != nil {
			return err
		}
		latest = max(latest, version)
	}
	versions, err := database.NewStore(dialect, goose.DefaultTablename)
	if err != nil {
		return err
	}
	current, err := versions.GetLatestVersion(ctx, db)
	switch {
	case err != nil:
		return fmt.Errorf("read schema version: %w", err)
	case current > latest:
		return newer(current, latest)
	case current < latest:
		return schema.Errorf(schema.CodeInternal,
			"the schema has version %d, made by an older linkstream: this one knows %d. "+
				"Use the program of that release, or start the services of this one, which bring it up to date", current, latest)
	}
	return nil
}
